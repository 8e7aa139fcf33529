"""The doors: each decodes, asks the guide, and encodes. None of them decides anything."""
