"""`bloomtide dedup`: each line the first time it is seen."""
