"""The options of `Memory`'s methods; what is missing has the default that is told."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from .model import Kind, Origin, Relation


class AddOptions(TypedDict, total=False):
    """Options of `Memory.add`.

    Attributes:
        infer: also extract facts from messages with the chat model; None, the default, does so
            when there is one. Whatever happens then, the messages are kept verbatim.
        kind: of texts; `fact` by default.
        metadata: of texts and messages, and of facts that have none.
        key: idempotency key of a single text; a second write with it changes nothing.
        wait: True, the default, returns when every store has it; False as soon as it cannot be
            lost.
        origin: who said it, `user` by default; what tools and documents said is trusted less.
    """

    infer: bool | None
    kind: Kind
    metadata: Mapping[str, Any] | None
    key: str | None
    wait: bool
    origin: Origin


class UpdateOptions(TypedDict, total=False):
    """Options of `Memory.update`; what is missing stays as it is.

    Attributes:
        metadata: in place of the former.
        relations: what the text says; what it said before expires. When missing, another text
            says nothing, and the same text what it said.
        importance, pinned: as of a `Fact`.
        wait: as of `add`.
    """

    metadata: Mapping[str, Any] | None
    relations: Sequence[Relation] | None
    importance: float | None
    pinned: bool | None
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
        top_k: at most so many, 1..100, 10 by default; applied after the threshold.
        threshold: leave out matches with a lower score, 0..1; none by default.
        where: a filter (`commonplace.filters`), AND-ed with the scope.
        kinds: only these; empty, the default, for all.
        latest_only: leave out records that are no longer true; True by default.
        as_of: instead, what was true at this moment of world time.
        decay: multiply scores by 0.3..1.5, more for what is fresh or was recalled often; after
            the threshold. `Settings.decay` when missing.
    """

    top_k: int
    threshold: float | None
    where: Mapping[str, Any] | None
    kinds: Sequence[Kind]
    latest_only: bool
    as_of: datetime | None
    decay: bool | None


class ListOptions(TypedDict, total=False):
    """Options of `Memory.list`.

    Attributes:
        where: a filter (`commonplace.filters`), AND-ed with the scope.
        kinds: only these; empty, the default, for all.
        limit: records a page, 1..1000, 100 by default.
        cursor: `Page.cursor` of the page before; None, the default, for the first.
        latest_only: leave out records that are no longer true; True by default.
        as_of: instead, what was true at this moment of world time.
    """

    where: Mapping[str, Any] | None
    kinds: Sequence[Kind]
    limit: int
    cursor: str | None
    latest_only: bool
    as_of: datetime | None


class RelationOptions(TypedDict, total=False):
    """Options of `Memory.relations` and `Memory.draw`.

    Attributes:
        hops: how many relations away from the entity, 1..3, 1 by default.
        latest_only: leave out what ended, and what a changed record said before; True by default.
        as_of: instead, what held at this moment of world time.
    """

    hops: int
    latest_only: bool
    as_of: datetime | None
