"""E15: what a white paper on web caching says of its filter, measured on ours."""
