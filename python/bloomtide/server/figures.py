"""What `/metrics` tells of the server itself, beside its structures and commands."""

from __future__ import annotations

from collections.abc import Iterator

from bloomtide.server.http.parts import Family
from bloomtide.server.listener import Server


def figures(server: Server) -> Iterator[Family]:
    """Clients, memory and durability."""
    durability = server.durability
    journal, stats = durability.about(), server.keyspace.stats()
    gauges = {
        "bloomtide_connected_clients": (len(server.clients), "Clients of the Redis protocol."),
        "bloomtide_keys": (stats["keys"], "Named structures."),
        "bloomtide_used_memory_bytes": (stats["bytes"], "Memory of all named structures."),
        "bloomtide_last_save_timestamp_seconds": (
            durability.last_save, "When the last snapshot was complete.",
        ),
        "bloomtide_last_save_failed": (
            durability.last_save_failed is not None, "1 if the last snapshot failed.",
        ),
        "bloomtide_aof_size_bytes": (
            float(str(journal["aof_current_size"])), "Snapshot and journal.",
        ),
        "bloomtide_aof_failed": (
            journal["aof_last_write_status"] != "ok", "1 if changes are refused.",
        ),
        "bloomtide_aof_last_fsync_seconds": (
            durability.sync_seconds, "How long the last sync of the journal took.",
        ),
    }  # fmt: skip
    totals = {
        "bloomtide_connections_total": (server.connections, "Clients that ever came."),
        "bloomtide_rejected_connections_total": (server.rejected, "Clients that were too many."),
        "bloomtide_auth_failures_total": (server.refusals.count, "Wrong passwords."),
        "bloomtide_aof_fsyncs_total": (durability.syncs, "Syncs of the journal."),
    }
    for kind, table in (("gauge", gauges), ("counter", totals)):
        for name, (value, about) in table.items():
            yield Family(name, kind, about, [({}, float(value))])
