"""Processes that use a guard."""

from __future__ import annotations

import multiprocessing

from tests.files.another_process import Worker


class Process(Worker):
    """Forked from a server that has imported everything, which takes longer than a test."""

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.guard.load"])
