"""Everything that crawlguide raises.

    CrawlGuideError
    ├── ConfigError             start only: names the file, the key and what was expected
    ├── UrlError                a URL that no crawler should be sent to, with the reason
    ├── RequestError            the caller can mend it
    │   ├── MalformedRequest    a field is missing, of the wrong kind or out of range
    │   ├── UnsupportedVersion  a guide protocol version we do not speak
    │   ├── Unauthenticated     no valid credential was shown
    │   ├── Forbidden           the credential does not reach that far
    │   ├── NotFound            no such crawl, URL or page
    │   ├── MethodNotAllowed    the page is there, but not for this method
    │   ├── Conflict            an id came again with another body
    │   ├── TooLarge            a message or a part of it is over its limit
    │   └── RateLimited         too many requests; says when to come back
    ├── UnavailableError        we may recover; try again
    │   ├── StoreUnavailable    the store does not answer
    │   ├── ModelUnavailable    a model is late or broken
    │   └── Draining            the server is shutting down
    ├── StorageFull             no room left; reads go on
    └── DataError               something we stored is wrong; the part is refused

Not errors: a dropped URL (counted by filter), a failed fetch (an outcome), nothing to give (an empty answer),
a bad URL inside a good report (that item's `skip`).
"""

from __future__ import annotations


class CrawlGuideError(Exception):
    """Anything that crawlguide raises on purpose. `code` is its name on every transport."""

    code = "internal"

    def __init__(self, message: str, *, field: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.retry_after_s = retry_after_s


class ConfigError(CrawlGuideError):
    """The configuration cannot be used."""


class UrlError(CrawlGuideError, ValueError):
    """No crawler should be sent to this URL."""


class RequestError(CrawlGuideError):
    """The caller can mend it."""


class MalformedRequest(RequestError):
    code = "malformed_request"


class UnsupportedVersion(RequestError):
    code = "unsupported_version"


class Unauthenticated(RequestError):
    code = "unauthenticated"


class Forbidden(RequestError):
    code = "forbidden"


class NotFound(RequestError):
    """`hint` names what may have been meant; whoever may not see all there is gets it `without_hint`."""

    code = "not_found"

    def __init__(
        self, message: str, *, field: str | None = None, retry_after_s: float | None = None, hint: str = ""
    ) -> None:
        super().__init__(f"{message}; {hint}" if hint else message, field=field, retry_after_s=retry_after_s)
        self._message = message

    def without_hint(self) -> NotFound:
        return NotFound(self._message, field=self.field)


class MethodNotAllowed(RequestError):
    code = "method_not_allowed"


class Conflict(RequestError):
    code = "conflict"


class TooLarge(RequestError):
    code = "too_large"


class RateLimited(RequestError):
    code = "rate_limited"


class UnavailableError(CrawlGuideError):
    """We may recover; try again."""

    code = "unavailable"


class StoreUnavailable(UnavailableError):
    """The store does not answer."""


class ModelUnavailable(UnavailableError):
    """A model is late or broken."""


class Draining(UnavailableError):
    """The server is shutting down."""


class StorageFull(CrawlGuideError):
    code = "storage_full"


class DataError(CrawlGuideError):
    """Something we stored is wrong."""
