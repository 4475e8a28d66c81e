"""Random schemas and histories of writes that try to make a `DatabaseGuard` say a wrong "no".

The rule: while the state is READY, `may_exist(key)` is False only if no committed row has the key.
The machine knows the guard's pages and its public methods, nothing of its insides. A seed gives a
`History`: a schema, the guard's options and a list of steps. `Play` carries it out and asks for
every committed key, with the database as the judge. `planted.py` has guards with one mistake each,
which the machine must find. `python -m benchmarks.guard_histories` runs thousands of histories.
"""
