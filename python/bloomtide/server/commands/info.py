"""INFO: the state of the server by sections, under Redis's names, so that its tools read it."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import bloomtide
from bloomtide import system
from bloomtide.server.commands.handler import Words
from bloomtide.server.commands.serving import MODULE_VERSION

if TYPE_CHECKING:
    from bloomtide.server.client import Client
    from bloomtide.server.listener import Server

REDIS_VERSION = "7.4.0"
"""What clients compare before they use a command; ours is `bloomtide_version`."""
Fields = Mapping[str, object]


def about_server(server: Server) -> Fields:
    """# Server."""
    up = int(max(0.0, time.time() - server.started))
    return {
        "redis_version": REDIS_VERSION,
        "bloomtide_version": bloomtide.__version__,
        "redis_mode": "standalone",
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "arch_bits": 64 if sys.maxsize > 2**32 else 32,
        "python_version": platform.python_version(),
        "process_id": os.getpid(),
        "run_id": server.run_id,
        "tcp_port": server.ports.get("port", 0),
        "tls_port": server.ports.get("tls-port", 0),
        "http_port": server.ports.get("http-port", 0),
        "uptime_in_seconds": up,
        "uptime_in_days": up // 86_400,
        "config_file": "",
    }


def about_clients(server: Server) -> Fields:
    """# Clients."""
    return {
        "connected_clients": len(server.clients),
        "maxclients": server.settings.maxclients,
        "blocked_clients": sum(c.answering is not None for c in server.clients.values()),
        "client_recent_max_output_buffer": max(
            (client.waiting for client in server.clients.values()), default=0
        ),
    }


def about_memory(server: Server) -> Fields:
    """# Memory."""
    used = server.keyspace.stats()["bytes"]
    return {
        "used_memory": used,
        "used_memory_dataset": used,
        "used_memory_rss": system.resident_bytes(),
        "used_memory_peak": system.peak_bytes(),
        "maxmemory": server.settings.maxmemory,
        "maxmemory_policy": "noeviction",
        "maxkeys": server.settings.maxkeys,
        "mem_allocator": "libc",
    }


def about_persistence(server: Server) -> Fields:
    """# Persistence."""
    return server.durability.about()


def about_stats(server: Server) -> Fields:
    """# Stats."""
    stats = server.keyspace.stats()
    return {
        "total_connections_received": server.connections,
        "rejected_connections": server.rejected,
        "total_commands_processed": stats["calls"],
        "total_error_replies": stats["errors"],
        "unknown_commands": stats["unknown"],
        "expired_keys": stats["expired"],
        "acl_access_denied_auth": server.refusals.count,
        "evicted_keys": 0,
        "keyspace_hits": stats["hits"],
        "keyspace_misses": stats["misses"],
    }


def about_replication(_server: Server) -> Fields:
    """# Replication."""
    return {"role": "master", "connected_slaves": 0}


def about_cpu(_server: Server) -> Fields:
    """# CPU."""
    user, kernel = system.processor_seconds()
    children_user, children_kernel = system.processor_seconds(children=True)
    return {
        "used_cpu_sys": round(kernel, 6),
        "used_cpu_user": round(user, 6),
        "used_cpu_sys_children": round(children_kernel, 6),
        "used_cpu_user_children": round(children_user, 6),
    }


def about_modules(_server: Server) -> Fields:
    """# Modules: the one whose commands these are; clients look for its name."""
    return {"module": f"name=bf,ver={MODULE_VERSION},api=1,filters=0,usedby=[],using=[],options=[]"}


def about_commands(server: Server) -> Fields:
    """# Commandstats."""
    return {
        f"cmdstat_{name.lower()}": f"calls={calls},rejected_calls=0,failed_calls={errors}"
        for name, (calls, errors) in server.keyspace.stats()["commands"].items()
        if calls
    }


def about_cluster(_server: Server) -> Fields:
    """# Cluster."""
    return {"cluster_enabled": 0}


def about_keyspace(server: Server) -> Fields:
    """# Keyspace."""
    stats = server.keyspace.stats()
    keys, expires = stats["keys"], stats["expires"]
    left = max(0, stats["mean_deadline"] - int(time.time() * 1000)) if expires else 0
    return {"db0": f"keys={keys},expires={expires},avg_ttl={left}"} if keys else {}


SECTIONS: dict[str, Callable[[Server], Fields]] = {
    "Server": about_server,
    "Clients": about_clients,
    "Memory": about_memory,
    "Persistence": about_persistence,
    "Stats": about_stats,
    "Replication": about_replication,
    "CPU": about_cpu,
    "Modules": about_modules,
    "Commandstats": about_commands,
    "Cluster": about_cluster,
    "Keyspace": about_keyspace,
}
_RARE = frozenset({"commandstats"})
"""Sections that are shown only if they are asked for."""


def info(server: Server, _client: Client, words: Words) -> bytes:
    """INFO [section ...]."""
    wanted = {word.decode("ascii", "replace").lower() for word in words} or {"default"}
    parts = []
    for name, about in SECTIONS.items():
        low = name.lower()
        if low in wanted or wanted & {"all", "everything"} or (
            "default" in wanted and low not in _RARE
        ):  # fmt: skip
            lines = [f"{key}:{_one_line(value)}\r\n" for key, value in about(server).items()]
            parts.append(f"# {name}\r\n{''.join(lines)}")
    return "\r\n".join(parts).encode()


def _one_line(value: object) -> str:
    return str(value).replace("\r", " ").replace("\n", " ")


HANDLERS = {"INFO": info}
