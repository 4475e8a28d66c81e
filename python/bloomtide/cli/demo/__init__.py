"""`bloomtide demo`: a tour in chapters, each of which measures what it tells."""
