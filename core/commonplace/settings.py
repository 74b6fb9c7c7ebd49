"""What can be set; `from_env` is the only reader of the environment."""

import os
from dataclasses import dataclass, fields
from typing import Self

from .errors import InvalidRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits and places.

    Attributes:
        path: the folder of the embedded engines.
        max_pending: accepted writes that may wait, over all scopes.
        max_attempts: of a write that fails for an unknown reason, before it is a dead letter.
        retry_after: seconds before the first new attempt; doubles up to 60.
        max_embed_chars: of a text that are embedded; all of it is stored and searched by terms.
        model_timeout: seconds for one call of a chat or embedding model.
        flush_every: writes after which the embedded index is made power-safe in idle time.

    Raises:
        InvalidRecord: a number is not positive.
    """

    path: str = "./memory"
    max_pending: int = 100_000
    max_attempts: int = 8
    retry_after: float = 0.2
    max_embed_chars: int = 4_000
    model_timeout: float = 120.0
    flush_every: int = 5_000

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name != "path" and not value > 0:
                raise InvalidRecord(field=one.name, value=value, reason="is not above zero")

    @classmethod
    def from_env(cls) -> Self:
        """Read `COMMONPLACE_PATH`, `COMMONPLACE_MAX_PENDING` and so on; the rest is default."""
        given = {}
        for one in fields(cls):
            raw = os.environ.get(f"COMMONPLACE_{one.name.upper()}")
            if raw is not None:
                convert = type(getattr(cls(), one.name))
                try:
                    given[one.name] = convert(raw)
                except ValueError:
                    raise InvalidRecord(
                        field=f"COMMONPLACE_{one.name.upper()}", value=raw, reason="is no number"
                    ) from None
        return cls(**given)
