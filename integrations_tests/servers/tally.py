"""A way to a server that counts what is asked on it."""

import re
import socket
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from .cut import Cut, _end

BOLT = {"transactions": rb"\xb1\x11[\xa0-\xaf]"}  # BEGIN: one field, a map
HTTP = {"requests": rb"(?:GET|POST|PUT|PATCH|DELETE) /[^ ]* HTTP/1\.1\r\n"}


class Tally(Cut):
    """Forwards connections to where a URL points, and counts what matches some patterns.

    Attributes:
        url: the same, this way.
    """

    def __init__(self, url: str, patterns: dict[str, bytes]) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        super().__init__(parts.hostname, parts.port or 0)
        who = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        self.url = parts._replace(netloc=f"{who}127.0.0.1:{self.port}").geturl()
        self._patterns = {name: re.compile(one, re.DOTALL) for name, one in patterns.items()}
        self._counts: Counter[str] = Counter()

    def take(self) -> dict[str, int]:
        """Read what was counted since the last time."""
        counts, self._counts = self._counts, Counter()
        return dict(counts)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(1 << 20):
                for name, pattern in self._patterns.items():
                    if found := len(pattern.findall(data)):
                        self._counts[name] += found
                server.sendall(data)
        except OSError:
            return
        _end(server)


def http_only(url: str) -> str:
    """Make a URL of an index speak HTTP, which can be counted."""
    parts: Any = urlsplit(url)
    return parts._replace(query="prefer_grpc=false").geturl()
