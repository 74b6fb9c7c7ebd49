"""Where the engines of a memory are: folders for the embedded ones, URLs for servers."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from .errors import InvalidRecord
from .settings import Settings

VECTOR_URLS = ("qdrant", "http", "https")
GRAPH_URLS = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Place:
    """Where one memory is; equal places are one memory.

    Attributes:
        vectors, graph: the URL of a server, or the absolute path of a folder.
        journal: the absolute path of a folder.
    """

    vectors: str
    graph: str
    journal: str

    @classmethod
    def find(
        cls,
        path: str | None,
        settings: Settings,
        *,
        vectors: str | None = None,
        graph: str | None = None,
        journal: str | None = None,
    ) -> Self:
        """Work out a place: what is not given is as the settings say, and else in the folder.

        Raises:
            InvalidRecord: a URL is of no server that we know, or cannot be read.
        """
        folder = _folder(path or settings.path or Settings().path)
        return cls(
            vectors=_engine("vectors", vectors or settings.vectors, VECTOR_URLS) or folder,
            graph=_engine("graph", graph or settings.graph, GRAPH_URLS) or folder,
            journal=_folder(journal or settings.journal or folder),
        )

    @property
    def shares_vectors(self) -> bool:
        """Other hosts see the index."""
        return is_url(self.vectors)

    @property
    def shares_graph(self) -> bool:
        """Other hosts see the graph store."""
        return is_url(self.graph)

    def __str__(self) -> str:
        """Name the stores, without a password; the same on every host that shares them."""
        return " + ".join(dict.fromkeys((without_secret(self.graph), without_secret(self.vectors))))

    def __repr__(self) -> str:
        """Show no password either."""
        return f"Place({str(self)!r}, journal={self.journal!r})"


def is_url(where: str) -> bool:
    """Tell a server from a folder."""
    return _SCHEME.match(where) is not None


def without_secret(where: str) -> str:
    """Take user, password and key out of a URL."""
    return re.sub(r"(?<=://).*@", "", where, flags=re.DOTALL)


def _engine(field: str, where: str, schemes: tuple[str, ...]) -> str:
    scheme = _SCHEME.match(where)
    if scheme is None:
        return where and _folder(where)
    if scheme[1] not in schemes:
        hint = "Give a folder, or a URL that begins with " + ", ".join(f"{x}://" for x in schemes)
        shown = without_secret(where)
        raise InvalidRecord(field=field, value=shown, reason="is no such server", hint=f"{hint}.")
    if not _is_clear(where):
        raise InvalidRecord(
            field=field,
            value=f"{scheme[0]}…",  # what cannot be read may have its secret anywhere
            reason="is no URL with a host and, if any, a port",
            hint="Put a user, password or key through urllib.parse.quote(..., safe='').",
        )
    return where


def _is_clear(url: str) -> bool:
    """Tell whether all of a URL is what it seems; a secret that is not quoted moves the host."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and port != 0 and not parts.fragment and "@" not in parts.path + parts.query


def _folder(path: str) -> str:
    return str(Path(path).expanduser().resolve())
