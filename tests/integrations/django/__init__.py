"""`ModelGuard` on SQLite and PostgreSQL, with a small Django app."""
