"""Entry point of the command `bloomtide`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        # Imported here so that ctrl-C during the imports does not end in a traceback either.
        if sys.argv[1:2] == ["dedup"] and "_BLOOMTIDE_COMPLETE" not in os.environ:
            from bloomtide.cli.dedup import dedup
            from bloomtide.cli.light import start

            start(dedup, sys.argv[2:])
        from bloomtide.cli.app import app

        app(prog_name="bloomtide")
    except KeyboardInterrupt:
        sys.exit(130)
