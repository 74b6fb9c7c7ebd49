"""Search: a validated request, its candidates from index and graph, ranked into matches."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import partial
from typing import Any, get_args

from ..errors import InvalidRecordError, InvalidVectorError, LoopRequiredError, ModelFailedError
from ..filters import Filter, Group, Scalar, Where, parse_filter
from ..model_calls import Purpose, RunInThread, aembed, embed, is_async
from ..ports.engines import VectorIndex
from ..ports.models import Embedder
from ..ports.stores import Engines, Expansion, Hit, Query, Terms, altered
from ..sans_io import Plan, arun_plan, run_plan
from ..settings import Settings
from ..types import (
    Kind,
    Match,
    Ranking,
    Record,
    Scope,
    TokenEmbedding,
    check_kinds,
    check_scope,
    now,
)
from ..validation import (
    check_choice,
    check_flag,
    check_integer,
    check_share,
    check_text,
    check_time,
)
from .calibration import Calibration
from .decay import AccessLog, decayed
from .excerpts import excerpt
from .lexical import entity_mentions, query_terms
from .ranking import neighbour_turns, rank
from .times import AskedTime, asked_times

MAX_TOP_K = 10_000
MAX_QUERY_BYTES = 8 * 1024
_CANDIDATES = 50
_MAX_CANDIDATES = 2 * MAX_TOP_K
_SCALARS = frozenset((str, int, float, bool, type(None)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A validated search; the fields are the arguments of `Memory.search`."""

    text: str
    scopes: tuple[Scope, ...]
    top_k: int
    threshold: float
    where: Filter | None
    kinds: tuple[Kind, ...]
    include_superseded: bool
    include_expired: bool
    as_of: datetime | None
    asked_at: datetime | None
    decay: bool | None
    ranking: Ranking


def search_request(
    text: str,
    scope: Scope | Sequence[Scope],
    *,
    top_k: int,
    threshold: float | None,
    where: Mapping[str, Any] | None,
    predicate: Callable[[Record], bool] | None,
    kinds: Sequence[Kind],
    include_superseded: bool,
    include_expired: bool,
    as_of: datetime | None,
    asked_at: datetime | None,
    decay: bool | None,
    ranking: Ranking,
) -> SearchRequest:
    """Validate the arguments of a search."""
    scopes = tuple(scope) if isinstance(scope, list | tuple) and scope else (scope,)
    for one in scopes:
        check_scope(one)
    check_text(text)
    if len(text.encode()) > MAX_QUERY_BYTES:
        raise InvalidRecordError(
            field="text", value=text, reason=f"must have at most {MAX_QUERY_BYTES} bytes"
        )
    check_integer("top_k", top_k, 1, MAX_TOP_K)
    if threshold is not None:
        check_share("threshold", threshold)
    check_time("as_of", as_of)
    check_time("asked_at", asked_at)
    check_kinds(kinds)
    check_flag("include_superseded", include_superseded)
    check_flag("include_expired", include_expired)
    if decay is not None:
        check_flag("decay", decay)
    check_choice("ranking", ranking, get_args(Ranking))
    return SearchRequest(
        text=text,
        scopes=scopes,
        top_k=top_k,
        threshold=-1.0 if threshold is None else threshold,
        where=None if where is None and predicate is None else parse_filter(where, predicate),
        kinds=tuple(kinds),
        include_superseded=include_superseded,
        include_expired=include_expired,
        as_of=as_of,
        asked_at=asked_at,
        decay=decay,
        ranking=ranking,
    )


class Search:
    """Searches the stores of one open memory.

    Args:
        embedder: embeds the question.
        access_log: of the searches with decay.
        calibration: of the embedder's cosines.
        beside: threads on which the graph store is asked while the index is; None asks them one
            after the other, which is quicker where nothing is sent over a network.

    Attributes:
        embeds_on_loop: the embedder is asynchronous.
    """

    def __init__(
        self,
        engines: Engines,
        embedder: Embedder,
        settings: Settings,
        access_log: AccessLog,
        calibration: Calibration,
        beside: Executor | None,
    ) -> None:
        self._engines = engines
        self._embedder = embedder
        self.embeds_on_loop: bool = is_async(embedder.embed)
        self._settings = settings
        self._access_log = access_log
        self._calibration = calibration
        self._beside = beside

    def run(self, request: SearchRequest) -> list[Match]:
        """Find the records that fit a request, best first; ties by id.

        Several scopes are searched one by one, and ranked together.

        Raises:
            LoopRequiredError: the embedder is asynchronous.
        """
        if self.embeds_on_loop:
            raise LoopRequiredError(call="search", model=self._embedder.id)
        limit = self._settings.max_embed_chars

        def perform(step: _Texts | Callable[[], list[Match]]) -> Any:
            if isinstance(step, _Texts):
                return embed(self._embedder, step.texts, purpose=step.purpose, limit=limit)
            return step()

        return run_plan(self._steps(request), perform)

    async def arun(self, request: SearchRequest, run: RunInThread) -> list[Match]:
        """Find the records as `run`, awaiting the embedder on this loop and stores on threads."""
        limit = self._settings.max_embed_chars

        async def perform(step: _Texts | Callable[[], list[Match]]) -> Any:
            if isinstance(step, _Texts):
                return await aembed(self._embedder, step.texts, purpose=step.purpose, limit=limit)
            return await run(step)

        return await arun_plan(self._steps(request), perform)

    def _steps(self, request: SearchRequest) -> Plan[list[Match]]:
        [embedding] = yield _Texts([request.text], "query")
        if probes := self._calibration.probes(request.text):
            try:
                measured = yield _Texts(probes, "document")
                self._calibration.learn(request.text, [text.vector for text in measured])
            except (ModelFailedError, InvalidVectorError) as error:
                self._calibration.miss(error)
        found: list[Match] = yield partial(self._find, request, embedding)
        return found

    def _find(self, request: SearchRequest, embedding: TokenEmbedding) -> list[Match]:
        at = now()
        by_cosine = request.ranking == "similarity"
        query = Query(
            scope=request.scopes[0],
            vector=embedding.vector,
            tokens=b"" if by_cosine else embedding.tokens,
            terms=Terms() if by_cosine else query_terms(request.text),
            at=at,
            where=request.where,
            kinds=request.kinds,
            include_superseded=request.include_superseded,
            include_expired=request.include_expired,
            as_of=request.as_of,
        )
        if by_cosine:
            return _nearest(request, query, self._engines.index)
        decays = self._settings.decay if request.decay is None else request.decay
        # Both signals together find more than that; decay reorders them once more.
        needed = 2 * request.top_k if decays else request.top_k
        number = max(needed, _CANDIDATES)
        names = entity_mentions(request.text)
        asked_at = request.asked_at or at
        dated = _in_times(query, asked_times(request.text, asked_at), asked_at)
        found = [
            _gather(
                altered(query, scope=one),
                dated and altered(dated, scope=one),
                self._engines,
                number,
                needed,
                names,
                self._beside,
            )
            for one in request.scopes
        ]
        hits = _best([hit for one in found for hit in one.hits], number, len(found))
        limit = number if decays else request.top_k
        scale = self._calibration.scale(request.text)
        matches = rank(
            request.text,
            hits,
            [hit for one in found for hit in one.beside],
            [related for one in found for related in one.related],
            at=asked_at,
            scale=scale,
            vector=embedding.vector if scale.of_default else (),
            now=None if request.include_expired else at,
            limit=limit,
            threshold=request.threshold,
        )
        if decays:
            matches = _decayed(matches, request, self._access_log, self._settings)
        return [
            altered(one, record=_with_own_metadata(one.record)) if one.record.metadata else one
            for one in matches
        ]


@dataclass(frozen=True, slots=True)
class _Texts:
    """A step of a search: texts to embed. The other steps are calls that ask the stores."""

    texts: Sequence[str]
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What one scope has for a search: hits, what stands beside them, and expansions."""

    hits: list[Hit]
    beside: list[Hit]
    related: Sequence[Expansion]


def _in_times(query: Query, asked: Sequence[AskedTime], at: datetime) -> Query | None:
    """Narrow a query by meaning to the times that the question names; None if it names none."""
    if not asked:
        return None

    def moment(day: date, of_day: time) -> Scalar:
        return datetime.combine(day, of_day, tzinfo=at.tzinfo).timestamp()

    ranges = tuple(
        Group(
            "AND",
            (
                Where("occurred_at", "gte", (moment(one.start, time.min),)),
                Where("occurred_at", "lte", (moment(one.end, time.max),)),
            ),
        )
        for one in asked
    )
    within = ranges[0] if len(ranges) == 1 else Group("OR", ranges)
    where = within if query.where is None else Group("AND", (query.where, within))
    return replace(query, tokens=b"", terms=Terms(), where=where)


def _gather(
    query: Query,
    dated: Query | None,
    engines: Engines,
    number: int,
    needed: int,
    names: Sequence[str],
    beside: Executor | None,
) -> _Gathered:
    """Gather candidates in the scope of a query; the graph is asked only for entities' names.

    Args:
        dated: the query narrowed to the times that the question names, if it names any.
    """
    expand = partial(engines.graph.expand, query.scope, names, query.as_of or query.at)
    expanding = beside.submit(expand) if names and beside else None
    hits = _candidates(query, engines.index, number, needed)
    related = expanding.result() if expanding else expand() if names else []
    turns = neighbour_turns(hits)
    found = {hit.record.id for hit in hits}
    within = engines.index.search(dated, _CANDIDATES) if dated else []
    others = [*(one.id for one in related), *(hit.record.id for hit in within)]
    others = [one for one in dict.fromkeys(others) if one not in found]
    more = engines.index.score(query, turns, others) if turns or others else []
    return _Gathered(hits, more, related)


def _best(hits: list[Hit], number: int, scopes: int) -> list[Hit]:
    """Choose the best by vector and by terms of what several scopes have, as one would."""
    if scopes == 1 or len(hits) <= number:
        return hits
    dense = sorted(hits, key=lambda hit: (-hit.dense, hit.record.id))[:number]
    lexical = sorted(hits, key=lambda hit: (-hit.lexical, hit.record.id))[:number]
    return list({hit.record.id: hit for hit in (*dense, *lexical)}.values())


def _nearest(request: SearchRequest, query: Query, index: VectorIndex) -> list[Match]:
    """Find the records with the greatest cosines, which are their scores; ties by id."""
    limit = request.top_k
    hits = index.search(query, limit)
    if len(request.scopes) > 1:
        for scope in request.scopes[1:]:
            hits += index.search(altered(query, scope=scope), limit)
        hits.sort(key=lambda hit: (-hit.dense, hit.record.id))
    del hits[limit:]
    return [
        Match(
            record=_with_own_metadata(hit.record),
            score=score,
            score_details={"dense": hit.dense},
            excerpt=excerpt(hit, request.text),
        )
        for hit in hits
        if (score := max(-1.0, min(1.0, hit.dense))) >= request.threshold
    ]


def _decayed(
    matches: list[Match], request: SearchRequest, access_log: AccessLog, settings: Settings
) -> list[Match]:
    """Multiply scores by what age and use make of them, and log the access."""
    accesses: dict[str, list[datetime]] = {}
    for scope in request.scopes:
        ids = [match.record.id for match in matches if scope.covers(match.record.scope)]
        accesses |= access_log.get(scope, ids)
    found = decayed(matches, accesses, now(), settings.half_life)[: request.top_k]
    for scope in request.scopes:
        ids = [one.record.id for one in found if scope.covers(one.record.scope)]
        access_log.add(scope, ids, now())
    return found


def _candidates(query: Query, index: VectorIndex, limit: int, needed: int) -> list[Hit]:
    """Search an index, for more where too much of what it finds are repeats, which count once.

    Args:
        needed: number of different texts that are to be found, if there are so many.
    """
    while True:
        hits = index.search(query, limit)
        told = len({_repeated(hit.record) for hit in hits})
        is_enough = told >= needed and 2 * told >= len(hits)
        if is_enough or len(hits) < limit or limit >= _MAX_CANDIDATES:
            return hits
        limit = min(4 * limit, _MAX_CANDIDATES)


def _repeated(record: Record) -> str:
    """Return what equal turns have in common; other records that are alike count each."""
    return record.text if record.kind == "episode" else record.id


def _with_own_metadata(record: Record) -> Record:
    """Copy the metadata, so that callers may change theirs without an effect on others."""
    return altered(record, metadata=_copy(record.metadata)) if record.metadata else record


def _copy(value: Any) -> Any:
    """Copy JSON values, many times faster than `copy.deepcopy`."""
    if isinstance(value, Mapping):
        copied = dict(value)
        for key, one in copied.items():
            if type(one) not in _SCALARS:
                copied[key] = _copy(one)
        return copied
    return [_copy(one) for one in value] if isinstance(value, list | tuple) else value
