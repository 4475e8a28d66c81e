"""`python -m benchmarks.guard_histories`."""

import sys

from benchmarks.guard_histories.run import main

if __name__ == "__main__":
    sys.exit(main())
