"""Search, list, get and history: a checked call, the core's answer, mem0's shape."""

from collections.abc import Sequence
from typing import Any

from commonplace import Match, RecordNotFoundError, Relation, Scope
from commonplace.agents.operations import shorten

from .calls import Asked
from .relations import of_records, to_triples
from .rerank import reranked
from .results import to_found, to_history, to_item
from .setup import Setup
from .steps import Step, core, think

MAX_RELATIONS = 100
_PAGE = 1_000
_MOST = 1_000


def search(
    setup: Setup, query: str, asked: Asked, *, explain: bool, hidden: bool
) -> Step[dict[str, Any]]:
    """Find memories that answer a question, best first."""
    matches: Sequence[Match] = ()
    if asked.limit and asked.where is not False:
        if asked.limit > _MOST:
            setup.say_once("limit")
        # The core orders by comparison; what is judged alone may stand somewhat further down.
        wanted = min(asked.limit + 20, _MOST)
        where = None if asked.where is True else asked.where
        matches = yield core(
            "search",
            shorten(query.replace("\x00", " ")),
            asked.scope,
            top_k=wanted,
            where=where,
            include_superseded=hidden,
            include_expired=hidden,
        )
    found = [one for one in matches if one.relevance >= asked.threshold]
    found.sort(key=lambda one: -one.relevance)
    items = [to_found(one, explain=explain) for one in found[: asked.limit]]
    if asked.rerank and setup.reranker is not None and items:
        items = yield think(reranked, setup.reranker, query, items, asked.limit)
    answer: dict[str, Any] = {"results": items}
    if setup.shows_relations:
        ids = [one["id"] for one in items]
        led = of_records((yield core("relations", asked.scope, records=ids)) if ids else (), ids)
        answer["relations"] = to_triples(led, min(asked.limit, MAX_RELATIONS))
    return answer


def get_all(
    setup: Setup, asked: Asked, *, hidden: bool, cursor: str | None
) -> Step[dict[str, Any]]:
    """List memories, newest first; `cursor` is there when there are more."""
    items: list[dict[str, Any]] = []
    more = cursor or None
    while len(items) < asked.limit and asked.where is not False:
        page = yield core(
            "list",
            asked.scope,
            where=None if asked.where is True else asked.where,
            limit=min(_PAGE, asked.limit - len(items)),
            cursor=more,
            include_superseded=hidden,
            include_expired=hidden,
        )
        items += [to_item(record) for record in page.records]
        more = page.cursor
        if more is None:
            break
    answer: dict[str, Any] = {"results": items}
    if more is not None and items:
        answer["cursor"] = more
    if setup.shows_relations:
        stated: Sequence[Relation] = yield core("relations", asked.scope)
        answer["relations"] = to_triples(stated, asked.limit)
    return answer


def get(memory_id: object) -> Step[dict[str, Any] | None]:
    """Read one memory, expired or not; None if there is none."""
    scope = yield from whose(memory_id)
    if scope is None:
        return None
    record = yield core("get", str(memory_id), scope, include_expired=True)
    return None if record is None else to_item(record, None)


def history(memory_id: object) -> Step[list[dict[str, Any]]]:
    """Read every change of a memory, oldest first; an empty list if there never was one."""
    scope = yield from whose(memory_id)
    if scope is None:
        return []
    versions = yield core("history", str(memory_id), scope)
    return to_history(versions)


def owner_of(memory_id: object) -> Step[Scope]:
    """Find whose memory an id is.

    Raises:
        RecordNotFoundError: there is none with this id.
    """
    scope = yield from whose(memory_id)
    if scope is None:
        raise RecordNotFoundError(record_id=str(memory_id))
    return scope


def whose(memory_id: object) -> Step[Scope | None]:
    """Find whose memory an id is; None for what is no id of a memory."""
    name = str(memory_id)
    if memory_id is None or not name.isprintable() or not 1 <= len(name) <= 256:
        return None
    if not name.strip():
        return None
    scope: Scope | None = yield core("scope_of", name)
    return scope
