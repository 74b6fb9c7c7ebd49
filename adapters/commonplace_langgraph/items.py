"""Items as records, and back, exactly.

Mapping:
- namespace and key: `metadata["langgraph"]["item"]`, JSON text; the record's id is made of them.
- value: `metadata["langgraph"]["value"]`, JSON text, so that depth and numbers have no limit.
- fields of the value that are short scalars: also metadata, for filters of any framework.
- every prefix of the namespace: `metadata["under"]`, JSON text.
- what is embedded: the record's text; more texts are records of their own, `part` 1 and up, which
  carry the same item and are shown to nobody.
- what was told, to see that another agent has corrected it since: `told`, a hash of the text.
- ttl: `expires_at`, and the minutes for refreshing it; updated_at: the time of the put, which a
  refresh does not move; created_at: the record's. Nothing is dropped.
"""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.store.base import Item, SearchItem

from commonplace import Fact, Record, Scope

from .lifting import lifted
from .namespaces import Namespace, Template, folders
from .values import visible

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A checked write of one item.

    Attributes:
        id: of the record that is made for it.
        facts: what holds it: itself, then its other texts. None deletes it.
        ends: after a while.
    """

    namespace: Namespace
    key: str
    scope: Scope
    id: str
    facts: tuple[Fact, ...] = ()
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """What a record says as an item.

    Attributes:
        part: 0 for the item itself; others hold one more text of it.
        corrected: another agent has told something else since; that is the value's `content` now.
        round: of a write with several parts; a part of another round is stale.
    """

    record: Record
    namespace: Namespace
    key: str
    value: str | None
    parts: int = 1
    part: int = 0
    of: str = ""
    round: str | None = None
    indexed: bool = True
    ttl: float | None = None
    updated_at: datetime | None = None
    corrected: bool = False

    def read(self) -> dict[str, Any]:
        """Give the value, new for each caller."""
        if self.value is not None:
            found: dict[str, Any] = json.loads(self.value)
            return {**found, "content": self.record.text} if self.corrected else found
        metadata = json.loads(json.dumps(dict(self.record.metadata)))
        return {**metadata, "content": self.record.text, "kind": self.record.kind}

    def item(self) -> Item:
        """Give the item."""
        return Item(**self._given())

    def match(self, score: float | None) -> SearchItem:
        """Give the item as one that was found."""
        return SearchItem(**self._given(), score=score)

    def _given(self) -> dict[str, Any]:
        created, put = self.record.created_at, None if self.corrected else self.updated_at
        return {
            "namespace": self.namespace,
            "key": self.key,
            "value": self.read(),
            "created_at": created,
            "updated_at": max(created, put or self.record.updated_at),
        }


def item_id(scope: Scope, namespace: Namespace, key: str, part: int = 0) -> str:
    """Name the record that holds an item, or another text of it."""
    return scope.record_id("fact", _fact_key(namespace, key, part))


def facts(
    namespace: Namespace,
    key: str,
    value: Mapping[str, Any],
    *,
    held: str,
    texts: Sequence[str],
    ttl: float | None,
    at: datetime,
    of: str,
) -> tuple[Fact, ...]:
    """Make the facts that hold an item: itself, then its other texts.

    Args:
        held: the value, as `to_json` writes it.
        texts: to be found by; none to be listed only.
        ttl: minutes; None for ever.
        of: the id of the item's record.

    Raises:
        InvalidRecordError: a memory cannot hold it.
    """
    told = texts or (visible(held) or "{}",)
    said: dict[str, Any] = {
        "item": json.dumps([namespace, key]),
        "value": held,
        "at": round(at.timestamp() * 1e6),
    }
    said |= {"ttl": ttl} if ttl is not None else {}
    said |= {"unindexed": True} if not texts else {}
    if len(told) > 1:
        said |= {"parts": len(told), "of": of, "round": uuid.uuid4().hex}
    shared = {**lifted(value), "under": folders(namespace)}
    until = None if ttl is None else at + timedelta(minutes=ttl)
    return tuple(
        Fact(
            text=text,
            key=_fact_key(namespace, key, part),
            metadata=telling(
                text, {**shared, "langgraph": {**said, "part": part} if part else said}
            ),
            expires_at=until,
            indexed=bool(texts),
        )
        for part, text in enumerate(told)
    )


def telling(text: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Note in an item's metadata which text it is told by."""
    return {**metadata, "langgraph": {**metadata["langgraph"], "told": _digest(text)}}


def kept(record: Record, template: Template) -> Kept:
    """Read a record as an item; one that was not written as an item here is one all the same."""
    said = record.metadata.get("langgraph")
    try:
        if isinstance(said, Mapping) and isinstance(said["value"], str):
            found = _read(record, said)
            if template.scope_of(found.namespace).covers(record.scope):
                return found
    except (KeyError, TypeError, ValueError):  # others may use our word for something else
        pass
    return Kept(record, template.home(record.scope), record.id, None)


def _read(record: Record, said: Mapping[str, Any]) -> Kept:
    labels, key = json.loads(said["item"])
    return Kept(
        record,
        tuple(labels),
        key,
        said["value"],
        said.get("parts", 1),
        said.get("part", 0),
        said.get("of", ""),
        said.get("round"),
        not said.get("unindexed", False),
        said.get("ttl"),
        _EPOCH + timedelta(microseconds=said["at"]),
        said["told"] != _digest(record.text),
    )


def _fact_key(namespace: Namespace, key: str, part: int) -> str:
    return hashlib.sha256(json.dumps([namespace, key, part]).encode()).hexdigest()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
