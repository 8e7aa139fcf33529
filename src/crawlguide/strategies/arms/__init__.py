"""Bandit arms over URLs: a table of what each arm paid, queues of its URLs, features of links, names of arms."""
