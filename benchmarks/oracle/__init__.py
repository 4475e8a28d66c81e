"""Every structure beside an exact model, over long random histories.

The models know the documentation pages and nothing else. `python -m benchmarks.oracle` runs a
million operations on each structure and prints how many promises it checked and which are broken.
`faults.py` plants errors; the oracle must find each of them.
"""
