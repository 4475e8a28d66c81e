"""`python -m bloomtide` is the command `bloomtide`."""

from bloomtide.cli.main import main

main()
