"""`bloomtide dedup`: each line the first time it is seen."""

from bloomtide.cli.dedup.command import dedup

__all__ = ["dedup"]
