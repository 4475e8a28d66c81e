"""Another web process: joins a shared guard, writes customers and says so after each commit.

python -m tests.integrations.django.another_process ALIAS NAME HOST DIRECTORY FIRST
"""

from __future__ import annotations

import sys

from django.db import connections, transaction

from bloomtide.integrations.django import ModelGuard
from tests.integrations.django.configured import configure


def main(alias: str, name: str, host: str, directory: str, first: str) -> None:
    configure()
    from tests.integrations.django.shop.models import Basket

    connections.settings[alias].update({"NAME": name, "HOST": host})
    with ModelGuard(
        Basket, "customer", using=alias, shared=directory, build=False, capacity=100_000
    ) as guard:
        assert guard.build(), "the other process has built it"
        for customer in range(int(first), int(first) + 100_000):
            with transaction.atomic(using=alias):
                Basket.objects.using(alias).create(customer=customer)
            sys.stdout.write(f"{customer}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
