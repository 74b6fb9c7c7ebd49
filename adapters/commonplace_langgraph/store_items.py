"""Store items: their namespaces, their values, and the records that hold them.

Mapping:
- namespace: the record's namespace; a label that no memory holds is written in hexadecimal digits.
- key: `metadata["langgraph"]["key"]`, JSON text; the record's id is made of namespace and key.
- value: `metadata["langgraph"]["value"]`, JSON text, so that depth and numbers have no limit.
- fields of the value that are short scalars: also metadata, for filters of any framework.
- what is embedded: the record's text; more texts are records of their own, `part` 1 and up, which
  carry the same item and are never shown.
- `told`: a hash of the text as it was put, to see that another agent has corrected it since.
- ttl: `expires_at`, and the minutes for refreshing it; updated_at: the time of the put, which a
  refresh does not move; created_at: the record's. Nothing is dropped.

A record that others wrote is an item too: in its own namespace where that fits its owner, else in
the namespace that the template gives to its owner.
"""

import hashlib
import json
import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from typing import Any

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    PutOp,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)
from langgraph.store.base.embed import get_text_at_path

from commonplace import (
    CommonplaceError,
    Delete,
    Excerpt,
    Fact,
    InvalidRecordError,
    InvalidScopeError,
    Ranking,
    Record,
    Scope,
)
from commonplace.agents import SCOPE_FIELDS, check_list, check_mapping, check_name, is_sound, to_id
from commonplace.filters import FIELDS
from commonplace.ports import altered

Namespace = tuple[str, ...]

ENTRY = "langgraph"  # in the metadata of a record: what the store itself keeps of an item
PLAIN_SCOPE = Scope(agent_id="langgraph")  # of namespaces that are no user's memory

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PLAIN_TYPES = frozenset((str, bool, type(None)))
_MAX_DEPTH = 128
_LONG = 2**20  # characters of JSON up to which a memory surely holds a value
_MAX_INTEGER = 10**4000  # of more than 4,300 digits Python writes and reads no text
_MAX_TEXTS = 256
_MAX_TEXT_BYTES = 32 * 1024
_MAX_INDEXED_FIELDS = 24
_RESERVED_KEYS = {*FIELDS, *SCOPE_FIELDS, ENTRY, "content", "spill"}
_RECORD_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `dumps` would make one for each value
_decode = json.JSONDecoder().raw_decode  # of what is written here: nothing comes before or after
_UNSOUND = "."  # before the digits of a label that no memory holds; LangGraph's have no period


# -- namespaces --------------------------------------------------------------------------------


class NamespaceTemplate:
    """Maps namespaces to scopes by labels such as `("memories", "{user_id}")`.

    A namespace belongs to a user when its labels fit the template up to `{user_id}`; what comes
    after says more (`{agent_id}`, `{session_id}`) as far as it fits. All others are plain.
    Namespaces are compared label by label and never joined, so that no label can cross into
    another.

    Args:
        labels: None for a store in which every namespace is plain.
        agent_id: of a user's namespaces, when the template does not name it.

    Raises:
        InvalidRecordError: the labels are no list of texts, do not name `{user_id}`, or name a
            field twice.
        InvalidScopeError: the agent's id cannot be used.
    """

    def __init__(self, labels: Sequence[str] | None, agent_id: str | None = None) -> None:
        if labels is not None:
            check_list("template", labels, "labels, such as ('memories', '{user_id}'), or None")
            for label in labels:
                check_name("template", label)
        self.labels: tuple[str, ...] = tuple(labels or ())
        self._fields = [_scope_field(label) for label in self.labels]
        named = [name for name in self._fields if name]
        if labels is not None and (named.count("user_id") != 1 or len({*named}) < len(named)):
            raise InvalidRecordError(
                field="template",
                value=labels,
                reason="must name '{user_id}', and every field of a scope once",
                hint="Give labels such as ('memories', '{user_id}'), or None.",
            )
        agent = None if agent_id is None else to_id("agent_id", agent_id)
        self._agent = {"agent_id": agent} if agent and "agent_id" not in named else {}
        self.scope_of: Callable[[Namespace], Scope] = lru_cache(4096)(self._scope_of)

    def _scope_of(self, namespace: Namespace) -> Scope:
        """Return the scope in which the items of a namespace are."""
        bound, _ = self._bind(namespace)
        return Scope(**bound, **self._agent) if "user_id" in bound else PLAIN_SCOPE

    def is_open(self, prefix: Namespace) -> bool:
        """Tell whether namespaces with a prefix may be of several users, and of none."""
        bound, is_open = self._bind(prefix)
        return is_open and "user_id" not in bound

    def scope_of_user(self, prefix: Namespace, user_id: str) -> Scope:
        """Return the scope of the items of a user under a prefix that may be of several."""
        return Scope(user_id=user_id, **self._bind(prefix)[0], **self._agent)

    def shows_others(self, prefix: Namespace) -> bool:
        """Tell whether what others learned may be under a prefix: only where it names a user."""
        fitting = zip(self.labels, self._fields, prefix, strict=False)
        return (
            "user_id" in self._bind(prefix)[0]
            and len(prefix) <= len(self.labels)
            and all(field_name or label == given for label, field_name, given in fitting)
        )

    def namespace_of(self, labels: Namespace, scope: Scope) -> Namespace | None:
        """Read the namespace of a record of `scope`; None if it has none, or one of others."""
        namespace = from_labels(labels)
        return namespace if namespace and self.scope_of(namespace).covers(scope) else None

    def default_namespace(self, scope: Scope) -> Namespace:
        """Return the namespace of the records of a scope that have none of their own."""
        pairs = zip(self.labels, self._fields, strict=True)
        named = (getattr(scope, name) if name else label for label, name in pairs)
        return tuple(takewhile(lambda label: label is not None, named))

    def shows_others_in_one(self, scope: Scope) -> bool:
        """Tell whether `default_namespace` is the same for all that a scope covers."""
        missing = (name for name in self._fields if name and getattr(scope, name) is None)
        return next(missing, "user_id") == "user_id"

    def _bind(self, namespace: Namespace) -> tuple[dict[str, Any], bool]:
        """Read the fields that a namespace names, and whether longer ones may name more."""
        bound: dict[str, Any] = {}
        for label, field_name, given in zip(self.labels, self._fields, namespace, strict=False):
            if not field_name:
                if label != given:
                    return bound, False
                continue
            try:
                Scope(**{field_name: given})
            except InvalidScopeError:  # no id can be so: a plain namespace, or one of no agent
                return bound, False
            bound[field_name] = given
        return bound, len(namespace) < len(self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """How a store was made.

    Attributes:
        fields: paths of a value that are embedded by default.
        threshold: least score of what a query finds; None keeps all.
        refreshes: reading an item extends its time to live by default.
        redact: redacts the texts of a value; None leaves them.
    """

    template: NamespaceTemplate
    fields: tuple[str, ...] = ("$",)
    threshold: float | None = None
    ranking: Ranking = "calibrated"
    refreshes: bool = False
    redact: Callable[[Any], Any] | None = None


def check_namespace(given: Sequence[str]) -> Namespace:
    """Check the namespace or prefix of an op.

    Raises:
        InvalidNamespaceError: it is not a sequence of labels, or a label cannot be used.
    """
    if type(given) is not tuple and (isinstance(given, str) or not isinstance(given, Sequence)):
        raise ItemNamespaceError(given, "must be a tuple of labels")
    validate_op_namespace(SearchOp(tuple(given)))
    return tuple(map(str.__str__, given))


def to_labels(namespace: Namespace) -> Namespace:
    """Write a namespace as the memory holds it."""
    return tuple(
        label
        if is_sound(label) and "\x00" not in label
        else _UNSOUND + label.encode("utf-16-le", "surrogatepass").hex()
        for label in namespace
    )


@lru_cache(65536)
def from_labels(labels: Namespace) -> Namespace:
    """Read a namespace of the memory; empty if it is none of LangGraph's."""
    try:
        return tuple(
            bytes.fromhex(label[1:]).decode("utf-16-le", "surrogatepass")
            if label.startswith(_UNSOUND)
            else label
            for label in labels
        )
    except ValueError:
        return ()


class ItemNamespaceError(InvalidNamespaceError, CommonplaceError):
    """A namespace that cannot be used; also the framework's own error."""

    def __init__(self, namespace: object, reason: str) -> None:
        super().__init__(f"The namespace {namespace!r} {reason}. Give a tuple of other labels.")


def _scope_field(label: str) -> str:
    name = label[1:-1] if label.startswith("{") and label.endswith("}") else ""
    return name if name in SCOPE_FIELDS else ""


# -- values ------------------------------------------------------------------------------------


def to_plain(value: object) -> dict[str, Any]:
    """Convert a value to JSON values: times, UUIDs, enums and dataclasses as SqliteStore does.

    Raises:
        InvalidRecordError: it is not a mapping of such values, or is nested deeper than 128.
    """
    check_mapping("value", value, "{'text': '...'}")
    found: dict[str, Any] = _plain_json("value", value, 0)
    return found


def texts_of(value: Mapping[str, Any], paths: Sequence[str]) -> tuple[str, ...]:
    """Read the texts at some paths of a value, each once.

    Raises:
        InvalidRecordError: there are more than 256 texts.
    """
    found: list[str] = []
    for path in paths:
        if path == "$" and len(value) == 1 and isinstance(only := next(iter(value.values())), str):
            found.append(only)  # the whole of it, without the braces
        elif path.isidentifier() and type(held := value.get(path)) is str:
            found.append(held)  # a key and no more: nothing is to be parsed
        else:
            found += get_text_at_path(value, path)
    texts = tuple(dict.fromkeys(filter(None, map(storable_text, found))))
    if len(texts) > _MAX_TEXTS:
        raise InvalidRecordError(
            field="index",
            value=len(texts),
            reason=f"must give at most {_MAX_TEXTS} texts",
            hint="Name fewer paths, or put the parts as items of their own.",
        )
    return texts


def storable_text(text: str, limit: int = _MAX_TEXT_BYTES) -> str:
    """Make a text that a memory can hold and search for: no NUL, no surrogates, cut in bytes.

    Empty if nothing in it is visible.
    """
    if text.isascii() and text.isprintable() and len(text) <= limit:
        return "" if not text or text.isspace() else text
    sound = text.replace("\x00", " ").encode("utf-8", "replace")
    cut = sound[:limit].decode("utf-8", "ignore")
    return cut if any(c.isalnum() or (c.isprintable() and c != " ") for c in cut) else ""


def indexed_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """Choose the fields of a value that become metadata, for filters: all that fit, or none.

    `{"spill": True}` marks that there were too many.
    """
    found = {key: held for key, held in value.items() if is_indexable(key, held)}
    return found if len(found) <= _MAX_INDEXED_FIELDS else {"spill": True}


def is_indexable(key: str, value: object) -> bool:
    """Tell whether a field of a value is metadata too: a short scalar under a plain name."""
    if key in _RESERVED_KEYS or not _FIELD_NAME.fullmatch(key):
        return False
    if type(value) is str:
        return len(value) <= 128 and value.isprintable()
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is bool or (type(value) is int and abs(value) < 2**53)


def _plain_json(path: str, value: object, depth: int) -> Any:
    if type(value) in _PLAIN_TYPES or (type(value) is int and abs(value) < _MAX_INTEGER):
        return value
    if depth > _MAX_DEPTH:
        raise InvalidRecordError(
            field=path[:80], value="…", reason=f"must not be nested deeper than {_MAX_DEPTH}"
        )
    if isinstance(value, Enum):
        value = value.value
    elif type(value) is not dict and is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidRecordError(field=path, value=key, reason="must be a string as a key")
        return {
            str(key): held
            if type(held) in _PLAIN_TYPES
            else _plain_json(f"{path}.{key}", held, depth + 1)
            for key, held in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [_plain_json(f"{path}[{n}]", held, depth + 1) for n, held in enumerate(value)]
    return plain_scalar(path, value)


def plain_scalar(path: str, value: object) -> Any:
    """Convert a scalar to a JSON value.

    Raises:
        InvalidRecordError: it is none.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and abs(value) < _MAX_INTEGER:
        return int(value)
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise InvalidRecordError(
        field=path,
        value=value,
        reason="must be a JSON value",
        hint="Give strings, finite numbers, booleans, None, lists and dicts; times, UUIDs, enums"
        " and dataclasses are converted.",
    )


# -- items as facts ----------------------------------------------------------------------------


@dataclass(slots=True)  # frozen, one of these takes three times as long to make
class ItemAddress:
    """Where an item is or will be; `id` is of the record that `fact_key` makes for it."""

    namespace: Namespace
    key: str
    scope: Scope
    fact_key: str
    id: str
    record_ids: tuple[str, ...]  # of those that may hold it: its own, and one that others wrote

    @staticmethod
    @lru_cache(4096)  # the same items are read again and again
    def of(namespace: Namespace, key: str, template: NamespaceTemplate) -> "ItemAddress":
        """Find where the item of this namespace and key belongs."""
        scope, fact_key = template.scope_of(namespace), _fact_key(namespace, key, 0)
        own = scope.record_id("fact", fact_key)
        is_id = len(key) == 36 and _RECORD_ID.fullmatch(key)
        return ItemAddress(namespace, key, scope, fact_key, own, (own, key) if is_id else (own,))

    @classmethod
    def of_op(cls, op: GetOp | PutOp, template: NamespaceTemplate) -> "ItemAddress":
        """Check the namespace and key of an op; an `InvalidNamespaceError` if one is not valid."""
        return cls.of(check_namespace(op.namespace), str(op.key), template)

    def part_id(self, part: int) -> str:
        """Return the id of the record that holds one more text of it."""
        return self.scope.record_id("fact", _fact_key(self.namespace, self.key, part))

    def delete_parts(self, first: int, end: int) -> list[Delete]:
        """Make the commands that delete its parts from `first` up to before `end`."""
        return [Delete(record_id=self.part_id(n), scope=self.scope) for n in range(first, end)]


def item_facts(
    address: ItemAddress, value: Mapping[str, Any], texts: Sequence[str], ttl: float | None
) -> tuple[Fact, ...]:
    """Make the facts that hold an item from now on: itself, then its other texts.

    Args:
        texts: to be found by; none to be listed only.
        ttl: minutes; None for ever.

    Raises:
        InvalidRecordError: a memory cannot hold it.
    """
    namespace, key, at = address.namespace, address.key, datetime.now(UTC)
    encoded = _encode(value)
    encoded = encoded if is_sound(encoded) else json.dumps(value)
    shown = texts or (storable_text(encoded) or "{}",)
    entry = {"key": json.dumps(key), "value": encoded, "at": round(at.timestamp() * 1e6)}
    if ttl is not None:
        entry["ttl"] = ttl
    if not texts:
        entry["unindexed"] = True
    if len(shown) > 1:
        entry |= {"parts": len(shown), "of": address.id, "round": uuid.uuid4().hex}
    fields_, labels = indexed_fields(value), to_labels(namespace)
    until = None if ttl is None else at + timedelta(minutes=ttl)
    facts: list[Fact] = []
    try:
        for part, text in enumerate(shown):
            own = {**entry, "part": part} if part else {**entry}
            own["told"] = text_hash(text)
            fact_key = _fact_key(namespace, key, part) if part else address.fact_key
            given: dict[str, Any] = {"text": text, "key": fact_key, "expires_at": until}
            given |= {"metadata": {**fields_, ENTRY: own}, "indexed": bool(texts)}
            if len(encoded) > _LONG:  # its size is to be checked
                facts.append(Fact(namespace=labels, **given))
            else:
                facts.append(altered(_fact_in(labels), **given))
        return tuple(facts)
    except InvalidRecordError as error:
        if error.field == "namespace":
            raise ItemNamespaceError(namespace, "is too long") from error
        if error.field != "metadata":
            raise
        raise InvalidRecordError(  # of the value, as its owner knows nothing of metadata
            field="value",
            value=f"{len(encoded.encode())} bytes of JSON",
            reason="is too large",
            hint="Keep it in a file, and the file's name here.",
        ) from error


@lru_cache(4096)
def _fact_in(labels: Namespace) -> Fact:
    """Make a fact in a namespace, which is checked once; the values of its items are sound."""
    return Fact(text="{}", key="{}", namespace=labels)


def _fact_key(namespace: Namespace, key: str, part: int) -> str:
    return hashlib.sha256(json.dumps([namespace, key, part]).encode()).hexdigest()


def text_hash(text: str) -> str:
    """Return the hash by which an item knows the text that stands for it."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


# -- records as items --------------------------------------------------------------------------


@dataclass(slots=True)  # see `ItemAddress`
class StoredItem:
    """A record, read as an item.

    Attributes:
        has_place: it is in a namespace of its own, and not in that of all that others learned.
        encoded: the value as JSON text; None for a record that was not written as an item.
        parts: how many records hold it.
        part: 0 for the item itself; others hold one more text of it.
        of: the id of the record that has part 0; empty for an item in one part.
        round: of a write with several parts; a part of another round is stale.
        corrected: another agent has changed the text since; that is the value's `content` now.
    """

    record: Record | Excerpt
    namespace: Namespace
    key: str
    has_place: bool
    encoded: str | None = None
    parts: int = 1
    part: int = 0
    of: str = ""
    round: str | None = None
    indexed: bool = True
    ttl: float | None = None
    updated_at: datetime | None = None
    corrected: bool = False

    def value(self) -> dict[str, Any]:
        """Decode the value, new for each caller."""
        if self.encoded is not None:
            found: dict[str, Any] = _decode(self.encoded)[0]
            return {**found, "content": self.record.text} if self.corrected else found
        metadata = json.loads(json.dumps(dict(self.record.metadata)))
        return {**metadata, "content": self.record.text, "kind": self.record.kind}

    def to_item(self) -> Item:
        """Make the framework's item."""
        return Item(**self._fields())

    def to_search_item(self, score: float | None) -> SearchItem:
        """Make the framework's search result."""
        return SearchItem(**self._fields(), score=score)

    def _fields(self) -> dict[str, Any]:
        created, put = self.record.created_at, None if self.corrected else self.updated_at
        put = put or self.record.updated_at
        return {
            "namespace": self.namespace,
            "key": self.key,
            "value": self.value(),
            "created_at": created,
            "updated_at": put if put > created else created,
        }


def to_stored_item(record: Record | Excerpt, template: NamespaceTemplate) -> StoredItem:
    """Read a record as an item; one that was not written as an item is one all the same."""
    namespace = template.namespace_of(record.namespace, record.scope)
    if namespace is None:
        return StoredItem(record, template.default_namespace(record.scope), record.id, False)
    entry = record.metadata.get(ENTRY)
    try:
        if isinstance(entry, dict) and isinstance(entry["value"], str):
            return StoredItem(
                record,
                namespace,
                str(_decode(entry["key"])[0]),
                has_place=True,
                encoded=entry["value"],
                parts=entry.get("parts", 1),
                part=entry.get("part", 0),
                of=entry.get("of", ""),
                round=entry.get("round"),
                indexed=not entry.get("unindexed", False),
                ttl=entry.get("ttl"),
                updated_at=_EPOCH + entry["at"] * _MICROSECOND,
                corrected=entry["told"] != text_hash(record.text),
            )
    except (KeyError, TypeError, ValueError, OverflowError):
        pass  # others may use our key for something else
    return StoredItem(record, namespace, record.id, has_place=True)


def find_item(
    records: Mapping[str, Record | Excerpt], address: ItemAddress, template: NamespaceTemplate
) -> StoredItem | None:
    """Choose the record that holds an item of this very namespace; None if there is none."""
    for record_id in address.record_ids:
        record = records.get(record_id)
        if record is not None:
            item = to_stored_item(record, template)
            is_it = item.key == address.key and item.namespace == address.namespace
            if is_it and not item.part:
                return item
    return None
