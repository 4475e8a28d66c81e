"""The server's own figures for Prometheus: clients, the journal, snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bloomery.server.http.parts import Family

if TYPE_CHECKING:
    from bloomery.server.listener import Server


def figures(server: Server) -> Iterator[Family]:
    """What the keyspace and the monitor cannot tell."""
    journal = server.durability.about()
    told = (
        ("connected_clients", "gauge", "Clients now.", len(server.clients)),
        ("connections_total", "counter", "Clients that came.", server.connections),
        ("rejected_connections_total", "counter", "Clients too many.", server.rejected),
        ("aof_size_bytes", "gauge", "Snapshot and journal.", journal["aof_current_size"]),
        ("aof_fsyncs_total", "counter", "Syncs of the journal.", journal["aof_fsyncs"]),
        ("aof_last_fsync_seconds", "gauge", "The last one.", journal["aof_last_fsync_seconds"]),
        ("aof_failed", "gauge", "1 if changes are refused.",
         journal["aof_last_write_status"] != "ok"),
        ("last_save_timestamp_seconds", "gauge", "The last snapshot.",
         journal["rdb_last_save_time"]),
        ("last_save_failed", "gauge", "1 if the last snapshot could not be made.",
         journal["rdb_last_bgsave_status"] != "ok"),
    )  # fmt: skip
    for name, kind, about, value in told:
        assert isinstance(value, int | float)
        yield Family(f"bloomery_{name}", kind, about, [({}, float(value))])
