"""`python -m bloomery` is the command `bloomery`."""

from bloomery.cli.main import main

main()
