"""The baselines, one file each: `Options` and `build(options, seed, goal)`, as every strategy has them.

They are written without the product's predictors and keep their own books of what they hear, so that a lab run checks
both. A guide of the lab trusts them as plugs (`crawls.plugins`), so that `strategy.kind` may name them there.
"""

from __future__ import annotations

import sys

from crawlguide.core import plugs


def kinds() -> list[str]:
    """The names under which a lab run knows them."""
    return plugs.kinds(sys.modules[__name__])


def plug(policy: str) -> str:
    """What `strategy.kind` calls a policy of the lab."""
    return f"{__name__}.{policy.replace('-', '_')}"
