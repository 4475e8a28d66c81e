"""The group of commands."""

from __future__ import annotations

import typer

from bloomtide.cli.history.ask import count, series, top
from bloomtide.cli.history.export import export
from bloomtide.cli.history.ingest import ingest
from bloomtide.cli.history.keep import compact, segments, verify

history = typer.Typer(name="history")


@history.callback(invoke_without_command=True)
def group(context: typer.Context) -> None:
    """How many between t1 and t2? Counts of keys by time, in a store of their own."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)
        raise typer.Exit(2)


for command in (ingest, count, series, top, segments, compact, verify, export):
    history.command()(command)
