"""A strategy is a file: `Options` and `build(options, seed, goal)`; its kind is the file's name."""
