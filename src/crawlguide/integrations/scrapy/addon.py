"""One line in the settings of a project instead of three."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.integrations.scrapy.middlewares import DOWNLOADS_AT, PAGES_AT, Downloads, Pages
from crawlguide.integrations.scrapy.plan import check
from crawlguide.integrations.scrapy.scheduler import Scheduler

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class Addon:
    """Guides every spider of a project."""

    def update_settings(self, settings: BaseSettings) -> None:
        """What the project says itself stays: a scheduler of its own, or another place of a middleware.

        Ours are checked before there is an engine: one that fails while it opens has the last word, and a wrong one.
        """
        check(settings)
        settings.set("SCHEDULER", Scheduler, "addon")
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", Downloads, DOWNLOADS_AT)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", Pages, PAGES_AT)
