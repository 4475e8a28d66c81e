"""`bloomery demo`: a tour in chapters, each of which measures what it tells."""

from bloomery.cli.demo.tour import demo

__all__ = ["demo"]
