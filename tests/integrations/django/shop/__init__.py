"""A Django app with a few tables to guard."""
