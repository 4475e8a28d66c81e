"""bloomtide inside other programs, each tested with the real thing."""
