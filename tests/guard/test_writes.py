"""Each way of writing a key through SQLAlchemy is seen, or ends the trust; nothing in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    DDL,
    Connection,
    Engine,
    MetaData,
    Table,
    bindparam,
    delete,
    func,
    insert,
    literal,
    null,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.expression import ClauseElement, Executable

from bloomtide import DatabaseGuard
from bloomtide.guard.stats import State
from tests.guard.shop import ABSENT, Address, Base, Basket, Customer, Visit

TABLE: Any = Basket.__table__
KEY = TABLE.c.customer_id
Write = Callable[[Session], object]


@pytest.fixture
def guard(engine: Engine) -> Iterator[DatabaseGuard]:
    """Of the keys 1 to 5, which have rows."""
    with Session(engine) as session, session.begin():
        session.add_all(Basket(owner=key) for key in range(1, 6))
    with DatabaseGuard(engine, Basket.owner, 1e-6) as made:
        assert made.build()
        assert not made.may_exist(ABSENT)
        yield made


def upsert(session: Session, **values: Any) -> Any:
    kind = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    return kind.insert(Basket).values(**values)


def load(session: Session, key: int) -> Basket:
    return session.scalars(select(Basket).where(Basket.owner == key)).one()


def set_key(session: Session) -> None:
    load(session, 1).owner = 101


SEEN: dict[str, tuple[Write, list[int]]] = {
    "add": (lambda s: s.add(Basket(owner=100)), [100]),
    "add_all": (lambda s: s.add_all([Basket(owner=100), Basket(owner=101)]), [100, 101]),
    "orm insert": (lambda s: s.execute(insert(Basket).values(owner=100)), [100]),
    "orm insert by attribute": (
        lambda s: s.execute(insert(Basket).values({Basket.owner: 100})),
        [100],
    ),
    "orm bulk insert": (
        lambda s: s.execute(insert(Basket), [{"owner": 100}, {"owner": 101}]),
        [100, 101],
    ),
    "orm bulk insert of 3000": (
        lambda s: s.execute(insert(Basket), [{"owner": k} for k in range(1000, 4000)]),
        list(range(1000, 4000)),
    ),
    "bulk insert with returning": (
        lambda s: s.scalars(insert(Basket).returning(Basket.id), [{"owner": 100}, {"owner": 101}]),
        [100, 101],
    ),
    "bulk_insert_mappings": (
        lambda s: s.bulk_insert_mappings(Basket, [{"owner": 100}]),
        [100],
    ),
    "bulk_save_objects": (lambda s: s.bulk_save_objects([Basket(owner=100)]), [100]),
    "values of many rows": (
        lambda s: s.execute(insert(Basket).values([{"owner": 100}, {"owner": 101}])),
        [100, 101],
    ),
    "core insert": (lambda s: s.execute(TABLE.insert().values(customer_id=100)), [100]),
    "core insert of parameters": (
        lambda s: s.connection().execute(TABLE.insert(), {"customer_id": 100}),
        [100],
    ),
    "core values of many rows": (
        lambda s: s.execute(TABLE.insert().values([{"customer_id": 100}, {"customer_id": 101}])),
        [100, 101],
    ),
    "core values by position": (lambda s: s.execute(TABLE.insert().values((77, 100, 1))), [100]),
    "core insert of a literal": (
        lambda s: s.execute(TABLE.insert().values(customer_id=literal(100))),
        [100],
    ),
    "parameter of another name": (
        lambda s: s.connection().execute(
            TABLE.insert().values(customer_id=bindparam("x")), [{"x": 100}, {"x": 101}]
        ),
        [100, 101],
    ),
    "table of another MetaData": (
        lambda s: s.execute(
            Table("basket", MetaData(), autoload_with=s.get_bind()).insert(),
            {"customer_id": 100, "items": 1},
        ),
        [100],
    ),
    "upsert": (
        lambda s: s.execute(
            upsert(s, owner=1).on_conflict_do_update(index_elements=[KEY], set_={"items": 5})
        ),
        [1],
    ),
    "upsert of a new key": (
        lambda s: s.execute(
            upsert(s, owner=100).on_conflict_do_update(index_elements=[KEY], set_={"items": 5})
        ),
        [100],
    ),
    "upsert that does nothing": (
        lambda s: s.execute(upsert(s, owner=1).on_conflict_do_nothing()),
        [1],
    ),
    "upsert that sets the key to itself": (
        lambda s: s.execute(
            (made := upsert(s, id=1, owner=100)).on_conflict_do_update(
                index_elements=["id"], set_={"customer_id": made.excluded.customer_id}
            )
        ),
        [100],
    ),
    "attribute": (set_key, [101]),
    "update": (lambda s: s.execute(update(Basket).where(Basket.id == 1).values(owner=100)), [100]),
    "bulk update by primary key": (
        lambda s: s.execute(update(Basket), [{"id": 1, "owner": 100}, {"id": 2, "owner": 101}]),
        [100, 101],
    ),
    "core update": (
        lambda s: s.execute(TABLE.update().where(KEY == 1).values(customer_id=100)),
        [100],
    ),
    "core update of named parameters": (
        lambda s: s.connection().execute(
            TABLE.update().where(bindparam("old") == KEY).values(customer_id=bindparam("new")),
            [{"old": 1, "new": 100}, {"old": 2, "new": 101}],
        ),
        [100, 101],
    ),
    "ordered update": (
        lambda s: s.execute(
            TABLE.update().where(KEY == 1).ordered_values((KEY, 100), (TABLE.c["items"], 2))
        ),
        [100],
    ),
    "update of an alias": (
        lambda s: s.execute(
            update(other := TABLE.alias("other"))
            .where(other.c.customer_id == 1)
            .values(customer_id=100)
        ),
        [100],
    ),
    "orm update of an alias": (
        lambda s: s.execute(
            update(other := aliased(Basket)).where(other.owner == 1).values(owner=100),
            execution_options={"synchronize_session": False},
        ),
        [100],
    ),
    "a string for a number": (lambda s: s.execute(insert(Basket).values(owner="100")), [100]),
    "savepoint": (lambda s: in_savepoint(s, lambda: s.add(Basket(owner=100))), [100]),
}


def in_savepoint(session: Session, write: Callable[[], object]) -> None:
    with session.begin_nested():
        write()


@pytest.mark.parametrize("name", SEEN)
def test_a_key_that_is_written_is_known_before_its_commit(
    guard: DatabaseGuard, engine: Engine, name: str
) -> None:
    write, keys = SEEN[name]
    with Session(engine) as session:
        write(session)
        session.flush()
        assert all(guard.may_exist(key) for key in keys)
        assert guard.state is State.READY, guard.stats().reason
        assert not guard.may_exist(ABSENT)
        session.commit()
    with engine.connect() as connection:
        found = set(connection.scalars(select(KEY)))
    assert set(keys) <= found, "the test did write them"
    assert all(guard.may_exist(key) for key in found)


ALTER = DDL("ALTER TABLE basket ADD COLUMN remark TEXT DEFAULT ''")  # type: ignore[no-untyped-call]


class CopyOfRows(Executable, ClauseElement):
    """A statement of somebody's own making."""

    inherit_cache = False


@compiles(CopyOfRows)
def _write(element: CopyOfRows, compiler: Any, **words: Any) -> str:
    return "INSERT INTO basket (customer_id, items) SELECT customer_id + 99, 1 FROM basket"


UNSEEN: dict[str, Write] = {
    "a statement of one's own": lambda s: s.execute(CopyOfRows()),
    "text": lambda s: s.execute(text("INSERT INTO basket (customer_id, items) VALUES (100, 1)")),
    "text in another case": lambda s: s.execute(
        text("insert into BASKET (customer_id, items) values (100, 1)")
    ),
    "text after a comment": lambda s: s.execute(
        text("/* SELECT */ INSERT INTO basket (customer_id, items) VALUES (100, 1)")
    ),
    "text of the driver": lambda s: s.connection().exec_driver_sql(
        "INSERT INTO basket (customer_id, items) VALUES (100, 1)"
    ),
    "update of text": lambda s: s.execute(text("UPDATE basket SET customer_id = 100 WHERE id = 1")),
    "insert from select": lambda s: s.execute(
        TABLE.insert().from_select(
            ["customer_id", "items"], select(KEY + 99, TABLE.c["items"]).where(KEY == 1)
        )
    ),
    "computed by the database": lambda s: s.execute(
        insert(Basket).values(owner=func.abs(bindparam("x"))), {"x": -100}
    ),
    "computed in one of many rows": lambda s: s.execute(
        TABLE.insert().values([{"customer_id": 99}, {"customer_id": func.abs(-100)}])
    ),
    "update computed by the database": lambda s: s.execute(
        update(Basket).where(Basket.owner == 1).values(owner=Basket.owner + 99)
    ),
    "upsert that changes the key": lambda s: s.execute(
        upsert(s, id=1, owner=50).on_conflict_do_update(
            index_elements=["id"], set_={"customer_id": 100}
        )
    ),
    "ddl": lambda s: s.execute(ALTER),
    "a value that the database may change": lambda s: with_error(
        lambda: s.execute(insert(Basket).values(owner=100.5))
    ),
}


def with_error(write: Callable[[], object]) -> None:
    """SQLite stores it as it is, PostgreSQL rounds or refuses it."""
    with suppress(Exception):
        write()


@pytest.mark.parametrize("name", UNSEEN)
def test_a_key_that_cannot_be_seen_ends_the_trust_until_a_build(
    guard: DatabaseGuard, engine: Engine, name: str
) -> None:
    with Session(engine) as session:
        UNSEEN[name](session)
        assert guard.state is State.DEGRADED
        assert guard.stats().reason
        assert guard.may_exist(100), "already before the commit"
        if name != "ddl":  # it locks the table, so that a build would wait for it
            assert not guard.build(), "no build is valid while the transaction is open"
        with suppress(Exception):
            session.commit()
    assert guard.build()
    assert not guard.may_exist(ABSENT)
    with engine.connect() as connection:
        assert all(guard.may_exist(key) for key in connection.scalars(select(KEY)))


def test_ddl_of_metadata_ends_the_trust(guard: DatabaseGuard, engine: Engine) -> None:
    Base.metadata.create_all(engine)
    assert not guard.may_exist(ABSENT), "it only looked whether the tables are there"
    TABLE.drop(engine)
    TABLE.create(engine)
    assert guard.state is State.DEGRADED


@pytest.mark.parametrize("statement", ["TRUNCATE TABLE basket", "DO $$ BEGIN END $$"])
def test_truncate_and_procedures_end_the_trust(
    guard: DatabaseGuard, engine: Engine, statement: str
) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite has neither")
    with engine.begin() as connection:
        connection.execute(text(statement))
    assert guard.state is State.DEGRADED


def test_a_common_table_expression_that_writes_ends_the_trust(
    guard: DatabaseGuard, engine: Engine
) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite has no such expressions")
    inner = TABLE.insert().values(customer_id=func.abs(-100), items=1).returning(KEY).cte("new")
    with engine.begin() as connection:
        assert connection.scalars(select(inner.c.customer_id)).all() == [100]
    assert guard.may_exist(ABSENT)


@pytest.mark.parametrize(
    "write",
    [
        lambda s: s.execute(text("SELECT count(*) FROM basket")),
        lambda s: s.execute(text("UPDATE visit SET day = 1")),
        lambda s: s.execute(select(Basket)),
        lambda s: s.execute(select(select(Basket.owner).cte("basket_cte"))),
        lambda s: s.execute(union_all(select(Basket.id), select(Basket.id))),
        lambda s: s.connection().execute(func.abs(1)),
        lambda s: s.add(Visit(shop="a", day=1)),
        lambda s: s.execute(update(Basket).values(items=9)),
        lambda s: s.execute(update(Basket).where(Basket.owner == 1).values(owner=null())),
        lambda s: s.execute(delete(Basket)),
        lambda s: s.execute(insert(Basket).values(items=2)),
        lambda s: s.execute(insert(Basket).values(owner=None)),
        lambda s: s.add(Basket(owner=None)),
    ],
)
def test_what_writes_no_key_changes_nothing(
    guard: DatabaseGuard, engine: Engine, write: Write
) -> None:
    with Session(engine) as session, session.begin():
        write(session)
    assert guard.state is State.READY, guard.stats().reason
    assert not guard.may_exist(ABSENT)


# --- keys that the database makes ---------------------------------------------------------------


MADE: dict[str, Write] = {
    "add": lambda s: s.add(Customer()),
    "add_all": lambda s: s.add_all([Customer(), Customer(), Customer()]),
    "core insert": lambda s: s.execute(insert(Customer.__table__).values(name="x")),  # type: ignore[arg-type]
    "key of None": lambda s: s.add(Customer(id=None)),
    "some given": lambda s: s.add_all([Customer(id=500), Customer(), Customer(id=700)]),
    "returning of many": lambda s: got(
        s.scalars(insert(Customer).returning(Customer), [{"name": "x"}, {"name": "y"}]), 2
    ),
}


def got(result: Any, rows: int = 1) -> None:
    """The program gets what it asked for, though it was looked at before."""
    assert len(result.all()) == rows


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_a_key_made_by_the_database_is_known_before_its_commit(
    engine: Engine, name: str, at_once: bool
) -> None:
    with DatabaseGuard(engine, Customer.id, 1e-6) as guard:
        assert guard.build()
        bind = engine.execution_options(isolation_level="AUTOCOMMIT") if at_once else engine
        with Session(bind) as session:
            MADE[name](session)
            session.flush()
            ids = list(session.scalars(select(Customer.id)))
            assert ids
            assert all(guard.may_exist(key) for key in ids)
            assert guard.state is State.READY, guard.stats().reason
            assert not guard.may_exist(ABSENT)
            session.commit()


@pytest.mark.parametrize(
    "write",
    [
        lambda c: c.execute(insert(Customer).values(name="x").returning(Customer.id)).all(),
        lambda c: c.execute(insert(Customer), [{"name": "x"}, {"name": "y"}]),
        lambda c: c.execute(insert(Customer).values([{"name": "x"}, {"name": "y"}])),
    ],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_a_key_that_the_database_makes_and_does_not_tell_ends_the_trust(
    engine: Engine, write: Callable[[Connection], object], at_once: bool
) -> None:
    with DatabaseGuard(engine, Customer.id, 1e-6) as guard:
        assert guard.build()
        level = "AUTOCOMMIT" if at_once else "SERIALIZABLE"
        with engine.connect().execution_options(isolation_level=level) as connection:
            write(connection)
            ids = list(connection.scalars(select(Customer.id)))
            connection.commit()
        assert ids
        assert all(guard.may_exist(key) for key in ids)


def test_rows_left_by_a_batch_that_broke_off_end_the_trust(engine: Engine) -> None:
    """SQLite keeps the rows before the bad one, if the program swallows the error and commits."""
    with DatabaseGuard(engine, Customer.id, 1e-6) as guard:
        assert guard.build()
        with engine.connect() as connection:
            with pytest.raises(IntegrityError):
                connection.execute(insert(Customer), [{"name": "x"}, {"name": None}])
            connection.commit()
            assert all(guard.may_exist(key) for key in connection.scalars(select(Customer.id)))


# --- composite keys, foreign keys, transactions -------------------------------------------------


def test_a_key_of_two_columns_is_seen_as_one(engine: Engine) -> None:
    with DatabaseGuard(engine, (Visit.shop, Visit.day), 1e-6) as guard:
        assert guard.build()
        with Session(engine) as session, session.begin():
            session.add_all([Visit(shop="a", day=1), Visit(shop="b", day=2)])
        assert guard.may_exist(("a", 1))
        assert guard.may_exist(("b", 2))
        assert not guard.may_exist(("a", 2))
        with Session(engine) as session, session.begin():
            session.execute(update(Visit).where(Visit.shop == "a", Visit.day == 1).values(day=7))
        assert guard.may_exist(("a", 7))
        assert not guard.may_exist(("a", 3))
        with Session(engine) as session, session.begin():
            session.execute(update(Visit).values(day=9))
        assert guard.state is State.DEGRADED, "the shops of these rows are not known"
        assert guard.build()
        assert guard.may_exist(("b", 9))


def test_a_key_that_follows_another_table_ends_the_trust_when_that_changes(engine: Engine) -> None:
    with Session(engine) as session, session.begin():
        session.add(Customer(id=1))
        session.flush()
        session.add(Address(customer_id=1))
    with DatabaseGuard(engine, Address.customer_id, 1e-6) as guard:
        assert guard.build()
        with Session(engine) as session, session.begin():
            session.execute(update(Customer).values(name="new"))
        assert guard.state is State.READY, "the name is no part of it"
        with Session(engine) as session, session.begin():
            session.execute(update(Customer).values(id=100))
        assert guard.may_exist(100)
        for change in (
            update(aliased(Customer)).values(id=101),
            text("UPDATE customer SET id = 102"),
        ):
            assert guard.build()
            with Session(engine) as session, session.begin():
                session.execute(change, execution_options={"synchronize_session": False})
            assert guard.stats().reason


def test_a_build_between_a_write_and_its_commit_loses_nothing(
    guard: DatabaseGuard, engine: Engine
) -> None:
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    with Session(engine) as session:
        session.add(Basket(owner=100))
        session.flush()
        assert guard.build()
        session.commit()
    assert guard.may_exist(100)
    assert not guard.may_exist(ABSENT)


@pytest.mark.parametrize("shared", [False, True])
def test_a_transaction_that_was_open_when_the_guard_was_made_may_have_written_anything(
    engine: Engine, tmp_path: Path, shared: bool
) -> None:
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    with Session(engine) as early, Session(engine) as reader:
        early.add(Basket(owner=100))
        early.flush()
        reader.execute(select(Basket))
        directory = tmp_path / "guard" if shared else None
        with DatabaseGuard(engine, Basket.owner, 1e-6, shared=directory) as guard:
            valid = shared or engine.dialect.name == "sqlite"  # PostgreSQL tells who has written
            assert guard.build() == valid
            assert guard.may_exist(ABSENT) != valid
            early.commit()
            assert guard.may_exist(100)
            assert guard.stats().reason
            assert guard.build()
            with Session(engine) as late:
                late.add(Basket(owner=101))
                late.commit()
            assert guard.stats().reason == "", "what began later is seen"
            assert guard.filter_many([100, 101, ABSENT]) == [100, 101]


def test_a_rolled_back_key_may_stay_and_does_no_harm(guard: DatabaseGuard, engine: Engine) -> None:
    with Session(engine) as session:
        session.add(Basket(owner=100))
        session.flush()
        session.rollback()
    assert guard.state is State.READY
    assert guard.build()
    assert not guard.may_exist(100)


def test_two_phases_are_seen(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite has no second phase")
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        assert guard.build()
        with engine.connect() as connection, connection.begin_twophase() as transaction:
            connection.execute(insert(Basket).values(owner=100))
            transaction.prepare()
        assert guard.may_exist(100)
        assert guard.state is State.READY
        with engine.connect() as connection:
            transaction = connection.begin_twophase("later")
            connection.execute(insert(Basket).values(owner=101))
            transaction.prepare()
            connection.invalidate()
            with suppress(Exception):
                connection.close()
        assert guard.may_exist(101)
        assert not guard.build(), "nobody can read yet what it has written"
        assert guard.may_exist(ABSENT)
        with engine.connect() as connection:
            connection.commit_prepared("later", recover=True)
            assert 101 in set(connection.scalars(select(KEY)))
        assert guard.build()
        assert guard.filter_many([101, ABSENT]) == [101]


def test_two_guards_on_one_column_do_not_meet(guard: DatabaseGuard, engine: Engine) -> None:
    with DatabaseGuard(engine, Basket.owner, 1e-6) as other:
        assert other.build()
        with Session(engine) as session, session.begin():
            session.add(Basket(owner=100))
        assert guard.may_exist(100)
        assert other.may_exist(100)
    with Session(engine) as session, session.begin():
        session.add(Basket(owner=101))
    assert guard.may_exist(101)
    assert other.may_exist(ABSENT), "it is closed"
    assert not guard.may_exist(ABSENT)
