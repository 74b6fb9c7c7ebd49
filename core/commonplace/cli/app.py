"""Commands of `commonplace`: parse arguments, call one function of `admin`, print the result.

An installed adapter adds a subcommand to `commonplace import` by the entry point group
`commonplace.importers`: a function, loaded when its name is used.
"""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

from .. import admin
from ..errors import MissingExtraError
from ..settings import Location, Settings

try:
    import typer
    from typer.core import TyperGroup
except ImportError as error:
    raise MissingExtraError(package="typer", extra="cli") from error

from . import arguments
from .output import FAILURE, answer, exit_on_error, progress, say

GROUP = "commonplace.importers"
_MAX_FAULTS = 20


class Importers(TyperGroup):
    """Our own subcommands and those of installed adapters."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of all subcommands, sorted."""
        return sorted({*super().list_commands(ctx), *entry_points(group=GROUP).names})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a subcommand of ours, or load an adapter's."""
        found = super().get_command(ctx, cmd_name)
        for one in entry_points(group=GROUP, name=cmd_name) if found is None else ():
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(exit_on_error(exit_on_error(one.load)()))
            return typer.main.get_command(alone)
        return found


PlaceName = Annotated[
    str, typer.Argument(help="A folder, or graph=URL,vectors=URL[,journal=FOLDER].")
]
EmbedderName = Annotated[
    str,
    typer.Option(
        "--embedder",
        envvar="COMMONPLACE_EMBEDDER",
        # The backslash is for rich.
        help=r"sentence-encoder, minilm-tokens, fastembed:MODEL or openai:MODEL\[@DIMENSIONS].",
    ),
]
SENTENCE = "sentence-encoder"
app: typer.Typer = typer.Typer(
    name="commonplace",
    help="Copy, back up, rebuild, check and salvage long-term memories.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
imports: typer.Typer = typer.Typer(
    cls=Importers, no_args_is_help=True, help="Read memories from a file or another system."
)
app.add_typer(imports, name="import")


@app.command()
@exit_on_error
def copy(source: PlaceName, target: PlaceName, embedder: EmbedderName = SENTENCE) -> None:
    """Copy all memories into an empty place; interrupted and run again, it goes on."""
    model = arguments.embedder_of(embedder)
    with (
        arguments.opened(source, model, create=False) as one,
        arguments.opened(target, model) as other,
        progress() as show,
    ):
        done = admin.copy(one, other, progress=show)
    _show_copy(done)


@app.command()
@exit_on_error
def export(place: PlaceName, file: Path, embedder: EmbedderName = SENTENCE) -> None:
    """Write all memories, without vectors, to a file of JSON lines; equal memories, equal files."""
    model = arguments.embedder_of(embedder)
    with arguments.opened(place, model, create=False) as memory, progress() as show:
        number = admin.export(memory, file, progress=show)
    answer(f"{number} lines are in {file}.")


@imports.command("file")
@exit_on_error
def import_file(file: Path, place: PlaceName, embedder: EmbedderName = SENTENCE) -> None:
    """Read into an empty place a file that `commonplace export` wrote."""
    model = arguments.embedder_of(embedder)
    with progress() as show:
        checked = admin.ExportFile.check(file, progress=show)
        with arguments.opened(place, model) as memory:
            done = admin.restore(checked, memory, progress=show)
    _show_copy(done)


@app.command()
@exit_on_error
def backup(
    place: PlaceName,
    file: Path,
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a file that is there.")
    ] = False,
) -> None:
    """Write a whole memory to one file, while others write to it.

    To open a backup, put the file as memory.db into a folder of its own: that folder is a memory.
    """
    size = admin.backup(arguments.find(place), file, replace=replace)
    answer(f"{size} bytes are in {file}.")


@app.command()
@exit_on_error
def salvage(
    file: Annotated[Path, typer.Argument(help="A damaged memory.db, or its folder.")],
    target: Annotated[Path, typer.Argument(help="A new folder.")],
) -> None:
    """Bring what can be read of a damaged memory into a new folder; the file stays as it is."""
    with progress() as show:
        done = admin.salvage(file, target, progress=show)
    for table, number in done.read.items():
        lost = done.lost.get(table)
        outcome = "all" if lost is None else f"{lost or 'an unknown number'} lost"
        answer(f"{table}: {number} {outcome}")
    answer(f"`commonplace doctor {target}` tells whether `commonplace reindex` has work to do.")
    if not done.is_complete:
        say("Some rows could not be read. The damaged file is as it was.", style="red")
        raise typer.Exit(FAILURE)


@app.command()
@exit_on_error
def reindex(place: PlaceName, embedder: EmbedderName = SENTENCE) -> None:
    """Rebuild the index of a place from its graph store, with the embedder that it has."""
    where, settings = arguments.find(place, create=False), Settings.from_env()
    with progress() as show:
        done = admin.reindex(where, settings, arguments.embedder_of(embedder), progress=show)
    _show_rebuild(done)


@app.command()
@exit_on_error
def reembed(
    place: PlaceName,
    embedder: Annotated[
        str, typer.Option("--embedder", help="The new embedder, named as for the other commands.")
    ],
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the former index.")] = False,
) -> None:
    """Give a place another embedder: build a new index beside the old one, then switch."""
    where, settings, model = (
        arguments.find(place, create=False),
        Settings.from_env(),
        arguments.embedder_of(embedder),
    )
    with progress() as show:
        done = admin.reembed(where, settings, model, keep=keep, progress=show)
    _show_rebuild(done)


@app.command()
@exit_on_error
def doctor(place: PlaceName, embedder: EmbedderName = SENTENCE) -> None:
    """Check the files; show pending writes, dead letters, the contents, and stores that differ."""
    model = arguments.embedder_of(embedder)
    _check_files(arguments.find(place))
    with arguments.opened(place, model, create=False) as memory:
        found = admin.examine(memory)
    for table, number in found.counts.items():
        answer(f"{table}: {number}")
    answer(f"indexed: {found.indexed}")
    answer(f"pending: {found.pending}")
    for one in found.dead:
        answer(f"dead: {one.operation} ({one.kind}, {one.attempts} attempts): {one.reason}")
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
    if not found.is_healthy:
        raise typer.Exit(FAILURE)
    answer("All is well.")


@app.command()
@exit_on_error
def retry(
    place: PlaceName,
    operations: Annotated[
        list[str] | None, typer.Argument(help="Operations that doctor listed; all when missing.")
    ] = None,
    embedder: EmbedderName = SENTENCE,
) -> None:
    """Retry dead letters."""
    model = arguments.embedder_of(embedder)
    with arguments.opened(place, model, create=False) as memory:
        chosen = operations or [one.operation for one in memory.dead_letters()]
        retried = memory.retry(chosen)
        left = memory.flush()
    answer(f"{retried} retried, {left.dead} dead, {left.pending} pending.")
    if left.dead or left.pending or retried < len(set(chosen)):
        raise typer.Exit(FAILURE)


def _check_files(location: Location) -> None:
    """Show what is damaged; that is not opened, as it would be written to."""
    damaged = False
    for file, found in admin.check_files(location).items():
        answer(f"{file.name}: {f'{len(found)} faults' if found else 'sound'}")
        for one in found[:_MAX_FAULTS]:
            answer(f"damaged: {one}")
        damaged = damaged or bool(found)
    if damaged:
        say(
            "A file is damaged, so nothing else was looked at: stop what uses it, and bring what "
            "can be read into a new folder by `commonplace salvage`, or restore a backup.",
            style="red",
        )
        raise typer.Exit(FAILURE)


def _show_rebuild(done: admin.BackfillReport) -> None:
    answer(f"{done.embedded} records embedded. The new index is in use.")


def _show_copy(done: admin.CopyReport) -> None:
    for table, number in done.target.counts.items():
        equal = done.source.hashes[table] == done.target.hashes[table]
        verdict = "identical" if equal else f"DIFFERENT, the source has {done.source.counts[table]}"
        answer(f"{table}: {number} {verdict}")
    answer(f"vectors: {done.backfill.reused} reused, {done.backfill.embedded} embedded")
    if done.dead:
        say(f"{done.dead} dead letters stay with the source.", style="yellow")
    if not done.complete:
        say("The copies differ: somebody wrote meanwhile, or the target is in use.", style="red")
        raise typer.Exit(FAILURE)
