"""Other people's crawlers, guided: one module for each framework, which is imported only by those who use it."""
