"""Other people's crawlers, guided: one file or folder per framework, imported only by those who use it."""
