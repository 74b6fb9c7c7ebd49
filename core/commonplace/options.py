"""The options of `Memory`'s methods; what is missing has the default that is told."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypedDict

from .model import Kind, Origin, Record, Relation
from .validation import check_metadata, check_text, check_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """How facts are taken out of messages.

    Attributes:
        instructions: what the model is told beyond what it always is, such as what to leave out.
        metadata, expires_at: of the facts.
        keep_messages: keep the messages verbatim too; True by default. Without them a model that
            fails is an error, because nothing would be left: `ModelFailedError`, and tried again, or
            `ModelUnreadableError`.

    Raises:
        InvalidRecordError: one of them cannot be stored.
    """

    instructions: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    keep_messages: bool = True

    def __post_init__(self) -> None:
        check_metadata(self.metadata)
        check_time("expires_at", self.expires_at)
        if self.instructions is not None:
            check_text(self.instructions, "instructions")


class AddOptions(TypedDict, total=False):
    """Options of `Memory.add`.

    Attributes:
        infer: also extract facts from messages with the chat model; None, the default, does so
            when there is one. The messages are kept verbatim whatever happens then, unless an
            `Extraction` says otherwise.
        kind: of texts; `fact` by default.
        metadata: of texts and messages, and of facts that have none.
        key: idempotency key of a single text; a second write with it changes nothing.
        upsert: write a text or `Fact` that has a key in place of what the key named before, which
            stays in its history; a key may then name another text. False by default.
        wait: True, the default, returns when every store has it; False as soon as it cannot be
            lost.
        origin: who said it, `user` by default; what tools and documents said is trusted less.
    """

    infer: "bool | Extraction | None"
    kind: Kind
    metadata: Mapping[str, Any] | None
    key: str | None
    upsert: bool
    wait: bool
    origin: Origin


class UpdateOptions(TypedDict, total=False):
    """Options of `Memory.update`; what is missing stays as it is.

    Attributes:
        metadata: in place of the former.
        merge: add to the former metadata instead, in place of what has the same key; False by
            default.
        relations: what the text says; what it said before expires. When missing, another text
            says nothing, and the same text what it said.
        importance, pinned: as of a `Fact`.
        expires_at: hidden from reads from then on; None for never. Relations end with it only
            when they are given too.
        wait: as of `add`.
    """

    metadata: Mapping[str, Any] | None
    merge: bool
    relations: Sequence[Relation] | None
    importance: float | None
    pinned: bool | None
    expires_at: datetime | None
    wait: bool


class PruneOptions(TypedDict, total=False):
    """Options of `Memory.prune`.

    Attributes:
        keep: so many records, those remembered most strongly (`pipeline.fade`).
        older_than, unused_for: since the last change, and since the last recall; where both are
            given a record goes when it exceeds both.
        kinds: look at these only; empty, the default, for all.
        dry_run: True, the default, only tells.
    """

    keep: int | None
    older_than: timedelta | None
    unused_for: timedelta | None
    kinds: Sequence[Kind]
    dry_run: bool


class SearchOptions(TypedDict, total=False):
    """Options of `Memory.search`.

    Attributes:
        top_k: at most so many, 1..1000, 10 by default; applied after the threshold.
        threshold: leave out matches with a lower score, 0..1; none by default.
        where: a filter (`commonplace.filters`), AND-ed with the scope.
        judge: a function of a `Record`, asked about what the filter lets through; False leaves it
            out. It may be asked on any thread and must not change the record.
        kinds: only these; empty, the default, for all.
        latest_only: leave out records that are no longer true; True by default.
        as_of: instead, what was true at this moment of world time.
        decay: multiply scores by 0.3..1.5, more for what is fresh or was recalled often; after
            the threshold. `Settings.decay` when missing.
        hidden: also what has expired or is no longer true; False by default.
    """

    top_k: int
    threshold: float | None
    where: Mapping[str, Any] | None
    judge: Callable[[Record], bool] | None
    kinds: Sequence[Kind]
    latest_only: bool
    as_of: datetime | None
    decay: bool | None
    hidden: bool


class ListOptions(TypedDict, total=False):
    """Options of `Memory.list`.

    Attributes:
        where, judge: as of `SearchOptions`.
        kinds: only these; empty, the default, for all.
        limit: records a page, 1..1000, 100 by default.
        cursor: `Page.cursor` of the page before; None, the default, for the first.
        latest_only: leave out records that are no longer true; True by default.
        as_of: instead, what was true at this moment of world time.
        hidden: also what has expired or is no longer true; False by default.
    """

    where: Mapping[str, Any] | None
    judge: Callable[[Record], bool] | None
    kinds: Sequence[Kind]
    limit: int
    cursor: str | None
    latest_only: bool
    as_of: datetime | None
    hidden: bool


class RelationOptions(TypedDict, total=False):
    """Options of `Memory.relations` and `Memory.draw`.

    Attributes:
        hops: how many relations away from the entity, 1..3, 1 by default.
        records: instead of an entity's, those that the records with these ids state.
        latest_only: leave out what ended, and what a changed record said before; True by default.
        as_of: instead, what held at this moment of world time.
    """

    hops: int
    records: Collection[str] | None
    latest_only: bool
    as_of: datetime | None
