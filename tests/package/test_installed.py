"""Each extra alone in an empty environment: what it is for works, and the rest names its extra.

These install from a package index. `make test-all` runs them.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.package import trees
from tests.package.environments import Environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
Make = Callable[[str], Environment]

LOG = '127.0.0.1 - - [12/Mar/2026:10:00:0{} +0000] "GET /{} HTTP/1.1" 200 12 "-" "x"\n'

# For each extra a program that does what the extra is for and prints "works".
LIBRARY = """
from bloomtide import *
seen = BloomFilter(1000, 0.01)
assert seen.add("a") and not seen.add("a") and "a" in seen
assert seen.contains_many(["a", "b"]).tolist() == [True, False]
seen.save("seen.bloom")
assert "a" in load("seen.bloom")
"""
HISTORY = """
from bloomtide import History
with History.open("store", "1m"{}) as history:
    history.add("a", at=1_700_000_000)
    history.add("a", at=1_700_000_000)
    assert history.count("a", 1_699_999_000, 1_700_001_000).upper == 2
"""
PROGRAMS = {
    "history": HISTORY.format(""),
    "fsspec": HISTORY.format(", location='memory://segments'"),
    "guard": """
import sqlalchemy as sql
from bloomtide import DatabaseGuard
engine = sql.create_engine("sqlite:///shop.db")
table = sql.Table("baskets", sql.MetaData(), sql.Column("owner", sql.Integer))
table.create(engine)
with DatabaseGuard(engine, table.c.owner) as guard:
    assert guard.build()
    with engine.begin() as connection:
        connection.execute(table.insert(), {"owner": 7})
    assert guard.may_exist(7) and not guard.may_exist(8)
""",
    "metrics": """
from prometheus_client import CollectorRegistry, generate_latest
from bloomtide.guard import KeyFilter
from bloomtide.guard.metrics import GuardMetrics
registry = CollectorRegistry()
registry.register(GuardMetrics({}))
assert b"bloomtide_guard_state" in generate_latest(registry)
""",
    "arrow": """
import pyarrow
from bloomtide import BloomFilter
seen = BloomFilter(1000, 0.01)
seen.add_many(pyarrow.array(["a", "b"]))
assert seen.contains_many(pyarrow.array(["b", "c"])).tolist() == [True, False]
""",
    "distributed": """
from bloomtide import BloomFilter
from bloomtide.distributed import build_partition, finish, merge
plan = BloomFilter.plan(1000, 0.01)
parts = [build_partition([keys], plan) for keys in (["a"], ["b"])]
assert "b" in finish(merge(parts))
""",
    "scrapy": """
from scrapy import Request
from scrapy.utils.test import get_crawler
from bloomtide.integrations.scrapy import BloomDupeFilter
crawler = get_crawler(settings_dict={"BLOOMTIDE_CAPACITY": 1000})
seen = BloomDupeFilter.from_crawler(crawler)
seen.open()
page = Request("http://example.org/")
assert not seen.request_seen(page) and seen.request_seen(page)
seen.close("finished")
""",
    "django": """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["bloomtide.integrations.django"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}},
)
django.setup()
from django.db import connection, models
class Basket(models.Model):
    customer = models.IntegerField()
    class Meta:
        app_label = "shop"
with connection.schema_editor() as editor:
    editor.create_model(Basket)
from bloomtide.integrations.django import ModelGuard
with ModelGuard(Basket, "customer") as guard:
    assert guard.build()
    Basket.objects.create(customer=7)
    assert guard.may_exist(7) and not guard.may_exist(8)
""",
    "dask": """
import dask
from dask import bag
from bloomtide import BloomFilter
from bloomtide.integrations.dask import build
with dask.config.set(scheduler="synchronous"):
    seen = build(bag.from_sequence(["a", "b", "c"], npartitions=2), BloomFilter.plan(100, 0.01))
assert "c" in seen
""",
    "ray": """
import ray
from bloomtide import BloomFilter
from bloomtide.integrations.ray import build
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
rows = ray.data.from_items([{"url": "a"}, {"url": "b"}])
assert "b" in build(rows, "url", BloomFilter.plan(100, 0.01))
""",
    "spark": """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable  # else the first python3 of the path
from pyspark.sql import SparkSession
from bloomtide import BloomFilter
from bloomtide.integrations.spark import build
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
rows = spark.createDataFrame([("a",), ("b",)], ["url"])
assert "b" in build(rows, "url", BloomFilter.plan(100, 0.01))
spark.stop()
""",
}
COMMANDS = ["cli", "serve", "watch", "redis", "all"]


def test_every_extra_is_used_here() -> None:
    assert {*PROGRAMS, *COMMANDS} == set(trees.EXTRAS)


def use(environment: Environment, program: str) -> None:
    done = environment.run("python", "-W", "error::ImportWarning", "-c", program + "print('works')")
    assert done.stdout.splitlines()[-1:] == ["works"], done.stdout + done.stderr


def test_the_library_comes_with_numpy_alone_and_names_every_extra(environment: Make) -> None:
    made = environment("")
    assert made.packages() == {"bloomtide", "numpy"}
    use(made, LIBRARY)
    for extra, (program, _, what) in trees.NEEDS.items():
        if extra == "fsspec":
            continue  # a store without its table is not asked where its segments are
        done = made.run("python", "-c", trees.ask(program))
        assert done.stdout.startswith(f"MissingExtraError {what} needs "), done.stderr
        assert f"hint: pip install 'bloomtide[{extra}]'" in done.stdout


def test_without_its_extra_the_command_says_how_to_get_it(environment: Make) -> None:
    done = environment("").run("bloomtide", "--version")
    assert done.returncode == 2
    assert "pip install 'bloomtide[cli]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "mistake" not in done.stderr


@pytest.mark.parametrize("extra", PROGRAMS)
def test_an_extra_alone_does_what_it_is_for(extra: str, environment: Make) -> None:
    use(environment(extra), LIBRARY + PROGRAMS[extra])


def check_command(made: Environment, tmp_path: Path) -> None:
    done = made.run("bloomtide", "dedup", input="a\nb\na\n")
    assert (done.returncode, done.stdout) == (0, "a\nb\n"), done.stderr
    listed = tmp_path / "lines.zst"
    use(made, f"import zstandard; open({str(listed)!r}, 'wb')"
        ".write(zstandard.ZstdCompressor().compress(b'x\\nx\\n'))\n")  # fmt: skip
    assert made.run("bloomtide", "dedup", str(listed)).stdout == "x\n"


def check_server(made: Environment, tmp_path: Path) -> None:
    server = subprocess.Popen(
        [
            str(made.bin / "bloomtide"), "serve", "--dir", str(tmp_path / "data"),
            "--port", "auto", "--http-port", "auto", "--json",
        ],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    with server:
        try:
            assert server.stdout is not None
            started = server.stdout.readline()
            code = (
                "import json, socket, sys, urllib.request\n"
                f"started = json.loads({started!r})\n"
                "with socket.create_connection(('127.0.0.1', started['port'])) as s:\n"
                "    s.sendall(b'PING\\r\\n')\n    assert s.recv(7) == b'+PONG\\r\\n'\n"
                "page = urllib.request.urlopen(f\"http://127.0.0.1:{started['http_port']}/livez\")\n"
                "assert page.status == 200\n"
            )
            use(made, code)
        finally:
            server.send_signal(signal.SIGTERM)
    assert server.returncode == 0


def check_watch(made: Environment, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("".join(LOG.format(second, "a") for second in range(3)))
    data = str(tmp_path / "watched")
    done = made.run("bloomtide", "watch", str(log), "--data", data, "--no-server", "--json")
    assert done.returncode == 0, done.stderr
    assert '"events": 3' in done.stdout.replace('":', '": ').replace("  ", " ")


def test_the_command_alone(environment: Make, tmp_path: Path) -> None:
    made = environment("cli")
    check_command(made, tmp_path)
    (tmp_path / "access.log").write_text(LOG.format(0, "a"))
    for command, extra in {"serve": "serve", "watch access.log": "watch"}.items():
        done = made.run("bloomtide", *command.split(), cwd=tmp_path)
        assert done.returncode
        assert f"pip install 'bloomtide[{extra}]'" in done.stderr
        assert "mistake" not in done.stderr


def test_the_server_alone(environment: Make, tmp_path: Path) -> None:
    made = environment("serve")
    assert "sqlalchemy" not in made.packages()
    check_server(made, tmp_path)


def test_the_monitor_alone(environment: Make, tmp_path: Path) -> None:
    made = environment("watch")
    check_watch(made, tmp_path)
    done = made.run("bloomtide", "watch", "redis://127.0.0.1:1/visits", cwd=tmp_path)
    assert "pip install 'bloomtide[redis]'" in done.stderr


def test_the_monitor_of_redis_alone(environment: Make, tmp_path: Path) -> None:
    made = environment("redis")
    check_watch(made, tmp_path)
    command = [str(made.bin / "bloomtide"), "watch", "redis://127.0.0.1:1/visits"]
    ports = ["--set", "port=auto", "--set", "http-port=auto"]
    watching = subprocess.Popen([*command, *ports], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    with watching:
        try:
            assert watching.stderr is not None
            assert watching.stderr.readline().startswith("page: ")
        finally:
            watching.send_signal(signal.SIGTERM)


def test_all_holds_everything_but_the_engines(environment: Make, tmp_path: Path) -> None:
    made = environment("all")
    check_command(made, tmp_path)
    check_server(made, tmp_path)
    check_watch(made, tmp_path)
    use(made, "from bloomtide import *\n" + "\n".join(
        PROGRAMS[extra] for extra in ("guard", "history", "metrics", "arrow", "distributed")
    ))  # fmt: skip
    assert not made.packages() & {"pyspark", "dask", "ray", "scrapy", "django"}


def test_a_wrong_version_is_named(environment: Make) -> None:
    made = environment("guard")
    [folder] = made.site.glob("[sS][qQ][lL][aA]lchemy-*.dist-info")
    folder.rename(made.site / "SQLAlchemy-1.4.54.dist-info")
    done = made.run("python", "-c", "from bloomtide import *; DatabaseGuard(None, None)")
    assert "`DatabaseGuard` needs sqlalchemy >=2.0,<2.2 (1.4.54 is installed)" in done.stderr
    assert "pip install 'bloomtide[guard]'" in done.stderr
