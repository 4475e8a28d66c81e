"""`python experiments/multi-bloom-filters-history e14 --size paper`: see README.md."""

from __future__ import annotations

import sys
from pathlib import Path

# A folder that is run sees only itself. Beside it are the `trials` of all papers; the plots borrow
# the style of the documentation's.
sys.path.extend(str(Path(__file__).resolve().parents[up]) for up in (1, 2))

from spans.main import main

if __name__ == "__main__":
    raise SystemExit(main())
