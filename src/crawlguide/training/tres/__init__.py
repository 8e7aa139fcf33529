"""How the network of the strategy `tres` is trained apart from serving: `python -m crawlguide.training.tres --help`."""
