"""`python -m benchmarks.oracle`."""

import sys

from benchmarks.oracle.run import main

if __name__ == "__main__":
    sys.exit(main())
