"""Side-by-side speed of bloomtide and its peers, and the proof of its error rate at a billion keys.

python -m benchmarks          the full comparison; writes results/, docs/benchmarks.md, README.md
python -m benchmarks --quick  the same code on tiny sizes, to see that it works
python -m benchmarks.proof    10^9 integers at 1 % and 10^8 at 1e-6; writes docs/proof.md

workload     the keys           engines/   one file per library, all with the same functions
membership   what is timed      counting   the same for counters
measure      how it is timed    answers    every answer is checked, or the run fails
bare_loop    the limit (Rust)   floors     what must be reached, and whether it was
"""
