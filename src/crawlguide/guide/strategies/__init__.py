"""A strategy is a file: `Options` and `build(options, seed)`; its kind is the file's name."""
