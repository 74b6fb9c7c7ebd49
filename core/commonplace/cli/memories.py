"""Commands for the memories of one scope, from `add` to `forget`."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from .. import admin
from ..errors import InvalidRecordError, MissingExtraError, RecordNotFoundError
from ..memory import Memory
from ..types import KINDS, EraseReceipt, Fact, Kind, Match, Record, Relation, Scope, WriteResult

try:
    import typer
except ImportError as error:
    raise MissingExtraError(package="typer", extra="cli") from error

from . import arguments
from .labels import receipt_label
from .options import (
    SENTENCE,
    Agent,
    AsJson,
    Commands,
    EmbedderName,
    Expired,
    FilterText,
    KindNames,
    OptionalPlaceName,
    Session,
    Superseded,
    User,
)
from .output import (
    FAILURE,
    INTERRUPTED,
    answer,
    can_ask,
    day,
    document,
    exit_on_error,
    fields,
    moment,
    printable,
    refuse,
    say,
    short_id,
    table,
    write,
)

_PAGE = 1000
_FULL_ID = 36
_UNFINISHED = (
    "What was accepted is not lost; run the same command again: a text that is stored is counted "
    "once more, and not stored twice."
)
_CHANGING = "What was accepted is not lost; `commonplace history` tells whether it was."
_ADDED = {"ADD": "Remembered", "UPDATE": "Known; what is new was added", "NONE": "Known"}
_CHANGED = {"UPDATE": "Updated", "DELETE": "Deleted", "NONE": "Unchanged"}
_ERASING = "The erasure may be half done; run the same command again: it removes what is left."

RecordId = Annotated[
    str | None,
    typer.Argument(metavar="ID", help="Of a memory, or how it begins.", show_default=False),
]
Text = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="What to remember.", show_default=False)
]
memories = Commands()


@memories.command(rich_help_panel="Memories")
@exit_on_error(_UNFINISHED)
def add(
    location: OptionalPlaceName = None,
    text: Text = None,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    kind: Annotated[
        str, typer.Option(help=f"{', '.join(KINDS)}.", autocompletion=lambda: KINDS)
    ] = "fact",
    metadata: Annotated[
        list[str] | None,
        typer.Option(help="KEY=TEXT, or KEY:=JSON; may be repeated."),
    ] = None,
    embedder: EmbedderName = SENTENCE,
    *,
    as_json: AsJson = False,
) -> None:
    """Remember a text; makes the memory if there is none."""
    location, [text] = arguments.split_words(location, text=text)
    scope = arguments.scope_from(user, agent, session)
    fact = Fact(text=text, kind=cast(Kind, kind), metadata=arguments.parse_metadata(metadata))
    model = arguments.embedder_of(embedder)
    new = arguments.check_new(location)
    with arguments.opened(location, model) as memory:
        if new is not None:
            say(f"Made a new memory in {new}.")
        done = memory.add(fact, scope)
    if as_json:
        document(done)
    else:
        _show_write(done, _ADDED)


@memories.command(rich_help_panel="Memories")
@exit_on_error()
def search(
    location: OptionalPlaceName = None,
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="What to find.", show_default=False)
    ] = None,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    top_k: Annotated[int, typer.Option("--top-k", help="Matches at most.")] = 10,
    threshold: Annotated[
        float | None, typer.Option(help="Leave out matches with a lower relevance, 0 to 1.")
    ] = None,
    where: FilterText = None,
    kind: KindNames = None,
    embedder: EmbedderName = SENTENCE,
    *,
    superseded: Superseded = False,
    expired: Expired = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each score is made of.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find what answers a question, best first."""
    location, [question] = arguments.split_words(location, question=question)
    scope = arguments.scope_from(user, agent, session)
    conditions = arguments.parse_json("filter", where)
    model = arguments.embedder_of(embedder)
    with arguments.opened(location, model, create=False) as memory:
        found = memory.search(
            question, scope, top_k=top_k, threshold=threshold, where=conditions,
            kinds=cast(list[Kind], kind or []), include_superseded=superseded,
            include_expired=expired,
        )  # fmt: skip
    if as_json:
        document({"matches": found})
    elif found:
        _show_matches(found, explain=explain)
    else:
        say(f"Nothing answers that.{_no_user(scope)}")


@memories.command("list", rich_help_panel="Memories")
@exit_on_error()
def list_records(
    location: OptionalPlaceName = None,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    where: FilterText = None,
    kind: KindNames = None,
    limit: Annotated[int, typer.Option(min=1, help="Records at most.")] = 50,
    embedder: EmbedderName = SENTENCE,
    *,
    superseded: Superseded = False,
    expired: Expired = False,
    as_json: AsJson = False,
) -> None:
    """List what is remembered, newest first."""
    scope = arguments.scope_from(user, agent, session)
    conditions = arguments.parse_json("filter", where)
    found: list[Record] = []
    cursor: str | None = None
    model = arguments.embedder_of(embedder)
    with arguments.opened(location, model, create=False) as memory:
        while len(found) < limit:
            page = memory.list(
                scope, where=conditions, kinds=cast(list[Kind], kind or []),
                limit=min(_PAGE, limit - len(found)), cursor=cursor,
                include_superseded=superseded, include_expired=expired,
            )  # fmt: skip
            found += page.records
            cursor = page.cursor
            if cursor is None:
                break
    if as_json:
        document({"records": found, "more": cursor is not None})
        return
    if found:
        _show_records(found, superseded=superseded)
    else:
        say(f"Nothing is remembered of {_name(scope)}.{_no_user(scope)}")
    if cursor is not None:
        say(f"There are more: give a --limit above {limit}.")


@memories.command(rich_help_panel="Memories")
@exit_on_error()
def show(
    location: OptionalPlaceName = None,
    record_id: RecordId = None,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    embedder: EmbedderName = SENTENCE,
    *,
    as_json: AsJson = False,
) -> None:
    """Show all of a memory, and the relations that it states."""
    location, [record_id] = arguments.split_words(location, id=record_id)
    scope = arguments.scope_from(user, agent, session)
    model = arguments.embedder_of(embedder)
    with arguments.opened(location, model, create=False) as memory:
        full = _full_id(memory, record_id, scope)
        record = memory.get(full, scope, include_expired=True)
        if record is None:
            raise RecordNotFoundError(record_id=record_id)
        relations = memory.relations(scope, records=[full], include_superseded=True)
        lines = memory.diagram(scope, records=[full], include_superseded=True)
    if as_json:
        document({"record": record, "relations": relations})
    else:
        _show_record(record, lines.split("\n") if relations else [])


@memories.command(rich_help_panel="Memories")
@exit_on_error()
def history(
    location: OptionalPlaceName = None,
    record_id: RecordId = None,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    embedder: EmbedderName = SENTENCE,
    *,
    as_json: AsJson = False,
) -> None:
    """Show every version of a memory, oldest first; of a deleted one by its whole id."""
    location, [record_id] = arguments.split_words(location, id=record_id)
    scope = arguments.scope_from(user, agent, session)
    model = arguments.embedder_of(embedder)
    with arguments.opened(location, model, create=False) as memory:
        versions = memory.history(_full_id(memory, record_id, scope), scope)
    if not versions:
        raise RecordNotFoundError(record_id=record_id)
    if as_json:
        document({"versions": versions})
        return
    table(
        ("at", "event", "text"), [(moment(one.at), one.event, one.text or "") for one in versions]
    )


@memories.command(rich_help_panel="Memories")
@exit_on_error(_CHANGING)
def update(
    location: OptionalPlaceName = None,
    record_id: RecordId = None,
    text: Text = None,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    embedder: EmbedderName = SENTENCE,
    *,
    as_json: AsJson = False,
) -> None:
    """Replace the text of a memory; its history keeps the former, and its relations end."""
    location, [record_id, text] = arguments.split_words(location, id=record_id, text=text)
    scope = arguments.scope_from(user, agent, session)
    model = arguments.embedder_of(embedder)
    with arguments.opened(location, model, create=False) as memory:
        done = memory.update(_full_id(memory, record_id, scope), text, scope)
    if as_json:
        document(done)
    else:
        _show_write(done, _CHANGED)


@memories.command(rich_help_panel="Memories")
@exit_on_error(_CHANGING)
def delete(
    location: OptionalPlaceName = None,
    record_id: RecordId = None,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    embedder: EmbedderName = SENTENCE,
    *,
    as_json: AsJson = False,
) -> None:
    """Delete a memory; its history stays until its user, agent or session is forgotten."""
    location, [record_id] = arguments.split_words(location, id=record_id)
    scope = arguments.scope_from(user, agent, session)
    model = arguments.embedder_of(embedder)
    with arguments.opened(location, model, create=False) as memory:
        done = memory.delete(_full_id(memory, record_id, scope), scope)
    if as_json:
        document(done)
    else:
        _show_write(done, _CHANGED)


@memories.command(rich_help_panel="Memories")
@exit_on_error()
def graph(
    location: OptionalPlaceName = None,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    entity: Annotated[str | None, typer.Option(help="Only what is around this name.")] = None,
    hops: Annotated[int, typer.Option(help="Relations away from it, 1 to 3.")] = 1,
    embedder: EmbedderName = SENTENCE,
    *,
    superseded: Superseded = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Write a Mermaid flowchart.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the relations between names, oldest first."""
    if mermaid and as_json:
        raise InvalidRecordError(
            field="--mermaid", value=True, reason="must not be given beside --json"
        )
    scope = arguments.scope_from(user, agent, session)
    model = arguments.embedder_of(embedder)
    relations: Sequence[Relation] = ()
    lines = ""
    with arguments.opened(location, model, create=False) as memory:
        if as_json:
            relations = memory.relations(scope, entity, hops=hops, include_superseded=superseded)
        else:
            lines = memory.diagram(
                scope, entity, form="mermaid" if mermaid else "text", hops=hops,
                include_superseded=superseded,
            )  # fmt: skip
    if as_json:
        document({"relations": relations})
    elif lines:
        for line in lines.split("\n"):
            write(printable(line))
    else:
        say(f"There are no relations of {_name(scope)}.{_no_user(scope)}")


@memories.command(rich_help_panel="Memories")
@exit_on_error(_ERASING)
def forget(
    location: OptionalPlaceName = None,
    user: User = None,
    agent: Agent = None,
    session: Session = None,
    embedder: EmbedderName = SENTENCE,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be erased.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, for programs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase all of a user, agent or session for good, history and waiting writes included.

    A user's scope covers all agents and sessions of that user. Without --user only what belongs to
    no user is erased.
    """
    scope = arguments.scope_from(user, agent, session)
    model = arguments.embedder_of(embedder)
    with arguments.opened(location, model, create=False) as memory:
        if dry_run:
            _show_rows(scope, admin.count_rows(memory, scope), as_json=as_json)
            return
        if not yes and not _confirm(memory, scope):
            return
        receipt = memory.forget(scope)
    _show_receipt(receipt, as_json=as_json)


def _full_id(memory: Memory, given: str, scope: Scope) -> str:
    """Find the id that begins as given.

    Raises:
        InvalidRecordError: several do.
    """
    if len(given) >= _FULL_ID or not given:
        return given
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = memory.list(
            scope, limit=_PAGE, cursor=cursor, include_superseded=True, include_expired=True
        )
        found += [one.id for one in page.records if one.id.startswith(given.lower())]
        cursor = page.cursor
        if cursor is None:
            break
    if len(found) > 1:
        hint = f"Give more of it: {', '.join(found[:3])}{', …' if len(found) > 3 else ''}."
        raise InvalidRecordError(
            field="ID", value=given, reason=f"is how {len(found)} ids begin", hint=hint
        )
    return found[0] if found else given


def _confirm(memory: Memory, scope: Scope) -> bool:
    """Ask before an erasure, if there is anything to erase.

    Raises:
        Exit: nobody can be asked, or the answer is no.
    """
    if not can_ask():
        refuse(
            "Nobody can be asked here: give --yes to erase for good. `--dry-run` shows what would "
            "be erased."
        )
    rows = admin.count_rows(memory, scope)
    if not any(rows.values()):
        say(f"There is nothing of {_name(scope)} in {memory.location}.{_no_user(scope)}")
        return False
    number = rows["graph.records"]
    records = "1 memory" if number == 1 else f"{number} memories"
    say(f"{records} of {_name(scope)} in {memory.location}, with all that belongs to them.")
    try:
        is_sure, code = typer.confirm("Erase for good?", err=True), FAILURE
    except (typer.Abort, KeyboardInterrupt):
        is_sure, code = False, INTERRUPTED
        typer.echo(err=True)  # behind what the terminal shows for Ctrl-C
    if not is_sure:
        say("Nothing was erased.")
        raise typer.Exit(code)
    return True


def _show_write(done: WriteResult, words: Mapping[str, str]) -> None:
    for one in done.changes:
        text = one.previous if one.text is None else one.text
        answer(f"{words[one.event]}: {short_id(one.id)} {text or ''}")
    if done.pending:
        answer("Accepted; it is stored in the background.")


def _show_matches(found: Sequence[Match], *, explain: bool) -> None:
    columns = ["score", "relevance", "id", "kind", "since"]
    rows = [
        [f"{one.score:.2f}", f"{one.relevance:.2f}", short_id(one.record.id), one.record.kind,
         day(one.record.occurred_at), one.record.text]
        for one in found
    ]  # fmt: skip
    if not explain:
        table((*columns, "text"), rows)
        return
    for row, one in zip(rows, found, strict=True):
        parts = {name: share for name, share in one.score_details.items() if round(share, 2)}
        row.insert(-1, " ".join(f"{name} {share:+.2f}" for name, share in parts.items()))
    table((*columns, "score is made of", "text"), rows)


def _show_records(found: Sequence[Record], *, superseded: bool) -> None:
    columns = ["id", "kind", "since", *(["until"] if superseded else []), "text"]
    rows = []
    for one in found:
        until = [day(one.valid_to)] if superseded else []
        rows.append([short_id(one.id), one.kind, day(one.occurred_at), *until, one.text])
    table(columns, rows)


def _show_record(one: Record, relations: Sequence[str]) -> None:
    values: dict[str, object] = {
        "id": one.id, "text": one.text, "kind": one.kind, "user": one.scope.user_id,
        "agent": one.scope.agent_id, "session": one.scope.session_id, "role": one.role,
        "name": one.name, "situation": one.situation, "outcome": one.outcome,
        "origin": f"{one.origin}, trust {one.trust:g}", "since": moment(one.occurred_at),
        "until": moment(one.valid_to), "expires": moment(one.expires_at),
        "created": moment(one.created_at), "updated": moment(one.updated_at),
        "told": f"{one.times_told} times" if one.times_told > 1 else "once",
        "importance": f"{one.importance:g}{', pinned' if one.pinned else ''}",
        "votes": one.votes or None, "conflicts": ", ".join(one.conflicts),
    }  # fmt: skip
    shown = {name: str(value) for name, value in values.items() if value not in (None, "")}
    for key, value in one.metadata.items():
        plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown[f"metadata.{key}"] = plain
    shown |= {f"relation {n}": line for n, line in enumerate(relations, start=1)}
    fields(shown)


def _show_rows(scope: Scope, rows: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        document({"scope": scope, "rows": rows})
        return
    table(("what", "number"), [(receipt_label(name), str(rows[name])) for name in rows])
    if any(rows.values()):
        say(f"Nothing was erased. Without --dry-run, all of {_name(scope)} would be.")
    else:
        say(f"There is nothing of {_name(scope)}.{_no_user(scope)}")


def _show_receipt(receipt: EraseReceipt, *, as_json: bool) -> None:
    if as_json:
        document(
            {
                "scope": receipt.scope,
                "removed": receipt.removed,
                "left": receipt.left,
                "complete": receipt.complete,
                "at": receipt.at,
            }
        )
    else:
        names = dict.fromkeys((*receipt.removed, *receipt.left))
        rows = [
            (receipt_label(name), str(receipt.removed.get(name, 0)), str(receipt.left.get(name, 0)))
            for name in names
        ]
        table(("what", "removed", "left"), rows)
    if not receipt.complete:
        say("Something is left: run the same command again.", style="red")
        raise typer.Exit(FAILURE)
    if as_json:
        return
    if any(receipt.removed.values()):
        say(f"All of {_name(receipt.scope)} is erased.")
    else:
        say(f"There was nothing of {_name(receipt.scope)}.{_no_user(receipt.scope)}")


def _name(scope: Scope) -> str:
    """Name a scope in a sentence."""
    parts = {"agent": scope.agent_id, "session": scope.session_id}
    given = [f"{name} {value!r}" for name, value in parts.items() if value is not None]
    if scope.user_id is None:
        return f"{', '.join(given)} of no user"
    return ", ".join((f"user {scope.user_id!r}", *given))


def _no_user(scope: Scope) -> str:
    """Say what a scope without a user leaves out, as a second sentence."""
    if scope.user_id is not None:
        return ""
    return " What belongs to a user is only found with --user."
