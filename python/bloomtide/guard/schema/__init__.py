"""The guarded table as the database has it, and who but the program can write its keys."""
