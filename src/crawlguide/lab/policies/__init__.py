"""The policies that only the lab has, one file each: `Options` and `build(options, seed, goal)`, as every strategy.

They are the references (`oracle-…`), plain baselines (`keyword`) and reconstructions of other people's systems (`ache`,
`arms`, `feedstock`, `feedstock-repaired`, `tres-reconstruction`). A guide of the lab trusts them as plugs
(`crawls.plugins`), so that `strategy.kind` may name them there. All other names of a lab run are
strategies of the product.
"""

from __future__ import annotations

import sys

from crawlguide.core import plugs


def kinds() -> tuple[str, ...]:
    """The names under which a lab run knows them."""
    return plugs.kinds(sys.modules[__name__])


def plug(policy: str) -> str:
    """What `strategy.kind` calls a policy of the lab."""
    return f"{__name__}.{policy.replace('-', '_')}"
