"""Customers to begin with, most of them with an empty basket. The same ones every time."""

from __future__ import annotations

import random
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncEngine

from webshop.tables import Base, BasketLine, Customer
from webshop.teas import TEAS

BATCH = 10_000


async def seed(engine: AsyncEngine, customers: int, full: float) -> bool:
    """Make the tables, and the customers if there are none yet; `full` of them have a basket."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
        if await connection.scalar(select(Customer.id).limit(1)):
            return False
        people = [{"id": i, "name": f"Customer {i}"} for i in range(1, customers + 1)]
        for table, rows in ((Customer, people), (BasketLine, _lines(customers, full))):
            for start in range(0, len(rows), BATCH):
                await connection.execute(insert(table), rows[start : start + BATCH])
    return True


def _lines(customers: int, full: float) -> list[dict[str, Any]]:
    """One to three teas in each basket that is not empty."""
    chance = random.Random(2000)
    return [
        {"customer_id": customer, "tea": tea, "quantity": chance.randint(1, 2)}
        for customer in sorted(chance.sample(range(1, customers + 1), round(customers * full)))
        for tea in chance.sample(sorted(TEAS), chance.randint(1, 3))
    ]
