"""Settings: names and values as people write them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomtide import system
from bloomtide._core import Keyspace
from bloomtide.errors import ParameterError
from bloomtide.server.configuration import read_configuration
from bloomtide.server.listener import user_lines
from bloomtide.server.settings import AUTO, Settings


def test_a_file_like_redis_conf_is_read(tmp_path: Path) -> None:
    file = tmp_path / "bloomtide.conf"
    file.write_text(
        "# a comment\n\nport 7000\nmaxmemory 2gb\nappendfsync always\n"
        'requirepass "two words"\ntls-auth-clients no\nbind 127.0.0.1 ::1\n'
        "user reader on >a#b ~* +@read\nuser writer off\nappendonly no\n"
    )
    found = read_configuration([("port", "auto")], file=file, environment={}).settings
    assert found.port == AUTO
    assert found.maxmemory == 2 << 30
    assert Settings().maxmemory == system.memory() // 2
    assert found.appendfsync == "always"
    assert found.requirepass == "two words"
    assert found.bind == ("127.0.0.1", "::1")
    assert found.user == ("reader on >a#b ~* +@read", "writer off")
    assert found.appendonly is False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "70000"),
        ("port", "-1"),
        ("port", "many"),
        ("maxmemory", "2 apples"),
        ("maxmemory", "9" * 40),
        ("maxkeys", "-1"),
        ("maxkeys", "some"),
        ("maxclients", "0"),
        ("appendfsync", "sometimes"),
        ("appendonly", "perhaps"),
        ("bind", ""),
        ("tls-port", "6381"),
        ("proto-max-bulk-len", "1"),
        ("no-such-setting", "1"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Settings.from_text([(name, value)])
    assert caught.value.name in (name, "tls-cert-file")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.org"])
def test_an_address_beyond_this_machine_needs_a_password_and_a_token(host: str) -> None:
    with pytest.raises(ParameterError, match="without a password") as caught:
        Settings.from_text([("bind", host)])
    assert "requirepass" in caught.value.hint
    with pytest.raises(ParameterError, match="http-token"):
        Settings.from_text([("bind", host), ("requirepass", "secret")])
    with pytest.raises(ParameterError, match="without a password"):
        Settings.from_text([("bind", host), ("user", "default on nopass ~* +@all")])
    for more in [
        [("requirepass", "secret"), ("http-port", "0")],
        [("requirepass", "secret"), ("http-token", "t")],
        [("user", "default on >secret ~* +@all"), ("http-port", "0")],
        [("user", "default off"), ("http-port", "0")],
        [("port", "0"), ("http-token", "t")],
    ]:
        assert Settings.from_text([("bind", host), *more]).bind == (host,)


@pytest.mark.parametrize(
    "pairs",
    [
        [("user", "default on nopass ~* +@all"), ("requirepass", "hush")],
        [("user", "default off"), ("requirepass", "hush")],
        [("user", "default on >hush"), ("user", "default nopass")],
        [("user", "ann on"), ("user", "ann off")],
    ],
)
def test_two_words_about_one_user_are_refused(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(ParameterError, match=r"one of both|one line for each user") as caught:
        Settings.from_text(pairs)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "let_in"),
    [
        ("", False), ("on", False), ("on ~* +@all", False), ("on nopass", True), ("nopass", False),
        ("on nopass >x", False), ("on >x nopass", True), ("on nopass resetpass", False),
        ("on nopass reset on", False), ("ON NOPASS", True), ("on nopass off", False),
        (f"on nopass #{'0' * 64}", False), ("on nopass ~x", True),
    ],
)  # fmt: skip
def test_an_open_user_is_known_as_the_keyspace_knows_it(rules: str, let_in: bool) -> None:
    settings = Settings.from_text([("user", f"default {rules}")])
    keyspace = Keyspace()
    keyspace.set_users(user_lines(settings))
    assert keyspace.session().authenticated is let_in
    assert settings.protected is not let_in


def test_a_password_may_have_blanks_and_is_not_in_an_error() -> None:
    keyspace = Keyspace()
    keyspace.set_users(user_lines(Settings.from_text([("requirepass", "two words #x")])))
    session = keyspace.session()
    assert session.execute(b'AUTH "two words"\r\n', 1.0).startswith(b"-WRONGPASS")
    assert session.execute(b'AUTH "two words #x"\r\n', 1.0) == b"+OK\r\n"


def test_no_secret_is_shown() -> None:
    pairs = [("requirepass", "hush"), ("http-token", "hush"), ("user", "ann on >hush")]
    settings = Settings.from_text(pairs)
    assert "hush" not in repr(settings)
    assert "hush" not in str(settings.as_text())


def test_every_shown_setting_can_be_given_back() -> None:
    settings = Settings.from_text([("maxmemory", "1gb"), ("dir", "x"), ("appendonly", "no")])
    assert Settings.from_text(settings.as_text().items()) == settings


def test_the_memory_of_a_control_group_counts_in_both_versions(tmp_path: Path) -> None:
    def limits(lines: str, **files: str) -> list[int]:
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/cgroup").write_text(lines)
        for name, text in files.items():
            path = root / "sys/fs/cgroup" / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return sorted(system.group_limits(root))

    assert limits("0::/a/b\n", **{"a__memory.max": "5000\n", "a__b__memory.max": "max\n"}) == [5000]
    # In a container the group's path is one of the host.
    assert limits("0::/../host\n", **{"memory.max": "7000\n"}) == [7000]
    old = {"memory__x__memory.limit_in_bytes": "300\n", "memory__memory.limit_in_bytes": "900\n"}
    assert limits("3:cpu,cpuacct:/x\n4:memory:/x\n", **old) == [300, 900]
    assert limits("") == []
    assert list(system.group_limits(tmp_path / "none")) == []
    assert 0 < system.memory() < 1 << 60
