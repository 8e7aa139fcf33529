"""Predictors made of predictors, and the guard around each: the file's name is the kind that a crawl names."""

ASIDE = ("guard", "several")
