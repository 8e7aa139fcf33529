"""Ranked to survivors: one file per rule, named as the rule is named in every answer."""

ASIDE = ("addresses", "homes", "off", "profile", "sizes", "wanted")  # what rules and doors share, and no rule itself
