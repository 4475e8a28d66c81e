"""`bloomery history`: counts of keys in any range of time."""
