"""What can be set; `from_env` is the only reader of the environment."""

import os
from dataclasses import dataclass, field, fields
from typing import Any, Self

from .errors import InvalidRecord
from .model import Relation, fold

_MOST = 10**9  # seconds or rows; threads and databases take no more of some
SINGLE_VALUED = (
    "lives_in", "works_at", "works_for", "works_as", "job_title", "studies_at",
    "born_in", "born_on", "age", "phone", "email", "address", "status", "current_*", "favourite_*",
    "favorite_*", "prefers_*",
    "住在", "居住在", "现居", "就职于", "任职于", "职业", "最喜欢*", "偏好*",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits and places.

    Attributes:
        path: the folder of the embedded engines and of the journal.
        vectors, graph: the URLs of servers instead, or other folders; see `Memory.open`.
        journal: another folder for the journal; each process needs its own.
        qdrant_api_key, neo4j_user, neo4j_password: for URLs that have none in them.
        max_pending: accepted writes that may wait, over all scopes.
        max_attempts: of a write that fails for an unknown reason, before it is a dead letter.
        retry_after: seconds before the first new attempt; doubles up to 60.
        max_embed_chars: of a text that are embedded; all of it is stored and searched by terms.
        model_timeout: seconds for one call of a chat or embedding model.
        single_valued: relations that have one value at a time, so that a later one ends the
            earlier; `prefers_*` stands for all that begin so. In the environment, commas between.
        half_life: days after which what was remembered counts half, when a search asks for decay.
        decay: whether every search does; recalls are recorded only then.
        flush_every: writes after which the embedded index is made power-safe in idle time.

    Raises:
        InvalidRecord: a number is not positive, or above a billion.
    """

    path: str = "./memory"
    vectors: str = field(default="", repr=False)
    graph: str = field(default="", repr=False)
    journal: str = ""
    qdrant_api_key: str = field(default="", repr=False)
    neo4j_user: str = "neo4j"
    neo4j_password: str = field(default="", repr=False)
    max_pending: int = 100_000
    max_attempts: int = 8
    retry_after: float = 0.2
    max_embed_chars: int = 4_000
    model_timeout: float = 120.0
    flush_every: int = 5_000
    half_life: float = 30.0
    decay: bool = False
    single_valued: tuple[str, ...] = SINGLE_VALUED

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            wanted = (int, float) if type(one.default) in (int, float) else (type(one.default),)
            if type(value) not in wanted:
                kind = type(one.default).__name__
                raise InvalidRecord(field=one.name, value=value, reason=f"is no {kind}")
            if type(value) in (int, float) and not 0 < value <= _MOST:
                reason = f"is not above zero and at most {_MOST}"
                raise InvalidRecord(field=one.name, value=value, reason=reason)

    def is_single_valued(self, relation: Relation) -> bool:
        """Tell whether a later value of this relation ends an earlier one."""
        if relation.single_valued is not None:
            return relation.single_valued
        name = fold(relation.predicate).replace(" ", "_")
        return any(
            name.startswith(one[:-1]) if one.endswith("*") else name == one
            for one in self.single_valued
        )

    @classmethod
    def from_env(cls) -> Self:
        """Read `COMMONPLACE_PATH`, `COMMONPLACE_MAX_PENDING` and so on; the rest is default."""
        given: dict[str, Any] = {}
        for one in fields(cls):
            raw = os.environ.get(f"COMMONPLACE_{one.name.upper()}")
            if raw is not None:
                convert = _READ.get(one.name) or type(getattr(cls(), one.name))
                try:
                    given[one.name] = convert(raw)
                except ValueError:
                    raise InvalidRecord(
                        field=f"COMMONPLACE_{one.name.upper()}",
                        value=raw,
                        reason="is no number or switch",
                    ) from None
        return cls(**given)


def _list(raw: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in raw.split(",") if one.strip())


def _switch(raw: str) -> bool:
    if raw.lower() not in ("0", "1", "false", "true"):
        raise ValueError(raw)
    return raw.lower() in ("1", "true")


_READ = {"single_valued": _list, "decay": _switch}
