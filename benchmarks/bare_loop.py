"""The limit: builds and runs the tiny Rust program in `limit/` on the same keys."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.answers import WrongAnswerError
from benchmarks.engines.contract import Missing
from benchmarks.measure import Op, Timings, Verb
from benchmarks.workload import KeySet

NAME = "bare Rust loop"
_FOLDER = Path(__file__).parent / "limit"
_PROGRAM = _FOLDER / "target" / "release" / "bare-loop"


@dataclass(frozen=True, slots=True)
class BareLoop:
    """The program, ready to run."""

    program: Path

    def measure(
        self, capacity: int, fill: int, members: KeySet, absent: KeySet, timings: Timings
    ) -> None:
        """Times one run. Its keys lie packed in one buffer, as those of an Arrow batch do."""
        keys = f"{members.text}\n{absent.text}".encode()
        done = subprocess.run(
            [str(self.program), str(capacity), str(fill)],
            input=keys,
            stdout=subprocess.PIPE,
            check=True,
        )
        answer = json.loads(done.stdout)
        if answer["present"] != members.size:
            raise WrongAnswerError(f"{NAME} lost {members.size - answer['present']} keys")
        verbs: tuple[Verb, ...] = ("add", "query present", "query absent")
        for verb in verbs:
            timings.record(Op(capacity, verb, "Arrow", 1), NAME, answer[verb])


def build() -> BareLoop | Missing:
    """Compiles the program, a matter of seconds."""
    if shutil.which("cargo") is None:
        return Missing(NAME, "cargo is not installed")
    manifest = str(_FOLDER / "Cargo.toml")
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", manifest]
    if subprocess.run(command, check=False).returncode != 0:
        return Missing(NAME, "it did not compile")
    return built()


def built() -> BareLoop | Missing:
    """The program if it was compiled before."""
    return BareLoop(_PROGRAM) if _PROGRAM.exists() else Missing(NAME, "it was not compiled")
