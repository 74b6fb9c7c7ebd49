"""Data types of the public interface: frozen, validated where they are made."""

import hashlib
import json
import re
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from types import EllipsisType
from typing import Any, Literal, NamedTuple, Self, get_args, overload

from .errors import InvalidRecordError, InvalidScopeError
from .validation import (
    MAX_MESSAGE_BYTES,
    SCOPE_FIELDS,
    check_choice,
    check_collection,
    check_flag,
    check_id,
    check_ids,
    check_metadata,
    check_name,
    check_namespace,
    check_share,
    check_text,
    check_time,
    hinting_init,
)

FactKind = Literal["fact", "preference", "procedure", "profile"]
Kind = Literal["fact", "preference", "episode", "procedure", "profile", "summary"]
Role = Literal["user", "assistant", "system", "tool"]
Origin = Literal["user", "assistant", "tool", "document", "import", "system"]
Ranking = Literal["calibrated", "similarity"]
Event = Literal["ADD", "UPDATE", "DELETE", "RESTORE", "NONE"]

KINDS: tuple[Kind, ...] = get_args(Kind)
FACT_KINDS: tuple[FactKind, ...] = get_args(FactKind)
"""What a model may write; an episode is said, and a summary stands for those it sums up."""
ORIGINS: tuple[Origin, ...] = get_args(Origin)
MAX_SOURCES = 32
_IDS = uuid.UUID("5f3a1c52-0b0e-5a5c-9a0b-7d2f6c1e4b11").bytes
_encode_text = json.encoder.encode_basestring_ascii


SUMMARY_KEY = "summary"  # of the fact that is the summary of a session


@hinting_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Owner of records, or the owners that a request covers: literal ids, compared whole.

    As the scope of a record it names its owner. As the scope of a request it covers the records
    whose ids equal every id that is given here. A missing `agent_id` or `session_id` covers all
    of them; a missing `user_id` covers only records that belong to no user, so that a request
    without one never shows somebody's memory.

    Raises:
        InvalidScopeError: an id is not a plain string of 1 to 256 characters, has control or
            surrogate characters, begins or ends with a space, is `*` or is not in the Unicode form
            NFC; or all three are missing.
    """

    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None

    def __post_init__(self) -> None:
        for name in SCOPE_FIELDS:
            value = getattr(self, name)
            if value is not None:
                check_id(name, value)
        if self.user_id is None and self.agent_id is None and self.session_id is None:
            raise InvalidScopeError(field="scope", value=None, reason="must have an id")

    @property
    def key(self) -> str:
        """Hash of the three ids, 32 hexadecimal digits; equal for equal scopes only."""
        return _scope_key(self)

    @property
    def partition(self) -> str:
        """Partition whose writes are applied in the order of acceptance.

        A scope and every scope that it covers are in one partition. All scopes without a user
        share one.
        """
        return _scope_partition(self)

    @property
    def owner(self) -> "Scope":
        """Scope whose relationship graph its records share: without the session, if possible."""
        if self.session_id is None or (self.user_id is None and self.agent_id is None):
            return self
        return Scope(user_id=self.user_id, agent_id=self.agent_id)

    def record_id(self, kind: str, key: str) -> str:
        """Derive the UUID of the record that `key` names in exactly this scope and kind."""
        name = f'["{_scope_key(self)}", {_encode_text(kind)}, {_encode_text(key)}]'
        # As `uuid.uuid5`, in a fifth of its time.
        found = hashlib.sha1(_IDS + name.encode(), usedforsecurity=False).hexdigest()
        variant = "89ab"[int(found[16], 16) & 3]
        return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-{variant}{found[17:20]}-{found[20:32]}"

    @property
    def summary_id(self) -> str:
        """Id of the summary of exactly this session."""
        return self.record_id("summary", SUMMARY_KEY)

    def covers(self, other: "Scope") -> bool:
        """Tell whether a request in this scope may see a record of `other`."""
        return (
            self.user_id == other.user_id
            and self.agent_id in (None, other.agent_id)
            and self.session_id in (None, other.session_id)
        )

    @lru_cache(4096)  # noqa: B019 -- a scope holds nothing but its ids
    def covering(self) -> "tuple[Scope, ...]":
        """List the scopes that cover this one, itself first; at most four."""
        return tuple(
            Scope(user_id=self.user_id, agent_id=agent, session_id=session)
            for agent in dict.fromkeys((self.agent_id, None))
            for session in dict.fromkeys((self.session_id, None))
            if self.user_id or agent or session
        )


# Functions, as a `dataclass` with slots takes no cached property on Python 3.13.1 and newer.
@lru_cache(4096)
def _scope_key(scope: Scope) -> str:
    ids = json.dumps([scope.user_id, scope.agent_id, scope.session_id])
    return hashlib.sha256(ids.encode()).hexdigest()[:32]


@lru_cache(4096)
def _scope_partition(scope: Scope) -> str:
    return "-" if scope.user_id is None else Scope(user_id=scope.user_id).key


@hinting_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation.

    Attributes:
        text: what was said; not empty. At most 32 KiB if it is kept, or 16 MiB if only facts are
            extracted from it (`Extraction.keep_messages`); the model then sees its beginning and
            its end.
        role: of the speaker, as in chat models.
        name: of the speaker; indexed in front of the text so that it can be found.
        at: when it was said, with a time zone; the time of writing when missing.
        id: the framework's id of the turn. Turns with the same id are one record; so are turns
            without an id that have the same words and the same `at`, and follow the same message in
            a call.
    """

    text: str
    role: Role = "user"
    name: str | None = None
    at: datetime | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        check_text(self.text, limit=MAX_MESSAGE_BYTES)
        check_time("at", self.at)
        check_choice("role", self.role, get_args(Role))
        for name in ("name", "id"):
            if getattr(self, name) is not None:
                check_name(name, getattr(self, name))


@hinting_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing to remember, stated by the caller and not extracted by a model.

    Attributes:
        text: one sentence that stands alone.
        kind: of the record.
        metadata: JSON values under any keys but the empty one, 16 MiB at most; integers of 64
            bits, signed.
        namespace: path of labels, outermost first, by which records are listed and filtered; empty
            for none. It does not decide which facts count as the same, and is never redacted.
        key: idempotency key inside the scope; the text itself when missing.
        at: when it became true, with a time zone; the earliest `valid_from` of its relations
            when missing, else the time of writing.
        expires_at: hidden from reads from then on.
        importance: 0..1; a higher one decays more slowly. pinned: never decays and is never pruned.
        situation: of a procedure, when to use it; a search finds this and not its text, which is
            what to do. outcome: of a procedure, its result.
        relations: that it states. A later value of a single-valued one, such as where somebody
            lives, supersedes an earlier record's.
        indexed: False keeps it from `search`, and it is not embedded; `get` and `list` read it.
        sources: ids of the records that it was drawn from; the 32 last of them are kept.
    """

    text: str
    kind: Kind = "fact"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    namespace: tuple[str, ...] = ()
    key: str | None = None
    at: datetime | None = None
    expires_at: datetime | None = None
    importance: float = 0.5
    pinned: bool = False
    situation: str | None = None
    outcome: str | None = None
    relations: "tuple[Relation, ...]" = ()
    indexed: bool = True
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_text(self.text)
        check_choice("kind", self.kind, KINDS)
        check_share("importance", self.importance)
        check_flag("pinned", self.pinned)
        check_flag("indexed", self.indexed)
        for name in ("situation", "outcome"):
            if getattr(self, name) is not None:
                check_text(getattr(self, name), name)
                if self.kind != "procedure":
                    raise InvalidRecordError(
                        field=name, value=self.kind, reason="must be given for a procedure only"
                    )
        check_metadata(self.metadata)
        object.__setattr__(self, "namespace", check_namespace("namespace", self.namespace))
        check_time("at", self.at)
        check_time("expires_at", self.expires_at)
        if self.key is not None:
            check_name("key", self.key)
        if self.sources != ():
            check_ids("sources", self.sources)
            object.__setattr__(self, "sources", tuple(self.sources))
        given = self.relations
        if given == ():
            return
        relations = tuple(given) if isinstance(given, Iterable) else (None,)
        if not all(isinstance(relation, Relation) for relation in relations):
            raise InvalidRecordError(field="relations", value=given, reason="must be Relations")
        object.__setattr__(self, "relations", relations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One remembered thing.

    Attributes:
        id: a UUID, derived from scope, kind and key, so that the same write is the same record.
        text: what is remembered.
        scope: of its owner.
        role, name: of the turn it comes from; None for a stated or extracted fact.
        metadata: JSON values.
        namespace: path of labels, outermost first; empty for none.
        origin: where the text comes from: the origin that its write was given, or that of the
            speaker. An extracted fact has that of the least trusted speaker of its conversation,
            who is a tool, else the user.
        trust: 0..1; text from tools and documents has 0.3, other text 1.
        position: the turn's number in its session from 0; None outside a session.
        created_at, updated_at: system time.
        occurred_at, valid_to: world time, from when and until when it is true; `valid_to` is None
            until something ends it. It ends when all single-valued relations that it states have.
        conflicts: ids of records that give another value to the same single-valued relation from
            the same moment on; which is right is unknown.
        expires_at: hidden from reads from then on; None for never.
        importance, pinned, situation, outcome: see `Fact`.
        votes: positive feedback less negative.
        indexed: see `Fact`; always True for a message.
        times_told: how often the same fact was written; 1 for a turn.
        last_told_at: system time of the latest repetition; None if there was none.
        sources: ids of the turns that an extracted fact was drawn from, at most the 32 latest:
            those that the same write kept. Of a summary, the turns that it stands for; of a record
            that `Session.promote` made, what it was made of. Empty for all else.
        version: grows with every change, below 2**53; a repetition alone is no change.
    """

    id: str
    text: str
    scope: Scope
    kind: Kind = "fact"
    role: Role | None = None
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    namespace: tuple[str, ...] = ()
    origin: Origin = "user"
    trust: float = 1.0
    position: int | None = None
    created_at: datetime
    updated_at: datetime
    occurred_at: datetime
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    version: int = 0
    conflicts: tuple[str, ...] = ()
    importance: float = 0.5
    pinned: bool = False
    situation: str | None = None
    outcome: str | None = None
    votes: int = 0
    indexed: bool = True
    times_told: int = 1
    last_told_at: datetime | None = None
    sources: tuple[str, ...] = ()

    def merged(self, told: "Record") -> "Record":
        """Merge in what a repetition of the same fact adds; `times_told` stays.

        Its metadata replace those under the same keys, unless the record would then have more than
        it may. Its namespace and expiry replace the former if it has any, its importance if that is
        higher; the result is pinned if either is. Its sources come last.
        """
        metadata = {**self.metadata, **told.metadata}
        try:
            check_metadata(metadata)
        except InvalidRecordError:
            metadata = dict(self.metadata)
        earlier = [one for one in self.sources if one not in told.sources]
        return replace(
            self,
            metadata=metadata,
            namespace=told.namespace or self.namespace,
            expires_at=told.expires_at or self.expires_at,
            importance=max(self.importance, told.importance),
            pinned=self.pinned or told.pinned,
            sources=(*earlier, *told.sources)[-MAX_SOURCES:],
        )

    def holds(
        self,
        at: datetime,
        *,
        as_of: datetime | None = None,
        include_superseded: bool = False,
        include_expired: bool = False,
    ) -> bool:
        """Tell whether a reader at the moment `at` sees it.

        An expired record is hidden, unless `include_expired`. Of the rest a reader sees what was
        true at `as_of`; without it what has not ended by `at`, or all with `include_superseded`.
        """
        if not include_expired and self.expires_at is not None and self.expires_at <= at:
            return False
        if as_of is not None:
            return self.occurred_at <= as_of and (self.valid_to is None or self.valid_to > as_of)
        return include_superseded or self.valid_to is None or self.valid_to > at

    @property
    def indexed_text(self) -> str:
        """Text that is embedded and searched: the situation of a procedure, the text of all else.

        The speaker's name goes in front.
        """
        text = self.situation or self.text
        return f"{self.name}: {text}" if self.name else text

    @property
    def indexed_passages(self) -> Sequence[str]:
        """The passages of that text, which are embedded one by one: a short text is a single one.

        The speaker's name goes in front of each.
        """
        parts = passages(self.situation or self.text)
        return [f"{self.name}: {part}" for part in parts] if self.name else parts

    def indexed_part(self, part: str) -> str:
        """Write what is compared of the record where a part of its text is shown, as above."""
        if part == self.text or self.situation:
            return self.indexed_text
        return f"{self.name}: {part}" if self.name else part

    @property
    def turn(self) -> str | None:
        """Key of this turn's position in its session; None outside a session."""
        return None if self.position is None else turn_key(self.scope, self.position)


class Excerpt(NamedTuple):
    """What a store of items needs of a `Record`; reading it takes a third of the time."""

    id: str
    scope: Scope
    namespace: tuple[str, ...]
    text: str
    kind: Kind
    metadata: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None

    @classmethod
    def of(cls, record: Record) -> "Excerpt":
        """Take it from a record."""
        return cls(*(getattr(record, name) for name in cls._fields))


def turn_key(scope: Scope, position: int) -> str:
    """Make the key of the turn at `position` of the session of `scope`."""
    return f"{scope.key}:{position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One change in a record's history.

    Attributes:
        text: after the change; None when it was deleted.
        previous: before the change; None when it was added or restored.
    """

    record_id: str
    version: int
    event: Event
    text: str | None
    previous: str | None
    metadata: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A node of the relationship graph: a name inside one scope, with its type.

    Attributes:
        name: as it was first written. Names are compared in Unicode form NFKC and case-folded.
        type: such as person, place, organisation; `thing` when unknown.
    """

    name: str
    type: str = "thing"


_BEFORE_HASH = "\x1f"  # counts as a space, and so is in no folded name


@hinting_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A typed, time-bounded edge of the relationship graph.

    Attributes:
        subject, predicate, object: names and a type; all are data, compared case-folded.
        subject_type, object_type: of the entities; the first that is not `thing` stays.
        valid_from, valid_to: world time; None for unknown and for still true. What is read back
            ends where the next value of a single-valued relation begins.
        single_valued: a later value ends the earlier one; None: `Settings.single_valued` decides.
        created_at, expired_at: system time, when a record first asserted it and when the last one
            retracted it; given by the store.
        conflict: another value begins at the same moment; given by the store.
        supports: ids of the records that assert it; given by the store.
        identity: of a single-valued one, hash of the metadata values that belong to the identity of
            the facts that state it (`Memory.add`): only values with the same one end each other.
            Empty for none; given by the write.
    """

    subject: str
    predicate: str
    object: str
    subject_type: str = "thing"
    object_type: str = "thing"
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    single_valued: bool | None = None
    created_at: datetime | None = None
    expired_at: datetime | None = None
    conflict: bool = False
    supports: tuple[str, ...] = ()
    identity: str = ""

    @property
    def key(self) -> str:
        """Folded predicate, and the identity: what a subject has one value for, if any."""
        predicate = fold(self.predicate)
        return f"{predicate}{_BEFORE_HASH}{self.identity}" if self.identity else predicate

    def __post_init__(self) -> None:
        for name in ("subject", "predicate", "object", "subject_type", "object_type"):
            check_name(name, getattr(self, name))
            if not fold(getattr(self, name)):
                raise InvalidRecordError(
                    field=name, value=getattr(self, name), reason="must be a name"
                )
        check_choice("single_valued", self.single_valued, (True, False, None))
        check_time("valid_from", self.valid_from)
        check_time("valid_to", self.valid_to)
        if self.valid_from and self.valid_to and self.valid_to <= self.valid_from:
            raise InvalidRecordError(
                field="valid_to", value=self.valid_to, reason="must be after valid_from"
            )


def split_key(key: str) -> tuple[str, str]:
    """Split `Relation.key` into the folded predicate and the hash of an identity, "" if none."""
    predicate, _, identity = key.partition(_BEFORE_HASH)
    return predicate, identity


LIKELY = 0.5
"""Likelihood in `Match.replaced_by` from which on a record counts as replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A record that a search found.

    Attributes:
        score: the probability, 0..1, that the best match answers; above .5 it is more likely than
            not. Those behind it are on the same scale, and answer less often than it says. Matches
            are in the order of their scores. By similarity, the cosine, -1..1.
        score_details: what each feature added; they sum to the logit of the score. By similarity,
            to the score.
        excerpt: the passage of the text that fits best; of a text up to some 400 characters, all.
        replaced_by: ids of newer matches that may tell what holds now in its place, and how likely
            each does, 0..1. Looked for of the best eight alone, among all; empty by similarity.
    """

    record: Record
    score: float
    score_details: Mapping[str, float] = field(default_factory=dict)
    excerpt: str = ""
    replaced_by: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.excerpt:
            object.__setattr__(self, "excerpt", self.record.text)

    @property
    def text(self) -> str:
        """Text of the record."""
        return self.record.text

    @property
    def replacement(self) -> str | None:
        """Id of the newer match that most likely took its place; None if none likely did."""
        newest = max(self.replaced_by, key=self.replaced_by.__getitem__, default="")
        return newest if self.replaced_by.get(newest, 0.0) >= LIKELY else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a write did to one record; `NONE` if nothing in it was new."""

    id: str
    text: str | None
    event: Event
    previous: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """Result of a write.

    Attributes:
        operation: id of the accepted operation in the journal.
        changes: one per record touched, in the order given; empty while `pending`.
        pending: accepted and safe, not yet searchable.
        skipped: what of a chat model's answer is not stored: the number of its elements by reason,
            which is `not a text`, `empty`, `too long`, `refused`, `repeated`, `no change` or `too
            many`. `cut off` is 1 if the answer ended too early, `relation` counts relations that
            their facts are stored without.
        extraction_error: why no facts could be extracted from the messages, which are stored, and
            are a dead letter that `MemoryAdmin.retry` extracts again; None if nothing failed.
    """

    operation: str
    changes: tuple[Change, ...] = ()
    pending: bool = False
    skipped: Mapping[str, int] = field(default_factory=dict)
    extraction_error: str | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the records in `changes`, in their order; empty while `pending`."""
        return tuple(change.id for change in self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseReceipt:
    """What an erasure removed, store by store, and what it counted afterwards.

    Attributes:
        removed: rows removed, by store and table, such as `{"graph.records": 12}`.
        left: rows of the scope found afterwards, by store; all zero when `complete`.
    """

    scope: Scope
    removed: Mapping[str, int]
    left: Mapping[str, int]
    at: datetime

    @property
    def complete(self) -> bool:
        """Nothing of the scope is left in any store."""
        return not any(self.left.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some records, newest first; `cursor` reads the next page and is None on the last.

    A sequence of its records: `len(page)`, `for record in page` and `page[0]` work.
    """

    records: tuple[Record, ...]
    cursor: str | None

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        return self.records[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A conversation of which turns were stored.

    Attributes:
        scope: of its turns.
        turns: how many were stored, deleted and expired ones included.
        first_at, last_at: when the first and the last of them were said.
        summary: the record of kind `summary` that holds; None if there is none.
    """

    scope: Scope
    turns: int
    first_at: datetime
    last_at: datetime
    summary: Record | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """Some sessions, newest first; `cursor` reads the next page and is None on the last.

    A sequence of its sessions, as `Page` is one of records.
    """

    sessions: tuple[SessionInfo, ...]
    cursor: str | None

    def __len__(self) -> int:
        return len(self.sessions)

    def __iter__(self) -> Iterator[SessionInfo]:
        return iter(self.sessions)

    def __getitem__(self, index: int) -> SessionInfo:
        return self.sessions[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An accepted operation that cannot be applied, and why; `MemoryAdmin.retry` replays it."""

    operation: str
    scope: Scope
    kind: str
    reason: str
    attempts: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Numbers of accepted writes that are pending, and of dead letters.

    Both are zero when everything that was accepted is in every store.
    """

    pending: int
    dead: int

    def __add__(self, other: Self) -> "Backlog":
        return Backlog(pending=self.pending + other.pending, dead=self.dead + other.dead)


@hinting_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Options of the extraction of facts from messages.

    Attributes:
        instructions: added to the model's prompt, such as what to leave out.
        metadata, expires_at: of the facts.
        in_session: keep the facts in the session of the scope, too narrow for other sessions to
            find; by default they belong to its owner, the user and agent.
        keep_messages: keep the messages verbatim too; True by default. Without them a model that
            fails is an error, because nothing would be left: `ModelFailedError`, which is retried,
            `ModelRefusedError` or `ModelUnreadableError`.
        before: messages that an earlier write stored, in front of those of this one, and that the
            model reads with them: of a question that was stored before its answer was there.

    Raises:
        InvalidRecordError: one of them cannot be stored.
    """

    instructions: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    keep_messages: bool = True
    in_session: bool = False
    before: Sequence[Message] = ()

    def __post_init__(self) -> None:
        for message in check_collection("before", self.before, "Messages"):
            if not isinstance(message, Message):
                raise InvalidRecordError(field="before", value=message, reason="must be a Message")
        check_metadata(self.metadata)
        check_time("expires_at", self.expires_at)
        check_flag("in_session", self.in_session)
        check_flag("keep_messages", self.keep_messages)
        if self.instructions is not None:
            check_text(self.instructions, "instructions")


@hinting_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """Write facts, at most 1,000; one with a key replaces the record that the key names.

    Two facts with one key must have the same text.

    Attributes:
        origin: who said them, as in `Memory.add`.
        unredacted: top-level keys of the metadata whose values the function `redact` of the memory
            is not given, for adapters that redact these values themselves.
    """

    facts: Sequence[Fact]
    scope: Scope
    unredacted: Sequence[str] = ()
    origin: Origin = "user"


@hinting_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete a record of exactly this scope; an id that the scope does not have is ignored."""

    record_id: str
    scope: Scope


@hinting_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """Change a record that was read, as `Memory.update` does; what is not given stays.

    Attributes:
        namespace: in place of the former; empty for none.
        unredacted: see `Upsert`.
    """

    record: Record
    text: str | None = None
    metadata: Mapping[str, Any] | None = None
    namespace: Sequence[str] | None = None
    expires_at: datetime | EllipsisType | None = ...
    unredacted: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEmbedding:
    """Vector of a text, and the vectors of its tokens.

    Attributes:
        vector: of the text.
        tokens: one vector after the other, each of `TokenEmbedder.token_dimensions` signed bytes:
            127 times a vector of unit length. Empty if there are none.
        following: of a long text, which is embedded in passages: the same of each passage after
            the first. Empty for a text of one passage.
    """

    vector: Sequence[float]
    tokens: bytes = b""
    following: "tuple[TokenEmbedding, ...]" = ()


Namespace = tuple[str, ...]
"""A path of labels, outermost first; empty for none."""

Content = str | Message | Fact
"""What can be remembered: a text, one turn of a conversation, or a stated fact."""

Command = Upsert | Delete | Revise
"""One write of `Memory.batch`."""

Wait = bool | float
"""How long to wait for a write: True until every store has it, False until it is accepted, a number
to wait that many seconds at most after it is accepted."""


def fold(name: str) -> str:
    """Normalise a name to the form in which names are compared."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(plain.split())


def now() -> datetime:
    """Read the current time, in UTC."""
    return datetime.now(UTC)


def check_scope(scope: object) -> None:
    """Raise `InvalidRecordError` unless this is a `Scope`."""
    if type(scope) is not Scope:
        raise InvalidRecordError(
            field="scope", value=scope, reason="must be a Scope", hint="Give Scope(user_id=...)."
        )


def check_kinds(kinds: object) -> None:
    """Raise `InvalidRecordError` unless this is a list of kinds."""
    for kind in check_collection("kinds", kinds, "kinds"):
        check_choice("kind", kind, KINDS)


# -- passages --------------------------------------------------------------------------------------
# The parts of a long text, cut where sentences end, that are embedded one by one. The same text
# always has the same passages, so that a passage is known by its number.

_SHORT = 400  # characters of a text that is one passage
_PART = 240  # of a passage of a longer one; in larger ones a single fact is lost among others
_WIDE_SIZE = 3  # of a Chinese, Japanese or Korean character, which says as much as three letters

# Where a sentence ends, behind closing quotes and spaces. A line is a sentence, too.
_ENDS = re.compile(r"[.!?][\"'”’»)\]]{0,3}\s+|[。！？；…][\"'”’」』）】]{0,3}\s*|\n\s*")
_WIDE = re.compile("[\u2e80-\uffff\U00020000-\U0003ffff]+")


def passages(text: str) -> Sequence[str]:
    """Split a text into passages of whole sentences, in order, up to some 240 characters each.

    A longer sentence is divided at spaces, or anywhere if it has none. Spaces at the ends of
    passages are left out; nothing else is. A short text is one passage, as it is.
    """
    return [text] if is_short(text) else _divided(text)


@lru_cache(maxsize=256)  # more than the candidates of a search
def _divided(text: str) -> Sequence[str]:
    found: list[str] = []
    start = end = size = 0
    for border in _borders(text):
        part = text[end:border]
        if size + _size(part.rstrip()) > _PART:
            found.append(text[start:end].strip())
            start, size = end, 0
        size += _size(part)
        end = border
    found.append(text[start:].strip())
    return tuple(part for part in found if part) or (text,)


def is_short(text: str) -> bool:
    """Tell whether a text is one passage: up to 400 letters, or 133 Chinese characters."""
    length = len(text)
    return length * _WIDE_SIZE <= _SHORT or (length <= _SHORT and _size(text) <= _SHORT)


def _size(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text) + (_WIDE_SIZE - 1) * sum(map(len, _WIDE.findall(text)))


def _borders(text: str) -> Iterator[int]:
    """Yield the ends of the parts that are not divided, each small enough for a passage."""
    start = 0
    for end in (*(found.end() for found in _ENDS.finditer(text)), len(text)):
        while end - start > _PART // _WIDE_SIZE and _size(text[start:end].strip()) > _PART:
            start = cut = end - len(text[start:end].lstrip())
            cut += _fitting(text[start : start + _PART])
            space = text.rfind(" ", start, cut + 1)
            start = cut if space <= start else space
            yield start
        if end > start:
            yield end
            start = end


def _fitting(text: str) -> int:
    """Count the characters of the longest beginning that is small enough."""
    length = len(text)
    while (excess := _size(text[:length]) - _PART) > 0:
        length -= -(-excess // _WIDE_SIZE)
    return length
