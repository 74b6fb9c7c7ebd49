"""What crosses the ports: frozen questions, changes and answers between pipeline and engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from .answers import Change
from .filters import Filter
from .model import Kind, Record, Relation, Scope

OpKind = Literal["add", "update", "delete", "forget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A sparse vector: hashed terms with their weights, equally long, indices ascending and unique.

    Attributes:
        indices: unsigned 32-bit numbers.
        weights: positive; the engine multiplies each with the term's rarity in the scope, which
            is `ln(1 + (N - n + 0.5) / (n + 0.5))` for N records of which n have the term.
    """

    indices: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A record as an index holds it; its times come back as the same moments, in UTC.

    Attributes:
        vector: `dimensions` finite floats of unit length.
        terms: of the record's indexed text.
        words: the text's length in words, for the weights of conversational reading.
    """

    record: Record
    vector: Sequence[float]
    terms: Terms
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A question as an index reads it.

    Attributes:
        scope: only records that it covers.
        vector: unit length. terms: weights are repetitions in the question.
        at: the moment for which expiry is judged; records with `expires_at <= at` are hidden.
        where: AND-ed with the scope.
        kinds: only these; empty for all.
        latest_only, as_of: what is hidden because it is not true, as `Record.holds` says.
    """

    scope: Scope
    vector: Sequence[float]
    terms: Terms
    at: datetime
    where: Filter | None = None
    kinds: tuple[Kind, ...] = ()
    latest_only: bool = True
    as_of: datetime | None = None

    def shows(self, record: Record) -> bool:
        """Judge a record; engines that ask more generously ask this at the end."""
        return (
            self.scope.covers(record.scope)
            and record.holds(self.at, as_of=self.as_of, latest_only=self.latest_only)
            and (not self.kinds or record.kind in self.kinds)
            and (self.where is None or self.where.matches(record))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A record with both raw scores: `dense` the cosine, `lexical` the weighted term product."""

    record: Record
    dense: float
    lexical: float
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Write a record.

    Attributes:
        record: its `version` is the operation's; `position` is given out by the store.
        relations: that this record states; they replace those that it stated before, which
            expire. None leaves them as they are.
        replace: False adds: a live record with this id stays as it is and the change is `NONE`;
            one that has expired when the new one is made is replaced and the change is `ADD`.
            True updates: what is not live stays dead and is `NONE`, or with `upsert` is added.
        in_session: give the record the next position of its session.
        fields: of the record that an update sets; the others stay as stored. `votes` are added.
        merge: the metadata is added to what is stored.
    """

    record: Record
    relations: tuple[Relation, ...] | None = ()
    replace: bool = False
    upsert: bool = False
    in_session: bool = False
    fields: tuple[str, ...] = ()
    merge: bool = False

    @property
    def is_told(self) -> bool:
        """Its text may be new to the index."""
        keeps = self.replace and not self.upsert and not {"text", "situation"} & {*self.fields}
        return self.record.indexed and not keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete a record that the scope covers; its history stays until the scope is erased.

    Attributes:
        spare_pinned: leave one that is pinned by then.
    """

    id: str
    scope: Scope
    version: int
    at: datetime
    spare_pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a `Put` or `Remove` did.

    Applying the same change again answers as the first time did, but for later changes.

    Attributes:
        record: the live state afterwards, None when there is none.
        touched: other records that the change ended, opened again or contradicted, as they are
            now; of a repeated change there may be more. Their version stays.
    """

    change: Change
    record: Record | None
    touched: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What an erasure did in a graph store.

    Attributes:
        removed: rows, by table: `records`, `versions`, `relations`, `entities`.
        touched: records outside the scope that it opened again, as they are now; of a repeated
            erasure there may be more.
    """

    removed: Mapping[str, int]
    touched: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A record that states a relation near what a question names.

    Attributes:
        hops: 1 when the relation is one of a named entity, 2 when of one next to it.
        weight: 0..1; less the more relations the entities on the way have.
        via: ids of the records that state the relation crossed before; empty for the first hop.
    """

    id: str
    hops: int
    weight: float
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """An accepted change.

    Attributes:
        id: equal for a repeated write.
        body: what the caller gave, JSON.
        seq: the order of acceptance; 0 before.
        version: the fence, milliseconds since 2020 shifted by 11 bits plus a counter; grows with
            `seq`; below 2**53. Before acceptance, what it must exceed.
        plan: frozen results of the models, None before planning.
        attempts: failed ones so far.
    """

    id: str
    kind: OpKind
    scope: Scope
    body: str
    seq: int = 0
    version: int = 0
    plan: bytes | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """How many accepted changes wait, and how many cannot be applied."""

    pending: int
    dead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskVectors:
    """A planning step wants vectors for these texts; the answer is one per text."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskChat:
    """A planning step wants a chat model's answer; the answer is text, or None if it failed."""

    system: str
    user: str
    schema: Mapping[str, Any]


Ask = AskVectors | AskChat
