"""`Monitor`: one stream of events, five questions about it."""

from bloomtide.monitor.feed import LogFeed
from bloomtide.monitor.monitor import Monitor
from bloomtide.monitor.records import HotKey, MonitorStats, Pulse, SourceStats, StructureStats

__all__ = [
    "HotKey",
    "LogFeed",
    "Monitor",
    "MonitorStats",
    "Pulse",
    "SourceStats",
    "StructureStats",
]
