"""What a reading call means, whichever version of mem0 it was written for.

Code for 0.1 and 1.x gives ids as arguments, code for 2.x inside `filters`; each refuses the other's
way, so where the ids are tells which defaults the caller expects:

- ids as arguments: 100 memories, no threshold, reranked if there is a reranker.
- ids only in `filters`: 20 memories, threshold 0.1, not reranked.
"""

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from commonplace import Scope

from .exceptions import ConfigurationError, ValidationError
from .filters import Compiled, compile_filter
from .scopes import IDS, clean_id, to_scope

Compat = Literal["auto", "v1", "v2"]
Era = Literal["v1", "v2"]
LIMITS: Mapping[Era, int] = {"v1": 100, "v2": 20}
THRESHOLD = 0.1
_NEARLY = "Invalid {name}: {value!r}. Must be {what}."


class Unset(Enum):
    """That an argument was not given, where None means something."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset.UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A checked reading call.

    Attributes:
        limit: at most so many, from 0.
        threshold: least score.
        where: the rest of `filters`; False lets nothing through.
    """

    scope: Scope
    era: Era
    limit: int
    threshold: float
    rerank: bool
    where: Compiled


def asked(
    method: str,
    ids: Mapping[str, Any],
    filters: Mapping[str, Any] | None,
    *,
    compat: Compat,
    limit: int | None = None,
    top_k: int | None = None,
    threshold: float | Unset | None = UNSET,
    rerank: bool | None = None,
) -> Asked:
    """Check a reading call and find its era.

    Raises:
        ValidationError: nobody is named, the two ways name different ids, or a number is out of
            its range.
    """
    inside = top_ids(filters)
    outside = {name: value for name, value in ids.items() if value is not None}
    era: Era = ("v1" if outside else "v2") if compat == "auto" else compat
    if compat == "v2" and outside:
        raise ValidationError(
            f"Top-level entity parameters {set(outside)} are not supported in {method}(). "
            "Use filters={'user_id': '...'} instead."
        )
    scope = to_scope(joined(outside, inside), spaces=compat != "v2")
    rest = {name: value for name, value in (filters or {}).items() if name not in IDS}
    return Asked(
        scope=scope,
        era=era,
        limit=_limit(limit, top_k, LIMITS[era]),
        threshold=_threshold(threshold, era),
        rerank=era == "v1" if rerank is None else bool(rerank),
        where=compile_filter(rest, scope),
    )


def top_ids(filters: object) -> dict[str, Any]:
    """Read the ids at the top of a filter, as they were given.

    Raises:
        ValidationError: it is no mapping.
    """
    if filters is None:
        return {}
    if not isinstance(filters, Mapping):
        raise ValidationError(f"filters={filters!r} is no mapping. Give {{'user_id': '...'}}.")
    return {name: filters[name] for name in IDS if name in filters}


def joined(outside: Mapping[str, Any], inside: Mapping[str, Any]) -> dict[str, Any]:
    """Join the ids of both ways.

    Raises:
        ValidationError: they differ, or one inside is None.
    """
    for name, value in inside.items():
        if value is None:
            raise ValidationError(f"filters[{name!r}] is None. Leave it out, or give an id.")
        if name in outside and clean_id(name, value) != clean_id(name, outside[name]):
            raise ValidationError(
                f"{name}={outside[name]!r} and filters[{name!r}]={value!r} differ. Give one."
            )
    return {**inside, **outside}


def _limit(limit: object, top_k: object, default: int) -> int:
    for name, value in (("limit", limit), ("top_k", top_k)):
        if value is not None and type(value) is not int:
            raise ValidationError(f"{name} must be a valid integer, not {value!r}")
        if isinstance(value, int) and value < 0:
            raise ValidationError(
                _NEARLY.format(name=name, value=value, what="a non-negative integer")
            )
    if limit is not None and top_k is not None and limit != top_k:
        raise ValidationError(f"limit={limit} and top_k={top_k} differ. Give one: they are alike.")
    found = limit if limit is not None else top_k
    return found if isinstance(found, int) else default


def _threshold(given: object, era: Era) -> float:
    if given is UNSET or given is None:
        return THRESHOLD if era == "v2" else 0.0
    if isinstance(given, bool) or not isinstance(given, int | float) or math.isnan(given):
        raise ValidationError("threshold must be a valid number")
    if not 0 <= given <= 1:
        what = "between 0 and 1 (inclusive)"
        raise ValidationError(_NEARLY.format(name="threshold", value=given, what=what))
    return float(given)


def clean_query(query: object) -> str:
    """Trim a question.

    Raises:
        ValidationError: it is blank or no text.
    """
    if not isinstance(query, str):
        raise ValidationError("Invalid query: must be a non-empty string.")
    if not query.strip():
        raise ValidationError("Invalid query: cannot be empty or whitespace-only.")
    return query.strip()


def check_compat(compat: object) -> None:
    """Refuse what is none of the three."""
    if compat not in ("auto", "v1", "v2"):
        raise ConfigurationError(f"compat={compat!r} is none of 'auto', 'v1', 'v2'.")


def refuse_unknown(method: str, unknown: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords that mean nothing, naming what they resemble.

    Raises:
        TypeError: there are some.
    """
    for name in unknown:
        near = difflib.get_close_matches(name, list(known), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        message = f"{method}() got an unexpected keyword argument {name!r}.{hint}"
        raise TypeError(message)
