"""Security of the pages: who is logged in, and what a request must have to be answered."""

import base64
import binascii
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import InvalidRecordError
from ..user_tokens import hash_token

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
MAX_BODY = 256 * 1024  # well above the longest text, whose bytes a form writes with three each
MAX_QUERY = 19 * 1024  # room for a question of 2,000 characters of nine bytes each
COOKIE = "commonplace"
_SECONDS = 12 * 3600
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)  # a token of RFC 9110
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # `no-referrer` would hide where a form comes from
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who asks.

    Attributes:
        users: ids of the users whose memories may be seen; None for everybody's, an operator.
        session: what tells this login from others, such as its cookie.
    """

    users: frozenset[str] | None
    session: str = ""


LoginSource = Callable[[Request], Login | None]
"""Reads who sends a request; None refuses it."""


class TokenLogins:
    """Logins by a token, kept in a signed cookie for twelve hours.

    Args:
        token: of the operator, valid for one login; empty for none.
        users: the ids of the users of each other token, by its SHA-256 hash in hexadecimal digits;
            these tokens stay valid.
    """

    def __init__(self, token: str, users: Mapping[str, Collection[str]]) -> None:
        self._operator = hash_token(token) if token else ""
        self._users = {known: frozenset(ids) for known, ids in users.items()}
        self._key = secrets.token_bytes(32)

    def find(self, token: str) -> Login | None:
        """Find whose a token is; that of the operator is used up."""
        given = hash_token(token)
        if self._operator and hmac.compare_digest(given, self._operator):
            self._operator = ""
            return Login(users=None, session=self._signed(None))
        users = self._users.get(given)
        return None if users is None else Login(users=users, session=self._signed(sorted(users)))

    def __call__(self, request: Request) -> Login | None:
        """Read the cookie of a request."""
        value = request.cookies.get(COOKIE, "")
        content, _, signature = value.partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(content).encode()):
            return None
        try:
            end, users = json.loads(base64.urlsafe_b64decode(content))
        except (ValueError, binascii.Error):
            return None
        if end < time.time():
            return None
        return Login(users=None if users is None else frozenset(users), session=value)

    def keep(self, login: Login, request: Request, response: Response) -> None:
        """Set the cookie of a login."""
        response.set_cookie(
            COOKIE, login.session, max_age=_SECONDS, httponly=True,
            samesite="strict", secure=request.url.scheme == "https", path=_path(request),
        )  # fmt: skip

    def end(self, request: Request, response: Response) -> None:
        """Delete the cookie."""
        response.delete_cookie(COOKIE, path=_path(request))

    def _signed(self, users: Sequence[str] | None) -> str:
        plain = json.dumps([int(time.time()) + _SECONDS, users]).encode()
        content = base64.urlsafe_b64encode(plain).decode()
        return f"{content}.{self._sign(content)}"

    def _sign(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), "sha256").hexdigest()


def header_login(name: str) -> LoginSource:
    """Make a login of the user whose id a reverse proxy puts into a header.

    The proxy must remove the header from what it is sent, and nobody may reach the pages past it.

    Args:
        name: of the header, such as `X-Forwarded-User`; its value is in UTF-8.

    Raises:
        InvalidRecordError: no header can have this name.
    """
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidRecordError(
            field="user header", value=name, reason="must be the name of a header",
            hint="Such as X-Forwarded-User: letters, digits and hyphens.",
        )  # fmt: skip

    def login(request: Request) -> Login | None:
        given = request.headers.getlist(name)
        if len(given) != 1 or not given[0]:
            return None
        try:
            user = given[0].encode("latin-1").decode("utf-8")
        except UnicodeError:
            return None
        return Login(users=frozenset([user]), session=user)

    return login


def csrf_token(key: bytes, login: Login) -> str:
    """Make what a form must send back, which no other site can know."""
    return hmac.new(key, f"form {login.session}".encode(), "sha256").hexdigest()


async def read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form; of several with one name the last."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HTTPException(413)
    if request.headers.get("content-type", "").split(";")[0] != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise HTTPException(400) from None


def check_same_site(request: Request) -> None:
    """Refuse a form that another site sends, as far as the browser tells."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403)


class Guard:
    """Refuses requests for other hosts and endless addresses; adds headers to every answer.

    Args:
        hosts: names in the `Host` header that are answered, without a port; empty for any. Others
            are those of a site that has its name point to this machine.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if self._hosts and _host(scope) not in self._hosts:
            refusal = PlainTextResponse("This host is not served here.", 421)
            await refusal(scope, receive, send_guarded)
        elif len(scope["query_string"]) > MAX_QUERY:
            await PlainTextResponse("The address is too long.", 414)(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)


def _host(scope: Scope) -> str:
    given = Headers(scope=scope).getlist("host")
    if len(given) != 1:
        return ""
    host, colon, port = given[0].lower().rpartition(":")
    return host if colon and port.isdigit() else given[0].lower()


def _path(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"
