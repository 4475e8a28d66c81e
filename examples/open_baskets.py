"""Which shoppers have something in their basket? Counts with removal, so that baskets empty again.

python examples/open_baskets.py
"""

from __future__ import annotations

import sys

from bloomtide import CountingBloomFilter
from bloomtide.errors import AbsentKeyError

baskets = CountingBloomFilter(capacity=100_000, error_rate=0.01, counter_bits=8)

EVENTS = [
    ("ann", +2),
    ("bob", +1),
    ("ann", -1),
    ("bob", -1),  # bob's basket is empty now
    ("eve", -1),  # a mistake: eve never put anything in
]

for shopper, change in EVENTS:
    if change > 0:
        baskets.add(shopper, change)
        continue
    try:
        baskets.remove(shopper, -change)
    except AbsentKeyError as error:
        sys.stdout.write(f"{shopper}: nothing removed, {error.estimate} there\n")

for shopper in ("ann", "bob", "eve"):
    # False spares the database a question; True means "go and ask", and is sometimes wrong.
    answer = baskets.estimate(shopper)
    sys.stdout.write(f"{shopper}: ask {shopper in baskets}, at most {answer.upper} items\n")
