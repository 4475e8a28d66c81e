"""`python experiments/beach-web-caching saturation --size paper`: see README.md."""

from __future__ import annotations

import sys
from pathlib import Path

# A folder that is run sees only itself. Beside it are the `trials` of all papers; the plots borrow
# the style of the documentation's, and the pages are those of the example shop.
sys.path.extend(
    str(Path(__file__).resolve().parents[up] / below)
    for up, below in ((1, ""), (2, ""), (2, "examples/shop"))
)

from beach.main import main

if __name__ == "__main__":
    raise SystemExit(main())
