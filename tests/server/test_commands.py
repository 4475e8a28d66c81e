"""The commands that Python answers, over a real connection; and starting and stopping."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bloomtide import History
from bloomtide.server.commands import HANDLERS
from tests.server.process import Running, request, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("data"), "--http-port", "auto") as server:
        yield server
        code, told = server.stop()
        assert code == 0
        assert "Traceback" not in told


@pytest.fixture(params=[2, 3])
def client(server: Running, request: pytest.FixtureRequest) -> Iterator[Any]:
    with server.client(protocol=request.param, decode_responses=True) as client:
        client.flushall()
        yield client


def test_info_has_the_fields_that_tools_look_for(client: Any) -> None:
    client.bf().add("a", "x")
    told = client.info()
    for name in (
        "redis_version", "bloomtide_version", "arch_bits", "process_id", "tcp_port", "loading",
        "uptime_in_seconds", "connected_clients", "used_memory", "used_memory_rss", "maxmemory",
        "aof_enabled",
        "rdb_last_save_time", "aof_last_write_status", "total_commands_processed",
        "total_connections_received", "keyspace_hits", "role", "used_cpu_user", "cluster_enabled",
    ):  # fmt: skip
        assert name in told, name
    assert told["modules"][0]["name"] == "bf"
    assert told["db0"]["keys"] == 1
    assert set(client.info("replication")) == {"role", "connected_slaves"}
    assert client.info("commandstats")["cmdstat_bf.add"]["calls"] >= 1


def test_waitaof_answers_once_the_journal_is_on_the_disk(client: Any) -> None:
    syncs = client.info("persistence")["aof_fsyncs"]
    client.set("a", "x")
    assert client.execute_command("WAITAOF", 1, 0, 1000) == [1, 0]
    assert client.info("persistence")["aof_fsyncs"] > syncs
    for words in (["2", "0", "0"], ["1", "-1", "0"], ["1", "0", "-1"], ["x", "0", "0"]):
        with pytest.raises(redis.ResponseError):
            client.execute_command("WAITAOF", *words)


def test_config_shows_settings_and_changes_some_of_them(client: Any) -> None:
    assert client.config_get("append*")["appendfsync"] == "everysec"
    assert client.config_get("no-such-*") == {}
    assert client.config_get("requirepass") == {"requirepass": ""}
    assert client.config_set("timeout", 300)
    assert client.config_get("timeout") == {"timeout": "300"}
    client.config_set("timeout", 0)
    with pytest.raises(redis.ResponseError, match="immutable"):
        client.config_set("port", 1)
    with pytest.raises(redis.ResponseError, match="unknown"):
        client.config_set("nothing", 1)
    with pytest.raises(redis.ResponseError, match="appendfsync"):
        client.config_set("appendfsync", "sometimes")


def test_clients_are_listed_named_and_killed(server: Running, client: Any) -> None:
    with server.client(client_name="other") as other:
        other.execute_command("CLIENT", "SETINFO", "LIB-NAME", "test")
        other.execute_command("CLIENT", "SETINFO", "LIB-VER", "1.2")
        [found] = [each for each in client.client_list() if each["name"] == "other"]
        assert (found["lib-name"], found["lib-ver"]) == ("test", "1.2")
        assert found["resp"] == "2"
        assert client.client_kill_filter(_id=found["id"]) == 1
        assert not [each for each in client.client_list() if each["name"] == "other"]
    assert client.client_id() == client.client_info()["id"]
    client.client_setname("me")
    assert client.client_getname() == "me"
    with pytest.raises(redis.ResponseError):
        client.client_setname("two words")
    with pytest.raises(redis.ResponseError, match="unknown subcommand"):
        client.execute_command("CLIENT", "NOSUCH")


def wait_for_snapshot(client: Any) -> None:
    """Until none is being written: one that was begun before, or by the server itself."""
    while client.info("persistence")["rdb_bgsave_in_progress"]:
        pass


def test_snapshots_can_be_asked_for(client: Any) -> None:
    client.bf().add("a", "x")
    wait_for_snapshot(client)
    assert client.save()
    saved = client.lastsave()
    for begin in (client.bgsave, client.bgrewriteaof):
        assert begin()
        wait_for_snapshot(client)
        assert client.info("persistence")["rdb_last_bgsave_status"] == "ok"
    assert client.lastsave() >= saved


def test_histories_count_by_time(client: Any, request: pytest.FixtureRequest) -> None:
    name = f"web {request.node.name}"
    run = client.execute_command
    assert run("HISTORY.RESERVE", name, "WINDOW", "1m") == "OK"
    assert run("HISTORY.ADD", name, "/a", "COUNT", 3, "AT", "2026-11-16T09:00:30Z") == "OK"
    assert run("HISTORY.MADD", name, "/a", "/b") == 2
    counted = run("HISTORY.COUNT", name, "/a", "END", "2026-11-16T10:00:00Z")
    fields = counted if isinstance(counted, dict) else dict(zip(*[iter(counted)] * 2, strict=True))
    assert fields["upper"] == 3
    series = run("HISTORY.SERIES", name, "/a", "STEP", "1m", "START", 1794819600, "END", 1794819720)
    assert [int(upper) for _, upper in series] == [3, 0]
    assert len(run("HISTORY.TOP", name, "COUNT", 1)) == 1
    assert name in run("HISTORY.LIST")
    with pytest.raises(redis.ResponseError, match="already"):
        run("HISTORY.RESERVE", name)
    with pytest.raises(redis.ResponseError, match="no history"):
        run("HISTORY.COUNT", "nothing", "/a")
    with pytest.raises(redis.ResponseError, match="syntax"):
        run("HISTORY.COUNT", name, "/a", "LAST")
    # A pipeline keeps its order also around answers that come from a thread.
    with client.pipeline(transaction=False) as pipeline:
        pipeline.execute_command("HISTORY.ADD", name, "/c")
        pipeline.ping()
        pipeline.execute_command("HISTORY.MADD", name, "/c", "/d")
        pipeline.echo("end")
        assert pipeline.execute() == ["OK", True, 2, "end"]


@pytest.mark.parametrize("name", ["../../etc", "a/b", ".", "..", "%2e"])
def test_a_history_stays_in_its_directory_whatever_its_name(server: Running, name: str) -> None:
    with server.client() as client:
        client.execute_command("HISTORY.RESERVE", name)
        assert name.encode() in client.execute_command("HISTORY.LIST")


def test_a_history_that_another_process_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "histories" / "history-web"
    with History.open(path, "1m") as store, running(tmp_path) as server, server.client() as client:
        for number in (1, 2):
            store.add_batch(
                "stream", number, lambda buffer: buffer.add("/a", 3, 1_700_000_000_000_000)
            )
            words = client.execute_command("HISTORY.COUNT", "web", "/a")
            assert dict(zip(*[iter(words)] * 2, strict=True))[b"upper"] == 3 * number
        with pytest.raises(redis.ResponseError, match="reading only"):
            client.execute_command("HISTORY.ADD", "web", "/a")


USERS = (
    "--set", "user=default on nopass ~* +@all",
    "--set", "user=plain on >p ~web* +@all -@dangerous",
    "--set", "user=connected on >p ~* -@all +client -client|kill",
)  # fmt: skip


def test_a_user_sees_the_histories_that_the_patterns_allow(tmp_path: Path) -> None:
    with running(tmp_path, *USERS) as server:
        with server.client() as client:
            for name in ("web", "web2", "mail"):
                client.execute_command("HISTORY.RESERVE", name)
            assert client.execute_command("HISTORY.LIST") == [b"mail", b"web", b"web2"]
        with server.client(username="plain", password="p") as client:
            assert client.execute_command("HISTORY.LIST") == [b"web", b"web2"]


def test_the_clients_of_others_are_for_dangerous_users(tmp_path: Path) -> None:
    with running(tmp_path, *USERS) as server:
        with server.client(username="plain", password="p") as client:
            assert client.client_id() > 0
            assert client.client_setname("me")
            for words in (["CLIENT", "LIST"], ["client", "kill", "ID", "1"]):
                with pytest.raises(redis.ResponseError, match=r"permissions to run the 'client\|"):
                    client.execute_command(*words)
            with pytest.raises(redis.ResponseError, match="unknown command"):
                client.execute_command("CLIENT|ID")
        with server.client(username="connected", password="p") as client:
            assert len(client.execute_command("CLIENT LIST")) == 1
            with pytest.raises(redis.ResponseError, match=r"'client\|kill'"):
                client.execute_command("CLIENT", "KILL", "ID", "1")
        with server.client() as client:
            rules = {line.split()[1]: line.split()[-2:] for line in client.acl_list()}
            assert rules["connected"] == ["+client", "-client|kill"]
            names = set(client.execute_command("ACL", "CAT", "dangerous"))
            assert {b"client|kill", b"client|list"} <= names
            assert b"client" in client.command_list()
            assert b"client|kill" not in client.command_list()


@pytest.mark.parametrize("name", ["", "x" * 300, b"\xff"])
def test_a_name_that_no_directory_can_have_is_refused(server: Running, name: str | bytes) -> None:
    with server.client() as client, pytest.raises(redis.ResponseError, match=r"letters|UTF-8"):
        client.execute_command("HISTORY.RESERVE", name)


def test_without_a_monitor_its_commands_say_so(client: Any) -> None:
    for words in (["MONITOR.SEEN", "x"], ["MONITOR.TOP"], ["MONITOR.STATS"]):
        with pytest.raises(redis.ResponseError, match="bloomtide watch"):
            client.execute_command(*words)
    assert client.execute_command("GUARD.LIST") == []


@pytest.mark.parametrize("name", sorted(set(HANDLERS) - {"SHUTDOWN", "SAVE", "BGSAVE"}))
def test_no_command_ends_the_connection_whatever_it_is_given(server: Running, name: str) -> None:
    with server.wire() as wire:
        for words in ([], [b"\xff"], [b""] * 3, [b"a"] * 9, [b"GET"], [b"LIST", b"ID", b"x"]):
            wire.send(request(name, *words) + request("ECHO", "after"))
            while (line := wire.raw_line()) != b"after\r\n":
                assert line, name
    assert server.process.poll() is None


def test_http_answers_beside_it(server: Running) -> None:
    base = f"http://127.0.0.1:{server.ports['http_port']}"
    for path in ("/livez", "/readyz", "/metrics"):
        with urllib.request.urlopen(f"{base}{path}", timeout=20) as answer:
            assert answer.status == 200
            told = answer.read().decode()
    assert "bloomtide_aof_failed 0" in told
    assert "bloomtide_connected_clients" in told


# --- the start and the end ------------------------------------------------------------------------


def test_a_restart_shows_the_same_answers(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        client = server.client()
        for number in range(50):
            client.execute_command("BF.ADD", f"filter {number % 3}", number)
        client.execute_command("HISTORY.RESERVE", "web")
        client.execute_command("HISTORY.ADD", "web", "/a")
        digest = client.execute_command("DEBUG", "DIGEST")
        assert server.stop()[0] == 0
    with running(tmp_path / "data") as server:
        client = server.client()
        assert client.execute_command("DEBUG", "DIGEST") == digest
        assert client.info("persistence")["aof_base_size"] > 0, "no snapshot at the end"
        total = client.execute_command("HISTORY.TOTAL", "web")
        assert dict(zip(*[iter(total)] * 2, strict=True))[b"upper"] == 1
        client.execute_command("FLUSHALL")
        client.shutdown(nosave=True)
        assert server.ended()[0] == 0
    with running(tmp_path / "data") as server:
        assert server.client().dbsize() == 0


def test_a_second_server_on_one_directory_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as server, pytest.raises(AssertionError) as caught:
        Running(tmp_path)
    assert f"process {server.process.pid}" in str(caught.value)


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with running(None) as server, pytest.raises(AssertionError, match="another server"):
        Running(None, "--port", str(server.port))


def test_beyond_this_machine_it_listens_only_with_a_password() -> None:
    with pytest.raises(AssertionError, match="requirepass"):
        Running(None, "--bind", "0.0.0.0")
    with running(None, "--bind", "0.0.0.0", BLOOMTIDE_PASSWORD="secret") as server:
        with pytest.raises(redis.AuthenticationError):
            server.client().ping()
        with pytest.raises(redis.AuthenticationError):
            server.client(password="wrong").ping()
        for protocol in (2, 3):
            assert server.client(password="secret", protocol=protocol).ping()


def test_users_may_do_what_their_line_says(tmp_path: Path) -> None:
    file = tmp_path / "bloomtide.conf"
    file.write_text(
        "appendonly no\nuser reader on >r ~open:* +@read\nuser default on >w ~* +@all\n"
    )
    with running(None, str(file)) as server:
        writer = server.client(password="w")
        writer.execute_command("BF.ADD", "open:a", "x")
        reader = server.client(username="reader", password="r")
        assert reader.execute_command("BF.EXISTS", "open:a", "x") == 1
        for words in (["BF.ADD", "open:a", "y"], ["BF.EXISTS", "a", "x"], ["CONFIG", "GET", "*"]):
            with pytest.raises(redis.exceptions.NoPermissionError):
                reader.execute_command(*words)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls_works_and_client_certificates_can_be_demanded(tmp_path: Path) -> None:
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    settings = ["tls-port=auto", f"tls-cert-file={certificate}", f"tls-key-file={key}",
                f"tls-ca-cert-file={certificate}"]  # fmt: skip
    with running(None, *(word for each in settings for word in ("--set", each))) as server:
        once = Retry(NoBackoff(), 0)
        trusted = {"ssl": True, "ssl_ca_certs": certificate, "protocol": 2, "retry": once}
        port = server.ports["tls_port"]
        known: Any = redis.Redis(
            port=port,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            **trusted,  # type: ignore[arg-type]
        )
        assert known.execute_command("BF.ADD", "a", "x") == 1
        unknown = redis.Redis(port=port, **trusted)  # type: ignore[arg-type]
        with pytest.raises((redis.ConnectionError, ssl.SSLError)):
            unknown.ping()


def test_a_damaged_journal_is_refused_and_repaired(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        for number in range(20):
            server.client().execute_command("BF.ADD", "a", number)
        server.kill()
    [journal] = (tmp_path / "data").glob("journal-*")
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 1
    journal.write_bytes(data)
    with pytest.raises(AssertionError, match="--repair") as caught:
        Running(tmp_path / "data")
    assert "is damaged at offset" in str(caught.value)
    done = subprocess.run(
        [sys.executable, "-m", "bloomtide", "serve", "--repair", str(tmp_path / "data")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0
    assert "What was cut is in" in done.stderr
    with running(tmp_path / "data") as server:
        assert 0 < server.client().execute_command("BF.CARD", "a") < 20
