"""Proxy to a server that counts requests."""

import re
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from .cutting_proxy import Cut

BOLT = {"transactions": rb"\xb1\x11[\xa0-\xaf]"}  # BEGIN: one field, a map
HTTP = {"requests": rb"(?:GET|POST|PUT|PATCH|DELETE) /[^ ]* HTTP/1\.1\r\n"}


class Tally(Cut):
    """Forwards connections to where a URL points, and counts what matches some patterns."""

    def __init__(self, url: str, patterns: dict[str, bytes]) -> None:
        super().__init__(url)
        self._patterns = {name: re.compile(one, re.DOTALL) for name, one in patterns.items()}
        self._counts: Counter[str] = Counter()

    def take(self) -> dict[str, int]:
        """Read what was counted since the last time."""
        counts, self._counts = self._counts, Counter()
        return dict(counts)

    def _is_cut(self, data: bytes) -> bool:
        for name, pattern in self._patterns.items():
            if found := len(pattern.findall(data)):
                self._counts[name] += found
        return False


def http_only(url: str) -> str:
    """Make a URL of an index speak HTTP, which can be counted."""
    parts: Any = urlsplit(url)
    return parts._replace(query="prefer_grpc=false").geturl()
