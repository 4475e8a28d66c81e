"""Named filters for other programs: the Redis protocol, HTTP and a page."""
