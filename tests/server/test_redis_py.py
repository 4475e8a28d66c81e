"""redis-py's own tests of BF, CF, CMS, TOPK and TDIGEST pass unchanged, in both protocols.

They are in redis-py's source archive, not in its wheel. pip fetches the archive of the version that
is installed into `target/`, once; without the network the tests are skipped.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.server.process import ROOT, running

_BACKEND = '''
"""In place of the real one: pip wants a name and a version, and nothing is built."""
from pathlib import Path

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    made = Path(metadata_directory) / "redis-0.dist-info"
    made.mkdir()
    text = "Metadata-Version: 2.1\\nName: redis\\nVersion: {version}\\n"
    (made / "METADATA").write_text(text)
    return made.name
'''


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of redis-py's sources."""
    wanted = version("redis")
    kept = ROOT / "target" / "redis-py"
    sources = kept / f"redis-{wanted}"
    if not (sources / "tests" / "test_bloom.py").exists():
        kept.mkdir(parents=True, exist_ok=True)
        archive = fetched(wanted, tmp_path_factory.mktemp("redis-py"))
        # Another process of this run may do the same: whole directories appear at once or not.
        with tempfile.TemporaryDirectory(dir=kept) as own, tarfile.open(archive) as file:
            file.extractall(own, filter="data")
            with contextlib.suppress(OSError):  # the other one was first
                (Path(own) / sources.name).rename(sources)
    return sources


def fetched(wanted: str, directory: Path) -> Path:
    backend = directory / "backend" / "hatchling"
    backend.mkdir(parents=True)
    (backend / "__init__.py").touch()
    (backend / "build.py").write_text(_BACKEND.replace("{version}", wanted))
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--retries", "1",
            "--timeout", "10", f"redis=={wanted}",
        ],
        cwd=directory, env=os.environ | {"PYTHONPATH": str(backend.parent)},
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    found = list(directory.glob("redis-*.tar.gz"))
    if not found:
        pytest.skip(f"redis-py's sources cannot be had: {done.stderr.strip()[-200:]}")
    return found[0]


@pytest.mark.parametrize(
    ("file", "protocol", "choice"),
    [
        pytest.param("tests/test_bloom.py", "2", "", marks=pytest.mark.slow),
        ("tests/test_bloom.py", "3", ""),
        # Its dumps take most of the time, and the server cannot tell the two clients apart.
        ("tests/test_asyncio/test_bloom.py", "3", "not scandump"),
    ],
)
def test_its_own_tests_pass_unchanged(sources: Path, file: str, protocol: str, choice: str) -> None:
    with running(None) as server:
        url = f"redis://127.0.0.1:{server.port}/0"
        done = subprocess.run(
            [
                sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider",
                file, "-m", "redismod", "-k", choice, f"--redis-url={url}",
                f"--redis-mod-url={url}", f"--protocol={protocol}",
            ],
            cwd=sources, capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout, done.stdout[-500:]
