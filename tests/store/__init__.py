"""Sets on disk."""
