"""Predictors made of predictors, each a file whose name is its kind; and the guard around all of them."""

ASIDE = ("guard",)
