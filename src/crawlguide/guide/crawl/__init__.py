"""The crawls that are active here: their definitions, strategies, notebooks and how they change."""
