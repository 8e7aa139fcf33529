"""The learner behind `layered`."""
