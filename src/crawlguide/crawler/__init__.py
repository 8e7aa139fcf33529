"""The built-in crawler: fetches, reads pages, asks a guide where to go next and tells it what it found."""
