"""Other people's crawlers, guided: one file per framework."""
