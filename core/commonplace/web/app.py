"""The application: addresses, logins, forms and errors, around the pages of `views`."""

import logging
import math
import secrets
import unicodedata
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import jinja2
import msgspec
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from ..agents import Policy, check_memory
from ..errors import (
    CannotMoveError,
    CommonplaceError,
    InvalidFilterError,
    InvalidRecordError,
    InvalidScopeError,
    RecordNotFoundError,
    StoreUnavailableError,
)
from ..memory import Memory
from ..types import Scope
from . import drawing
from .changes import CHANGES, Moved, scope_parameters
from .security import (
    LOOPBACK,
    Guard,
    Login,
    LoginSource,
    TokenLogins,
    check_same_site,
    csrf_token,
    read_form,
)
from .strings import STRINGS, Words, group_of, language_of
from .views import PAGES, RULES, TURN_LENGTH, Ask, Shown, export_person

logger = logging.getLogger("commonplace.web")
_HERE = Path(__file__).parent
_STATIC = ("page.css", "page.js", "icon.svg")
_SHARES = (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)  # of long texts on a page, until it is small
_LISTS = 4  # by how much the share of long lists is larger
MAX_PAGE = 200_000  # bytes
_STATUS: Mapping[type[CommonplaceError], int] = {
    InvalidRecordError: 400,
    InvalidScopeError: 400,
    InvalidFilterError: 400,
    RecordNotFoundError: 404,
    StoreUnavailableError: 503,
    CannotMoveError: 503,
}


def create_app(
    memory: Memory,
    *,
    token: str | None = None,
    users: Mapping[str, Collection[str]] | None = None,
    login: LoginSource | None = None,
    write: bool = False,
    hosts: Collection[str] = LOOPBACK,
    policy: Policy | None = None,
) -> Starlette:
    """Make the pages of a memory, to be served alone or mounted in an application.

    Args:
        memory: an open one, which stays open.
        token: logs an operator in once, by `/login?token=`; made at random when missing and found
            as `app.state.token`. An empty text lets no operator in.
        users: ids of the users that other tokens may see, as `read_users` reads them.
        login: decides who sends a request, instead of tokens: `header_login("X-Forwarded-User")`,
            or a function of your application that returns a `Login`, or None to refuse.
        write: True lets forms change, delete and erase.
        hosts: names of this host that a browser may ask for; empty for any.
        policy: of the agent whose notes are shown.

    Raises:
        InvalidRecordError: the memory is none, or `login` is given beside tokens.
    """
    check_memory(memory)
    if login is not None and (token is not None or users is not None):
        raise InvalidRecordError(
            field="login", value=login, reason="must not be given beside token and users"
        )
    if token is None:
        token = secrets.token_urlsafe(32)
    pages = _Pages(memory, login or TokenLogins(token, users or {}), write, policy or Policy())
    app = Starlette(
        routes=pages.routes(),
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers=dict.fromkeys(
            (HTTPException, CommonplaceError, Exception), pages.refuse
        ),
    )
    app.state.token = token
    return app


class _Pages:
    """The pages of one application."""

    def __init__(self, memory: Memory, login: LoginSource, write: bool, policy: Policy) -> None:
        self._memory = memory
        self._login = login
        self._write = write
        self._policy = policy
        self._key = secrets.token_bytes(32)
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_HERE / "templates"), autoescape=True,
            finalize=_readable, trim_blocks=True, lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )  # fmt: skip
        self._templates.filters |= {
            "day": _day, "moment": _moment, "exact": escape, "code": _code, "part": _part,
        }  # fmt: skip
        self._templates.globals |= {
            "rules": RULES, "group_of": group_of, "scope_parameters": scope_parameters,
            "turn_length": TURN_LENGTH, "pictures": drawing,
        }  # fmt: skip

    def routes(self) -> list[Route]:
        """List the addresses: each page, and beside it its JSON."""
        made = [
            Route("/", self.first, methods=["GET"]),
            Route("/ready", self.ready, methods=["GET"]),
            Route("/login", self.log_in, methods=["GET", "POST"]),
            Route("/export.jsonl", self.export, methods=["GET"]),
            Route("/logout", self.log_out, methods=["POST"]),
            *(Route(f"/static/{name}", self.static, methods=["GET"]) for name in _STATIC),
        ]
        for name in PAGES:
            methods = ["GET", "POST"] if name in CHANGES else ["GET"]
            made += [Route(f"/{name}{end}", self.page, methods=methods) for end in ("", ".json")]
        return made

    async def page(self, request: Request) -> Response:
        """Answer with a page, or carry out the change of a form."""
        name, form = _page_of(request), {}
        if request.method == "POST":
            check_same_site(request)
            form = request.state.commonplace_form = await read_form(request)
        login = self._required_login(request)
        if request.method == "POST":
            return await self._change(request, login, name, form)
        shown = await PAGES[name](self._ask(login, dict(request.query_params)))
        return self._answer(request, login, name, shown)

    async def _change(
        self, request: Request, login: Login, name: str, form: dict[str, str]
    ) -> Response:
        """Carry out the change of a form, or show its page again with what was sent."""
        if not self._write:
            raise HTTPException(403)
        csrf, ask = form.pop("csrf", ""), self._ask(login, form)
        try:
            if not secrets.compare_digest(csrf.encode(), csrf_token(self._key, login).encode()):
                raise HTTPException(403, "csrf")
            return self._answer(request, login, name, await CHANGES[name](ask))
        except Moved as moved:
            return RedirectResponse(_url(request, moved.page, moved.given), 303)
        except (CommonplaceError, HTTPException) as error:
            if not _is_json(request):
                with suppress(CommonplaceError, HTTPException):  # the page fails as its change did
                    fault = _fault(request, login, error)
                    shown = {**await PAGES[name](ask), "fault": fault, "sent": form}
                    return self._html(request, login, name, shown, fault["status"])
            raise

    async def export(self, request: Request) -> Response:
        """Send all that is stored of a user as a file."""
        login = self._required_login(request)
        content = await export_person(self._ask(login, dict(request.query_params)))
        named = {"content-disposition": 'attachment; filename="export.jsonl"'}
        return Response(content, headers=named, media_type="application/jsonl")

    def _required_login(self, request: Request) -> Login:
        login = self._login(request)
        if login is None:
            raise HTTPException(401 if isinstance(self._login, TokenLogins) else 403)
        request.state.commonplace_login = login
        return login

    def _ask(self, login: Login, given: Mapping[str, str]) -> Ask:
        return Ask(memory=self._memory, login=login, given=given, policy=self._policy)

    async def first(self, request: Request) -> Response:
        """Lead to the first page."""
        return RedirectResponse(_url(request, "why"), 303)

    async def ready(self, request: Request) -> Response:
        """Tell a probe, which needs no login, whether the memory can be read."""
        try:
            await self._memory.alist(Scope(user_id="nobody"), limit=1)
        except CommonplaceError as error:
            logger.warning("page %s: %s", request.url.path, error)
            return PlainTextResponse("The memory cannot be read.", 503)
        return PlainTextResponse("ready")

    async def log_in(self, request: Request) -> Response:
        """Take a token and set the cookie, or ask for a token."""
        if not isinstance(self._login, TokenLogins):
            return await self.first(request)
        given, sent = dict(request.query_params), {}
        if request.method == "POST":
            check_same_site(request)
            given = sent = await read_form(request)
        token, asked = given.pop("token", "").strip(), given.pop("next", "")
        found = self._login.find(token) if token else None
        if found is None:
            return self._login_form(request, asked, 403 if token else 200, sent)
        request.state.commonplace_login = found
        response: Response = RedirectResponse(_asked(request, asked), 303)
        if sent and (name := asked.partition("?")[0]) in CHANGES:
            try:  # shows the form again: it was signed for another login
                response = await self._change(request, found, name, sent)
            except (CommonplaceError, HTTPException) as error:
                response = await self.refuse(request, error)
        self._login.keep(found, request, response)
        return response

    def _login_form(
        self, request: Request, asked: str, status: int, sent: Mapping[str, str]
    ) -> Response:
        """Ask for a token; what was sent without a login goes with it."""
        data = {"is_wrong": status == 403, "next": asked, "sent": sent}
        return self._html(request, None, "login", data, status)

    async def log_out(self, request: Request) -> Response:
        """Delete the cookie."""
        check_same_site(request)
        response = RedirectResponse(_url(request, "login"), 303)
        if isinstance(self._login, TokenLogins):
            self._login.end(request, response)
        return response

    async def static(self, request: Request) -> Response:
        """Send one of the files that the pages use."""
        name = request.url.path.rpartition("/")[2]
        return FileResponse(_HERE / "static" / name, headers={"cache-control": "max-age=3600"})

    async def refuse(self, request: Request, error: Exception) -> Response:
        """Answer a request that cannot be answered."""
        login: Login | None = getattr(request.state, "commonplace_login", None)
        fault = _fault(request, login, error)
        if fault["status"] == 401 and not _is_json(request):
            sent = getattr(request.state, "commonplace_form", {})
            form = self._login_form(request, f"{_page_of(request)}?{request.url.query}", 401, sent)
            if request.headers.get("sec-fetch-site") == "cross-site" and request.method == "GET":
                form.headers["refresh"] = "0"  # a link elsewhere: now the browser sends the cookie
            return form
        if _is_json(request):
            del fault["key"]
            return JSONResponse({"error": fault}, fault["status"])
        return self._html(request, login, "error", {"fault": fault}, fault["status"])

    def _answer(self, request: Request, login: Login, name: str, shown: Shown) -> Response:
        if _is_json(request):
            plain = msgspec.json.encode(shown, enc_hook=_plain)
            return Response(plain, media_type="application/json")
        return self._html(request, login, name, shown)

    def _html(
        self, request: Request, login: Login | None, name: str, shown: Shown, status: int = 200
    ) -> Response:
        words = Words(language_of(request.headers.get("accept-language", "")))
        given = {key: one for key, one in request.query_params.items() if key != "token"}
        template = self._templates.get_template(f"{name}.html")
        for share in _SHARES:
            page = template.render(
                shown,
                share=share,
                t=words,
                page=name,
                login=login,
                can_write=self._write and login is not None,
                can_log_out=isinstance(self._login, TokenLogins) and login is not None,
                csrf=csrf_token(self._key, login) if login is not None else "",
                url=lambda page, **more: _url(request, page, more),
                here=lambda **more: _url(request, name, {**given, **more}),
                json_url=_url(request, f"{name}.json", given) if name in PAGES else None,
                scope=shown.get("scope"),
                fault=shown.get("fault"),
            )
            if len(page.encode()) <= MAX_PAGE:
                break
        return HTMLResponse(
            page, status, {"content-language": words.language, "vary": "accept-language"}
        )


def _is_json(request: Request) -> bool:
    return request.url.path.endswith(".json")


def _page_of(request: Request) -> str:
    return request.url.path.rpartition("/")[2].removesuffix(".json")


def _fault(request: Request, login: Login | None, error: Exception) -> dict[str, Any]:
    """Tell of an error its status, its reason to an operator, and the key of its words."""
    kinds = (status for kind, status in _STATUS.items() if isinstance(error, kind))
    status, what, reason = next(kinds, 500), getattr(error, "field", ""), ""
    if isinstance(error, HTTPException):
        status, what = error.status_code, error.detail
    elif isinstance(error, CommonplaceError):
        reason = str(error) if login is not None and login.users is None else ""
        if status >= 500:
            logger.warning("page %s: %s", request.url.path, error)
    keys = (f"error_{what}", f"error_{status}", "error_400")
    return {"status": status, "reason": reason, "key": next(key for key in keys if key in STRINGS)}


def _asked(request: Request, place: str) -> str:
    """Write the address of the page that was asked for before a login; never another site's."""
    page, _, query = place.partition("?")
    page = {"export.jsonl": "rights"}.get(page, page)  # a file would leave the login on the screen
    return _url(request, page, dict(parse_qsl(query))) if page in PAGES else _url(request, "why")


def _url(request: Request, page: str, given: Mapping[str, Any] | None = None) -> str:
    """Write the address of a page below wherever the application is mounted."""
    query = urlencode({name: one for name, one in (given or {}).items() if one not in (None, "")})
    return f"{request.scope.get('root_path', '')}/{page}{'?' if query else ''}{query}"


def _readable(value: Any) -> Any:
    """Show what of a text would hide it or turn its direction; every text of a page goes here."""
    if value is None:
        return ""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(map(_visible, value))


def _visible(char: str) -> str:
    if char in "\n\t\u200c\u200d" or char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    return char.encode("unicode_escape", "surrogatepass").decode()


@jinja2.pass_context
def _part(context: jinja2.runtime.Context, value: Any, most: int) -> Any:
    """Cut a text or a list that is too long, further if the page is too large with it."""
    share = context["share"]
    if not isinstance(value, str):
        return value[: math.ceil(most * min(1.0, _LISTS * share))]
    most = math.ceil(most * share)
    return value if len(value) <= most else value[:most].rsplit(" ", 1)[0] + "…"


def _code(text: str) -> Markup:
    """Set in a text of ours what stands between backticks as code."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part
        for place, part in enumerate(text.split("`"))
    )


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _day(at: datetime | None) -> str:
    return "" if at is None else str(at.astimezone(UTC).date())


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
