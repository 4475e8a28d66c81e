"""The command `bloomtide`: one file per command, `app.py` puts them together."""
