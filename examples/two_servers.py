"""Two servers and one client: the slot of a name, as in Redis Cluster, says which one has it.

bloomtide serve --memory --port 6380 & bloomtide serve --memory --port 6390 &
python examples/two_servers.py 6380 6390
"""

from __future__ import annotations

import sys
from collections import defaultdict

import redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

SITES = [f"site{number}.example" for number in range(40)]
PAGES = [f"/page/{number}" for number in range(500)]


class Servers:
    """Each server has an equal part of the 16,384 slots."""

    def __init__(self, ports: list[int]) -> None:
        self.clients = [redis.Redis(port=port, decode_responses=True) for port in ports]

    def of(self, name: str) -> redis.Redis:
        """The server of this name. Names with the same `{tag}` are on one server."""
        return self.clients[key_slot(name.encode()) * len(self.clients) // REDIS_CLUSTER_HASH_SLOTS]


def main(ports: list[int]) -> None:
    """One filter for each site: add its pages in one command, then ask for them and for others."""
    servers = Servers(ports)
    held: dict[redis.Redis, int] = defaultdict(int)
    missing = wrong = 0
    for site in SITES:
        name, server = f"seen:{{{site}}}", servers.of(f"seen:{{{site}}}")
        server.bf().reserve(name, 0.001, len(PAGES))
        server.bf().madd(name, *PAGES)
        held[server] += 1
        missing += server.bf().mexists(name, *PAGES).count(0)
        wrong += sum(server.bf().mexists(name, *[f"/other{page}" for page in PAGES]))
    parts = ", ".join(str(held[client]) for client in servers.clients)
    answers = f"{missing} pages missing, {wrong} wrongly seen"
    sys.stdout.write(f"filters on each server: {parts}; {answers}\n")


if __name__ == "__main__":
    main([int(port) for port in sys.argv[1:]] or [6380, 6390])
