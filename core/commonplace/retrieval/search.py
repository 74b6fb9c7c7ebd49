"""Search: a validated request, its candidates from index and graph, ranked into matches."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from ..errors import InvalidRecordError
from ..filters import Filter, parse_filter
from ..model import (
    Kind,
    Match,
    Record,
    Scope,
    TokenEmbedding,
    check_kinds,
    check_scope,
    now,
)
from ..ports.stores import GraphStore, Hit, Query, VectorIndex
from ..settings import Settings
from ..validation import check_share, check_text, check_time
from .calibration import Calibration
from .decay import AccessLog, decayed
from .lexical import entity_mentions, has_cjk, query_terms
from .ranking import neighbour_turns, rank

MAX_TOP_K = 10_000
MAX_QUERY_BYTES = 8 * 1024
_CANDIDATES = 50
_MAX_CANDIDATES = 2 * MAX_TOP_K


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A validated search; the fields are the arguments of `Memory.search`."""

    text: str
    scope: Scope
    top_k: int
    threshold: float
    where: Filter | None
    kinds: tuple[Kind, ...]
    include_superseded: bool
    include_expired: bool
    as_of: datetime | None
    decay: bool | None


def search_request(
    text: str,
    scope: Scope,
    *,
    top_k: int,
    threshold: float | None,
    where: Mapping[str, Any] | None,
    predicate: Callable[[Record], bool] | None,
    kinds: Sequence[Kind],
    include_superseded: bool,
    include_expired: bool,
    as_of: datetime | None,
    decay: bool | None,
) -> SearchRequest:
    """Validate the arguments of a search.

    Raises:
        InvalidRecordError: an argument is out of its range, or the text is empty or above 8 KiB.
        InvalidFilterError: the filter is not in the filter language.
    """
    check_scope(scope)
    check_text(text)
    if len(text.encode()) > MAX_QUERY_BYTES:
        raise InvalidRecordError(
            field="text", value=text, reason=f"must have at most {MAX_QUERY_BYTES} bytes"
        )
    if type(top_k) is not int or not 1 <= top_k <= MAX_TOP_K:
        raise InvalidRecordError(
            field="top_k", value=top_k, reason=f"must be an integer in 1..{MAX_TOP_K}"
        )
    lowest = 0.0 if threshold is None else threshold
    check_share("threshold", lowest)
    check_time("as_of", as_of)
    check_kinds(kinds)
    return SearchRequest(
        text=text,
        scope=scope,
        top_k=top_k,
        threshold=lowest,
        where=parse_filter(where, predicate),
        kinds=tuple(kinds),
        include_superseded=bool(include_superseded),
        include_expired=bool(include_expired),
        as_of=as_of,
        decay=decay,
    )


def search(
    request: SearchRequest,
    embedding: TokenEmbedding,
    index: VectorIndex,
    graph: GraphStore,
    access_log: AccessLog,
    calibration: Calibration,
    settings: Settings,
    beside: Executor | None = None,
) -> list[Match]:
    """Find the records that fit a request, best first; ties by id.

    Args:
        embedding: of the request's text, `dimensions` floats of unit length and perhaps tokens.
        calibration: of the embedder, which relevance comes from.
        beside: threads on which the graph store is asked while the index is; None asks them one
            after the other, which is quicker where nothing is sent over a network.
    """
    at = now()
    query = Query(
        scope=request.scope,
        vector=embedding.vector,
        # In Chinese they found nothing more, and put the neighbours of what fits before it.
        tokens=b"" if has_cjk(request.text) else embedding.tokens,
        terms=query_terms(request.text),
        at=at,
        where=request.where,
        kinds=request.kinds,
        include_superseded=request.include_superseded,
        include_expired=request.include_expired,
        as_of=request.as_of,
    )
    decays = settings.decay if request.decay is None else request.decay
    names = entity_mentions(request.text)
    expand = partial(graph.expand, request.scope, names, request.as_of or at)
    expanding = beside.submit(expand) if names and beside else None
    # Both signals together find more than that; decay reorders them once more.
    needed = 2 * request.top_k if decays else request.top_k
    hits = _candidates(query, index, max(needed, _CANDIDATES), needed)
    related = expanding.result() if expanding else expand() if names else []
    turns = neighbour_turns(hits)
    found = {hit.record.id for hit in hits}
    others = [one.id for one in related if one.id not in found]
    more = index.score(query, turns, others) if turns or others else []
    limit = max(needed, _CANDIDATES) if decays else request.top_k
    matches = rank(
        request.text,
        hits,
        more,
        related,
        judge=calibration.judge(request.text),
        now=None if request.include_expired else at,
        limit=None if request.threshold else limit,
    )
    matches = [one for one in matches if one.relevance >= request.threshold][:limit]
    if decays:
        accesses = access_log.get(request.scope, [one.record.id for one in matches])
        matches = decayed(matches, accesses, now(), settings.half_life)[: request.top_k]
        access_log.add(request.scope, [one.record.id for one in matches], now())
    return [_with_copied_metadata(one) for one in matches]


def _candidates(query: Query, index: VectorIndex, limit: int, needed: int) -> list[Hit]:
    """Search an index, for more where too much of what it finds are repeats, which count once.

    Args:
        needed: number of different texts that are to be found, if there are so many.
    """
    while True:
        hits = index.search(query, limit)
        texts = len({hit.record.text for hit in hits})
        is_enough = texts >= needed and 2 * texts >= len(hits)
        if is_enough or len(hits) < limit or limit >= _MAX_CANDIDATES:
            return hits
        limit = min(4 * limit, _MAX_CANDIDATES)


def _with_copied_metadata(match: Match) -> Match:
    """Copy the metadata, so that callers may change theirs without an effect on others."""
    if not match.record.metadata:
        return match
    metadata = _copy(match.record.metadata)
    return replace(match, record=replace(match.record, metadata=metadata))


def _copy(value: Any) -> Any:
    """Copy JSON values, several times faster than `copy.deepcopy`."""
    if isinstance(value, Mapping):
        return {key: _copy(one) for key, one in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list | tuple) else value
