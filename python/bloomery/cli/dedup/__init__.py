"""`bloomery dedup`: each line the first time it is seen."""

from bloomery.cli.dedup.command import dedup

__all__ = ["dedup"]
