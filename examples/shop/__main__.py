"""`python examples/shop`: see README.md."""

from __future__ import annotations

from webshop.main import main

if __name__ == "__main__":
    raise SystemExit(main())
