"""Files of users: who may see whose memories over HTTP, by the hashes of tokens.

In each line stand the SHA-256 hash of a token, a space, and the id of a user. Empty lines and those
that begin with `#` are skipped.
"""

import hashlib
import os
import secrets
from pathlib import Path

from .errors import InvalidRecordError

_TOKEN_BYTES = 32


def hash_token(token: str) -> str:
    """Hash a token as a file of users has it: they are random, so that one round is enough."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def read_users(path: Path) -> dict[str, list[str]]:
    """Read the users of each token, by its hash, in the order of the lines.

    Raises:
        InvalidRecordError: a line is none of these; it is not shown, as it may be a token.
        OSError: it cannot be read.
    """
    found: dict[str, list[str]] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        known, _, user = line.strip().partition(" ")
        if not known or known.startswith("#"):
            continue
        if len(known) != hashlib.sha256().digest_size * 2 or not user.strip():
            raise InvalidRecordError(
                field="users file",
                value=f"line {number}",
                reason="must have the hash of a token, a space, and the id of a user",
                hint="`commonplace serve --new-token USER` adds such a line.",
            )
        found.setdefault(known.lower(), []).append(user.strip())
    return found


def add_user_token(path: Path, user: str) -> str:
    """Make a token for a user, add its hash to a file of users, and return it."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(f"{hash_token(token)} {user}\n")
    return token
