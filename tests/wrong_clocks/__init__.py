"""One wrong clock never moves the time of a stream, in any structure, command or store."""
