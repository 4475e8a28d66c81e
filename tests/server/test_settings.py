"""Settings: names and values as people write them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomtide.errors import ParameterError
from bloomtide.server.settings import AUTO, Settings


def test_a_file_like_redis_conf_is_read(tmp_path: Path) -> None:
    file = tmp_path / "bloomtide.conf"
    file.write_text(
        "# a comment\n\nport 7000\nmaxmemory 2gb\nappendfsync always\n"
        'requirepass "two words"\ntls-auth-clients no\nbind 127.0.0.1 ::1\n'
        "user reader on >a#b ~* +@read\nuser writer off\nappendonly no\n"
    )
    found = Settings.from_file(file, [("port", "auto")])
    assert found.port == AUTO
    assert found.maxmemory == 2 << 30
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


def test_no_secret_is_shown() -> None:
    pairs = [("requirepass", "hush"), ("http-token", "hush"), ("user", "default on >hush")]
    settings = Settings.from_text(pairs)
    assert "hush" not in repr(settings)
    assert "hush" not in str(settings.as_text())


def test_every_shown_setting_can_be_given_back() -> None:
    settings = Settings.from_text([("maxmemory", "1gb"), ("dir", "x"), ("appendonly", "no")])
    assert Settings.from_text(settings.as_text().items()) == settings
