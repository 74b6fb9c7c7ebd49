"""Operations of mem0's classes as sans-IO plans, each written once for both classes.

A plan yields calls of the core, and those of models as `partial`s of a function or a coroutine
function; `base` makes them on a thread, or awaits them.

For an agent or a run without a user, mem0 reads and deletes every user's memories with it. Here
that needs a `compat`; otherwise such a call acts on memories of no user, and a warning says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from commonplace import (
    CommonplaceError,
    Extraction,
    Fact,
    Match,
    ModelUnreadableError,
    RecordNotFoundError,
    Relation,
    Scope,
    WriteResult,
)
from commonplace.agents import (
    UNSET,
    AgentMemory,
    EventName,
    Plan,
    Unset,
    call,
    newest_first,
    short_repr,
    shorten,
)

from .arguments import PROCEDURAL, AddRequest, ReadRequest
from .config import Mem0Settings
from .convert import (
    expiry_of,
    parse_date,
    promoted_key,
    relations_of,
    superseded_ids,
    to_add_item,
    to_history,
    to_item,
    to_search_item,
    to_stored,
    to_triples,
)
from .exceptions import (
    BAD_MEMORY_TYPE,
    ClosedError,
    ConfigurationError,
    LLMError,
    ValidationError,
    VectorStoreError,
    as_mem0,
)
from .filters import compile_filter
from .models import ModelFunction, as_model, logger, procedure_text, rerank

UPDATED = {"message": "Memory updated successfully!"}
DELETED = {"message": "Memory deleted successfully!"}
ERASED = {"message": "Memories deleted successfully!"}
RESET_TIMEOUT = 30.0  # seconds
MAX_RELATIONS = 100
_MISTAKES = (ValidationError, ClosedError)  # of the caller, not the memory's
_MAX_MATCHES = 10_000
_PAGE = 1_000
_COMPARED = 20  # of the best of a search, for which of them hold now; it takes a time of its square
_NO_MODEL = (
    "infer=True needs a language model and none is configured. Configure one, such as "
    '{"llm": {"provider": "openai", "config": {"model": "..."}}}, or pass infer=False.'
)
_PROCEDURE_PROMPT = """\
You keep the records of an agent's work. Write down how this task went so that another agent could
go on: the goal, each step in order with what was done and what came of it word by word where it
matters, what failed, and where things stand. Answer with the text only."""
_PROCEDURE_REQUEST = "Write the record of the conversation above."


class _UnextractedError(LLMError):
    """The facts of an addition could not be read; `answer` is the empty one that it gets."""

    answer: Any = None


def counted(health: AgentMemory, request: AddRequest | ReadRequest, plan: Plan[Any]) -> Plan[Any]:
    """Run the plan of a search or an addition, and report its outcome."""
    is_search = isinstance(request, ReadRequest)
    count = len(request.remembered) if isinstance(request, AddRequest) else 0
    late: EventName = "timed_out" if is_search else "failed"
    reporting = health.reporting(
        "search" if is_search else "add", request.scope, count, late=late, mistakes=_MISTAKES
    )
    try:
        with reporting as outcome, as_mem0(health.lazy):
            answer = yield from plan
            if is_search:
                outcome.count = len(answer["results"] if isinstance(answer, Mapping) else answer)
            elif isinstance(answer, Mapping) and "ticket" in answer:
                outcome.name = "late"
    except _UnextractedError as error:
        return error.answer
    return answer


# -- add ----------------------------------------------------------------------------------------


def add(settings: Mem0Settings, request: AddRequest, llm: Any = None) -> Plan[Any]:
    """Remember messages in one transaction: their facts if there is a model, else their texts.

    Where nothing can be read in the model's answers, the answer is empty, as mem0's is. Nothing is
    lost: the messages are a dead letter, which the log names.
    """
    model = settings.model if llm is None else as_model(llm)
    if request.is_procedural:
        return settings.shape((yield from _add_procedure(settings, request, model)))
    infer = request.infer
    if infer is None:
        infer = model is not None
        if not infer and not settings.has_core:
            settings.warn_once("no_model")
    elif infer and model is None and not settings.has_core:
        raise ConfigurationError(_NO_MODEL)
    if not request.remembered:
        return settings.shape({"results": []})
    add_messages = _add_inferred if infer else _add_verbatim
    try:
        return settings.shape((yield from add_messages(settings, request)))
    except ModelUnreadableError as error:
        failure = _UnextractedError(str(error))
        failure.__cause__ = error
    letters = yield call("admin.dead_letters", request.scope)
    logger.warning(
        "Nothing was added: %s The messages are the dead letter %s, which "
        "core.admin.retry([...]) extracts again.",
        failure,
        next((letter.operation for letter in reversed(letters)), ""),
    )
    nothing = yield from _added(settings, request, WriteResult(operation=""), [])
    failure.answer = settings.shape(nothing)
    raise failure


def _add_inferred(settings: Mem0Settings, request: AddRequest) -> Plan[dict[str, Any]]:
    extraction = Extraction(
        instructions=request.prompt or settings.instructions,
        metadata=request.metadata,
        expires_at=request.expires_at,
        keep_messages=False,
        in_session=True,  # reads with a run_id must find them
    )
    messages = [message.to_message(request.at) for message in request.remembered]
    written = yield call("add", messages, request.scope, infer=extraction, wait=request.wait)
    return (yield from _added(settings, request, written, []))


def _add_verbatim(settings: Mem0Settings, request: AddRequest) -> Plan[dict[str, Any]]:
    messages = request.remembered
    extras = [{"actor_id": message.name, "role": message.role} for message in messages]
    facts = [
        _fact(
            request,
            message.text,
            {promoted_key(name): value for name, value in extra.items() if value},
            kind="episode" if message.is_turn else "fact",  # a question is no answer
        )
        for message, extra in zip(messages, extras, strict=True)
    ]
    roles = {message.chat_role for message in messages}  # the least trusted decides
    origin = "assistant" if roles == {"assistant"} else "user"
    written = yield call(
        "add",
        facts,
        request.scope,
        identity=request.identity,
        wait=request.wait,
        origin="tool" if "tool" in roles else origin,
    )
    shown = extras if request.infer is False else []
    return (yield from _added(settings, request, written, shown))


def _add_procedure(
    settings: Mem0Settings, request: AddRequest, model: ModelFunction | None
) -> Plan[dict[str, Any]]:
    """Remember how a task went, as one memory that a model writes."""
    if request.scope.agent_id is None:
        raise ValidationError(
            f"memory_type={PROCEDURAL!r} needs an agent_id: it is an agent that works.",
            BAD_MEMORY_TYPE,
        )
    if model is None:
        raise ConfigurationError(_NO_MODEL)
    said = [f"{message.chat_role}: {message.text}" for message in request.messages]
    user = "\n".join([*said, _PROCEDURE_REQUEST])
    try:
        reply = yield partial(model, request.prompt or _PROCEDURE_PROMPT, user)
    except CommonplaceError:
        raise
    except Exception as error:
        raise LLMError(f"The model failed to summarise: {error!r}. Call again.") from error
    text = procedure_text(reply)
    if not text.strip():
        raise LLMError("The model returned no summary. Call again, or choose another model.")
    fact = _fact(request, text, {"memory_type": PROCEDURAL}, kind="procedure")
    written = yield call("add", [fact], request.scope, wait=request.wait, origin="assistant")
    return (yield from _added(settings, request, written, []))


def _fact(request: AddRequest, text: str, more: Mapping[str, Any], **options: Any) -> Fact:
    return Fact(
        text=text,
        metadata={**request.metadata, **more},
        at=request.at,
        expires_at=request.expires_at,
        **options,
    )


def _added(
    settings: Mem0Settings,
    request: AddRequest,
    written: WriteResult,
    extras: Sequence[Mapping[str, Any]],
) -> Plan[dict[str, Any]]:
    if written.pending:
        return {"results": [], "ticket": written.operation}
    # What changed without a new text may have been superseded by another of them.
    same = [x.id for x in written.changes if x.event == "UPDATE" and x.text == x.previous]
    superseded = yield from _superseded(request.scope, same)
    changes = [change for change in written.changes if change.id not in superseded]
    more = extras if len(extras) == len(changes) else [{}] * len(changes)
    results = [to_add_item(change, extra) for change, extra in zip(changes, more, strict=True)]
    answer: dict[str, Any] = {"results": results}
    added = [change.id for change in changes if change.event == "ADD"]
    if settings.compat == "v1":
        if added:
            stated = yield call("relations", request.scope, include_superseded=True)
            ids = superseded_ids(stated, added)
            superseded |= yield from _superseded(request.scope, ids)
        results += [
            {"id": record_id, "memory": text, "event": "DELETE"}
            for record_id, text in superseded.items()
        ]
    if settings.shows_relations:
        stated = (yield call("relations", request.scope, records=added)) if added else ()
        triples = to_triples(relations_of(stated, added))
        answer["relations"] = {"deleted_entities": [], "added_entities": [[x] for x in triples]}
    return answer


def _superseded(scope: Scope, ids: Sequence[str]) -> Plan[dict[str, str]]:
    """Read the texts of those of these memories that are superseded, by id."""
    records = yield [call("get", record_id, scope, include_expired=True) for record_id in ids]
    return {record.id: record.text for record in records if record and record.valid_to}


# -- search, get, get_all, history --------------------------------------------------------------


def search(settings: Mem0Settings, query: str, request: ReadRequest) -> Plan[Any]:
    """Find memories that answer a query, best first.

    The order is the core's, which puts answers before repeats and questions, and what holds now
    before what it replaces, whose scores change places. Memories of several users are in the order
    of their scores.
    """
    if request.limit > _MAX_MATCHES:
        settings.warn_once("limit")
    options = {
        "top_k": min(request.limit, _MAX_MATCHES),
        "threshold": request.threshold,
        "include_superseded": request.show_expired,
        "include_expired": request.show_expired,
    }
    text = shorten(query.replace("\x00", " "))
    scopes = (yield from _scopes(settings, request.scope)) if request.limit else []
    found: Sequence[Sequence[Match]] = yield [
        call("search", text, scope, where=where, **options)
        for scope, where in _filtered(scopes, request)
    ]
    matches = list(chain.from_iterable(found))
    if len(found) > 1:
        matches.sort(key=lambda match: -match.score)
    items = [
        to_search_item(match, threshold=request.threshold, explain=request.explain)
        for match in _newest_first(matches[: request.limit])
    ]
    if not items:
        _warn_of_users(settings, request.scope)
    if request.rerank and settings.reranker is not None and items:
        items = yield partial(rerank, settings.reranker, query, items, request.limit)
    answer: dict[str, Any] = {"results": items}
    if settings.shows_relations:
        ids = [item["id"] for item in items]
        stated = (yield from _relations(scopes, records=ids)) if ids else []
        limit = min(request.limit, MAX_RELATIONS)
        answer["relations"] = to_triples(relations_of(stated, ids), limit)
    return settings.shape(answer)


def _newest_first(matches: Sequence[Match]) -> list[Match]:
    """Put what holds now before what it replaces, with the scores in the order that they had."""
    best = matches[:_COMPARED]
    ordered = [*newest_first(best, best), *matches[_COMPARED:]]
    scores = [match.score for match in matches]
    return [replace(match, score=score) for match, score in zip(ordered, scores, strict=True)]


def get_all(settings: Mem0Settings, request: ReadRequest, cursor: str | None) -> Plan[Any]:
    """List memories, newest first; the answer has a `cursor` if there are more.

    Memories of several users are listed user by user.
    """
    if cursor is not None and not isinstance(cursor, str):
        raise ValidationError.of(
            "cursor", cursor, "must be the cursor of an answer. Leave it out for the first page."
        )
    items: list[dict[str, Any]] = []
    scopes = yield from _scopes(settings, request.scope)
    named = request.scope.user_id is not None
    first, _, more = ("", "", cursor or "") if named else (cursor or "").partition("\n")
    ahead = _filtered(scopes, request)
    if not named:
        ahead = [pair for pair in ahead if (pair[0].user_id or "") >= first]
        if ahead and (ahead[0][0].user_id or "") != first:
            more = ""  # the user of the cursor is gone
    while ahead and len(items) < request.limit:
        scope, where = ahead[0]
        page = yield call(
            "list",
            scope,
            where=where,
            limit=min(_PAGE, request.limit - len(items)),
            cursor=more or None,
            include_superseded=request.show_expired,
            include_expired=request.show_expired,
        )
        items += map(to_item, page.records)
        more = page.cursor or ""
        if not more:
            del ahead[0]
    answer: dict[str, Any] = {"results": items}
    if ahead and items:
        answer["cursor"] = more if named else f"{ahead[0][0].user_id or ''}\n{more}"
    if not items:
        _warn_of_users(settings, request.scope)
    if settings.shows_relations:
        answer["relations"] = to_triples((yield from _relations(scopes)), request.limit)
    return settings.shape(answer)


def _filtered(
    scopes: Sequence[Scope], request: ReadRequest
) -> list[tuple[Scope, Mapping[str, Any] | None]]:
    """Pair the scopes with their filters, without those that can have no match."""
    pairs = [(scope, compile_filter(request.filters, scope)) for scope in scopes]
    return [
        (scope, None if isinstance(where, bool) else where)
        for scope, where in pairs
        if where is not False
    ]


def _relations(scopes: Sequence[Scope], **options: Any) -> Plan[list[Relation]]:
    found = yield [call("relations", scope, **options) for scope in scopes]
    return list(chain.from_iterable(found))


# -- memories of all users ----------------------------------------------------------------------


def _scopes(settings: Mem0Settings, scope: Scope) -> Plan[list[Scope]]:
    """List the scopes that a call acts on; with a `compat`, those of every user in this one too."""
    if scope.user_id is not None or settings.compat == "auto":
        return [scope]
    return [scope, *(yield from _of_users(scope))]


def _of_users(scope: Scope) -> Plan[list[Scope]]:
    """List the scopes of all users in a scope that names no user, by the users' ids."""
    every = yield call("admin.list_scopes")
    users = {
        other.user_id
        for other in every
        if scope.agent_id in (None, other.agent_id)
        and scope.session_id in (None, other.session_id)
        and other.user_id is not None
    }
    return [replace(scope, user_id=user) for user in sorted(users)]


def _warn_of_users(settings: Mem0Settings, scope: Scope) -> None:
    if scope.user_id is None and settings.compat == "auto":
        settings.warn_once("users")


def get(memory_id: object) -> Plan[dict[str, Any] | None]:
    """Read one memory, expired or not; None if there is none."""
    scope = yield from _scope_of(memory_id)
    if scope is None:
        return None
    record = yield call("get", str(memory_id), scope, include_expired=True)
    return None if record is None else to_item(record, None)


def history(memory_id: object) -> Plan[list[dict[str, Any]]]:
    """Read every change of a memory, oldest first; an empty list if there never was one."""
    scope = yield from _scope_of(memory_id)
    if scope is None:
        return []
    versions = yield call("history", str(memory_id), scope)
    return to_history(versions)


def _scope_of(memory_id: object) -> Plan[Scope | None]:
    """Find the scope of a memory; None if there is none, or no memory can have this id."""
    name = _id_text(memory_id)
    if memory_id is None or not name.isprintable() or not name.strip() or len(name) > 256:
        return None
    scope: Scope | None = yield call("admin.scope_of", name)
    return scope


# -- update, delete, reset ----------------------------------------------------------------------


def update(
    settings: Mem0Settings,
    memory_id: object,
    text: str | None,
    metadata: Mapping[str, Any] | None,
    expiration_date: Any,
    data: str | None,
) -> Plan[dict[str, str]]:
    """Change a memory, expired or not; metadata is added, and never moves it to another owner."""
    if data is not None:
        if text is not None and text != data:
            raise ValidationError("text and data differ. Give text alone.")
        settings.warn_once("data")
        text = data
    if text is None and metadata is None and expiration_date is UNSET:
        raise ValidationError(
            "At least one of text, metadata, or expiration_date must be provided."
        )
    options: dict[str, Any] = {}
    stored = to_stored(metadata)
    expiration_key = promoted_key("expiration_date")
    if not isinstance(expiration_date, Unset):
        stored[expiration_key] = parse_date(expiration_date)
    if expiration_key in stored:
        options["expires_at"] = expiry_of(stored[expiration_key])
    if stored:
        options |= {"metadata": stored, "merge": True}
    name, scope = str(memory_id), (yield from _existing_scope(memory_id))
    try:
        if text is not None or options:
            yield call("update", name, text, scope, **options)
    except RecordNotFoundError:  # the core changes an expired record only with an end given
        record = yield call("get", name, scope, include_expired=True)
        if record is None:
            raise
        yield call("update", name, text, scope, **{"expires_at": record.expires_at, **options})
    return dict(UPDATED)


def delete(memory_id: object) -> Plan[dict[str, str]]:
    """Delete a memory; its history shows that."""
    scope = yield from _existing_scope(memory_id)
    yield call("delete", str(memory_id), scope)
    return dict(DELETED)


def delete_all(settings: Mem0Settings, scope: Scope) -> Plan[dict[str, Any]]:
    """Erase the memories that a call acts on, with their history and relations.

    Without a user the answer says how many memories were deleted, and whether some stay.
    """
    if scope.user_id is not None:
        yield call("forget", scope)
        return dict(ERASED)
    users = yield from _of_users(scope)
    scopes = [scope] if settings.compat == "auto" else [scope, *users]
    receipts = yield [call("forget", erased) for erased in scopes]
    deleted = sum(receipt.removed.get("graph.records", 0) for receipt in receipts)
    if settings.compat != "auto" or not users:
        return {**ERASED, "deleted": deleted}
    settings.warn_once("users")
    return {
        "message": f"{deleted} memories of no user were deleted. Those of {len(users)} users stay: "
        "name the user_id, or make Memory(..., compat='v1') or 'v2' for those of all users.",
        "deleted": deleted,
    }


def reset() -> Plan[None]:
    """Erase every scope of this store, and nothing else in its database.

    Raises:
        VectorStoreError: what came meanwhile is pending, and will still be stored.
    """
    dead = yield call("admin.dead_letters")
    scopes = {*(yield call("admin.list_scopes")), *(letter.scope for letter in dead)}
    for owner in {Scope(user_id=x.user_id) if x.user_id else x for x in scopes}:
        yield call("forget", owner)
    backlog = yield call("flush", 0.0)
    if backlog.pending and (backlog := (yield call("flush", RESET_TIMEOUT))).pending:
        raise VectorStoreError(
            f"All that was stored or pending is erased; {backlog.pending} additions came meanwhile "
            "and are pending. See flush() for what they wait for, and call reset() again."
        )


def flush(timeout: float) -> Plan[dict[str, Any]]:
    """Wait for pending additions; return how many are left, and which failed and why."""
    backlog = yield call("flush", timeout)
    dead = (yield call("admin.dead_letters")) if backlog.dead else ()
    failed = [{"ticket": letter.operation, "reason": letter.reason} for letter in dead]
    return {"pending": backlog.pending, "failed": failed}


def _existing_scope(memory_id: object) -> Plan[Scope]:
    """Find the scope of a memory; raise a RecordNotFoundError if there is none."""
    scope = yield from _scope_of(memory_id)
    if scope is None:
        name = _id_text(memory_id)
        shown = name if 1 <= len(name) <= 80 else short_repr(memory_id)
        raise RecordNotFoundError(record_id=shown)
    return scope


def _id_text(memory_id: object) -> str:
    """Write a memory's id as text; empty if it cannot be written."""
    try:
        return str(memory_id)
    except (RecursionError, ValueError):
        return ""
