"""forager's Select and Tune: a tree that sorts URLs by what they may bring, and a network that says which leaf pays."""
