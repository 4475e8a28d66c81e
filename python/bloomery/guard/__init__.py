"""Do I have to ask the database at all? A filter of all keys of a column answers first."""
