"""Regular expressions that are compiled when they are first used.

Compiling those that read language takes as long as all other imports of the core, and most
programs use few of them.
"""

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "sub", "split", "findall", "finditer")


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._source)
        # As attributes of its own the methods cost no more than those of a compiled pattern.
        self.__dict__.update({one: getattr(compiled, one) for one in _METHODS})
        return getattr(compiled, name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what behaves as `re.compile(pattern, flags)`, which it calls on its first use."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
