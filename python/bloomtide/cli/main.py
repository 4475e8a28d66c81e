"""Entry point of the command `bloomtide`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        # Imported here so that ctrl-C during the imports does not end in a traceback either.
        from bloomtide.cli.app import app

        app()
    except ImportError as problem:
        sys.exit(_cannot_start(problem))
    except KeyboardInterrupt:
        sys.exit(130)


def _cannot_start(problem: ImportError) -> int:
    """Say in one line what is missing, without what is missing: Click writes all other errors."""
    from bloomtide.errors import MissingExtraError
    from bloomtide.extras import require

    try:
        with require("cli", "the command `bloomtide`"):
            raise problem
    except MissingExtraError as missing:
        told = f"{missing.message}: {missing.hint}"
    except ImportError:
        told = f"{problem}: pip install --force-reinstall bloomtide"
    sys.stderr.write(f"error: {told}\n")
    return 2
