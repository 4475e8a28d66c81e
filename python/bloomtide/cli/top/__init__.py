"""`bloomtide top`: what is hot in a web or proxy log now."""
