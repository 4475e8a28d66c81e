"""Entry point of the command `bloomery`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        # Imported here so that ctrl-C during the imports does not end in a traceback either.
        from bloomery.cli.app import app

        app(prog_name="bloomery")
    except KeyboardInterrupt:
        sys.exit(130)
