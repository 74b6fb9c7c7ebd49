"""Tokens by which users identify themselves over HTTP: of a file, or signed by a provider (JWT)."""

import asyncio
import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

import jwt
from mcp.server.auth.provider import AccessToken

from ..errors import CommonplaceError, InvalidRecordError
from ..settings import is_url
from ..types import Scope
from ..user_tokens import hash_token, read_users

# Public keys only: who could read the keys could sign with a shared secret.
_ALGORITHMS = [*(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)),
               "EdDSA"]  # fmt: skip
_FRESH = 300.0  # seconds after which the keys are read again
_PAUSE = 30.0  # between two readings for a key that is not known: any request may name one
_TIMEOUT = 5.0
_UNREADABLE = (jwt.PyJWTError, OSError, ValueError, TypeError, AttributeError)  # or no key set
_log = logging.getLogger("commonplace")


class TokenFile:
    """A verifier of bearer tokens by a file of users (`read_users`), the last one of each token.

    The file is read again for every request, so a line that is taken out ends its token at once.

    Raises:
        InvalidRecordError, InvalidScopeError: a line cannot be used.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._users()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Find the user of a token, as the client of the request; None for an unknown token."""
        user = self._users().get(hash_token(token))
        return None if user is None else AccessToken(token=token, client_id=user, scopes=[])

    def _users(self) -> dict[str, str]:
        users = {known: ids[-1] for known, ids in read_users(self._path).items()}
        return {known: Scope(user_id=user).user_id or "" for known, user in users.items()}


class SignedTokens:
    """A verifier of signed tokens, whose claim `sub` is the user.

    The keys are read again every five minutes, and for a token with a key that is not known, at
    most every 30 seconds. While they cannot be read, those that are known stay.

    Args:
        jwks: URL or path of a JSON Web Key Set, in which each key has a `kid`.
        issuer: the URL that a token must have as `iss`.
        audience: what a token must have as `aud`, or among it: this server.

    Raises:
        InvalidRecordError: the keys cannot be read, or the issuer is no URL.
    """

    def __init__(self, jwks: str, *, issuer: str, audience: str) -> None:
        if not issuer.startswith(("https://", "http://")):
            raise InvalidRecordError(field="issuer", value=issuer, reason="must be a URL")
        self.issuer = issuer
        self.audience = audience
        self._jwks = jwks
        self._lock = threading.Lock()
        try:
            self._keys = self._read()
        except _UNREADABLE as error:
            raise InvalidRecordError(
                field="jwks", value=jwks, reason=f"cannot be read: {error}"
            ) from None

    async def verify_token(self, token: str) -> AccessToken | None:
        """Find the user of a token, as the client of the request; None for one that is not valid.

        Not valid is a token that has expired, or is for somebody else, of somebody else, or signed
        with another key.
        """
        try:
            claims = await asyncio.to_thread(self._claims, token)
            user = Scope(user_id=claims["sub"]).user_id
        except (jwt.PyJWTError, CommonplaceError):
            return None
        return AccessToken(
            token=token, client_id=user or "", scopes=[], expires_at=int(claims["exp"])
        )

    def _claims(self, token: str) -> dict[str, Any]:
        key = self._key(jwt.get_unverified_header(token).get("kid"))
        claims: dict[str, Any] = jwt.decode(
            token, key, algorithms=_ALGORITHMS, issuer=self.issuer, audience=self.audience,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )  # fmt: skip
        return claims

    def _key(self, key_id: Any) -> jwt.PyJWK:
        with self._lock:
            age = time.monotonic() - self._read_at
            if age > _FRESH or (age > _PAUSE and key_id not in self._keys):
                try:
                    self._keys = self._read()
                except _UNREADABLE as error:
                    _log.warning("the keys of signed tokens cannot be read: %s", error)
        if key_id not in self._keys:
            raise jwt.InvalidKeyError
        return self._keys[key_id]

    def _read(self) -> dict[Any, jwt.PyJWK]:
        self._read_at = time.monotonic()  # a reading that fails counts too
        if is_url(self._jwks):
            client = jwt.PyJWKClient(self._jwks, cache_jwk_set=False, timeout=_TIMEOUT)
            found = client.fetch_data()
        else:
            found = json.loads(Path(self._jwks).read_text("utf-8"))
        keys = jwt.PyJWKSet.from_dict(found).keys
        named = {key.key_id: key for key in keys if key.key_id and key.public_key_use != "enc"}
        if not named:
            raise ValueError("no key for signatures has a kid")
        return named
