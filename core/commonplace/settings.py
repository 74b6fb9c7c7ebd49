"""Settings, the location of a memory's engines, and the URLs of servers.

`Settings.from_env` is the only reader of the environment.
"""

import difflib
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from .errors import InvalidRecordError
from .types import Relation, fold
from .validation import hinting_init, is_sound

_EXAMPLES = {"vectors": "qdrant://host:6333", "graph": "neo4j://host:7687"}
_PARTS = ("graph", "vectors", "journal")
_PLACE_HINT = "Give graph=URL,vectors=URL, perhaps with journal=FOLDER; or one folder for all."
SINGLE_VALUED = (
    "lives_in", "works_at", "works_for", "works_as", "job_title", "studies_at",
    "born_in", "born_on", "age", "phone", "email", "address", "status", "current_*", "favourite_*",
    "favorite_*", "prefers_*",
    "住在", "居住在", "现居", "就职于", "任职于", "职业", "最喜欢*", "偏好*",
)  # fmt: skip
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST = re.compile(r"[\w.-]*[A-Za-z0-9][\w.-]*:[0-9]{1,5}(/.*)?", re.ASCII | re.DOTALL)
_PREFIX = "COMMONPLACE_"
_COMMAND_LINE_VARIABLES = ("EMBEDDER",)
_warned_of: set[str] = set()
_log = logging.getLogger("commonplace")
_MAX_NUMBER = 10**9  # threads and databases take no more seconds or rows


@hinting_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Location, limits and defaults of a memory.

    Attributes:
        path: the folder of the embedded engines and of the journal.
        vectors, graph: URLs of servers, or other folders; see `Memory.open`.
        journal: another folder of this host for the journal.
        qdrant_api_key, neo4j_user, neo4j_password: used for URLs without them.
        max_pending: number of accepted writes that may wait, over all scopes.
        max_attempts: how often a write is tried that fails for an unknown reason, or because a
            model does not answer, before it becomes a dead letter; by default for about 16 hours.
        retry_after: seconds before the first retry; doubles up to 60.
        max_embed_chars: characters of a text that are embedded; all of it is searched by terms.
        model_timeout: seconds for one call of a chat or embedding model in a write. A search waits
            for its embedder without a limit, an agent for `Policy.recall_timeout`.
        single_valued: predicates with one value at a time, so that a later value ends an earlier
            one; `prefers_*` matches all with this prefix. In the environment, separated by commas.
        half_life: days after which a record counts half, in searches with decay.
        decay: apply decay to every search; only searches with decay log accesses.
        cache_bytes: memory for the vectors and terms of the embedded index; when it is full, those
            of the users who searched longest ago are dropped.

    Raises:
        InvalidRecordError: a number is not positive, or above a billion.
    """

    path: str = "./memory"
    vectors: str = field(default="", repr=False)
    graph: str = field(default="", repr=False)
    journal: str = ""
    qdrant_api_key: str = field(default="", repr=False)
    neo4j_user: str = "neo4j"
    neo4j_password: str = field(default="", repr=False)
    max_pending: int = 100_000
    max_attempts: int = 1_000
    retry_after: float = 0.2
    max_embed_chars: int = 32 * 1024
    model_timeout: float = 120.0
    cache_bytes: int = 256 * 2**20
    half_life: float = 30.0
    decay: bool = False
    single_valued: tuple[str, ...] = SINGLE_VALUED

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            wanted = (int, float) if type(setting.default) is float else (type(setting.default),)
            if type(value) not in wanted:
                kind = type(setting.default).__name__
                raise InvalidRecordError(
                    field=setting.name, value=value, reason=f"must be of type {kind}"
                )
            if type(value) in (int, float) and not 0 < value <= _MAX_NUMBER:
                reason = f"must be above zero and at most {_MAX_NUMBER}"
                raise InvalidRecordError(field=setting.name, value=value, reason=reason)
        if not all(isinstance(name, str) for name in self.single_valued):
            raise InvalidRecordError(
                field="single_valued", value=self.single_valued, reason="must have names only"
            )

    def is_single_valued(self, relation: Relation) -> bool:
        """Tell whether a later value of this relation ends an earlier one."""
        if relation.single_valued is not None:
            return relation.single_valued
        predicate = fold(relation.predicate).replace(" ", "_")
        return any(
            predicate.startswith(name[:-1]) if name.endswith("*") else predicate == name
            for name in self.single_valued
        )

    @classmethod
    def from_env(cls) -> Self:
        """Read `COMMONPLACE_PATH`, `COMMONPLACE_MAX_PENDING` and so on; the rest is default.

        Other variables whose names begin so are logged as a warning, each once in a process.
        """
        _warn_of_unknown_variables({setting.name.upper() for setting in fields(cls)})
        given: dict[str, Any] = {}
        for setting in fields(cls):
            raw = os.environ.get(f"{_PREFIX}{setting.name.upper()}")
            if raw is not None:
                convert, takes = _READ[type(setting.default)]
                try:
                    given[setting.name] = convert(raw)
                except ValueError:
                    name = f"{_PREFIX}{setting.name.upper()}"
                    raise InvalidRecordError(field=name, value=raw, reason=takes) from None
        return cls(**given)


def _warn_of_unknown_variables(settings: set[str]) -> None:
    known = {*settings, *_COMMAND_LINE_VARIABLES}
    given = {name.removeprefix(_PREFIX) for name in os.environ if name.startswith(_PREFIX)}
    for name in sorted(given - known - _warned_of):
        _warned_of.add(name)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {_PREFIX}{close[0]}?" if close else ""
        _log.warning("%s%s is ignored, as no setting has that name.%s", _PREFIX, name, hint)


def _list(raw: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in raw.split(",") if name.strip())


def _switch(raw: str) -> bool:
    if raw.lower() not in ("0", "1", "false", "true"):
        raise ValueError(raw)
    return raw.lower() in ("1", "true")


_READ: dict[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, ""),
    tuple: (_list, ""),
    bool: (_switch, "must be true or false, or 1 or 0"),
    int: (int, "must be an integer"),
    float: (float, "must be a number"),
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Location:
    """Location of one memory's engines; equal locations are one memory.

    Attributes:
        vectors, graph: a URL, or the absolute path of a folder; `object:///` and the name of its
            class for an engine that the caller has opened.
        journal: the absolute path of a folder.
        given_index, given_graph: the engines that the caller has opened, and closes; two are the
            same if they are one object.
    """

    vectors: str
    graph: str
    journal: str
    given_index: Any = field(default=None, compare=False)
    given_graph: Any = field(default=None, compare=False)
    _given: tuple[int, int] = field(init=False, default=(0, 0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "_given", (id(self.given_index), id(self.given_graph)))

    @classmethod
    def find(
        cls,
        path: str | None,
        settings: Settings,
        *,
        vectors: object = None,
        graph: object = None,
        journal: str | None = None,
    ) -> Self:
        """Find the location; what is not given is taken from the settings, else it is the folder.

        The folder is `path`, else that of the graph store if it has one, else the settings'.

        Args:
            vectors, graph: a URL, a folder or an engine, which is not checked here.

        Raises:
            InvalidRecordError: a URL cannot be read, or the path is not one of a folder.
        """
        if journal is not None and type(journal) is not str:
            hint = "Give a folder, such as str(path)."
            raise InvalidRecordError(
                field="journal", value=journal, reason="must be a string", hint=hint
            )
        where = {
            "vectors": settings.vectors if vectors in (None, "") else vectors,
            "graph": settings.graph if graph in (None, "") else graph,
        }
        given = {name: store for name, store in where.items() if not isinstance(store, str)}
        found = {
            name: f"object:///{type(store).__name__}" if name in given else _store(name, str(store))
            for name, store in where.items()
        }
        if path is None:
            beside = "" if is_url(found["graph"]) or not graph else found["graph"]
            path = beside or settings.path or Settings().path
        folder = to_folder("path", path)
        return cls(
            vectors=found["vectors"] or folder,
            graph=found["graph"] or folder,
            journal=to_folder("journal", journal or settings.journal or folder),
            given_index=given.get("vectors"),
            given_graph=given.get("graph"),
        )

    @property
    def shares_vectors(self) -> bool:
        """Other hosts use the index too."""
        return has_host(self.vectors)

    @property
    def shares_graph(self) -> bool:
        """Other hosts use the graph store too."""
        return has_host(self.graph)

    @property
    def names(self) -> tuple[str, str, str]:
        """Names of the stores; objects of one class have the same."""
        return self.vectors, self.graph, self.journal

    def is_given(self, engine: object) -> bool:
        """Tell whether the caller has opened an engine, and closes it."""
        return engine is self.given_index or engine is self.given_graph

    def __str__(self) -> str:
        """Name the stores without secrets; the same on every host that shares them."""
        return " + ".join(dict.fromkeys((without_secret(self.graph), without_secret(self.vectors))))

    def __repr__(self) -> str:
        """Show no secrets either."""
        return f"Location({str(self)!r}, journal={self.journal!r})"


def is_url(where: str) -> bool:
    """Tell whether this is a URL and not a folder."""
    return _SCHEME.match(where) is not None


def has_host(where: str) -> bool:
    """Tell whether this is the URL of a server; `shelf:///folder` has no host."""
    return is_url(where) and bool(urlsplit(where).netloc)


def without_secret(where: str) -> str:
    """Remove user, password and key from a URL."""
    return re.sub(r"(?<=://).*@", "", where, flags=re.DOTALL)


def _store(field: str, where: str) -> str:
    """Check a URL or a folder, and write the latter in full; empty if `where` is."""
    scheme = _SCHEME.match(where)
    if scheme is None:
        hint = f"Give a folder, or a URL such as {_EXAMPLES[field]}."
        return where and to_folder(field, where, hint=hint)
    if not _is_clear(where):
        raise InvalidRecordError(
            field=field,
            value=f"{scheme[0]}…",  # the secret may be anywhere in what cannot be read
            reason="must be a URL with a host and, if any, a port",
            hint="Quote a user, password or key by urllib.parse.quote(..., safe='').",
        )
    return where


def _is_clear(url: str) -> bool:
    """Tell whether a URL is unambiguous: a secret that is not quoted may move the host."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    has_place = bool(host) or (not parts.netloc and bool(parts.path))
    return has_place and port != 0 and not parts.fragment and "@" not in parts.path + parts.query


def split_place(field: str, given: str) -> dict[str, Any]:
    """Split a text that names a memory into arguments of `Memory.open`.

    Args:
        field: the argument that it was given as, for errors.
        given: a folder, or `graph=URL,vectors=URL`, perhaps with `,journal=FOLDER`.

    Raises:
        InvalidRecordError: a part is unknown, comes twice or is missing.
    """
    unknown = [name for name in re.findall(r"(?:^|,)([A-Za-z_]+)=", given) if name not in _PARTS]
    if unknown and not Path(given).exists():
        reason = f"has the part {unknown[0]!r}, which is none of {', '.join(_PARTS)}"
        raise InvalidRecordError(field=field, value=given, reason=reason, hint=_PLACE_HINT)
    if not re.match(rf"({'|'.join(_PARTS)})=", given):
        return {"path": given}
    parts: dict[str, Any] = {"path": None}
    for part in re.split(rf",(?=(?:{'|'.join(_PARTS)})=)", given):
        name, _, where = part.partition("=")
        if name in parts or not where:
            reason = f"must have {name} once, with a value"
            raise InvalidRecordError(field=field, value=given, reason=reason)
        parts[name] = where
    if missing := [name for name in ("graph", "vectors") if name not in parts]:
        reason = f"must have {' and '.join(missing)}"
        raise InvalidRecordError(field=field, value=given, reason=reason, hint=_PLACE_HINT)
    return parts


def to_folder(field: str, path: object, *, hint: str = "") -> str:
    """Write the path of a folder in full.

    Args:
        field: the argument that it was given as, for errors.

    Raises:
        InvalidRecordError: it is not a path, or it is a URL.
    """
    shown = str(path) if isinstance(path, str | os.PathLike) else ""
    value, reason = path, ""
    if not shown.strip() or any(character < " " for character in shown) or not is_sound(shown):
        reason = "must be the path of a folder"
    elif shown == ":memory:":
        reason = "must be the path of a folder, as every memory is on disk"
        hint = "For one that is not kept, give a tempfile.TemporaryDirectory().name."
    elif shown.startswith("$"):
        reason = "must be the path of a folder, not of a variable"
        hint = "Give os.path.expandvars(path), or ./ before the name of such a folder."
    elif _HOST.fullmatch(shown):
        reason = "must be the path of a folder, not a host and its port"
        hint = hint or "Give servers by vectors=URL and graph=URL."
    elif is_url(shown):
        value, reason = without_secret(shown), "must be the path of a folder, not a URL"
        hint = "Give servers by vectors=URL and graph=URL."
    else:
        folder = str(Path(shown).expanduser().resolve())
        # `Path` raises where it may not look.
        if not os.path.exists(folder) or os.path.isdir(folder):
            return folder
        reason, hint = "is a file and not a folder", "Give a folder; it is made if it is missing."
        if os.path.basename(folder) == "memory.db":
            hint = f"It is inside a memory: give the folder {os.path.dirname(folder)!r}."
    raise InvalidRecordError(field=field, value=value, reason=reason, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServerUrl:
    """The parts of a server's URL, without a `repr` because of the password.

    Attributes:
        url: scheme, host and port.
        user, password: before an `@`; empty when missing.
        name: the path, such as the name of a database or collection; empty when missing.
        options: those after a `?`, by name.
    """

    url: str
    user: str
    password: str
    name: str
    options: Mapping[str, Any]


def parse_server_url(field: str, url: str, known: Mapping[str, type]) -> ServerUrl:
    """Parse the URL of a server.

    Args:
        field: the argument that it was given as, for errors.
        known: the options of the engine, with their types.

    Raises:
        InvalidRecordError: there is no host, an option is unknown, or its value is not of its type.
    """
    parts = urlsplit(url)
    if not parts.netloc:
        raise InvalidRecordError(field=field, value=url, reason="must be a URL with a host")
    options: dict[str, Any] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in known:
            hint = f"The options are {', '.join(known)}."
            raise InvalidRecordError(
                field=field, value=name, reason="must be a known option", hint=hint
            )
        options[name] = _option(name, value, known[name])
    return ServerUrl(
        url=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        name=unquote(parts.path.strip("/")),
        options=options,
    )


def _option(name: str, value: str, kind: type) -> Any:
    if kind is bool and value not in ("true", "false"):
        raise InvalidRecordError(field=name, value=value, reason="must be true or false")
    if kind is int and not (value.isascii() and value.isdigit() and int(value)):
        raise InvalidRecordError(field=name, value=value, reason="must be an integer above zero")
    return value == "true" if kind is bool else kind(value)
