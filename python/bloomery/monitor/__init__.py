"""`Monitor`: one stream of events, five questions about it."""

from bloomery.monitor.feed import LogFeed
from bloomery.monitor.monitor import Monitor
from bloomery.monitor.records import HotKey, MonitorStats, Pulse, StructureStats

__all__ = ["HotKey", "LogFeed", "Monitor", "MonitorStats", "Pulse", "StructureStats"]
