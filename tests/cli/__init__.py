"""The command line: in this process where that is enough, as a real process where it is not."""
