"""Signed tokens of an identity provider, over HTTP to a real server and its key set."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from commonplace import InvalidRecordError

pytest.importorskip("mcp")

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from commonplace.mcp_server import SignedTokens
from commonplace.mcp_server import tokens as verifiers

from .mcp_client import http_server, over_http
from .test_mcp_server import status, texts

ISSUER, AUDIENCE = "https://login.example.org", "https://memory.example.org/mcp"
EC, RSA, OTHER = (
    ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048),
    ec.generate_private_key(ec.SECP256R1()),
)  # fmt: skip


def public(key: Any, key_id: str, **more: str) -> dict[str, Any]:
    kind = jwt.algorithms.RSAAlgorithm if key is RSA else jwt.algorithms.ECAlgorithm
    return {**json.loads(kind.to_jwk(key.public_key())), "kid": key_id, "use": "sig", **more}


def token(user: Any = "alice", key: Any = EC, key_id: str | None = "ec", **more: Any) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 600, "sub": user} | more
    claims = {name: value for name, value in claims.items() if value is not None}
    kind = "none" if key is None else "HS256" if isinstance(key, str) else "ES256"
    headers = None if key_id is None else {"kid": key_id}
    return jwt.encode(claims, key, "RS256" if key is RSA else kind, headers)


NAMELESS = json.dumps({"keys": [public(EC, "")]})
INVALID = {
    "expired": token(exp=time.time() - 60),
    "without an end": token(exp=None),
    "not valid yet": token(nbf=time.time() + 600),
    "of another issuer": token(iss="https://other.example.org"),
    "of no issuer": token(iss=None),
    "for another server": token(aud="https://other.example.org"),
    "for nobody": token(aud=None),
    "of another key": token(key=OTHER),
    "of a key that is not known": token(key=OTHER, key_id="other"),
    "of a key without a name": token(key_id=None),
    "of a key that encrypts": token(key=OTHER, key_id="enc"),
    "not signed": token(key=None),
    "signed with a shared secret": token(key="x" * 32, key_id="secret"),
    "of no user": token(user=None),
    "of a user that cannot be": token(user="*"),
    "no token": "a.b.c",
    "": "",
}


class Provider:
    """An identity provider's key set, over HTTP; None for a provider that is away."""

    def __init__(self) -> None:
        secret = {"kty": "oct", "kid": "secret", "k": "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg"}
        self.keys: list[Any] | None = [
            public(EC, "ec"), public(RSA, "rsa"), public(OTHER, "enc", use="enc"), secret,
        ]  # fmt: skip
        self.asked = 0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked += 1
                self.send_response(503 if provider.keys is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps({"keys": provider.keys}).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.server.shutdown()
    made.server.server_close()


async def test_a_signed_token_says_who_the_user_is(tmp_path, provider):
    words = ("--jwks", provider.url, "--issuer", ISSUER, "--audience", AUDIENCE)
    with http_server(tmp_path / "memory", *words) as url:
        async with over_http(url, token()) as alice:
            await alice.call("add_memory", facts=["Alice skis."])
            assert texts(await alice.call("list_memories")) == ["Alice skis."]
        async with over_http(url, token("bob", RSA, "rsa", aud=["x", AUDIENCE])) as bob:
            assert texts(await bob.call("list_memories")) == []
        assert {case: status(url, one) for case, one in INVALID.items()} == dict.fromkeys(
            INVALID, 401
        )
        challenge, metadata = published(url)
    assert AUDIENCE.removesuffix("/mcp") in challenge
    assert metadata["resource"] == AUDIENCE
    assert [one.removesuffix("/") for one in metadata["authorization_servers"]] == [ISSUER]


def published(url: str) -> tuple[str, dict[str, Any]]:
    """Read where a client that has no token may get one."""
    with pytest.raises(HTTPError) as refused:
        urlopen(url)
    refused.value.close()
    with urlopen(f"{url.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp") as told:
        return refused.value.headers["www-authenticate"], json.load(told)


async def user_of(tokens: SignedTokens, given: str) -> str | None:
    found = await tokens.verify_token(given)
    return None if found is None else found.client_id


async def test_keys_are_read_again_and_no_request_can_ask_for_that_often(
    provider, monkeypatch, caplog
):
    now = time.monotonic()
    monkeypatch.setattr(verifiers.time, "monotonic", lambda: now)
    tokens = SignedTokens(provider.url, issuer=ISSUER, audience=AUDIENCE)
    assert await user_of(tokens, token()) == "alice"
    provider.keys = [public(OTHER, "new")]
    new = token(key=OTHER, key_id="new")
    assert [await user_of(tokens, new) for _ in range(3)] == [None] * 3
    assert provider.asked == 1
    now += 31
    assert await user_of(tokens, new) == "alice"
    assert await user_of(tokens, token()) is None  # its key was withdrawn
    assert provider.asked == 2
    provider.keys = None
    now += 301
    assert [await user_of(tokens, new) for _ in range(3)] == ["alice"] * 3
    assert provider.asked == 3
    assert len(caplog.records) == 1


async def test_keys_in_a_file(tmp_path, provider):
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": provider.keys}))
    tokens = SignedTokens(str(file), issuer=ISSUER, audience=AUDIENCE)
    assert await user_of(tokens, token(key=RSA, key_id="rsa")) == "alice"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"keys": [1]}', NAMELESS, None])
def test_keys_that_cannot_be_read_are_refused_at_once(tmp_path, content):
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidRecordError, match="jwks"):
        SignedTokens(str(file), issuer=ISSUER, audience=AUDIENCE)
