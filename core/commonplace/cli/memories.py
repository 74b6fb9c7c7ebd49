"""Commands for the memories of one scope, from `add` to `forget`."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..errors import InvalidRecordError, RecordNotFoundError
from ..types import KINDS, EraseReceipt, Fact, Kind, Match, Record, Scope, WriteResult
from . import arguments
from .options import SENTENCE, AsJson, Commands, EmbedderName, OptionalPlaceName
from .output import (
    FAILURE,
    INTERRUPTED,
    NOTHING_CHANGED,
    answer,
    can_ask,
    day,
    document,
    fields,
    moment,
    printable,
    refuse,
    say,
    short_id,
    table,
    write,
)

if TYPE_CHECKING:
    from ..memory import Memory

_PAGE = 1000
_FULL_ID = 36
_ADDING = (
    "What was accepted is not lost; run the same command again: a text that is stored is counted "
    "once more, and not stored twice."
)
_CHANGING = "What was accepted is not lost; `commonplace history` tells whether it was."
_ERASING = "The erasure may be half done; run the same command again: it removes what is left."
_ADDED = {"ADD": "Remembered", "UPDATE": "Known; what is new was added", "NONE": "Known"}
_CHANGED = {
    "UPDATE": "Updated", "DELETE": "Deleted", "RESTORE": "Restored", "NONE": "Unchanged",
}  # fmt: skip

# Words for what an `EraseReceipt` counts; `--json` keeps the names.
_RECEIPTS = {
    "graph.records": "memories",
    "graph.versions": "versions of memories",
    "graph.relations": "relations",
    "graph.entities": "names in relations",
    "checkpoints.threads": "threads of agents",
    "checkpoints.checkpoints": "checkpoints of threads",
    "checkpoints.values": "values in checkpoints",
    "checkpoints.writes": "writes of unfinished steps",
    "index.points": "vectors",
    "journal.rows": "pending writes",
}

RecordId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The id of a memory, or its first characters.", show_default=False
    ),
]
Text = Annotated[
    str,
    typer.Argument(metavar="TEXT", help="The text; - reads standard input.", show_default=False),
]
Question = Annotated[
    str, typer.Argument(metavar="QUESTION", help="What to find.", show_default=False)
]
User = Annotated[
    str | None,
    typer.Option(
        "--user", help="The id of a user. Without it, only memories that belong to no user."
    ),
]
Agent = Annotated[str | None, typer.Option("--agent", help="Only of this agent.")]
Session = Annotated[str | None, typer.Option("--session", help="Only of this session.")]
FilterText = Annotated[
    str | None,
    typer.Option(
        "--filter", metavar="JSON", help='Such as {"city": "Lyon", "year": {"gte": 2020}}.'
    ),
]
KindNames = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", help=f"Only {', '.join(KINDS)}; may be repeated.", autocompletion=lambda: KINDS
    ),
]
_EARLIER = "(earlier) "  # in front of what a newer one likely replaced
Superseded = Annotated[bool, typer.Option("--superseded", help="Include what is no longer true.")]
Expired = Annotated[bool, typer.Option("--expired", help="Include what has expired.")]
memories = Commands("Memories")


@dataclass(kw_only=True)
class Request:
    """What every command of a scope is given; the fields are its arguments and options."""

    location: OptionalPlaceName = None
    user: User = None
    agent: Agent = None
    session: Session = None
    embedder: EmbedderName = SENTENCE
    as_json: AsJson = False
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        self.scope = arguments.scope_from(self.user, self.agent, self.session)

    def open(self, *, create: bool = False) -> "AbstractContextManager[Memory]":
        """Open the memory, as `arguments.opened`."""
        return arguments.opened(self.location, self.embedder, create=create)


def _command(
    name: str | None = None, *, again: str = NOTHING_CHANGED, of_session: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command that takes a `Request`, and then its own arguments and options.

    Args:
        name, again: see `Commands.register`.
        of_session: its arguments may be left out, and are empty then, beside --session.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        shared = inspect.signature(Request).parameters
        _, *own = inspect.signature(function).parameters.values()
        # Typer could not miss them, as the location before them may be left out.
        words = {word.name: word.annotation for word in own if word.default is word.empty}
        options = [option for option in own if option.name not in words]

        def run(**given: Any) -> None:
            common = {name: given.pop(name) for name in shared}
            values = {text.__metadata__[0].metavar: given.pop(word) for word, text in words.items()}
            common["location"], found = arguments.split_words(
                common["location"], optional=of_session and common["session"] is not None, **values
            )
            function(Request(**common), *found, **given)

        location, *rest = shared.values()
        missing = [location.replace(name=word, annotation=text) for word, text in words.items()]
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in (location, *missing, *options, *rest)
        ]
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        vars(run)["__signature__"] = inspect.Signature(parameters)
        memories.register(name, again=again)(run)
        return function

    return decorate


@_command(again=_ADDING)
def add(
    request: Request,
    text: Text,
    kind: Annotated[
        str, typer.Option(help=f"{', '.join(KINDS)}.", autocompletion=lambda: KINDS)
    ] = "fact",
    metadata: Annotated[
        list[str] | None,
        typer.Option(help="KEY=TEXT, or KEY:=JSON; may be repeated."),
    ] = None,
) -> None:
    """Remember a text; creates the memory if there is none."""
    fact = Fact(
        text=arguments.text_of(text),
        kind=cast(Kind, kind),
        metadata=arguments.parse_metadata(metadata),
    )
    new = arguments.check_new(request.location)
    with request.open(create=True) as memory:
        if new is not None:
            say(f"Made a new memory in {new}.")
        done = memory.add(fact, request.scope)
    _show_write(request, done, _ADDED)


@_command()
def search(
    request: Request,
    question: Question,
    top_k: Annotated[int, typer.Option("--top-k", help="Return at most this many matches.")] = 10,
    threshold: Annotated[
        float | None, typer.Option(help="Leave out matches with a lower score, 0 to 1.")
    ] = None,
    where: FilterText = None,
    kind: KindNames = None,
    *,
    superseded: Superseded = False,
    expired: Expired = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each score is made of.")
    ] = False,
) -> None:
    """Find what answers a question, best first."""
    conditions = arguments.parse_conditions(where)
    with request.open() as memory:
        found = memory.search(
            question, request.scope, top_k=top_k, threshold=threshold, where=conditions,
            kinds=cast(list[Kind], kind or []), include_superseded=superseded,
            include_expired=expired,
        )  # fmt: skip
    if request.as_json:
        document({"matches": found})
    elif found:
        _show_matches(found, explain=explain)
    else:
        say(f"Nothing answers that.{_no_user(request.scope)}")


@_command("list")
def list_records(
    request: Request,
    where: FilterText = None,
    kind: KindNames = None,
    limit: Annotated[int, typer.Option(min=1, help="Return at most this many records.")] = 50,
    *,
    superseded: Superseded = False,
    expired: Expired = False,
) -> None:
    """List what is remembered, newest first."""
    conditions = arguments.parse_conditions(where)
    found: list[Record] = []
    cursor: str | None = None
    with request.open() as memory:
        while len(found) < limit:
            page = memory.list(
                request.scope, where=conditions, kinds=cast(list[Kind], kind or []),
                limit=min(_PAGE, limit - len(found)), cursor=cursor,
                include_superseded=superseded, include_expired=expired,
            )  # fmt: skip
            found += page.records
            cursor = page.cursor
            if cursor is None:
                break
    if request.as_json:
        document({"records": found, "more": cursor is not None})
        return
    if found:
        _show_records(found, superseded=superseded)
    else:
        say(f"Nothing is stored for {_name(request.scope)}.{_no_user(request.scope)}")
    if cursor is not None:
        say(f"There are more: give a --limit above {limit}.")


@_command()
def sessions(
    request: Request,
    limit: Annotated[int, typer.Option(min=1, max=_PAGE, help="At most this many sessions.")] = 50,
) -> None:
    """List conversations, newest first, with their summaries."""
    with request.open() as memory:
        page = memory.sessions(request.scope, limit=limit)
    if request.as_json:
        document({"sessions": page.sessions, "more": page.cursor is not None})
        return
    if not page:
        say(f"No session of {_name(request.scope)} is stored.{_no_user(request.scope)}")
        return
    rows = [
        (one.scope.session_id or "", one.scope.agent_id or "", str(one.turns), moment(one.first_at),
         moment(one.last_at), one.summary.text if one.summary else "")
        for one in page
    ]  # fmt: skip
    table(("session", "agent", "turns", "first", "last", "summary"), rows)
    if page.cursor is not None:
        say(f"There are more: give a --limit above {limit}.")


@_command()
def about(request: Request) -> None:
    """List what a user stated, one line for each matter: what holds now first, without a model.

    Of the newest 250 statements; what held before on a matter stands below it, marked as earlier.
    """
    from ..agents.about import about as plan
    from ..sans_io import on, run_plan

    with request.open() as memory:
        known = run_plan(plan(request.scope), on(memory))
    if request.as_json:
        document({"known": known})
    elif known:
        rows = [
            (short_id(one.record.id), day(one.since), day(one.until), mark + one.text)
            for line in known
            for one, mark in ((line, ""), *((old, _EARLIER) for old in line.earlier))
        ]
        table(("id", "since", "until", "text"), rows)
    else:
        say(f"Nothing is known of {_name(request.scope)}.{_no_user(request.scope)}")


@_command(of_session=True)
def show(request: Request, record_id: RecordId) -> None:
    """Show all of a memory, and the relations that it states; with --session alone, that session.

    Of a session: its summary, its state and its last 20 turns.
    """
    scope = request.scope
    if not record_id:
        if scope.session_id is None:
            refuse("ID is empty. Give that of a memory, or --session to show a session.")
        _show_session(request)
        return
    with request.open() as memory:
        full = _full_id(memory, record_id, scope)
        record = memory.get(full, scope, include_expired=True)
        if record is None:
            raise RecordNotFoundError(record_id=record_id)
        relations = memory.relations(scope, records=[full], include_superseded=True)
        lines = memory.diagram(scope, records=[full], include_superseded=True)
    if request.as_json:
        document({"record": record, "relations": relations})
    else:
        _show_record(record, lines.split("\n") if relations else [])


@_command()
def history(request: Request, record_id: RecordId) -> None:
    """Show every version of a memory, oldest first; a deleted one needs its whole id."""
    with request.open() as memory:
        full = _full_id(memory, record_id, request.scope)
        versions = memory.history(full, request.scope)
    if not versions:
        raise RecordNotFoundError(record_id=record_id)
    if request.as_json:
        document({"versions": versions})
        return
    rows = [(moment(version.at), version.event, version.text or "") for version in versions]
    table(("at", "event", "text"), rows)


@_command(again=_CHANGING)
def update(request: Request, record_id: RecordId, text: Text) -> None:
    """Replace the text of a memory; its history keeps the old text, and its relations end."""
    text = arguments.text_of(text)
    with request.open() as memory:
        full = _full_id(memory, record_id, request.scope)
        done = memory.update(full, text, request.scope)
    _show_write(request, done, _CHANGED)


@_command(again=_CHANGING)
def delete(request: Request, record_id: RecordId) -> None:
    """Delete a memory; its history stays until its user, agent or session is forgotten."""
    with request.open() as memory:
        done = memory.delete(_full_id(memory, record_id, request.scope), request.scope)
    _show_write(request, done, _CHANGED)


@_command(again=_CHANGING)
def restore(request: Request, record_id: RecordId) -> None:
    """Bring back a deleted memory, with its relations; it needs its whole id."""
    with request.open() as memory:
        done = memory.restore(_full_id(memory, record_id, request.scope), request.scope)
    _show_write(request, done, _CHANGED)


@_command()
def graph(
    request: Request,
    entity: Annotated[str | None, typer.Option(help="Only what is around this name.")] = None,
    hops: Annotated[int, typer.Option(help="Relations away from it, 1 to 3.")] = 1,
    *,
    superseded: Superseded = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Write a Mermaid flowchart.")] = False,
) -> None:
    """Show the relations between names, oldest first."""
    if mermaid and request.as_json:
        raise InvalidRecordError(
            field="--mermaid", value=True, reason="cannot be combined with --json"
        )
    with request.open() as memory:
        if request.as_json:
            found = memory.relations(
                request.scope, entity, hops=hops, include_superseded=superseded
            )
            document({"relations": found})
            return
        lines = memory.diagram(
            request.scope, entity, form="mermaid" if mermaid else "text", hops=hops,
            include_superseded=superseded,
        )  # fmt: skip
    if lines:
        for line in lines.split("\n"):
            write(printable(line))
    else:
        say(f"There are no relations of {_name(request.scope)}.{_no_user(request.scope)}")


@_command(again=_ERASING)
def forget(
    request: Request,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be erased.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Erase everything of a user, agent or session for good, with history and pending writes.

    A user's scope covers all agents and sessions of that user. Without --user, only what belongs to
    no user is erased.
    """
    from ..admin import count_rows

    scope = request.scope
    with request.open() as memory:
        if dry_run:
            _show_rows(scope, count_rows(memory, scope), as_json=request.as_json)
            return
        if not yes and not _confirm(memory, scope):
            return
        receipt = memory.forget(scope)
    _show_receipt(receipt, as_json=request.as_json)


def _full_id(memory: "Memory", given: str, scope: Scope) -> str:
    """Find the id of which the first characters are given."""
    if len(given) >= _FULL_ID or not given:
        return given
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = memory.list(
            scope, limit=_PAGE, cursor=cursor, include_superseded=True, include_expired=True
        )
        found += [record.id for record in page.records if record.id.startswith(given.lower())]
        cursor = page.cursor
        if cursor is None:
            break
    if len(found) > 1:
        hint = f"Give more of it: {', '.join(found[:3])}{', …' if len(found) > 3 else ''}."
        raise InvalidRecordError(
            field="ID", value=given, reason=f"is the beginning of {len(found)} ids", hint=hint
        )
    return found[0] if found else given


def _confirm(memory: "Memory", scope: Scope) -> bool:
    """Ask before an erasure, if there is anything to erase."""
    if not can_ask():
        refuse(
            "Nobody can be asked here: give --yes to erase for good. `--dry-run` shows what would "
            "be erased."
        )
    from ..admin import count_rows

    rows = count_rows(memory, scope)
    if not any(rows.values()):
        say(f"Nothing is stored for {_name(scope)} in {memory.location}.{_no_user(scope)}")
        return False
    number = rows["graph.records"]
    records = "1 memory" if number == 1 else f"{number} memories"
    say(f"{records} of {_name(scope)} in {memory.location}, and everything that belongs to them.")
    try:
        is_sure, code = typer.confirm("Erase for good?", err=True), FAILURE
    except (typer.Abort, KeyboardInterrupt):
        is_sure, code = False, INTERRUPTED
        typer.echo(err=True)  # behind what the terminal shows for Ctrl-C
    if not is_sure:
        say("Nothing was erased.")
        raise typer.Exit(code)
    return True


def _show_write(request: Request, done: WriteResult, words: Mapping[str, str]) -> None:
    if request.as_json:
        document(done)
        return
    for change in done.changes:
        text = change.previous if change.text is None else change.text
        answer(f"{words[change.event]}: {short_id(change.id)} {text or ''}")
    if done.pending:
        answer("Accepted; it is stored in the background.")


def _show_matches(found: Sequence[Match], *, explain: bool) -> None:
    columns = ["score", "id", "kind", "since"]
    rows = [
        [f"{match.score:.2f}", short_id(match.record.id),
         match.record.kind, day(match.record.occurred_at),
         (_EARLIER if match.replacement else "") + match.text]
        for match in found
    ]  # fmt: skip
    if not explain:
        table((*columns, "text"), rows)
        return
    for row, match in zip(rows, found, strict=True):
        parts = {name: share for name, share in match.score_details.items() if round(share, 2)}
        row.insert(-1, " ".join(f"{name} {share:+.2f}" for name, share in parts.items()))
    table((*columns, "logit is made of", "text"), rows)


def _show_records(found: Sequence[Record], *, superseded: bool) -> None:
    columns = ["id", "kind", "since", *(["until"] if superseded else []), "text"]
    rows = [
        [short_id(one.id), one.kind, day(one.occurred_at),
         *([day(one.valid_to)] if superseded else []), one.text]
        for one in found
    ]  # fmt: skip
    table(columns, rows)


def _show_session(request: Request) -> None:
    with request.open() as memory:
        session = memory.session(request.scope)
        summary, state, turns = session.summary(), session.state(), session.messages()
    if request.as_json:
        document({"summary": summary, "state": state, "turns": turns})
        return
    if not (summary or state or turns):
        say(f"Nothing is stored for {_name(request.scope)}.{_no_user(request.scope)}")
        return
    shown = {} if summary is None else {"summary": summary.text}
    fields(shown | _values("state", state))
    rows = [(moment(one.occurred_at), one.name or one.role or "", one.text) for one in turns]
    table(("at", "who", "text"), rows)


def _show_record(record: Record, relations: Sequence[str]) -> None:
    values: dict[str, object] = {
        "id": record.id, "text": record.text, "kind": record.kind, "user": record.scope.user_id,
        "agent": record.scope.agent_id, "session": record.scope.session_id, "role": record.role,
        "name": record.name, "situation": record.situation, "outcome": record.outcome,
        "origin": f"{record.origin}, trust {record.trust:g}", "since": moment(record.occurred_at),
        "until": moment(record.valid_to), "expires": moment(record.expires_at),
        "created": moment(record.created_at), "updated": moment(record.updated_at),
        "told": f"{record.times_told} times" if record.times_told > 1 else "once",
        "importance": f"{record.importance:g}{', pinned' if record.pinned else ''}",
        "votes": record.votes or None, "conflicts": ", ".join(record.conflicts),
    }  # fmt: skip
    shown = {name: str(value) for name, value in values.items() if value not in (None, "")}
    shown |= _values("metadata", record.metadata)
    shown |= {f"relation {n}": line for n, line in enumerate(relations, start=1)}
    fields(shown)


def _values(name: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Write values under their keys, what is no text as JSON."""
    return {
        f"{name}.{key}": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in given.items()
    }


def _show_rows(scope: Scope, rows: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        document({"scope": scope, "rows": rows})
        return
    table(("what", "number"), [(_RECEIPTS.get(name, name), str(rows[name])) for name in rows])
    if any(rows.values()):
        say(f"Nothing was erased. Without --dry-run, everything of {_name(scope)} would be.")
    else:
        say(f"Nothing is stored for {_name(scope)}.{_no_user(scope)}")


def _show_receipt(receipt: EraseReceipt, *, as_json: bool) -> None:
    if as_json:
        shown = ("scope", "removed", "left", "complete", "at")
        document({name: getattr(receipt, name) for name in shown})
    else:
        names = dict.fromkeys((*receipt.removed, *receipt.left))
        rows = [
            (
                _RECEIPTS.get(name, name),
                str(receipt.removed.get(name, 0)),
                str(receipt.left.get(name, 0)),
            )
            for name in names
        ]
        table(("what", "removed", "left"), rows)
    if not receipt.complete:
        say("Something is left: run the same command again.", style="red")
        raise typer.Exit(FAILURE)
    if as_json:
        return
    if any(receipt.removed.values()):
        say(f"Everything of {_name(receipt.scope)} is erased.")
    else:
        say(f"Nothing was stored for {_name(receipt.scope)}.{_no_user(receipt.scope)}")


def _name(scope: Scope) -> str:
    """Name a scope in a sentence."""
    parts = {"agent": scope.agent_id, "session": scope.session_id}
    given = [f"{name} {value!r}" for name, value in parts.items() if value is not None]
    if scope.user_id is None:
        return f"{', '.join(given)} without a user"
    return ", ".join((f"user {scope.user_id!r}", *given))


def _no_user(scope: Scope) -> str:
    """Say in a second sentence what a scope without a user leaves out."""
    return "" if scope.user_id is not None else " Memories of a user are only found with --user."
