"""Strategies that sort links into arms (groups, hosts, templates) and learn what each arm pays."""
