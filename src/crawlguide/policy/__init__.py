"""Ranked to survivors: one file per rule, named as the rule is named in every answer."""

ASIDE = (
    "addresses",
    "disabled",
    "link_rules",
    "profile",
    "seed_hosts",
    "sizes",
)  # what rules and doors share, and no rule itself
