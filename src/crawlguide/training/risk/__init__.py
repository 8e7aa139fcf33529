"""How the model of `policy/risk` is fitted, measured and written: `python -m crawlguide.training.risk --help`."""
