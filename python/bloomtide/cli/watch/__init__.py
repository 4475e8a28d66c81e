"""`bloomtide watch`: logs and streams into a monitor, with its page."""
