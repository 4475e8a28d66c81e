"""What `/metrics` tells of the server itself, beside its structures and commands."""

from __future__ import annotations

from collections.abc import Iterator

from bloomery.server.http.parts import Family
from bloomery.server.listener import Server


def figures(server: Server) -> Iterator[Family]:
    """Clients, memory and durability."""
    durability = server.durability
    journal, stats = durability.about(), server.keyspace.stats()
    gauges = {
        "bloomery_connected_clients": (len(server.clients), "Clients of the Redis protocol."),
        "bloomery_keys": (stats["keys"], "Named structures."),
        "bloomery_used_memory_bytes": (stats["bytes"], "Memory of all named structures."),
        "bloomery_last_save_timestamp_seconds": (
            durability.last_save, "When the last snapshot was complete.",
        ),
        "bloomery_last_save_failed": (
            durability.last_save_failed is not None, "1 if the last snapshot failed.",
        ),
        "bloomery_aof_size_bytes": (
            float(str(journal["aof_current_size"])), "Snapshot and journal.",
        ),
        "bloomery_aof_failed": (
            journal["aof_last_write_status"] != "ok", "1 if changes are refused.",
        ),
        "bloomery_aof_last_fsync_seconds": (
            durability.sync_seconds, "How long the last sync of the journal took.",
        ),
    }  # fmt: skip
    totals = {
        "bloomery_connections_total": (server.connections, "Clients that ever came."),
        "bloomery_rejected_connections_total": (server.rejected, "Clients that were too many."),
        "bloomery_aof_fsyncs_total": (durability.syncs, "Syncs of the journal."),
    }
    for kind, table in (("gauge", gauges), ("counter", totals)):
        for name, (value, about) in table.items():
            yield Family(name, kind, about, [({}, float(value))])
