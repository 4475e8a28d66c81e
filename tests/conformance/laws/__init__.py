"""The laws, one file per subject; importing this package fills `LAWS`."""

from tests.conformance.law import LAWS
from tests.conformance.laws import (
    answers,
    batches,
    copies,
    counting,
    decaying,
    errors,
    memory,
    merging,
    overfull,
    parameters,
    shared,
    threads,
    weights,
)

__all__ = [
    "LAWS",
    "answers",
    "batches",
    "copies",
    "counting",
    "decaying",
    "errors",
    "memory",
    "merging",
    "overfull",
    "parameters",
    "shared",
    "threads",
    "weights",
]
