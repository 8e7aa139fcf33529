"""Many to some: which candidates are worth a model pass."""
