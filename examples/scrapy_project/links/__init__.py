"""A crawl that can be killed at any moment and goes on where it was."""
