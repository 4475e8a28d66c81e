"""`bloomtide demo`: a tour in chapters, each of which measures what it tells."""

from bloomtide.cli.demo.tour import demo

__all__ = ["demo"]
