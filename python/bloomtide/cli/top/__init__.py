"""`bloomtide top`: what is hot in a web or proxy log now."""

from bloomtide.cli.top.command import top

__all__ = ["top"]
