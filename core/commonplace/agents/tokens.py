"""Number of tokens of a text, as an agent's policy counts them."""

import logging
import re
from collections.abc import Callable
from functools import cache

from .policy import Policy

# Han, kana and Hangul, whose every letter is about a token.
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_LETTERS = 4  # of other scripts in a token
_log = logging.getLogger("commonplace.agents")


def count_tokens(text: str, policy: Policy) -> int:
    """Count tokens by the policy's function, or by the rule of thumb where that fails."""
    count = policy.count_tokens
    if count is not None:
        try:
            return int(count(text))
        except Exception as error:  # it is the user's, and must not fail a turn
            _warn(count, repr(error))
    return estimate_tokens(text)


def estimate_tokens(text: str) -> int:
    """Estimate tokens: one for a Chinese, Japanese or Korean letter, one for 4 other characters."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // _LETTERS)


@cache
def _warn(count: Callable[[str], int], reason: str) -> None:
    _log.warning("Policy(count_tokens=%r) failed, so tokens are estimated: %s", count, reason)
