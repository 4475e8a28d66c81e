"""A small tea shop whose every page shows how full the visitor's basket is."""
