"""Commands for operators, over all users: stats, doctor, retry, moving of whole memories, pages.

Each parses arguments, calls one function of `admin` or `web` and prints the result.
"""

import re
import secrets
import socket
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import MissingExtraError
from ..settings import Location, Settings
from ..types import Scope
from . import arguments
from .options import SENTENCE, AsJson, Commands, EmbedderName, OptionalPlaceName, PlaceName
from .output import FAILURE, answer, document, refuse, say, size, table
from .progress_bars import progress

if TYPE_CHECKING:
    from .. import admin
else:

    class _Admin:
        """`commonplace.admin`, imported when a command uses it: the help does without."""

        def __getattr__(self, name: str) -> object:
            return getattr(import_module("commonplace.admin"), name)

    admin = _Admin()

# Words for the tables of the embedded engines, and for what is counted of a memory or a copy of it;
# `--json` keeps the names.
_TABLES = {
    "record": "memories, deleted ones included",
    "version": "versions of memories",
    "recall": "recalls of memories",
    "relation": "relations",
    "support": "memories that state relations",
    "entity": "names in relations",
    "pair": "parts of names",
    "session": "sessions",
    "erasure": "erased scopes",
    "thread": "threads of agents",
    "checkpoint": "checkpoints of threads",
    "channel_value": "values in checkpoints",
    "task_write": "writes of unfinished steps",
    "op": "pending writes and dead letters",
    "fence": "marks of the last write",
    "meta": "properties of the file",
}
_CONTENTS = {**_TABLES, "fence": "erased scopes", "live": "memories", "state": "states of sessions"}
_POINT = re.compile(r"point(_\d+)?(_change)?")

_MAX_FAULTS = 20
_MAX_USERS = 50
_GOES_ON = "Run the same command again: it goes on."
_ANEW = "No file was written; run the same command again: it begins anew."
_REBUILDING = "The index in use is whole; run the same command again: it goes on."
_RETRYING = "What was retried is not lost; run the same command again."
_SALVAGING = "The damaged file is as it was; run the same command again: it begins anew."

operators = Commands("Operators")
imports = Commands()


@operators.register()
def stats(location: OptionalPlaceName = None, *, as_json: AsJson = False) -> None:
    """Count the records of all users by kind, the bytes of the files, and pending writes."""
    where, settings = arguments.find(location, create=False), arguments.settings_of(location)
    with progress() as show:
        found = admin.contents(where, settings, progress=show)
    if as_json:
        users = [{"user_id": user, "records": kinds} for user, kinds in found.records.items()]
        document(
            {
                "users": users,
                "files": {str(file): number for file, number in found.files.items()},
                "pending": found.pending,
                "dead": found.dead,
            }
        )
    else:
        _show_contents(found)


@operators.register()
def doctor(
    place: OptionalPlaceName = None, embedder: EmbedderName = SENTENCE, *, as_json: AsJson = False
) -> None:
    """Check the files and whether the stores agree; show pending writes and dead letters."""
    _check_files(arguments.find(place), as_json=as_json)
    with arguments.opened(place, embedder, create=False) as memory:
        found = admin.examine(memory)
    if as_json:
        document({"healthy": found.is_healthy, "damaged": {}, "state": found})
    else:
        _show_health(found)
    if not found.is_healthy:
        raise typer.Exit(FAILURE)


@operators.register(again=_RETRYING)
def retry(
    place: PlaceName,
    operations: Annotated[
        list[str] | None, typer.Argument(help="Operations that doctor listed; by default all.")
    ] = None,
    embedder: EmbedderName = SENTENCE,
    *,
    as_json: AsJson = False,
) -> None:
    """Apply dead letters again."""
    with arguments.opened(place, embedder, create=False) as memory:
        known = [letter.operation for letter in memory.admin.dead_letters()]
        for unknown in set(operations or ()).difference(known):
            say(f"There is no dead letter {unknown!r}.", style="red")
        chosen = operations or known
        retried = memory.admin.retry(chosen)
        left = memory.flush()
    if as_json:
        document({"retried": retried, "dead": left.dead, "pending": left.pending})
    else:
        dead, pending = _count(left.dead, "dead letter"), _count(left.pending, "pending write")
        answer(f"{retried} retried, {dead}, {pending}.")
    if left.dead or left.pending or retried < len(set(chosen)):
        raise typer.Exit(FAILURE)


@operators.register(again=_GOES_ON)
def copy(
    source: PlaceName,
    target: PlaceName,
    embedder: EmbedderName = SENTENCE,
    *,
    as_json: AsJson = False,
) -> None:
    """Copy all memories to an empty location; run again after an interruption, it goes on."""
    model = arguments.embedder_of(embedder)
    with (
        arguments.opened(source, model, create=False) as original,
        arguments.opened(target, model) as duplicate,
        progress() as show,
    ):
        done = admin.copy(original, duplicate, progress=show)
    _show_copy(done, as_json=as_json)


@operators.register(again=_ANEW)
def export(
    place: OptionalPlaceName = None,
    file: Annotated[str | None, typer.Argument(metavar="FILE", show_default=False)] = None,
    embedder: EmbedderName = SENTENCE,
    *,
    user: Annotated[
        str | None, typer.Option("--user", help="Only what is of this user, for that person.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write all memories and states of sessions to a file, which `import file` reads.

    Its lines are JSON. Vectors and checkpoints of agents' runs are left out.
    """
    place, [name] = arguments.split_words(place, FILE=file)
    with arguments.opened(place, embedder, create=False) as memory, progress() as show:
        number = admin.export(memory, Path(name), user=user, progress=show)
    if as_json:
        document({"file": name, "lines": number})
    else:
        answer(f"{number} lines are in {name}.")


@imports.register("file", again=_GOES_ON)
def import_file(
    file: Path, place: PlaceName, embedder: EmbedderName = SENTENCE, *, as_json: AsJson = False
) -> None:
    """Read a file that `commonplace export` wrote into an empty location."""
    with progress() as show:
        checked = admin.ExportFile.check(file, progress=show)
        with arguments.opened(place, embedder) as memory:
            done = admin.restore(checked, memory, progress=show)
    _show_copy(done, as_json=as_json)


@operators.register(again=_ANEW)
def backup(
    place: PlaceName,
    file: Path,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a whole memory to one file, while others write to it.

    To open a backup, put the file as memory.db into a folder of its own: that folder is a memory.
    """
    with progress() as show:
        number = admin.backup(arguments.find(place), file, replace=replace, progress=show)
    if as_json:
        document({"file": str(file), "bytes": number})
    else:
        answer(f"{number} bytes are in {file}.")


@operators.register(again=_SALVAGING)
def salvage(
    file: Annotated[Path, typer.Argument(help="A damaged memory.db, or its folder.")],
    target: Annotated[Path, typer.Argument(help="A new folder.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Save what can be read of a damaged memory to a new folder; the file stays as it is."""
    with progress() as show:
        done = admin.salvage(file, target, progress=show)
    if as_json:
        document({"complete": done.is_complete, "read": done.read, "lost": done.lost})
    else:
        for name, number in done.read.items():
            lost = done.lost.get(name)
            outcome = "all" if lost is None else f"{lost or 'an unknown number'} lost"
            if number or lost is not None:
                answer(f"{_table_label(name)}: {number}, {outcome}")
        answer(f"`commonplace doctor {target}` tells whether `commonplace reindex` has work to do.")
    if not done.is_complete:
        say("Some rows could not be read. The damaged file is as it was.", style="red")
        raise typer.Exit(FAILURE)


@operators.register(again=_REBUILDING)
def reindex(
    place: OptionalPlaceName = None, embedder: EmbedderName = SENTENCE, *, as_json: AsJson = False
) -> None:
    """Rebuild the index from the records, with the same embedder."""
    where, settings = arguments.find(place, create=False), Settings.from_env()
    with progress() as show:
        done = admin.reindex(where, settings, arguments.embedder_of(embedder), progress=show)
    _show_rebuild(done, as_json=as_json)


@operators.register(again=_REBUILDING)
def reembed(
    embedder: Annotated[
        str, typer.Option("--embedder", help="The new embedder, named as in the other commands.")
    ],
    place: OptionalPlaceName = None,
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the old index.")] = False,
    as_json: AsJson = False,
) -> None:
    """Change the embedder: build a new index beside the old one, then switch to it."""
    where, settings, model = (
        arguments.find(place, create=False),
        Settings.from_env(),
        arguments.embedder_of(embedder),
    )
    with progress() as show:
        done = admin.reembed(where, settings, model, keep=keep, progress=show)
    _show_rebuild(done, as_json=as_json)


@operators.register()
def serve(
    location: OptionalPlaceName = None,
    embedder: EmbedderName = SENTENCE,
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8765,
    write: Annotated[
        bool, typer.Option("--write", help="Let forms change, delete and erase.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name by which browsers reach this host; may be repeated."),
    ] = None,
    users_file: Annotated[
        Path | None,
        typer.Option(help="Hashes of the tokens of users, who see only their own."),
    ] = None,
    new_token: Annotated[
        str | None,
        typer.Option(help="Add a token of this user to the users file, print it, and end."),
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option(help="Header in which a reverse proxy tells the id of the user."),
    ] = None,
) -> None:
    """Show in a browser what is remembered, and why it is recalled; for this host alone."""
    from .. import web
    from ..agents.lazy_memory import start_warming

    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(package="uvicorn", extra="serve") from error
    if new_token is not None:
        if users_file is None:
            refuse("Give --users-file, to which the token is added.")
        Scope(user_id=new_token)  # refuses an id that no user can have
        answer(web.add_user_token(users_file, new_token))
        return
    if user_header is not None and users_file is not None:
        refuse("Give --user-header or --users-file, not both.")
    hosts = [*web.LOOPBACK, host, *(allow_host or ())]
    with arguments.opened(location, embedder, create=False) as memory:
        start_warming(memory)  # while the link is opened: the first question has no time for it
        token = None if user_header is not None else secrets.token_urlsafe(32)
        app = web.create_app(
            memory,
            token=token,
            users=web.read_users(users_file) if users_file else None,
            login=None if user_header is None else web.header_login(user_header),
            write=write,
            hosts=hosts,
        )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
        # Without this each answer waits 40 ms for the browser to confirm its first packet.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}"
        answer(f"{address}/login?token={token}" if token else address)
        if host not in ("127.0.0.1", "::1", "localhost"):
            say("Others can reach this: put a reverse proxy with TLS in front.", style="yellow")
        config = uvicorn.Config(app, log_level="warning", server_header=False, access_log=False)
        uvicorn.Server(config).run(sockets=[listening])


def _check_files(location: Location, *, as_json: bool) -> None:
    """Show what is damaged; that is not opened, as it would be written to."""
    checked = admin.check_files(location)
    damaged = {file: found for file, found in checked.items() if found}
    if not as_json:
        for file, found in checked.items():
            answer(f"{file.name}: {f'{len(found)} faults' if found else 'sound'}")
            for fault in found[:_MAX_FAULTS]:
                answer(f"damaged: {fault}")
    elif damaged:
        faults = {str(file): found for file, found in damaged.items()}
        document({"healthy": False, "damaged": faults, "state": None})
    if damaged:
        say(
            "A file is damaged, so nothing else was looked at: stop what uses it, and bring what "
            "can be read into a new folder by `commonplace salvage`, or restore a backup.",
            style="red",
        )
        raise typer.Exit(FAILURE)


def _table_label(table: str) -> str:
    """Name what the rows of a table of the embedded engines are."""
    if point := _POINT.fullmatch(table):
        return "owners with vectors" if point[2] else "vectors"
    return _TABLES.get(table, table)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _show_health(found: "admin.Health") -> None:
    for name, number in found.counts.items():
        answer(f"{_CONTENTS.get(name, name)}: {number}")
    answer(f"memories in the index: {found.indexed}")
    answer(f"pending writes: {found.pending}")
    for letter in found.dead:
        attempts = _count(letter.attempts, "attempt")
        answer(f"dead letter: {letter.operation} ({letter.kind}, {attempts}): {letter.reason}")
    for fault in ("missing", "outdated", "orphans"):
        if ids := getattr(found, fault):
            answer(f"{fault} in the index: {len(ids)}, such as {ids[0]}")
    if not found.is_consistent:
        say(
            "The index differs from the graph store: `commonplace reindex` rebuilds it.",
            style="red",
        )
    if found.dead:
        say("Some writes cannot be applied: `commonplace retry` retries them.", style="red")
    if found.is_healthy:
        answer("All is well.")


def _show_contents(found: "admin.Contents") -> None:
    kinds = sorted({kind for counts in found.records.values() for kind in counts})
    ordered = sorted(
        found.records.items(), key=lambda item: (-sum(item[1].values()), item[0] or "")
    )
    rows = [
        [user or "(no user)", *(str(counts.get(kind, 0)) for kind in kinds),
         str(sum(counts.values()))]
        for user, counts in ordered[:_MAX_USERS]
    ]  # fmt: skip
    if len(ordered) > 1:
        every: Counter[str] = Counter()
        for counts in found.records.values():
            every.update(counts)
        rows.append(["all users", *(str(every[kind]) for kind in kinds), str(every.total())])
    if rows:
        table(("user", *kinds, "records"), rows)
    if len(ordered) > _MAX_USERS:
        say(f"{len(ordered) - _MAX_USERS} users with fewer records are left out; see --json.")
    for file, number in found.files.items():
        answer(f"{file}: {size(number)}")
    answer(f"pending writes: {found.pending}")
    answer(f"dead letters: {found.dead}")


def _show_rebuild(done: "admin.BackfillReport", *, as_json: bool) -> None:
    if as_json:
        document(done)
    else:
        answer(f"{done.embedded} records embedded. The new index is in use.")


def _show_copy(done: "admin.CopyReport", *, as_json: bool) -> None:
    if as_json:
        document({"complete": done.complete, "report": done})
    else:
        for name, number in done.target.counts.items():
            equal = done.source.hashes[name] == done.target.hashes[name]
            source = done.source.counts[name]
            verdict = "identical" if equal else f"DIFFERENT, the source has {source}"
            answer(f"{_CONTENTS.get(name, name)}: {number}, {verdict}")
        answer(f"vectors: {done.backfill.reused} reused, {done.backfill.embedded} embedded")
    if done.dead:
        say(f"{done.dead} dead letters stay with the source.", style="yellow")
    if not done.complete:
        say(
            "The copies differ, as one of them was written to meanwhile. Stop what writes to them "
            "and run the same command again. If they still differ, copy into another, empty place.",
            style="red",
        )
        raise typer.Exit(FAILURE)
