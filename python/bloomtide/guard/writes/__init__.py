"""Which keys does a statement write, and when has its transaction ended?"""
