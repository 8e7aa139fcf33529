"""pyarrow, which reads and writes Parquet, where it is installed: a base install does without."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crawlguide.core.errors import ConfigError


def arrow(part: str = "pyarrow") -> Any:
    """`pyarrow`, or a part of it such as `pyarrow.parquet`."""
    try:
        return import_module(part)
    except ImportError:
        raise ConfigError("recorded webs need pyarrow, which is not installed: pip install 'crawlguide[lab]'") from None
