"""The command `bloomery`: one file per command, `app.py` puts them together."""
