"""mem0's three ids as a scope: literal, never empty and never a wildcard.

Users and agents follow the rule of all adapters, so that one person has one id everywhere; runs,
which programs name, are trimmed as in mem0. An id that is not in the Unicode form NFC is normalised
with a warning, as a mem0 may hold both forms.
"""

import logging
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from commonplace import InvalidScopeError, Scope
from commonplace.agents import short_repr, to_id

from .exceptions import NO_IDS, ValidationError

logger: logging.Logger = logging.getLogger("commonplace_mem0")
IDS = ("user_id", "agent_id", "run_id")


def clean_id(name: str, value: object, *, allow_spaces: bool = True) -> str | None:
    """Convert an id to text: of an integer or an enum member, too; a run is trimmed.

    None stays None.

    Raises:
        ValidationError: it is empty, or cannot be an id (see `Scope`).
    """
    if value is None:
        return None
    if isinstance(value, str):
        if not value.strip():
            raise ValidationError(
                f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier."
            )
        value = value.strip() if name == "run_id" else value
        if not unicodedata.is_normalized("NFC", value):
            value = _normalised(name, value)
    try:
        text = to_id(name, value)
    except InvalidScopeError as error:
        raise ValidationError(str(error), details={name: short_repr(value)}) from error
    if not allow_spaces and any(char.isspace() for char in text):
        raise ValidationError(
            f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces."
        )
    return text


@lru_cache(1024)  # so that there is one warning for each id
def _normalised(name: str, value: str) -> str:
    text = unicodedata.normalize("NFC", value)
    logger.warning(
        "%s=%s is not in the Unicode form NFC; it is taken for %r", name, ascii(value), text
    )
    return text


def to_scope(ids: Mapping[str, Any], *, allow_spaces: bool = True) -> Scope:
    """Make the scope of these ids; None counts as not given."""
    given = {name: clean_id(name, ids.get(name), allow_spaces=allow_spaces) for name in IDS}
    if not any(given.values()):
        raise ValidationError(
            "At least one of 'user_id', 'agent_id', or 'run_id' must be provided, as an argument "
            "or in `filters` at the top.",
            NO_IDS,
            {"provided_ids": given},
            "Please provide at least one identifier to scope the memory operation.",
        )
    return Scope(user_id=given["user_id"], agent_id=given["agent_id"], session_id=given["run_id"])


def to_ids(scope: Scope) -> dict[str, str]:
    """Convert a scope to the mem0 ids that it has."""
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.session_id}
    return {name: value for name, value in ids.items() if value is not None}
