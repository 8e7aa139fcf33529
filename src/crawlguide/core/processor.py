"""Which processor kernels are compiled for: this very one; or, where machine code came with the package, the kind of
processor that it was made for, if this is one of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

MADE_FOR = Path(__file__).resolve().parents[1] / "kernels-made-for.txt"  # written into a wheel by `scripts/wheel.py`
CACHES = (  # where numba looks for its cache: where it always does, and in the end where it cannot write
    "UserProvidedCacheLocator,InTreeCacheLocator,UserWideCacheLocator,IPythonCacheLocator,ZipCacheLocator,"
    "crawlguide.core.kernel_cache.ReadOnly"
)
KINDS = {"x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")}


def choose() -> None:
    """To be called before the first kernel is compiled. What the environment says wins."""
    import numba  # noqa: PLC0415 - `--help` is not to wait for a compiler
    from numba.core.codegen import get_host_cpu_features  # noqa: PLC0415

    kind, config, features = made_for(), cast("Any", numba.config), cast("Any", get_host_cpu_features)
    if "NUMBA_CPU_NAME" not in os.environ and kind in KINDS:
        has = features().split(",")
        if all(f"+{feature}" in has for feature in KINDS[kind]):
            config.CPU_NAME, config.CPU_FEATURES = kind, ""
            config.CACHE_LOCATOR_CLASSES = getattr(config, "CACHE_LOCATOR_CLASSES", "") or CACHES


def made_for() -> str:
    """The kind of processor that machine code came for; nothing where none came."""
    try:
        return MADE_FOR.read_text().strip()
    except OSError:
        return ""
