"""While a guard says READY, its "no" is right: what the database writes by itself, the same table
described elsewhere, values as the column compares them, deletions that were taken back, DDL."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    TypeDecorator,
    column,
    create_engine,
    delete,
    insert,
    select,
    table,
    text,
    types,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column

from bloomtide import DatabaseGuard
from bloomtide.errors import KeyTypeError, ParameterError
from bloomtide.guard.outbox.table import Outbox
from bloomtide.guard.stats import State
from tests.guard.databases import Database
from tests.waiting import until

ABSENT = 987_654_321
METADATA = MetaData()
PLAIN = Table("t", METADATA, Column("id", Integer, primary_key=True), Column("k", Integer))


def mapped(**options: Any) -> Table:
    """The table `t` as somebody else describes it."""
    return Table(
        "t", MetaData(), Column("id", Integer, primary_key=True), Column("k", Integer, **options)
    )


def keys_in(database: Database, name: str = "t", key: str = "k") -> list[Any]:
    with database.engine.connect() as connection:
        return list(connection.execute(text(f"SELECT {key} FROM {name}")).scalars())


@pytest.fixture
def guarded(basket: Database) -> Iterator[Callable[..., DatabaseGuard]]:
    """A guard of `t.k`, on an engine of its own."""
    made: list[DatabaseGuard] = []

    def make(key: Any = PLAIN.c.k, **options: Any) -> DatabaseGuard:
        guard = DatabaseGuard(create_engine(basket.url), key, 1e-6, rebuild="manual", **options)
        made.append(guard)
        return guard

    yield make
    for guard in made:
        guard.close()
        guard.engine.dispose()


def holds(guard: DatabaseGuard, database: Database) -> None:
    """No key in the table is called absent."""
    assert all(guard.may_exist(key) for key in keys_in(database) if key is not None)


def refused(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason) as caught:
        make()
    assert "t.k" in str(caught.value)
    assert "outbox" in caught.value.hint


# --- what the database fills in by itself --------------------------------------------------------

Make = Callable[..., DatabaseGuard]


def test_a_default_that_the_mapping_does_not_declare_is_refused(
    basket: Database, guarded: Make
) -> None:
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer DEFAULT 77)")
    refused(guarded, "default")
    guard = guarded(outbox="20ms")
    assert guard.build(), "the change table sees it"
    with guard.engine.begin() as connection:
        connection.execute(insert(PLAIN).values(id=1))
    guard.catch_up()
    assert guard.may_exist(77)


@pytest.mark.parametrize("declared", ["DEFAULT NULL", ""])
def test_a_column_that_is_null_if_it_is_left_out_is_guarded(
    basket: Database, guarded: Make, declared: str
) -> None:
    basket.run(f"CREATE TABLE t (id integer PRIMARY KEY, k integer {declared})")
    assert guarded().build()


def test_a_generated_column_is_refused(basket: Database, guarded: Make) -> None:
    basket.run(
        "CREATE TABLE t (id integer PRIMARY KEY, a integer, "
        "k integer GENERATED ALWAYS AS (a + 1) STORED)"
    )
    refused(guarded, "computes")


def test_a_number_that_the_database_makes_is_seen_only_as_the_primary_key(
    basket: Database, guarded: Make
) -> None:
    kind = "integer" if basket.kind == "sqlite" else "serial"
    basket.run(f"CREATE TABLE t (k {kind} PRIMARY KEY, id integer)")
    refused(guarded, "number|default")
    proper = Table("t", MetaData(), Column("k", Integer, primary_key=True), Column("id", Integer))
    guard = guarded(proper.c.k)
    assert guard.build()
    with guard.engine.begin() as connection:
        connection.execute(insert(proper).values(id=1))
    assert guard.state is State.READY
    holds(guard, basket)


def test_a_cascade_that_the_mapping_does_not_declare_ends_the_trust(
    basket: Database, guarded: Make
) -> None:
    basket.run(
        "CREATE TABLE grand (id integer PRIMARY KEY)",
        "CREATE TABLE parent (id integer PRIMARY KEY REFERENCES grand (id) ON UPDATE CASCADE)",
        "CREATE TABLE t (id integer PRIMARY KEY,"
        " k integer REFERENCES parent (id) ON UPDATE CASCADE)",
        "INSERT INTO grand VALUES (1)", "INSERT INTO parent VALUES (1)",
        "INSERT INTO t VALUES (1, 1)",
    )  # fmt: skip
    guard = guarded()
    assert guard.build()
    grand = Table("grand", MetaData(), Column("id", Integer, primary_key=True))
    with guard.engine.begin() as connection:
        if basket.kind == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        connection.execute(update(grand).values(id=9))
    holds(guard, basket)


OF_ITSELF = {
    "cascade": "REFERENCES t (id) ON UPDATE CASCADE",
    "default": "DEFAULT 3 REFERENCES t (id) ON DELETE SET DEFAULT",
}
WRITES_OF_ITSELF = {
    "cascade": "UPDATE t SET id = 123 WHERE id = 1",
    "upsert": "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 123",
    "default": "DELETE FROM t WHERE id = 1",
}


@pytest.mark.parametrize("write", WRITES_OF_ITSELF)
def test_a_column_that_refers_to_its_own_table_is_followed(
    basket: Database, guarded: Make, write: str
) -> None:
    kind = OF_ITSELF["default" if write == "default" else "cascade"]
    basket.run(f"CREATE TABLE t (id integer PRIMARY KEY, k integer {kind})")
    basket.run("INSERT INTO t VALUES (3, NULL), (1, 1)")
    guard = guarded(mapped(server_default=text("3")).c.k, refresh="1h")
    assert guard.build()
    with guard.engine.connect() as connection:
        if basket.kind == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        connection.execute(insert(PLAIN).values(id=50, k=3))
        connection.execute(update(PLAIN).values(k=1).where(PLAIN.c.id == 50))
        assert not guard.may_exist(ABSENT), "the key itself may be changed"
        connection.exec_driver_sql(WRITES_OF_ITSELF[write])
        connection.commit()
    assert guard.state is State.DEGRADED
    holds(guard, basket)


@pytest.mark.filterwarnings("ignore:Column 't.k' is marked as a member of the primary key")
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("kind", ["smallint", "integer"])
def test_the_number_of_a_row_is_not_the_key_if_the_column_has_a_default(
    sqlite_basket: Database, kind: str, declared: bool
) -> None:
    database = sqlite_basket
    database.run(
        f"CREATE TABLE t (id integer, k {kind} NOT NULL DEFAULT 79 PRIMARY KEY"
        + (") WITHOUT ROWID" if kind == "integer" else ")")
    )
    default = {"server_default": text("79")} if declared else {}
    key = Column("k", types.SmallInteger, primary_key=True, **default)  # type: ignore[arg-type]
    mine = Table("t", MetaData(), Column("id", Integer), key)
    with DatabaseGuard(create_engine(database.url), mine.c.k, rebuild="manual") as guard:
        assert guard.build()
        with guard.engine.begin() as connection:
            connection.execute(insert(mine).values(id=3))
        assert keys_in(database) == [79]
        holds(guard, database)
        assert (guard.state is State.READY) == declared
    guard.engine.dispose()


SQLITE_TRIGGERS = [
    "CREATE TRIGGER fill AFTER INSERT ON t BEGIN UPDATE t SET k = 5 WHERE id = NEW.id; END",
    "CREATE TRIGGER fill AFTER INSERT ON other BEGIN INSERT INTO t (k) VALUES (5); END",
    'CREATE TRIGGER fill AFTER INSERT ON other BEGIN INSERT OR IGNORE INTO "T" (k) VALUES (5); END',
    "CREATE TRIGGER fill AFTER INSERT ON other BEGIN INSERT INTO 't' (k) VALUES (5); END",
    "CREATE TRIGGER fill AFTER INSERT ON other BEGIN UPDATE [t] SET [k] = 5; END",
    "CREATE TRIGGER fill AFTER INSERT ON other BEGIN UPDATE t SET (id, k) = (1, 5); END",
]


@pytest.mark.parametrize("trigger", SQLITE_TRIGGERS)
def test_a_trigger_of_sqlite_that_writes_the_table_is_refused(
    sqlite_basket: Database, trigger: str
) -> None:
    database = sqlite_basket
    database.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)", "CREATE TABLE other (x)")
    with database.engine.begin() as connection:
        connection.exec_driver_sql(trigger)
    refused(lambda: DatabaseGuard(database.engine, PLAIN.c.k), "trigger `fill`")


@pytest.mark.parametrize("made", ["TEMP TRIGGER later", "TRIGGER temp.later"])
@pytest.mark.parametrize("before", [False, True])
def test_a_temporary_trigger_ends_the_trust_at_each_write_of_its_connection(
    sqlite_basket: Database, made: str, before: bool
) -> None:
    database = sqlite_basket
    database.run(
        "CREATE TABLE t (id integer PRIMARY KEY, k integer)",
        "CREATE TABLE other (x integer)", "INSERT INTO other VALUES (1)",
    )  # fmt: skip
    trigger = f"CREATE {made} AFTER UPDATE ON other BEGIN INSERT INTO t (k) VALUES (7); END"
    engine = create_engine(database.url)
    with engine.connect() as connection:
        if before:
            connection.exec_driver_sql(trigger)
            connection.commit()
    # The pool has one connection: so it is asked while the build uses another one.
    with (
        engine.connect() as connection,
        DatabaseGuard(engine, PLAIN.c.k, 1e-6, rebuild="manual") as guard,
    ):
        if not before:
            connection.exec_driver_sql(trigger)
            connection.commit()
            assert guard.may_exist(ABSENT)
        assert guard.build()
        connection.execute(select(PLAIN)).all()
        assert not guard.may_exist(ABSENT)
        connection.exec_driver_sql("UPDATE other SET x = 2")
        connection.commit()
        holds(guard, database)
        assert guard.build()
        connection.exec_driver_sql("DROP TRIGGER later")
        connection.commit()
        assert guard.build()
        connection.exec_driver_sql("UPDATE other SET x = 3")
        connection.commit()
        assert guard.state is State.READY
    engine.dispose()


HARMLESS_TRIGGERS = [
    "CREATE TRIGGER logged AFTER INSERT ON t BEGIN INSERT INTO log VALUES (NEW.k); END",
    "CREATE TRIGGER stamp AFTER UPDATE ON t BEGIN UPDATE t SET at = 1 WHERE id = NEW.id; END",
    "CREATE TRIGGER gone AFTER DELETE ON log BEGIN DELETE FROM t WHERE id = OLD.x; END",
]


@pytest.mark.parametrize("trigger", HARMLESS_TRIGGERS)
def test_a_trigger_that_writes_other_tables_or_columns_is_no_obstacle(
    sqlite_basket: Database, trigger: str
) -> None:
    database = sqlite_basket
    database.run("CREATE TABLE t (id integer PRIMARY KEY, k integer, at)", "CREATE TABLE log (x)")
    with database.engine.begin() as connection:
        connection.exec_driver_sql(trigger)
    with DatabaseGuard(database.engine, PLAIN.c.k) as guard:
        assert guard.build()


POSTGRES_WRITERS = {
    "before": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN NEW.k := 5; RETURN NEW; END'",
        "CREATE TRIGGER fill BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    ),
    "of another table": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO public.t (k) VALUES (5); RETURN NEW; END'",
        "CREATE TRIGGER fill AFTER INSERT ON other FOR EACH ROW EXECUTE FUNCTION f()",
    ),
    "dynamic": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN EXECUTE ''INSERT INTO '' || TG_ARGV[0] || '' DEFAULT VALUES''; RETURN NEW; END'",
        "CREATE TRIGGER fill AFTER INSERT ON other FOR EACH ROW EXECUTE FUNCTION f(1)",
    ),
    "through a view": (
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO v (k) VALUES (5); RETURN NEW; END'",
        "CREATE TRIGGER fill AFTER INSERT ON other FOR EACH ROW EXECUTE FUNCTION f()",
    ),
    "another row": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RETURN ROW(NEW.id, 5); END'",
        "CREATE TRIGGER fill BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    ),
    "a record": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        " 'DECLARE r record; BEGIN SELECT * INTO r FROM other; RETURN r; END'",
        "CREATE TRIGGER fill BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    ),
    "all of the row": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN FOR NEW IN SELECT 1, 5 LOOP END LOOP; RETURN NEW; END'",
        "CREATE TRIGGER fill BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    ),
    "letters as numbers": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        """ 'BEGIN INSERT INTO U&"\\0074" (k) VALUES (5); RETURN NEW; END'""",
        "CREATE TRIGGER fill AFTER INSERT ON other FOR EACH ROW EXECUTE FUNCTION f()",
    ),
    "hidden in a literal": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM $q$ ' $q$; INSERT INTO t (k) VALUES (5);"
        " PERFORM $q$ ' $q$; RETURN NEW; END $$",
        "CREATE TRIGGER fill AFTER INSERT ON other FOR EACH ROW EXECUTE FUNCTION f()",
    ),
    "rule of a view": (
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE RULE fill AS ON INSERT TO other DO ALSO INSERT INTO v (k) VALUES (5)",
    ),
    "rule": ("CREATE RULE fill AS ON INSERT TO other DO ALSO INSERT INTO t (k) VALUES (5)",),
    "rule of the table": ("CREATE RULE fill AS ON UPDATE TO t DO INSTEAD NOTHING",),
}


@pytest.mark.parametrize("name", POSTGRES_WRITERS)
def test_a_trigger_or_rule_of_postgresql_that_may_write_the_key_is_refused(
    postgres_basket: Database, name: str
) -> None:
    postgres_basket.run(
        "CREATE TABLE t (id serial PRIMARY KEY, k integer)", "CREATE TABLE other (x integer)"
    )
    with postgres_basket.engine.begin() as connection:
        for statement in POSTGRES_WRITERS[name]:
            connection.exec_driver_sql(statement)
    refused(lambda: DatabaseGuard(postgres_basket.engine, PLAIN.c.k), "`fill`")


POSTGRES_HARMLESS = {
    "a time stamp": "NEW.at := now(); RETURN NEW;",
    "only looks": "IF OLD IS DISTINCT FROM NEW THEN RAISE NOTICE '100 %% of %%', 1, to_jsonb(NEW);"
    " END IF; RETURN COALESCE(NEW, OLD);",
    "writes a log": "INSERT INTO log VALUES (NEW.id) ON CONFLICT DO NOTHING;"
    " UPDATE log SET x = 1; PERFORM 1 FROM t FOR UPDATE; RETURN NULL;",
    "another column": "UPDATE t SET at = now(), id = 1 WHERE k = 2; RETURN OLD;",
}


@pytest.mark.parametrize("name", POSTGRES_HARMLESS)
def test_a_trigger_that_writes_no_key_is_no_obstacle_on_postgresql(
    postgres_basket: Database, name: str
) -> None:
    postgres_basket.run(
        "CREATE TABLE t (id serial PRIMARY KEY, k integer, at timestamp)",
        "CREATE TABLE log (x integer)",
    )
    when = "AFTER" if name == "another column" else "BEFORE"
    with postgres_basket.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {POSTGRES_HARMLESS[name]} END $$"
        )
        connection.exec_driver_sql(
            f"CREATE TRIGGER stamp {when} UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()"
        )
    with DatabaseGuard(postgres_basket.engine, PLAIN.c.k) as guard:
        assert guard.build()


NO_TABLES = {
    "a view": "CREATE VIEW t AS SELECT * FROM rows",
    "a materialized view": "CREATE MATERIALIZED VIEW t AS SELECT * FROM rows",
    "a virtual table": "CREATE VIRTUAL TABLE t USING fts5(id, k)",
    "a foreign table": "CREATE EXTENSION postgres_fdw; CREATE SERVER s FOREIGN DATA WRAPPER"
    " postgres_fdw; CREATE FOREIGN TABLE t (id integer, k integer) SERVER s",
    "partly a foreign table": "CREATE TABLE t (id integer, k integer) PARTITION BY RANGE (k);"
    " CREATE EXTENSION file_fdw; CREATE SERVER s FOREIGN DATA WRAPPER file_fdw;"
    " CREATE FOREIGN TABLE p PARTITION OF t DEFAULT SERVER s OPTIONS (filename '/dev/null')",
}


@pytest.mark.parametrize("what", NO_TABLES)
def test_what_is_no_table_is_refused_unless_it_is_read_again(basket: Database, what: str) -> None:
    """Its rows are written under other names, or somewhere else."""
    of_one = {"a view": basket.kind, "a virtual table": "sqlite"}
    if basket.kind != of_one.get(what, "postgresql"):
        return  # the other one has none
    database = basket
    with database.engine.begin() as connection:
        for each in ("CREATE TABLE rows (id integer, k integer)", *NO_TABLES[what].split(";")):
            connection.exec_driver_sql(each)
    refused(lambda: DatabaseGuard(database.engine, PLAIN.c.k), what)
    if what == "a view":
        with (
            DatabaseGuard(database.engine, PLAIN.c.k, outbox=True) as guard,
            pytest.raises(ParameterError, match="a view") as caught,
        ):
            guard.build()
        assert "refresh" in caught.value.hint
        with DatabaseGuard(database.engine, PLAIN.c.k, refresh="1h") as guard:
            assert guard.build()


@pytest.mark.parametrize("name", ["t_low", "t", "above", "seen"])
def test_partitions_parents_and_views_are_the_same_table(
    postgres_basket: Database, name: str
) -> None:
    postgres_basket.run(
        "CREATE TABLE above (id serial, k integer) PARTITION BY RANGE (k)",
        "CREATE TABLE t PARTITION OF above FOR VALUES FROM (0) TO (1000) PARTITION BY RANGE (k)",
        "CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (100)",
        "CREATE VIEW seen AS SELECT id AS number, k AS renamed FROM above",
    )
    with DatabaseGuard(postgres_basket.engine, PLAIN.c.k, 1e-6) as guard:
        assert guard.build()
        key = "renamed" if name == "seen" else "k"
        with postgres_basket.engine.begin() as connection:
            connection.execute(insert(table(name, column(key))), {key: 7})
        assert keys_in(postgres_basket) == [7]
        assert guard.may_exist(7)


def test_a_change_of_the_table_by_somebody_else_is_noticed_by_a_new_connection(
    basket: Database, guarded: Make
) -> None:
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)")
    guard = guarded()
    assert guard.build()
    basket.run("DROP TABLE t", "CREATE TABLE t (id integer PRIMARY KEY, k integer DEFAULT 77)")
    guard.engine.dispose()
    assert not guard.may_exist(ABSENT)
    with guard.engine.connect():
        assert guard.state is State.DEGRADED
    refused(guard.build, "default")
    assert guard.may_exist(ABSENT)


def test_a_table_that_is_not_there_yet_is_refused_at_the_build(
    basket: Database, guarded: Make
) -> None:
    guard = guarded()
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer DEFAULT 77)")
    refused(guard.build, "default")
    assert guard.may_exist(ABSENT)


def test_a_table_that_is_refused_leaves_no_listener_behind(basket: Database, guarded: Make) -> None:
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer DEFAULT 77)")
    with pytest.raises(ParameterError):
        DatabaseGuard(basket.engine, PLAIN.c.k)
    assert not list(basket.engine.dialect.dispatch.do_execute)


def test_a_change_during_a_build_makes_it_read_again(basket: Database, guarded: Make) -> None:
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)", "INSERT INTO t VALUES (1, 1)")
    if basket.kind == "sqlite":
        basket.run("PRAGMA journal_mode = WAL")
    guard = guarded()
    done: list[int] = []

    def change(read: int, of: int | None) -> None:
        if not done:
            # On PostgreSQL another change would wait for the build.
            view = "CREATE VIEW seen AS SELECT k FROM t"
            column = "ALTER TABLE t ADD COLUMN more integer"
            basket.run(column if basket.kind == "sqlite" else view)
        done.append(read)

    assert guard.build(change)
    assert len(done) == 2, "once more"
    assert guard.state is State.READY


# --- the same table described elsewhere ----------------------------------------------------------


def elsewhere(key: str) -> dict[str, Callable[[Engine], object]]:
    odd = Table(
        "t", MetaData(), Column("id", Integer, primary_key=True), Column(key, Integer, key="kunde")
    )

    class Base(DeclarativeBase):
        pass

    class Odd(Base):
        __tablename__ = "t"
        id = mapped_column(Integer, primary_key=True)
        kunde = mapped_column(key, Integer, key="other")

    def orm(engine: Engine) -> None:
        with Session(engine) as session, session.begin():
            session.add(Odd(id=2, kunde=100))

    def core(statement: Any, **values: Any) -> Callable[[Engine], object]:
        def run(engine: Engine) -> None:
            with engine.begin() as connection:
                connection.execute(statement, values)

        return run

    computed = mapped(onupdate=100)
    return {
        "another key": core(insert(odd), id=2, kunde=100),
        "another key in values": core(insert(odd).values(id=2, kunde=100)),
        "an update with another key": core(update(odd).values(kunde=100)),
        "orm": orm,
        "onupdate": core(update(computed).values(id=2)),
        "a table in another case": core(
            insert(table("T", column("ID"), column(key.upper()))), **{"ID": 2, key.upper(): 100}
        ),
        "no mapping": core(insert(table("t", column("id"), column(key))), **{"id": 2, key: 100}),
        "many": core(insert(odd).values([{"id": 2, "kunde": 100}, {"id": 3, "kunde": 101}])),
    }


@pytest.mark.parametrize("name", elsewhere("k"))
def test_a_writer_that_describes_the_table_in_another_way_is_seen(
    basket: Database, guarded: Make, name: str
) -> None:
    if "case" in name and basket.kind == "postgresql":
        pytest.skip('"T" is another table there')
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)", "INSERT INTO t VALUES (1, 1)")
    guard = guarded()
    assert guard.build()
    elsewhere("k")[name](guard.engine)
    assert 100 in keys_in(basket)
    assert guard.state is State.READY
    holds(guard, basket)
    assert not guard.may_exist(ABSENT)


def test_a_guarded_column_with_a_key_of_its_own_sees_a_reflected_writer(
    basket: Database, guarded: Make
) -> None:
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)")
    guard = guarded(mapped(key="kunde").c.kunde)
    assert guard.build()
    reflected = Table("t", MetaData(), autoload_with=guard.engine)
    with guard.engine.begin() as connection:
        connection.execute(insert(reflected), {"id": 1, "k": 100})
    assert guard.state is State.READY
    holds(guard, basket)


def test_another_table_of_the_same_name_in_another_case_is_not_ours(
    postgres_basket: Database,
) -> None:
    postgres_basket.run(
        "CREATE TABLE t (id serial PRIMARY KEY, k integer)", 'CREATE TABLE "T" (k integer)'
    )
    with DatabaseGuard(postgres_basket.engine, PLAIN.c.k, 1e-6) as guard:
        assert guard.build()
        with postgres_basket.engine.begin() as connection:
            connection.execute(insert(table("T", column("k"))), {"k": 7})
            connection.execute(insert(table("t", column("k"))), {"k": 8})
        assert guard.filter_many([7, 8]) == [8]


QUOTED = [
    'WITH made AS (UPDATE "t" SET "k" = 7 WHERE "k" = 1 RETURNING 1) SELECT * FROM made',
    'EXPLAIN ANALYZE UPDATE "t" SET "k" = 7',
    'INSERT INTO U&"\\0074" (id, k) VALUES (5, 7)',
    'UPDATE t SET U&"\\006b" = 7',
    "UPDATE u&\"!0074\" UESCAPE '!' SET k = 7",
    'WITH made AS (UPDATE U&"\\0074" SET k = 7 RETURNING 1) SELECT * FROM made',
]


@pytest.mark.parametrize("statement", QUOTED)
def test_a_name_in_quotes_is_found_wherever_it_stands(
    postgres_basket: Database, statement: str
) -> None:
    postgres_basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)")
    postgres_basket.run("INSERT INTO t VALUES (1, 1)")
    with DatabaseGuard(postgres_basket.engine, PLAIN.c.k, 1e-6, rebuild="manual") as guard:
        assert guard.build()
        with postgres_basket.engine.begin() as connection:
            connection.exec_driver_sql(statement)
        assert 7 in keys_in(postgres_basket)
        assert guard.may_exist(7)


def test_a_write_within_a_query_is_found_for_a_table_whose_name_needs_quotes(
    postgres_basket: Database,
) -> None:
    user = Table("user", MetaData(), Column("id", Integer, primary_key=True), Column("k", Integer))
    user.metadata.create_all(postgres_basket.engine)
    postgres_basket.run('INSERT INTO "user" VALUES (1, 1)')
    with DatabaseGuard(postgres_basket.engine, user.c.k, 1e-6, rebuild="manual") as guard:
        assert guard.build()
        made = update(user).values(k=8).returning(user.c.id).cte("made")
        with postgres_basket.engine.begin() as connection:
            connection.execute(select(made.c.id)).all()
        assert guard.may_exist(8)


@pytest.mark.filterwarnings("ignore:Column 't.k' is marked as a member of the primary key")
@pytest.mark.parametrize("primary", [["k"], ["id", "k"], ["id"], []])
def test_a_made_key_is_found_by_its_name_in_the_primary_key_of_the_writer(
    basket: Database, guarded: Make, primary: list[str]
) -> None:
    kind = "integer" if basket.kind == "sqlite" else "serial"
    basket.run(f"CREATE TABLE t (k {kind} PRIMARY KEY, id integer)")
    columns = [Column("k", Integer, primary_key=True), Column("id", Integer)]
    guard = guarded(Table("t", MetaData(), *columns).c.k)
    assert guard.build()
    writer = Table(
        "t", MetaData(), Column("id", Integer, primary_key="id" in primary),
        Column("k", Integer, primary_key="k" in primary),
    )  # fmt: skip
    with guard.engine.begin() as connection:
        connection.execute(insert(writer).values(id=77))
        connection.execute(insert(table("t", column("id"))).values(id=78))
    holds(guard, basket)


@pytest.mark.parametrize("key", ["NULL", "DEFAULT"])
def test_a_key_that_the_database_makes_for_a_text_ends_the_trust_before_its_commit(
    basket: Database, guarded: Make, key: str
) -> None:
    if key == "NULL" and basket.kind == "postgresql":
        pytest.skip("a primary key is never NULL there")
    kind = "integer" if basket.kind == "sqlite" else "serial"
    basket.run(f"CREATE TABLE t (k {kind} PRIMARY KEY, id integer)")
    proper = Table("t", MetaData(), Column("k", Integer, primary_key=True), Column("id", Integer))
    guard = guarded(proper.c.k)
    assert guard.build()
    with guard.engine.connect() as connection:
        named, value = ("k, id", "NULL, 1") if key == "NULL" else ("id", "1")
        connection.exec_driver_sql(f"INSERT INTO t ({named}) VALUES ({value})")
        connection.commit()
        holds(guard, basket)


# --- values as the column compares them ----------------------------------------------------------


class Colour(enum.Enum):
    RED = "r"
    GREEN = "g"


class Doubled(TypeDecorator[int]):
    """Stored as twice the value."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        return None if value is None else value * 2

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        return None if value is None else value // 2


class Cents(TypeDecorator[Decimal]):
    """Money, stored as a whole number."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        return None if value is None else int(value * 100)

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        return None if value is None else Decimal(value) / 100


UTC = dt.datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=dt.UTC)
NOON = UTC.replace(tzinfo=None)
LONG = Decimal("0.123456789012")
TYPES: list[tuple[Any, list[Any]]] = [
    (types.SmallInteger(), [1, -5]),
    (types.Integer(), [1, -5, 2**31 - 1]),
    (types.BigInteger(), [1, 2**62, -(2**62)]),
    (types.Boolean(), [True, False]),
    (types.Numeric(), [LONG, Decimal("1.50"), Decimal(3), Decimal("1e-7"), 0.1 + 0.2, 0.1]),
    (types.Numeric(20, 12), [LONG, Decimal("1.5"), Decimal("123456.789")]),
    (types.Numeric(10, 2), [Decimal("1.50"), Decimal("-0.01"), 1.5, 2]),
    (types.Numeric(10, 2, asdecimal=False), [1.5, 0.25]),
    (types.DECIMAL(10, 4), [Decimal("1.2345")]),
    (types.String(), ["a", "A", "ä", "a ", "", "ß", "🙂"]),
    (types.String(5), ["a", "ab   ", "abcde"]),
    (types.Text(), ["a", " a", "x" * 5000]),
    (types.Unicode(), ["é", "e\u0301"]),
    (types.UnicodeText(), ["é"]),
    (types.CHAR(5), ["a", "ab", "abcde"]),
    (types.VARCHAR(5), ["a", "ab "]),
    (types.LargeBinary(), [b"", b"a", b"\x00\xff"]),
    (types.Date(), [NOON.date(), dt.date(1, 1, 1)]),
    (types.DateTime(), [NOON, NOON.replace(microsecond=0), NOON.replace(fold=1)]),
    (types.DateTime(timezone=True), [UTC, UTC.astimezone(dt.timezone(dt.timedelta(hours=5)))]),
    (types.Time(), [NOON.time(), dt.time(0)]),
    (types.Uuid(), [uuid.UUID(int=5), uuid.uuid5(uuid.NAMESPACE_DNS, "a")]),
    (types.Uuid(as_uuid=False), [str(uuid.UUID(int=5))]),
    (types.Uuid(native_uuid=False), [uuid.UUID(int=5)]),
    (types.Enum(Colour), [Colour.RED, Colour.GREEN]),
    (types.Enum("a", "b", name="letters"), ["a", "b"]),
    (types.Enum(Colour, native_enum=False), [Colour.RED]),
    (Doubled(), [1, 7]),
    (Cents(), [Decimal("1.50"), Decimal("0.01")]),
    (types.Float(), [0.1]),
    (types.Double(), [0.1]),
    (types.Interval(), [dt.timedelta(days=1)]),
    (types.JSON(), [{"a": 1}]),
    (types.PickleType(), [(1, 2)]),
    (types.String(collation="C"), ["a", "A"]),
    (postgresql.ARRAY(Integer), [[1, 2]]),
    (postgresql.JSONB(), [{"a": 1}]),
    (postgresql.CITEXT(), ["a", "A"]),
    (postgresql.INET(), ["127.0.0.1"]),
    (postgresql.TIMESTAMP(precision=0), [NOON]),
    (postgresql.MONEY(), ["1.50"]),
    (postgresql.BIT(3), ["101"]),
    (postgresql.OID(), [5]),
]


@pytest.mark.filterwarnings("ignore:Dialect sqlite.* does \\*not\\* support Decimal")
@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[repr(kind) for kind, _ in TYPES])
def test_every_type_is_followed_as_the_database_compares_it_or_refused(
    basket: Database, kind: Any, values: list[Any]
) -> None:
    if basket.kind == "sqlite" and type(kind).__module__.startswith("sqlalchemy.dialects"):
        pytest.skip("SQLite has no such type")
    if basket.kind == "sqlite" and getattr(kind, "collation", None):
        pytest.skip("SQLite has no such collation")
    if basket.kind == "postgresql":
        basket.run("CREATE EXTENSION IF NOT EXISTS citext")
    metadata = MetaData()
    typed = Table("t", metadata, Column("id", Integer, primary_key=True), Column("k", kind))
    metadata.create_all(basket.engine)
    with basket.engine.begin() as connection:
        connection.execute(insert(typed), [{"k": values[0]}])
    try:
        guard = DatabaseGuard(create_engine(basket.url), typed.c.k, 1e-6, rebuild="manual")
    except ParameterError:
        return
    with guard:
        assert guard.build()
        for _ in range(2):
            with guard.engine.begin() as connection:
                check_against_the_database(connection, guard, typed, values)
            with guard.engine.begin() as connection:
                for value in values:
                    connection.execute(insert(typed), {"k": value})
            with guard.engine.begin() as connection:
                check_against_the_database(connection, guard, typed, values)
                assert any(guard.may_exist(value) for value in values)
            assert guard.build()
    guard.engine.dispose()


def check_against_the_database(
    connection: Connection, guard: DatabaseGuard, typed: Table, values: list[Any]
) -> None:
    stored = connection.scalars(select(typed.c.k)).all()
    for value in [*values, *stored]:
        there = connection.scalar(select(typed.c.id).where(typed.c.k == value).limit(1))
        assert there is None or guard.may_exist(value), f"{value!r} is there"


@pytest.mark.filterwarnings("ignore:Dialect sqlite.* does \\*not\\* support Decimal")
@pytest.mark.parametrize(
    ("own", "other", "value"),
    [
        (Numeric(), Numeric(10, 1), Decimal("1.25")),
        (Numeric(), types.Float(), 0.1 + 0.2),
        (Numeric(), Integer(), 3),
        (Integer(), Numeric(10, 2), Decimal("2.00")),
        (Integer(), Doubled(), 7),
        (String(), types.CHAR(3), "ab "),
        (String(), types.Enum("a", "b", native_enum=False), "a"),
    ],
)
def test_a_value_that_another_type_has_made_is_followed(
    basket: Database, own: Any, other: Any, value: Any
) -> None:
    """The parameter that the driver gets counts, and what a cast in the statement makes of it."""
    metadata = MetaData()
    mine = Table("t", metadata, Column("id", Integer, primary_key=True), Column("k", own))
    metadata.create_all(basket.engine)
    theirs = Table("t", MetaData(), Column("id", Integer, primary_key=True), Column("k", other))
    with DatabaseGuard(create_engine(basket.url), mine.c.k, 1e-6, rebuild="manual") as guard:
        assert guard.build()
        with guard.engine.begin() as connection, suppress(DBAPIError):
            connection.execute(insert(theirs), {"k": value})
        with guard.engine.connect() as connection:
            check_against_the_database(connection, guard, mine, [value])
    guard.engine.dispose()


@pytest.mark.parametrize("number", [2.0**53, 2.0**63, -(2.0**60)])
def test_a_float_that_equals_several_integers_is_left_to_the_database(
    basket: Database, guarded: Make, number: float
) -> None:
    big = Table("t", MetaData(), Column("id", Integer, primary_key=True),
                Column("k", types.BigInteger))  # fmt: skip
    big.metadata.create_all(basket.engine)
    inside = [2**53 + 1, 2**63 - 1, -(2**60) + 1]
    with basket.engine.begin() as connection:
        connection.execute(insert(big), [{"k": each} for each in inside])
    guard = guarded(big.c.k)
    assert guard.build()
    with guard.engine.connect() as connection:
        check_against_the_database(connection, guard, big, [number])
    assert guard.may_exist(number)
    assert not guard.may_exist(5.0)


# --- removal only when the row is gone -----------------------------------------------------------


COARSE = [
    ("sqlite", types.CHAR(4), "a", "a "),
    ("sqlite", String(collation="NOCASE"), "ä", "Ä"),
    ("postgresql", postgresql.CITEXT(), "STRASSE", "Stra\u00dfe"),
]


@pytest.mark.parametrize(("kind", "column_type", "there", "deleted"), COARSE)
def test_a_deletion_that_met_no_row_removes_no_key_that_is_spelled_in_another_way(
    basket: Database, guarded: Make, kind: str, column_type: Any, there: str, deleted: str
) -> None:
    if kind != basket.kind:
        pytest.skip("the other database compares it in another way")
    if kind == "postgresql":
        basket.run("CREATE EXTENSION IF NOT EXISTS citext")
    typed = Table(
        "t", MetaData(), Column("id", Integer, primary_key=True),
        Column("k", column_type, unique=True),
    )  # fmt: skip
    typed.metadata.create_all(basket.engine)
    with basket.engine.begin() as connection:
        connection.execute(insert(typed), [{"k": there}])
    guard = guarded(typed.c.k, removals="commit")
    assert guard.build()
    with guard.engine.begin() as connection:
        connection.execute(insert(typed), [{"k": "x"}])
        connection.execute(delete(typed).where(typed.c.k == deleted))
    assert there in keys_in(basket)
    assert guard.state is State.READY
    holds(guard, basket)


def test_a_deletion_that_the_driver_has_taken_back_keeps_its_key(
    basket: Database, guarded: Make
) -> None:
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer UNIQUE)")
    basket.run("INSERT INTO t VALUES (1, 7), (2, 8)")
    guard = guarded(mapped(unique=True).c.k, removals="commit")
    assert guard.build()
    with guard.engine.connect() as connection:
        connection.execute(delete(PLAIN).where(PLAIN.c.k == 7))
        driver = connection.connection.dbapi_connection
        assert driver is not None
        driver.rollback()
        connection.commit()
    assert sorted(keys_in(basket)) == [7, 8]
    assert guard.state is State.READY
    holds(guard, basket)
    with guard.engine.begin() as connection:
        connection.execute(delete(PLAIN).where(PLAIN.c.k == 8))
    assert guard.filter_many([7, 8]) == [7]


def test_a_commit_that_the_server_makes_a_rollback_keeps_its_key(postgres_basket: Database) -> None:
    postgres_basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer UNIQUE)")
    postgres_basket.run("INSERT INTO t VALUES (1, 7)")
    engine = create_engine(postgres_basket.url)
    key = mapped(unique=True).c.k
    with DatabaseGuard(engine, key, 1e-6, removals="commit", rebuild="manual") as guard:
        assert guard.build()
        with engine.connect() as connection:
            connection.execute(delete(PLAIN).where(PLAIN.c.k == 7))
            with suppress(Exception):
                connection.connection.cursor().execute("SELECT 1 / 0")
            connection.commit()
        assert keys_in(postgres_basket) == [7]
        assert guard.state is State.READY
        assert guard.may_exist(7)
    engine.dispose()


# --- DDL as text, and triggers that vanish -------------------------------------------------------


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE t RENAME TO gone", "ALTER TABLE old RENAME TO t"],
        [
            "CREATE SCHEMA x",
            "ALTER SCHEMA public RENAME TO gone",
            "ALTER SCHEMA x RENAME TO public",
        ],
        ["ALTER TABLE old RENAME TO older"],
        ["DROP TABLE t"],
    ],
)
def test_ddl_as_text_ends_the_trust(basket: Database, guarded: Make, statements: list[str]) -> None:
    if basket.kind == "sqlite" and "SCHEMA" in statements[0]:
        pytest.skip("SQLite has no schemas to rename")
    basket.run(
        "CREATE TABLE t (id integer PRIMARY KEY, k integer)",
        "CREATE TABLE old (id integer PRIMARY KEY, k integer)", "INSERT INTO old VALUES (1, 7)",
    )  # fmt: skip
    guard = guarded()
    assert guard.build()
    with guard.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    assert guard.state is State.DEGRADED
    assert guard.may_exist(7)


def test_a_partition_that_is_attached_ends_the_trust(postgres_basket: Database) -> None:
    postgres_basket.run(
        "CREATE TABLE t (id serial, k integer) PARTITION BY RANGE (k)",
        "CREATE TABLE old (id serial, k integer)", "INSERT INTO old (k) VALUES (7)",
    )  # fmt: skip
    with DatabaseGuard(postgres_basket.engine, PLAIN.c.k, rebuild="manual") as guard:
        assert guard.build()
        with postgres_basket.engine.begin() as connection:
            connection.execute(
                text("ALTER TABLE t ATTACH PARTITION old FOR VALUES FROM (0) TO (9)")
            )
        assert guard.may_exist(7)


def test_a_database_that_is_attached_ends_the_trust(sqlite_basket: Database) -> None:
    sqlite_basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)")
    with DatabaseGuard(sqlite_basket.engine, PLAIN.c.k, rebuild="manual") as guard:
        assert guard.build()
        with sqlite_basket.engine.connect() as connection:
            connection.exec_driver_sql(f"ATTACH '{sqlite_basket.engine.url.database}' AS again")
        assert guard.state is State.DEGRADED


@pytest.mark.parametrize("back", [False, True])
def test_triggers_that_vanish_are_noticed(basket: Database, guarded: Make, back: bool) -> None:
    """Even if they are there again at the next reading: rows came without them."""
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)")
    guard = guarded(outbox="1h")
    assert guard.build()
    with basket.engine.begin() as connection:
        if basket.kind == "sqlite":
            made = connection.scalar(
                text("SELECT sql FROM sqlite_master WHERE name = 'bloomtide_t_k_insert'")
            )
            connection.exec_driver_sql("DROP TRIGGER bloomtide_t_k_insert")
        else:
            made = "ALTER TABLE t ENABLE ALWAYS TRIGGER bloomtide_t_k_insert"
            connection.exec_driver_sql("ALTER TABLE t DISABLE TRIGGER bloomtide_t_k_insert")
    basket.run("INSERT INTO t VALUES (1, 7)")
    if back:
        with basket.engine.begin() as connection:
            connection.exec_driver_sql(made)
    guard.catch_up()
    assert guard.may_exist(7), "it was read again"
    if basket.kind == "sqlite" or back:
        assert not guard.may_exist(ABSENT)
        basket.run("INSERT INTO t VALUES (2, 8)")
        guard.catch_up()
        assert guard.may_exist(8)


RENAME = "ALTER TABLE t RENAME COLUMN {} TO {}"
SWAPS = {
    "table": ["ALTER TABLE t RENAME TO was", "ALTER TABLE fresh RENAME TO t"],
    "column": [RENAME.format("k", "was"), RENAME.format("spare", "k")],
    "column of another type": [RENAME.format("k", "was"), RENAME.format("big", "k")],
    "column, and back": [
        RENAME.format("k", "was"),
        RENAME.format("spare", "k"),
        "UPDATE t SET k = 5",
        RENAME.format("k", "spare"),
        RENAME.format("was", "k"),
        "UPDATE t SET k = spare",
    ],
}


@pytest.mark.parametrize("swap", SWAPS)
def test_triggers_that_went_with_another_name_are_made_anew(
    basket: Database, guarded: Make, swap: str
) -> None:
    for name in ("t", "fresh"):
        basket.run(f"CREATE TABLE {name} (id integer PRIMARY KEY, k integer, spare integer)")
        basket.run(f"ALTER TABLE {name} ADD COLUMN big bigint")
    basket.run("INSERT INTO t VALUES (1, 1, 2, 3)")
    guard = guarded(outbox="1h")
    assert guard.build()
    basket.run(*SWAPS[swap])
    guard.catch_up()
    holds(guard, basket)
    basket.run("INSERT INTO t (id, k) VALUES (7, 7), (8, 8)")
    guard.catch_up()
    holds(guard, basket)
    basket.run("UPDATE t SET k = 9 WHERE id = 8")
    guard.catch_up()
    assert guard.state is State.READY
    holds(guard, basket)
    assert not guard.may_exist(ABSENT)


def test_a_change_table_and_its_triggers_are_removed_together(basket: Database) -> None:
    """Else a trigger would write to a table that is gone, and stop all writers."""
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)")
    outbox = Outbox([PLAIN.c.k], basket.engine.dialect)
    with basket.engine.connect() as connection:
        outbox.install(connection)
        outbox.uninstall(connection)
        connection.rollback()
    basket.run("INSERT INTO t VALUES (1, 7)")
    assert keys_in(basket, "bloomtide_t_k", "k0") == [7]


def test_a_trigger_that_is_switched_off_for_good_is_not_trusted(postgres_basket: Database) -> None:
    postgres_basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)")
    engine = create_engine(postgres_basket.url)
    with DatabaseGuard(engine, PLAIN.c.k, 1e-6, outbox="20ms") as guard:
        assert guard.build()
        postgres_basket.run("ALTER TABLE t DISABLE TRIGGER ALL", "INSERT INTO t VALUES (1, 7)")
        until(lambda: guard.may_exist(7))
        postgres_basket.run("INSERT INTO t VALUES (2, 8)")
        until(lambda: guard.may_exist(8))
    engine.dispose()


@pytest.mark.parametrize("later", [False, True])
def test_rows_of_a_table_that_inherits_are_read(postgres_basket: Database, later: bool) -> None:
    """They fire no trigger of the guarded table, not even if that is what a statement names."""
    joined = [
        "CREATE SCHEMA shop", "CREATE TABLE child (LIKE t)", "INSERT INTO child VALUES (1, 1)",
        "ALTER TABLE child INHERIT t", 'CREATE TABLE shop."grand child" () INHERITS (child)',
    ]  # fmt: skip
    postgres_basket.run("CREATE TABLE t (id integer, k integer)", *([] if later else joined))
    engine = create_engine(postgres_basket.url)
    with DatabaseGuard(engine, PLAIN.c.k, 1e-6, outbox="1h", rebuild="manual") as guard:
        assert guard.build()
        if later:
            postgres_basket.run(*joined)
            guard.catch_up()
        for statement in (
            "UPDATE t SET k = 7", "INSERT INTO child VALUES (2, 8)",
            'INSERT INTO shop."grand child" VALUES (3, 9)', "UPDATE t SET k = 10 WHERE id = 3",
            "ALTER TABLE child NO INHERIT t", "UPDATE child SET k = 11 WHERE id = 2",
            "ALTER TABLE child INHERIT t", "UPDATE t SET k = 12 WHERE id = 1",
        ):  # fmt: skip
            postgres_basket.run(statement)
            guard.catch_up()
            assert guard.state is State.READY
            holds(guard, postgres_basket)
            assert not guard.may_exist(ABSENT)
        guard.uninstall()
        postgres_basket.run("UPDATE child SET k = 13")
    engine.dispose()


# --- keys of one column in a tuple ---------------------------------------------------------------


def test_a_key_of_one_column_may_come_in_a_tuple_if_the_column_did(
    basket: Database, guarded: Make
) -> None:
    basket.run("CREATE TABLE t (id integer PRIMARY KEY, k integer)", "INSERT INTO t VALUES (1, 1)")
    for options in ({}, {"normal": int}):
        guard = guarded((PLAIN.c.k,), **options)
        assert guard.build()
        assert guard.filter_many([1, (1,), 2, (2,)]) == [1, (1,)]
        with guard.engine.connect() as connection:
            assert guard.exists(connection, (1,))
    plain = guarded()
    assert plain.build()
    with pytest.raises(KeyTypeError):
        plain.may_exist((1,))


def test_a_table_that_refers_to_the_guarded_one_may_be_written(
    basket: Database, guarded: Make
) -> None:
    """A cascade leads from the parent to the child, not back."""
    metadata = MetaData()
    parent = Table("t", metadata, Column("id", Integer, primary_key=True), Column("k", Integer))
    child = Table(
        "child", metadata, Column("id", Integer, primary_key=True),
        Column("t_id", ForeignKey("t.id", onupdate="CASCADE")),
    )  # fmt: skip
    metadata.create_all(basket.engine)
    guard = guarded(parent.c.k)
    assert guard.build()
    with guard.engine.begin() as connection:
        connection.execute(insert(child), {"id": 1})
        connection.execute(update(child).values(id=2))
    assert guard.state is State.READY
