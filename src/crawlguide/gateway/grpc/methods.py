"""Each method of `crawlguide.v1.Guide` with the endpoint of HTTP that it stands for: for client and server."""

from __future__ import annotations

from typing import Any, NamedTuple

from crawlguide.core.messages import AskMessage, ReleaseMessage, ReportMessage, SeedsMessage
from crawlguide.gateway.grpc import guide_pb2

SERVICE = guide_pb2.DESCRIPTOR.services_by_name["Guide"]
WHOLE = "*"  # all fields of the request but the name of the crawl
CRAWL = "/v1/crawls/{crawl_id}"


class Method(NamedTuple):
    """`body` names the field of the request that holds the message; without one, fields are parameters of the query.
    Where the whole request is the message, it is one of the kind `takes`.

    `answer` names the field of the answer that holds the message, unless the answer is the message.
    """

    name: str
    method: str
    path: str
    body: str = ""
    answer: str = ""
    takes: Any = None

    @property
    def label(self) -> str:
        """What metrics and the log call it."""
        return f"grpc {self.name}"

    @property
    def of_crawl(self) -> bool:
        return "{crawl_id}" in self.path


METHODS = (
    Method("Next", "POST", "/v1/next", WHOLE, takes=AskMessage),
    Method("Report", "POST", "/v1/report", WHOLE, takes=ReportMessage),
    Method("ListCrawls", "GET", "/v1/crawls"),
    Method("PutCrawl", "PUT", CRAWL, "definition"),
    Method("GetCrawl", "GET", CRAWL),
    Method("PatchCrawl", "PATCH", CRAWL, "changes"),
    Method("DeleteCrawl", "DELETE", CRAWL),
    Method("AddSeeds", "POST", CRAWL + "/seeds", WHOLE, takes=SeedsMessage),
    Method("PauseCrawl", "POST", CRAWL + "/pause"),
    Method("ResumeCrawl", "POST", CRAWL + "/resume"),
    Method("Release", "POST", CRAWL + "/release", WHOLE, takes=ReleaseMessage),
    Method("GetRules", "GET", CRAWL + "/rules", answer="rules"),
    Method("EditRules", "POST", CRAWL + "/rules", "edit", answer="rules"),
    Method("Export", "GET", CRAWL + "/export", answer="lines"),
    Method("Import", "POST", CRAWL + "/import", "lines"),
    Method("BackUp", "POST", "/v1/backups"),
    Method("ListUrls", "GET", "/v1/urls"),
    Method("ForgetUrls", "DELETE", "/v1/urls"),
    Method("Explain", "GET", "/v1/explain"),
    Method("Stats", "GET", "/v1/stats"),
)
