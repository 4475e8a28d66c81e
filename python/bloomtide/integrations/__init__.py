"""bloomtide inside other programs. Each part needs the program it is for, as an extra."""
