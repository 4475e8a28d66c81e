"""The experiments on counts in spans of time."""
