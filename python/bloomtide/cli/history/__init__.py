"""`bloomtide history`: how many between t1 and t2, from logs that were read once.

ingest     logs into a store               segments   what the store consists of
count      keys in a range of time         compact    roll-ups and retention
series     step by step, as a picture      verify     every byte of every file
top        the most frequent keys          export     rows as CSV, JSON or Arrow
"""
