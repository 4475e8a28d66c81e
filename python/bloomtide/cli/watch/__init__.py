"""`bloomtide watch`: logs and streams into a monitor, with its page."""

from bloomtide.cli.watch.command import watch

__all__ = ["watch"]
