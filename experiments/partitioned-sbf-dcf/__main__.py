"""`python experiments/partitioned-sbf-dcf e9 --size paper`: see README.md."""

from __future__ import annotations

import sys
from pathlib import Path

# The plots borrow the style of the documentation's, and a folder that is run sees only itself.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from skew.main import main

if __name__ == "__main__":
    raise SystemExit(main())
