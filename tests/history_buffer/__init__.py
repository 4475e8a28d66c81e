"""What a history has not sealed yet."""
