"""The routes of the status page: rendered here, readable without scripts, with nothing loaded from elsewhere."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from crawlguide import scoring
from crawlguide.core.errors import CrawlGuideError, Forbidden, MalformedRequest, NotFound, RequestError, TooLarge
from crawlguide.core.messages import crawl_id
from crawlguide.core.turns import let_others
from crawlguide.core.types import Crawl
from crawlguide.gateway.access.credential import READ
from crawlguide.gateway.access.entrance import Caller
from crawlguide.gateway.access.logins import cookie_in, removed_cookie, set_cookie
from crawlguide.gateway.bodies import declared_bytes
from crawlguide.gateway.dashboard import formatting, views
from crawlguide.gateway.reference import reference
from crawlguide.gateway.responses import STATUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.access.entrance import Entrance
    from crawlguide.guide.local import LocalGuide

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self';"
        " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
STATIC = {"style.css": "text/css", "refresh.js": "text/javascript"}
FOR_A_YEAR = {"cache-control": "public, max-age=31536000, immutable", "x-content-type-options": "nosniff"}
CRAWLS_SHOWN = 100
PIECES_AT_ONCE = 25
PAGES = ("overview", "crawl", "docs", "problem", "login")
LOGIN = "/login"
LONGEST_FORM, MOST_FIELDS = 16_384, 10


class Dashboard:
    """Templates and static files are read and compiled here, so that no request has to wait for them."""

    def __init__(self, guide: LocalGuide, entrance: Entrance, log_refusal: Callable[..., None]) -> None:
        self._guide, self._entrance, self._log_refusal = guide, entrance, log_refusal
        folder = files(__package__).joinpath("static")
        self._static = {name: folder.joinpath(name).read_bytes() for name in STATIC}
        made_of = sha256(b"".join(self._static.values())).hexdigest()[:12]  # another content has another address
        templates = Environment(
            loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        templates.filters.update(formatting.ALL)
        templates.globals.update(made_of=made_of, terms=scoring.TERMS, entrance=entrance)
        self._pages = {name: templates.get_template(f"{name}.html") for name in PAGES}
        self._reference: dict[bool, bytes] = {}  # the page /docs, with and without a warning that all may come in

    def routes(self) -> list[Route]:
        return [
            Route("/", self._overview, methods=["GET"]),
            Route("/docs", self._docs, methods=["GET"]),
            Route("/crawls/{crawl_id}", self._crawl, methods=["GET"]),
            Route("/static/{name}", self._file, methods=["GET"]),
            Route(LOGIN, self._login_page, methods=["GET"]),
            Route(LOGIN, self._login, methods=["POST"]),
            Route("/logout", self._logout, methods=["POST"]),
        ]

    async def _overview(self, request: Request) -> Response:
        credential: Credential = request.scope["state"]["credential"]
        try:
            credential.check_some(READ)
        except Forbidden as problem:
            return await self._html("problem", 403, message=problem.message)
        names = await self._guide.crawls.names(credential.tenant)
        crawls = [crawl for crawl in names if credential.may(READ, crawl.name)]
        page, last = _page(request), max(1, -(-len(crawls) // CRAWLS_SHOWN))
        shown: dict[str, Any] = {
            "about": self._guide.totals(credential.tenant),
            "sees_all": credential.may(READ),
            "crawls": await views.overviews(self._guide, crawls[(page - 1) * CRAWLS_SHOWN : page * CRAWLS_SHOWN]),
            "port": (request.scope.get("server") or ("", None))[1],
        }
        return await self._html("overview", known=len(crawls), page=page, last=last, **shown)

    async def _crawl(self, request: Request) -> Response:
        try:
            credential: Credential = request.scope["state"]["credential"]
            crawl = Crawl(credential.tenant, crawl_id(request.path_params["crawl_id"]))
            credential.check(READ, crawl.name)
            shown = await views.detail(self._guide, crawl)
        except CrawlGuideError as problem:
            status = 403 if isinstance(problem, Forbidden) else 404 if isinstance(problem, RequestError) else 503
            return await self._html("problem", status, message=problem.message)
        return await self._html("crawl", shown=shown)

    async def _docs(self, _: Request) -> Response:
        """Every endpoint and message, out of the table that serves them: made once, for anybody may ask for it."""
        warns = self._entrance.is_open_to_all
        if warns not in self._reference:
            self._reference[warns] = bytes((await self._html("docs", reference=reference())).body)
        return Response(self._reference[warns], 200, HEADERS, "text/html")

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            raise NotFound(f"no such page: {request.url.path[:200]}; /docs lists all there are")
        return Response(self._static[name], headers=FOR_A_YEAR, media_type=STATIC[name])

    # who looks

    async def _login_page(self, _: Request) -> Response:
        if not self._entrance.required:
            return Response(status_code=303, headers={**HEADERS, "location": "/"})
        return await self._html("login", problem="")

    async def _login(self, request: Request) -> Response:
        """Exchange a credential for a cookie that opens pages. Who asks has knocked, before a body is read."""
        caller = Caller(request.client.host if request.client else "")
        try:
            _check_length(request)
            caller = caller._replace(authorization="Bearer " + (await _field(request, "token") or "nothing"))
            credential = self._entrance.recognize(caller)
            credential.check_some(READ)
        except CrawlGuideError as problem:
            self._log_refusal(LOGIN, STATUS[problem.code], problem, **caller.logged)
            return await self._html("login", STATUS[problem.code], problem=problem.message)
        secure = request.url.scheme == "https"
        cookie = set_cookie(self._entrance.logins.begin(caller.authorization), secure=secure)
        return Response(status_code=303, headers={**HEADERS, "location": "/", "set-cookie": cookie})

    async def _logout(self, request: Request) -> Response:
        self._entrance.logins.end(cookie_in(request.headers.get("cookie", "")))
        return Response(status_code=303, headers={**HEADERS, "location": "/login", "set-cookie": removed_cookie()})

    async def _html(self, name: str, status: int = 200, **shown: Any) -> Response:
        """Rendered in pieces: crawlers are answered in between."""
        pieces = []
        for number, piece in enumerate(self._pages[name].generate(shown), 1):
            pieces.append(piece)
            if number % PIECES_AT_ONCE == 0:
                await let_others()
        return Response("".join(pieces), status, HEADERS, "text/html")


def _check_length(request: Request) -> None:
    declared = declared_bytes(request.scope["headers"])
    if declared is not None and declared > LONGEST_FORM:
        raise TooLarge(f"form: expected at most {LONGEST_FORM} bytes, got {declared}")


async def _field(request: Request, name: str) -> str:
    """One field of a short form."""
    form = bytearray()
    try:
        async for piece in request.stream():
            form += piece
            if len(form) > LONGEST_FORM:
                raise TooLarge(f"form: expected at most {LONGEST_FORM} bytes, got more")
        fields = dict(parse_qsl(form.decode("latin-1"), max_num_fields=MOST_FIELDS))
    except ClientDisconnect:
        raise MalformedRequest("form: the connection ended in the middle of it") from None
    except ValueError:
        raise MalformedRequest(f"form: expected at most {MOST_FIELDS} fields, got more") from None
    return fields.get(name, "").strip()


def _page(request: Request) -> int:
    """Which page of the list, from 1 on; whatever else the query says means the first."""
    given = request.query_params.get("page", "1")
    return max(1, int(given)) if given.isascii() and given.isdecimal() and len(given) < 9 else 1
