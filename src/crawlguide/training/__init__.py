"""Models are fitted here, away from the guide, and leave as files of numbers. `crawlguide train` is the command."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crawlguide.core.errors import ConfigError
from crawlguide.core.extras import installing


def needed(module: str) -> Any:
    """A module that needs the extra `train`."""
    try:
        return import_module(module)
    except ImportError as missing:
        raise ConfigError(f"training needs the extra train: {installing('train')} ({missing})") from None
