"""`bloomery watch`: logs and streams into a monitor, with its page."""

from bloomery.cli.watch.command import watch

__all__ = ["watch"]
