"""The two tables. A customer without a line has an empty basket."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Of both tables."""


class Customer(Base):
    """Somebody with a cookie."""

    __tablename__ = "customer"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class BasketLine(Base):
    """So many of one tea in one basket."""

    __tablename__ = "basket_line"

    customer_id: Mapped[int] = mapped_column(ForeignKey("customer.id"), primary_key=True)
    tea: Mapped[int] = mapped_column(primary_key=True)
    quantity: Mapped[int]
