"""Files that survive a power cut: one way to write them, and one writer at a time."""
