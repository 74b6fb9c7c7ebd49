"""Data that stores exchange with the core: changes, operations, points, queries, what they answer.

The interfaces of the stores are in `engines`.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..filters import Filter
from ..types import (
    Change,
    Kind,
    Record,
    Relation,
    Scope,
    TokenEmbedding,
)
from .checkpoints import Checkpoints

if TYPE_CHECKING:
    from .engines import GraphStore, Journal, VectorIndex

T = TypeVar("T")
OperationKind = Literal["add", "update", "delete", "restore", "forget", "extract"]
"""An `extract` is an addition of which only the facts are left to be extracted."""
_YEAR_2020 = datetime(2020, 1, 1, tzinfo=UTC)
_COUNTER_BITS = 11  # of a version, for the changes of one millisecond
_BEFORE_VALUES = "\x00"  # in no text and in no name


def altered(frozen: T, **changes: Any) -> T:
    """Copy a frozen dataclass with slots, unchecked, far quicker than `dataclasses.replace`."""
    kind: Any = type(frozen)
    copied: T = object.__new__(kind)
    for name, set_ in _slots_of(kind).items():
        set_(copied, changes.pop(name) if name in changes else getattr(frozen, name))
    if changes:
        raise AttributeError(f"{kind.__name__} has no {', '.join(changes)}")
    return copied


def made(kind: type[T], values: Iterable[Any]) -> T:
    """Make a frozen dataclass with slots of the values of all its fields, as `altered` copies."""
    of_kind: Any = kind
    new = object.__new__(kind)
    for set_, value in zip(_slots_of(of_kind).values(), values, strict=True):
        set_(new, value)
    return new


@cache
def _slots_of(kind: Any) -> Mapping[str, Callable[[Any, Any], None]]:
    """Make what sets each slot of a class, by name."""
    return {name: getattr(kind, name).__set__ for name in kind.__slots__}


def version_at(moment: datetime) -> int:
    """Compute the least version that the journal gives a change at a moment."""
    return (moment - _YEAR_2020) // timedelta(milliseconds=1) << _COUNTER_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A sparse vector: hashed terms and as many weights; indices ascending and unique.

    Attributes:
        indices: unsigned 32-bit numbers.
        weights: positive; the engine multiplies each by the term's rarity in the scope, which is
            `ln(1 + (N - n + 0.5) / (n + 0.5))` for N records of which n have the term.
    """

    indices: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A record as an index stores it; its times come back as the same moments, in UTC.

    Attributes:
        vector: `dimensions` finite floats of unit length.
        terms: of the record's indexed text.
        words: length of the text in words, which lexical ranking needs.
        tokens: vectors of the text's tokens, as in `TokenEmbedding`; an index that was made without
            them ignores them.
        following: of a long text, of which `vector` and `tokens` are those of its first passage:
            the same of each further passage. An index that does not know them finds the text by
            its first one.
    """

    record: Record
    vector: Sequence[float]
    terms: Terms
    words: int
    tokens: bytes = b""
    following: tuple[TokenEmbedding, ...] = ()

    @property
    def passages(self) -> tuple[TokenEmbedding, ...]:
        """What is stored of each passage, in their order; a single one for a short text."""
        return (TokenEmbedding(vector=self.vector, tokens=self.tokens), *self.following)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search of an index.

    Attributes:
        scope: only records that it covers.
        vector: unit length. terms: weights are repetitions in the query.
        tokens: vectors of the query's tokens, as in `TokenEmbedding`.
        at: the moment for expiry; records with `expires_at <= at` are left out.
        where: records must match it, too.
        kinds: only these; empty for all.
        include_superseded, include_expired, as_of: which records hold, as in `Record.holds`.
    """

    scope: Scope
    vector: Sequence[float]
    terms: Terms
    at: datetime
    where: Filter | None = None
    kinds: tuple[Kind, ...] = ()
    include_superseded: bool = False
    include_expired: bool = False
    as_of: datetime | None = None
    tokens: bytes = b""

    def matches(self, record: Record) -> bool:
        """Check a record; an engine whose conditions are wider than the query does this last."""
        return (
            self.scope.covers(record.scope)
            and record.holds(
                self.at,
                as_of=self.as_of,
                include_superseded=self.include_superseded,
                include_expired=self.include_expired,
            )
            and (not self.kinds or record.kind in self.kinds)
            and (self.where is None or self.where.matches(record))
        )


@dataclass(slots=True, kw_only=True)  # frozen, making the hundred of a search takes four times
class Hit:
    """A record with its raw scores: `dense` the cosine, `lexical` the weighted term product.

    A record with several passages is one hit, with the `dense` and `vector` of the one that is
    nearest by its vector, and the `late` of the one with the greatest mean of it.

    Attributes:
        late: the best cosine of each of the query's tokens among the record's, in the order of the
            query's; empty where either has none.
        terms: the record's weight of each of the query's terms, in their order; 0 for one that it
            does not have.
        vector: of the record, in single precision; a sequence or an array, not to be changed.
        passages: the cosine of each passage, in their order; empty if it has one vector.
    """

    record: Record
    dense: float
    lexical: float
    words: int
    late: tuple[float, ...] = ()
    terms: tuple[float, ...] = ()
    vector: Sequence[float] = field(default=(), compare=False, repr=False)
    passages: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Change that adds or updates a record.

    Attributes:
        record: its `version` is the operation's; the store assigns its `position`.
        relations: that this record asserts; they replace its earlier assertions, which expire.
            None leaves those as they are.
        replace: False adds. A stored record that has expired when the new one is made is replaced,
            and the event is `ADD`. A live fact counts as repeated if it has the same text, ignoring
            leading and trailing spaces, and has not ended when the new one begins: what the new one
            adds is merged in (`Record.merged`), relations that the record does not assert yet are
            asserted, and the event is `UPDATE`, or `NONE` if there is nothing new. The repetition
            is counted (`Record.times_told`) if the new record was created later than the last one
            that was counted, so that applying the same change twice counts once; the count alone
            makes no new version. Any other live record, such as a turn, stays as it is and the
            event is `NONE`.
            True updates: without a live record the event is `NONE`, or with `upsert` the record is
            added.
        in_session: give the record the next position of its session.
        fields: of the record that an update sets; the others stay as stored. `votes` are added.
            A time for `valid_to`, without `relations`, ends the record: assertions that would hold
            longer end then, too, and those that begin then or later are retracted. It stays ended
            until an update gives it other relations or another text.
        merge: merge the metadata into the stored metadata.
        identity: metadata keys whose values must be equal, too, for a stored fact to count as
            repeated.
        restores: bring a deleted record back as `GraphStore.deleted` reads it, with the relations
            that it asserted when it was deleted, as the event `RESTORE`; only the text and the
            situation are taken from `record`. If none of this id is deleted, the event is `NONE`.
            Needs `replace`.
    """

    record: Record
    relations: tuple[Relation, ...] | None = ()
    replace: bool = False
    upsert: bool = False
    in_session: bool = False
    fields: tuple[str, ...] = ()
    merge: bool = False
    identity: tuple[str, ...] = ()
    restores: bool = False

    def is_of(self, stored: Record) -> bool:
        """Tell whether a stored record has the same values of the `identity` keys."""
        held = identity_of(stored.metadata, self.identity)
        return held == identity_of(self.record.metadata, self.identity)

    @property
    def ends(self) -> bool:
        """Whether it ends a record and its assertions."""
        has_end = "valid_to" in self.fields and self.record.valid_to is not None
        return self.replace and self.relations is None and has_end

    @property
    def needs_embedding(self) -> bool:
        """Whether its indexed text may be new to the index."""
        keeps_text = self.replace and not self.upsert and not {"text", "situation"} & {*self.fields}
        return self.record.indexed and not keeps_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Change that deletes a record which the scope covers; its history stays until an erasure.

    Attributes:
        spare_pinned: keep a record that is pinned by then.
    """

    id: str
    scope: Scope
    version: int
    at: datetime
    spare_pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a `Put` or `Remove`; the same change applied again has the same result.

    Attributes:
        record: the live record afterwards, as later changes left it; None if there is none.
        touched: other records that the change ended, reopened or contradicted, in their present
            state; a repeated change may list more. Their version stays the same.
    """

    change: Change
    record: Record | None
    touched: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Result of an erasure in a graph store.

    Attributes:
        removed: numbers of rows, by table: `records`, `versions`, `relations`, `entities`.
        touched: records outside the scope that it reopened, in their present state; a repeated
            erasure may list more.
    """

    removed: Mapping[str, int]
    touched: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A record that asserts a relation of a named entity, or of an entity next to one.

    Attributes:
        hops: 1 if the relation is one of a named entity, 2 if of an entity next to it.
        weight: 0..1; the lower, the more relations the entities on the path have.
        via: ids of the records that assert the first relation of the path; empty for one hop.
        named: for each relation of the path, 0..1, how well the names fit it: its type, or both of
            its ends. 0 for one of which they name a single end.
        relations: number of relations that the named entity has now; of one that everything is
            told of, they say little.
    """

    id: str
    hops: int
    weight: float
    via: tuple[str, ...] = ()
    named: tuple[float, ...] = ()
    relations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An accepted write.

    Attributes:
        id: equal for a repeated write.
        body: the caller's input as JSON; empty before acceptance.
        seq: order of acceptance; 0 before acceptance.
        version: milliseconds since 2020, shifted by 11 bits, plus a counter; grows with `seq`;
            below 2**53. Before acceptance, a version that it must exceed.
        plan: the chat model's answer, stored because a model does not repeat itself; None before
            that, and where no chat model is asked.
        attempts: number of failed ones so far.
        elsewhere: another living process works on it.
    """

    id: str
    kind: OperationKind
    scope: Scope
    body: str = ""
    seq: int = 0
    version: int = 0
    plan: bytes | None = None
    attempts: int = 0
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AskKnown:
    """Request of a planning step for the known facts that are nearest to a text.

    Attributes:
        text: what the user said.
        scope: of the facts to be extracted. The reply has only records that it covers, of the same
            owner (`Scope.owner`).
        at: the moment at which they must hold.
        metadata: of the facts to be extracted.
        identity: metadata keys whose values the records must have, too.
    """

    text: str
    scope: Scope
    at: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)
    identity: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFacts:
    """Reply to `AskKnown`; empty where no chat model would read it.

    Attributes:
        records: of any kind but `episode`, nearest first.
        relations: that these records assert, those of the nearest record first.
    """

    records: tuple[Record, ...] = ()
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskChat:
    """Request of a planning step to a chat model; the reply is its text or a `ModelFailedError`."""

    system: str
    user: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepPlan:
    """Request of a planning step to store a plan in the journal before it goes on; no reply."""

    plan: bytes


# -- identity: values of metadata that make what is told another record --------------------------


def identity_of(metadata: Mapping[str, Any], identity: Sequence[str]) -> str:
    """Write the values under the keys `identity` of metadata as one text, equal for equal values.

    Empty if there are none. None counts as missing, and a whole number is the same as a float.
    """
    if not identity:
        return ""
    held = {key: value for key in identity if (value := metadata.get(key)) is not None}
    return json.dumps(_canonical(held), sort_keys=True) if held else ""


def identity_hash(metadata: Mapping[str, Any], identity: Sequence[str]) -> str:
    """Hash the same values to 32 hexadecimal digits; empty if there are none."""
    values = identity_of(metadata, identity)
    return hashlib.sha256(values.encode()).hexdigest()[:32] if values else ""


def with_identity(key: str, metadata: Mapping[str, Any], identity: Sequence[str]) -> str:
    """Add to the key of a record the values of its identity; none leave it as it is."""
    values = identity_of(metadata, identity)
    return f"{key}{_BEFORE_VALUES}{values}" if values else key


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _canonical(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# -- engines, and where tests stop them ------------------------------------------------------------

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The engines of one memory."""

    index: "VectorIndex"
    graph: "GraphStore"
    journal: "Journal"
    checkpoints: Checkpoints


_crash_hooks: list[Callable[[str], None]] = []


def arm_crash_points(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of every crash point passed from now on; None disarms."""
    _crash_hooks[:] = [] if hook is None else [hook]


def crash_point(name: str) -> None:
    """Pass a named point of the write path, at which a test may stop the process.

    `before_commit` and `after_commit` are around every transaction of a store and every write to an
    index, whatever it is for; `before_rename` and `after_rename` are around the moment at which a
    file that was written beside gets its name.
    """
    for hook in _crash_hooks:
        hook(name)
