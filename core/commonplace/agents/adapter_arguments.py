"""Checks of the arguments that adapters take, so that a wrong one is refused by all alike."""

import re
from enum import Enum
from typing import Any, Final

from ..errors import InvalidRecordError, WrongTypeError
from ..validation import check_function

MAX_PREFIX = 40


class Unset(Enum):
    """The type of `UNSET`, the default of a parameter whose None means something."""

    UNSET = "UNSET"


UNSET: Final = Unset.UNSET
_PREFIX = re.compile(rf"[A-Za-z0-9_-]{{0,{MAX_PREFIX}}}")


def check_memory(memory: object, field: str = "memory", *, otherwise: str = "") -> None:
    """Refuse what is not an open memory; the error tells what else may be done `otherwise`.

    Raises:
        WrongTypeError: it is something else, such as a path.
        MemoryClosedError: it is closed.
    """
    from ..memory import Memory  # it loads the engines

    if not isinstance(memory, Memory):
        raise WrongTypeError(
            field=field,
            value=memory,
            takes="an open commonplace Memory",
            hint=f"Pass Memory.open('./memory'){otherwise}.",
        )
    _ = memory.admin.checkpoints  # raises if it is closed


def given_once(name: str, value: Any, **aliases: Any) -> Any:
    """Return the value of a parameter that has other names too; None if no name has a value.

    Raises:
        InvalidRecordError: it is given under two names.
    """
    given = {key: held for key, held in {name: value, **aliases}.items() if held is not None}
    if len(given) > 1:
        first, second = list(given)[:2]
        raise InvalidRecordError(
            field=second,
            value=given[second],
            reason=f"must not be given beside {first}",
            hint=f"Give {first} alone.",
        )
    return next(iter(given.values()), None)


def check_id_source(
    field: str, given: object, *, may_be_async: bool = False, arguments: int = 1
) -> bool:
    """Tell whether an id is read by a function, for each turn; refuse one that cannot be."""
    if callable(given):
        check_function(field, given, may_be_async=may_be_async, arguments=arguments)
    return callable(given)


def check_prefix(field: str, prefix: object) -> None:
    """Refuse a prefix that models do not take in a tool's name."""
    if type(prefix) is not str or not _PREFIX.fullmatch(prefix):
        raise InvalidRecordError(
            field=field,
            value=prefix,
            reason=f"must be at most {MAX_PREFIX} letters, digits, '_' and '-'",
            hint="Give one such as 'work_', or leave it out.",
        )
