"""The baskets: what a page asks about them, and what customers change.

Every page asks for a badge. With the guard on, the database is asked only for customers who may
have something in their basket; the rest is certainly empty. The guard needs no word from here when
a basket changes: it sees the statements of its engine.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker

from bloomtide import DatabaseGuard
from webshop.tables import BasketLine, Customer


@dataclass(frozen=True, slots=True)
class Badge:
    """How many teas are in a basket, and what it took to know."""

    items: int
    asked: bool
    milliseconds: float


@dataclass(slots=True)
class Counted:
    """Badges since the start."""

    asked: int = 0
    """The database was asked."""
    found_empty: int = 0
    """It was, and said that the basket is empty."""
    avoided: int = 0
    """The guard knew."""


class Baskets:
    """All baskets of the shop."""

    def __init__(self, engine: AsyncEngine, guard: DatabaseGuard | None) -> None:
        self.guard = guard
        self.guarded = guard is not None
        """The switch. A guard that is switched off goes on watching what is written."""
        self.counted = Counted()
        self._engine = engine
        self._sessions = async_sessionmaker(engine, expire_on_commit=False)

    async def badge(self, customer: int) -> Badge:
        """How many teas the customer has in the basket."""
        start = time.perf_counter()
        if self.guarded and self.guard and not self.guard.may_exist(customer):
            self.counted.avoided += 1
            return Badge(0, asked=False, milliseconds=1000 * (time.perf_counter() - start))
        async with self._sessions() as session:
            total = func.coalesce(func.sum(BasketLine.quantity), 0)
            query = select(total).where(BasketLine.customer_id == customer)
            items = int(await session.scalar(query) or 0)
        self.counted.asked += 1
        self.counted.found_empty += not items
        if self.guarded and self.guard:
            self.guard.note(customer, found=items > 0)
        return Badge(items, asked=True, milliseconds=1000 * (time.perf_counter() - start))

    async def lines(self, customer: int) -> list[tuple[int, int]]:
        """Each tea in the basket, and how many of it."""
        query = select(BasketLine.tea, BasketLine.quantity).where(
            BasketLine.customer_id == customer
        )
        async with self._sessions() as session:
            found = await session.execute(query.order_by(BasketLine.tea))
            return [(tea, quantity) for tea, quantity in found]

    async def put(self, customer: int, tea: int) -> None:
        """One more of a tea."""
        insert = (postgresql if self._engine.dialect.name == "postgresql" else sqlite).insert
        line = insert(BasketLine).values(customer_id=customer, tea=tea, quantity=1)
        one_more = line.on_conflict_do_update(
            index_elements=[BasketLine.customer_id, BasketLine.tea],
            set_={"quantity": BasketLine.quantity + 1},
        )
        async with self._sessions.begin() as session:
            await session.execute(one_more)

    async def take(self, customer: int, tea: int) -> None:
        """All of a tea out of the basket."""
        async with self._sessions.begin() as session:
            await session.execute(
                delete(BasketLine).where(BasketLine.customer_id == customer, BasketLine.tea == tea)
            )

    async def someone(self, *, with_basket: bool) -> int:
        """Any customer with something in the basket, or with nothing."""
        has_line = select(BasketLine).where(BasketLine.customer_id == Customer.id).exists()
        query = select(Customer.id).where(has_line if with_basket else ~has_line)
        async with self._sessions() as session:
            return int(await session.scalar(query.order_by(func.random()).limit(1)) or 1)

    def told(self) -> dict[str, object]:
        """For the live page: what was counted here, and what the guard says of itself."""
        guard = self.guard.stats().as_dict() if self.guard else None
        return {"guarded": self.guarded, **asdict(self.counted), "guard": guard}
