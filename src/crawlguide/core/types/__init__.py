"""The nouns of the guide: sets of columns that walk the corridor, what is asked, told, promised and known."""

from crawlguide.core.types.asking import Ask, Budget, Crawl, Seed
from crawlguide.core.types.batches import BATCH_FACTS, HOST_FACTS, Also, Batch, Hosts, Sample
from crawlguide.core.types.knowing import KnownLink, KnownPage, KnownUrl, Paths, UrlRecord
from crawlguide.core.types.promising import DEFERRED, LEASED, TAKEN, Discovery, Grants, LeaseTerms, Recorded
from crawlguide.core.types.telling import Fetches, Lesson, Links, Page, Report

__all__ = [
    "BATCH_FACTS",
    "DEFERRED",
    "HOST_FACTS",
    "LEASED",
    "TAKEN",
    "Also",
    "Ask",
    "Batch",
    "Budget",
    "Crawl",
    "Discovery",
    "Fetches",
    "Grants",
    "Hosts",
    "KnownLink",
    "KnownPage",
    "KnownUrl",
    "LeaseTerms",
    "Lesson",
    "Links",
    "Page",
    "Paths",
    "Recorded",
    "Report",
    "Sample",
    "Seed",
    "UrlRecord",
]
