"""`RecentFilter` against a dictionary that keeps every instant."""
