"""The change table: whoever writes a key, however it is written, its readers get it at commit."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, create_engine, text
from sqlalchemy.dialects import mysql

from bloomtide.errors import ParameterError
from bloomtide.guard.outbox.table import Outbox, Position
from tests.guard.databases import BASKET, Database

CUSTOMER: Column[Any] = BASKET.c.customer


class Reader:
    """Follows the change table of one column, or of several."""

    def __init__(self, database: Database, *columns: Column[Any]) -> None:
        self._database = database
        dialect = database.engine.dialect
        self.outbox: Outbox = Outbox(columns or [CUSTOMER], dialect)
        with database.engine.begin() as connection:
            self.outbox.install(connection)
        self.position: Position | None = self.here()

    def here(self) -> Position:
        with self._database.engine.connect() as connection:
            return self.outbox.position(connection)

    def read(self) -> set[Any]:
        """The keys since the last time; a single column's without their tuple."""
        assert self.position is not None
        found: set[Any] = set()

        def sink(keys: Sequence[tuple[Any, ...]]) -> None:
            found.update(key if len(key) > 1 else key[0] for key in keys)

        with self._database.engine.connect() as connection:
            self.position = self.outbox.read(connection, self.position, sink)
        return found

    def prune(self, until: Position) -> None:
        with self._database.engine.begin() as connection:
            self.outbox.prune(connection, until)

    def rows(self) -> int:
        with self._database.engine.connect() as connection:
            count = connection.execute(text(f"SELECT count(*) FROM {self.outbox.name}"))
            return int(count.scalar_one())


UPSERT = "ON CONFLICT (customer) DO UPDATE SET"


@pytest.mark.parametrize(
    ("statement", "keys"),
    [
        ("INSERT INTO basket (customer) VALUES (7)", {7}),
        ("INSERT INTO basket (customer) VALUES (7), (8), (9)", {7, 8, 9}),
        ("INSERT INTO basket (customer) SELECT customer + 10 FROM basket", {11, 12}),
        ("UPDATE basket SET customer = 5 WHERE customer = 1", {5}),
        ("UPDATE basket SET customer = customer + 10", {11, 12}),
        (f"INSERT INTO basket (customer) VALUES (1), (6) {UPSERT} customer = 77", {6, 77}),
        ("INSERT INTO basket (customer) VALUES (NULL)", set()),
        ("UPDATE basket SET note = 'x'", set()),
        ("DELETE FROM basket", set()),
    ],
)
def test_every_write_of_a_stranger_is_read(
    basket: Database, statement: str, keys: set[int]
) -> None:
    basket.insert([1, 2])
    reader = Reader(basket)
    basket.run(statement)
    assert reader.read() == keys
    assert reader.read() == set(), "once is enough"


def test_what_was_there_before_the_position_is_not_read(basket: Database) -> None:
    reader = Reader(basket)
    basket.insert([1])
    reader.position = reader.here()
    basket.insert([2])
    assert reader.read() == {2}


def test_what_is_rolled_back_is_not_read(basket: Database) -> None:
    reader = Reader(basket)
    with basket.engine.connect() as connection:
        connection.execute(text("INSERT INTO basket (customer) VALUES (1)"))
        if basket.kind == "postgresql":  # one writer at a time elsewhere
            assert reader.read() == set()
        connection.rollback()
    basket.insert([2])
    assert reader.read() == {2}


def test_keys_of_several_columns_come_as_the_columns_have_them(basket: Database) -> None:
    reader = Reader(basket, BASKET.c.note, CUSTOMER)
    basket.run("INSERT INTO basket (customer, note) VALUES (1, 'a'), (2, NULL), (NULL, 'b')")
    basket.run("UPDATE basket SET note = 'c' WHERE customer = 2")
    assert reader.read() == {("a", 1), ("c", 2)}


def test_names_that_need_quotes_are_quoted(basket: Database) -> None:
    odd = Table('Order of "x"\'s', MetaData(), Column("The Key", String, primary_key=True))
    odd.create(basket.engine)
    reader = Reader(basket, odd.c["The Key"])
    with basket.engine.begin() as connection:
        connection.execute(odd.insert(), [{"The Key": "it's"}])
        connection.execute(odd.update().values({"The Key": "it was"}))
    assert reader.read() == {"it's", "it was"}


def test_long_names_are_cut_and_stay_different(basket: Database) -> None:
    tables = [Table("t" * 60, MetaData(), Column(f"{'c' * 50}{i}", Integer)) for i in (1, 2)]
    names = [Outbox(list(table.columns), basket.engine.dialect).name for table in tables]
    assert names[0] != names[1]
    assert all(len(name) <= 50 for name in names)


def test_two_readers_of_one_column_do_not_take_from_each_other(basket: Database) -> None:
    one, two = Reader(basket), Reader(basket)
    basket.insert([1])
    assert one.read() == {1}
    assert two.read() == {1}


def test_a_position_survives_as_text(basket: Database) -> None:
    reader = Reader(basket)
    assert reader.position is not None
    basket.insert([1])
    reader.position = Position.from_json(reader.position.to_json())
    assert reader.read() == {1}


def test_many_changes_come_in_batches(basket: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bloomtide.guard.outbox.table._BATCH", 100)
    reader = Reader(basket)
    basket.insert(range(1000))
    sizes: list[int] = []
    with basket.engine.connect() as connection:
        assert reader.position is not None
        reader.outbox.read(connection, reader.position, lambda keys: sizes.append(len(keys)))
    assert sizes == [100] * 10


# --- pruning, dropping --------------------------------------------------------------------------


def test_pruning_deletes_what_all_have_seen_and_nothing_else(basket: Database) -> None:
    reader = Reader(basket)
    basket.insert([1, 2])
    reader.read()
    assert reader.position is not None
    until = reader.position
    basket.insert([3])
    reader.prune(until)
    assert reader.rows() == 1
    assert reader.read() == {3}
    reader.prune(until)
    assert reader.rows() == 1, "again makes no difference"


def test_a_reader_that_pruning_overtook_is_told(basket: Database) -> None:
    slow, quick = Reader(basket), Reader(basket)
    basket.insert([1])
    quick.read()
    assert quick.position is not None
    quick.prune(quick.position)
    basket.insert([2])
    slow.read()
    assert slow.position is None
    assert quick.read() == {2}


def test_pruning_everything_does_not_make_numbers_start_again(basket: Database) -> None:
    reader = Reader(basket)
    basket.insert([1, 2, 3])
    reader.prune(reader.here())
    assert reader.rows() == 0
    reader.position = reader.here()
    basket.insert([4])
    assert reader.read() == {4}


@pytest.mark.parametrize("again", [False, True])
def test_a_reader_whose_table_was_dropped_is_told(basket: Database, again: bool) -> None:
    reader = Reader(basket)
    with basket.engine.begin() as connection:
        reader.outbox.uninstall(connection)
    if again:
        Reader(basket)
    basket.insert([1])
    reader.read()
    assert reader.position is None


def test_a_change_table_that_was_dropped_alone_is_another_one_when_it_is_made_again(
    basket: Database,
) -> None:
    reader = Reader(basket)
    basket.insert([1, 2])
    reader.read()
    basket.run(f"DROP TABLE {reader.outbox.name}")
    Reader(basket)
    basket.insert([3])
    reader.read()
    assert reader.position is None


def test_uninstalling_leaves_the_table_as_it_was(basket: Database) -> None:
    reader = Reader(basket)
    for _ in range(2):
        with basket.engine.begin() as connection:
            reader.outbox.uninstall(connection)
    basket.insert([1])
    basket.run("UPDATE basket SET customer = 2")


def test_installing_at_once_from_many_threads_makes_one(basket: Database) -> None:
    failures: list[Exception] = []
    start = threading.Barrier(6)

    def install() -> None:
        start.wait()
        try:
            Reader(basket)
        except Exception as error:  # noqa: BLE001 - the test judges it
            failures.append(error)

    threads = [threading.Thread(target=install) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    reader = Reader(basket)
    basket.insert([1])
    assert reader.read() == {1}


def test_other_databases_are_refused_with_a_way_out() -> None:
    with pytest.raises(ParameterError) as caught:
        Outbox([CUSTOMER], mysql.dialect())
    assert "refresh" in caught.value.hint


# --- PostgreSQL only ----------------------------------------------------------------------------


def test_commits_out_of_order_are_not_missed(postgres_basket: Database) -> None:
    reader = Reader(postgres_basket)
    with postgres_basket.engine.connect() as slow, postgres_basket.engine.connect() as slower:
        slow.execute(text("INSERT INTO basket (customer) VALUES (1)"))
        slower.execute(text("INSERT INTO basket (customer) VALUES (2)"))
        postgres_basket.insert([3])
        assert reader.read() == {3}, "without waiting for the others"
        reader.prune(reader.here())
        slower.commit()
        postgres_basket.insert([4])
        assert reader.read() == {2, 4}
        slow.commit()
        assert reader.read() == {1}
    assert reader.read() == set()


def test_a_position_taken_amid_open_transactions_misses_none_of_them(
    postgres_basket: Database,
) -> None:
    reader = Reader(postgres_basket)
    with postgres_basket.engine.connect() as open_one:
        open_one.execute(text("INSERT INTO basket (customer) VALUES (1)"))
        nested = open_one.begin_nested()
        open_one.execute(text("INSERT INTO basket (customer) VALUES (2)"))
        reader.position = reader.here()
        nested.commit()
        open_one.commit()
    assert reader.read() == {1, 2}


def test_prepared_transactions_are_read_when_they_are_committed(
    postgres_basket: Database,
) -> None:
    reader = Reader(postgres_basket)
    with postgres_basket.engine.connect() as connection:
        transaction = connection.begin_twophase()
        connection.execute(text("INSERT INTO basket (customer) VALUES (1)"))
        transaction.prepare()
        assert reader.read() == set()
        transaction.commit()
    assert reader.read() == {1}


def test_any_interleaving_of_transactions_is_read_completely(postgres_basket: Database) -> None:
    """Twelve transactions at a time write, commit and roll back as the dice fall."""
    dice = random.Random(20)
    reader = Reader(postgres_basket)
    committed: set[int] = set()
    read: set[int] = set()
    engine = create_engine(postgres_basket.url, pool_size=12)
    running: list[tuple[Connection, set[int]]] = []
    for key in range(600):
        if len(running) < 12 and dice.random() < 0.3:
            running.append((engine.connect(), set()))
        if running and dice.random() < 0.7:
            connection, keys = dice.choice(running)
            connection.execute(text(f"INSERT INTO basket (customer) VALUES ({key})"))
            keys.add(key)
        if running and dice.random() < 0.3:
            connection, keys = running.pop(dice.randrange(len(running)))
            if dice.random() < 0.7:
                connection.commit()
                committed |= keys
            connection.close()
        if dice.random() < 0.2:
            read |= reader.read()
            assert committed <= read
            if dice.random() < 0.3:
                assert reader.position is not None
                reader.prune(reader.position)
    assert len(committed) > 200
    for connection, _ in running:
        connection.close()
    engine.dispose()
    assert read | reader.read() == committed


def test_copy_and_keys_changed_by_a_trigger_are_read(postgres_basket: Database) -> None:
    postgres_basket.run(
        "CREATE FUNCTION shift() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.customer = NEW.customer + 100; RETURN NEW; END $$",
        "CREATE TRIGGER shift BEFORE INSERT OR UPDATE ON basket FOR EACH ROW "
        "EXECUTE FUNCTION shift()",
    )
    reader = Reader(postgres_basket)
    raw = postgres_basket.engine.raw_connection()
    with raw.cursor().copy("COPY basket (customer) FROM STDIN") as copy:
        copy.write("1\n2\n")
    raw.commit()
    raw.close()
    assert reader.read() == {101, 102}
    postgres_basket.run("UPDATE basket SET note = 'x' WHERE customer = 101")
    assert reader.read() == {201}


def test_rows_that_go_straight_into_a_partition_are_read(postgres_basket: Database) -> None:
    parted = Table("parted", MetaData(), Column("key", Integer))
    postgres_basket.run(
        "CREATE TABLE parted (key integer) PARTITION BY RANGE (key)",
        "CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (100)",
    )
    reader = Reader(postgres_basket, parted.c.key)
    postgres_basket.run(
        "INSERT INTO low VALUES (1)",
        "CREATE TABLE high PARTITION OF parted FOR VALUES FROM (100) TO (200)",
        "INSERT INTO high VALUES (101)",
        "INSERT INTO parted VALUES (2)",
    )
    assert reader.read() == {1, 2, 101}


def test_what_replication_applies_is_read(postgres_basket: Database) -> None:
    reader = Reader(postgres_basket)
    postgres_basket.run(
        "SET LOCAL session_replication_role = replica",
        "INSERT INTO basket (customer) VALUES (1)",
    )
    assert reader.read() == {1}


def test_a_writer_needs_no_rights_on_the_change_table(postgres_basket: Database) -> None:
    reader = Reader(postgres_basket)
    postgres_basket.run(
        "CREATE ROLE clerk",
        "GRANT INSERT ON basket TO clerk",
        "GRANT USAGE ON SEQUENCE basket_id_seq TO clerk",
        "SET LOCAL ROLE clerk",
        "INSERT INTO basket (customer) VALUES (1)",
    )
    assert reader.read() == {1}
    postgres_basket.run("DROP OWNED BY clerk", "DROP ROLE clerk")


def test_who_finds_everything_installed_needs_no_rights_to_install(
    postgres_basket: Database,
) -> None:
    outbox = Outbox([CUSTOMER], postgres_basket.engine.dialect, notify=True)
    with postgres_basket.engine.connect() as connection:
        outbox.install(connection)
        connection.execute(text("CREATE ROLE visitor"))
        connection.execute(text("GRANT SELECT ON ALL TABLES IN SCHEMA public TO visitor"))
        connection.execute(text("SET ROLE visitor"))
        outbox.install(connection)
        connection.execute(text("RESET ROLE"))
        connection.commit()
    postgres_basket.run("DROP OWNED BY visitor", "DROP ROLE visitor")


def test_tables_in_a_schema_have_their_changes_there(postgres_basket: Database) -> None:
    postgres_basket.run("CREATE SCHEMA shop", "CREATE TABLE shop.visit (key integer)")
    visit = Table("visit", MetaData(), Column("key", Integer), schema="shop")
    reader = Reader(postgres_basket, visit.c.key)
    postgres_basket.run("INSERT INTO shop.visit VALUES (1)")
    assert reader.read() == {1}
    postgres_basket.run(f"SELECT 1 FROM shop.{reader.outbox.name}")
