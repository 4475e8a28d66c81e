"""The running program: structures and answers for other programs and for people."""
