"""A strategy is a file: `Options` and `build(options, seed, goal)`; its kind is the file's name."""

ASIDE = ("arms", "composed", "shared")  # what several strategies use, and no kind itself
