"""A strategy is a file or folder with `Options` and `build(options, seed, goal)`; its kind is the name of the file."""

ASIDE = ("arms", "composed", "shared")  # used by several strategies; not kinds themselves
