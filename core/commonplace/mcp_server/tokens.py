"""File of the hashed tokens by which users identify themselves over HTTP."""

import hashlib
from pathlib import Path

from mcp.server.auth.provider import AccessToken

from ..errors import InvalidRecordError
from ..types import Scope

_DIGITS = 64


class TokenFile:
    """A verifier of bearer tokens: a line `SHA256 USER` for each, empty lines and `#` apart.

    The file is read again for every request, so a line that is taken out ends its token at once.

    Raises:
        InvalidRecordError: a line is none of those.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._users()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Find the user of a token, as the client of the request; None for an unknown token."""
        user = self._users().get(hashlib.sha256(token.encode()).hexdigest())
        return None if user is None else AccessToken(token=token, client_id=user, scopes=[])

    def _users(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, line in enumerate(self._path.read_text("utf-8").splitlines(), 1):
            digest, _, user = line.strip().partition(" ")
            if not digest or digest.startswith("#"):
                continue
            if len(digest) != _DIGITS or not user.strip():
                raise InvalidRecordError(
                    field=f"line {number} of the tokens",
                    value="",  # not the line, which may be a token
                    reason="must be the SHA-256 of a token, a space and a user",
                )
            found[digest.lower()] = Scope(user_id=user.strip()).user_id or ""
        return found
