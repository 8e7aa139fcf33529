"""A guide for Scrapy: `ADDONS = {"crawlguide.integrations.scrapy.Addon": 500}` in a project's settings.

    Addon      puts the three below into the settings
    Scheduler  takes what the guide assigns, and gives it what callbacks yield
    Downloads  hears what became of each request
    Pages      reads what the guide learns from: title, text, links

A request is an assignment of the guide on its way through Scrapy (`visits.py`), or it is one that a guide cannot know,
such as a POST, and waits in Scrapy's own scheduler (`scheduler.py`).
"""

from crawlguide.integrations.scrapy.addon import Addon
from crawlguide.integrations.scrapy.middlewares import Downloads, Pages
from crawlguide.integrations.scrapy.scheduler import Scheduler

__all__ = ["Addon", "Downloads", "Pages", "Scheduler"]
