"""The commands of `commonplace`: parse arguments, call one function of `admin`, print the result.

An installed adapter adds a subcommand to `commonplace import` by the entry point group
`commonplace.importers`: a function, loaded when its name is asked for.
"""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

from .. import admin
from ..errors import MissingExtraError
from ..settings import Settings

try:
    import typer
    from typer.core import TyperGroup
except ImportError as error:
    raise MissingExtraError(package="typer", extra="cli") from error

from . import arguments
from .output import WRONG, answer, progress, say, told

GROUP = "commonplace.importers"


class Importers(TyperGroup):
    """Our own subcommands and those of installed adapters."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Name them all, sorted."""
        return sorted({*super().list_commands(ctx), *entry_points(group=GROUP).names})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find ours, or load an adapter's."""
        found = super().get_command(ctx, cmd_name)
        for one in entry_points(group=GROUP, name=cmd_name) if found is None else ():
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(told(told(one.load)()))
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
        help=r"sentence-encoder, fastembed:MODEL or openai:MODEL\[@DIMENSIONS].",  # for rich
    ),
]
SENTENCE = "sentence-encoder"
app = typer.Typer(
    name="commonplace",
    help="Move, rebuild and look after long-term memories.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
imports = typer.Typer(
    cls=Importers, no_args_is_help=True, help="Read memories from a file or another system."
)
app.add_typer(imports, name="import")


@app.command()
@told
def copy(source: PlaceName, target: PlaceName, embedder: EmbedderName = SENTENCE) -> None:
    """Copy all memories into an empty place; cut at any point and run again, it goes on."""
    model = arguments.embedder_of(embedder)
    with (
        arguments.opened(source, model) as one,
        arguments.opened(target, model) as other,
        progress() as tell,
    ):
        done = admin.copy(one, other, progress=tell)
    _say_copied(done)


@app.command()
@told
def export(place: PlaceName, file: Path, embedder: EmbedderName = SENTENCE) -> None:
    """Write all memories, without vectors, to a file of JSON lines; equal memories, equal files."""
    with arguments.opened(place, arguments.embedder_of(embedder)) as memory, progress() as tell:
        number = admin.export(memory, file, progress=tell)
    answer(f"{number} lines are in {file}.")


@imports.command("file")
@told
def import_file(file: Path, place: PlaceName, embedder: EmbedderName = SENTENCE) -> None:
    """Read into an empty place what `commonplace export` wrote."""
    with arguments.opened(place, arguments.embedder_of(embedder)) as memory, progress() as tell:
        done = admin.restore(file, memory, progress=tell)
    _say_copied(done)


@app.command()
@told
def reindex(place: PlaceName, embedder: EmbedderName = SENTENCE) -> None:
    """Rebuild the vectors of a place from its graph store, with the embedder that it has."""
    where, settings = arguments.find(place), Settings.from_env()
    with progress() as tell:
        done = admin.reindex(where, settings, arguments.embedder_of(embedder), progress=tell)
    _say_rebuilt(done)


@app.command()
@told
def reembed(
    place: PlaceName,
    embedder: Annotated[
        str, typer.Option("--embedder", help="The new one, named as for the other commands.")
    ],
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the former vectors there.")] = False,
) -> None:
    """Give a place another embedder: new vectors beside the old ones, then the switch."""
    where, settings, model = (
        arguments.find(place),
        Settings.from_env(),
        arguments.embedder_of(embedder),
    )
    with progress() as tell:
        done = admin.reembed(where, settings, model, keep=keep, progress=tell)
    _say_rebuilt(done)


@app.command()
@told
def doctor(place: PlaceName, embedder: EmbedderName = SENTENCE) -> None:
    """Say what waits, what cannot be applied, what is there, and whether the stores agree."""
    with arguments.opened(place, arguments.embedder_of(embedder)) as memory:
        found = admin.examine(memory)
    for table, number in found.counts.items():
        answer(f"{table}: {number}")
    answer(f"indexed: {found.indexed}")
    answer(f"pending: {found.pending}")
    for one in found.dead:
        answer(f"dead: {one.operation} ({one.kind}, {one.attempts} attempts): {one.reason}")
    for what in ("missing", "outdated", "orphans"):
        if ids := getattr(found, what):
            answer(f"{what} in the index: {len(ids)}, such as {ids[0]}")
    if not found.agree:
        say(
            "The index differs from the graph store: `commonplace reindex` rebuilds it.",
            style="red",
        )
    if found.dead:
        say("Some writes cannot be applied: `commonplace retry` tries them again.", style="red")
    if not found.well:
        raise typer.Exit(WRONG)
    answer("All is well.")


@app.command()
@told
def retry(
    place: PlaceName,
    operations: Annotated[
        list[str] | None, typer.Argument(help="Those that doctor named; all when missing.")
    ] = None,
    embedder: EmbedderName = SENTENCE,
) -> None:
    """Try again what could not be applied."""
    with arguments.opened(place, arguments.embedder_of(embedder)) as memory:
        chosen = operations or [one.operation for one in memory.dead_letters()]
        revived = memory.retry(chosen)
        left = memory.flush()
    answer(f"{revived} tried again, {left.dead} are dead, {left.pending} wait.")
    if left.dead or left.pending or revived < len(set(chosen)):
        raise typer.Exit(WRONG)


def _say_rebuilt(done: admin.Filled) -> None:
    answer(f"{done.embedded} records embedded. The new index is in use.")


def _say_copied(done: admin.Copied) -> None:
    for table, number in done.target.counts.items():
        equal = done.source.hashes[table] == done.target.hashes[table]
        verdict = "identical" if equal else f"DIFFERENT, the source has {done.source.counts[table]}"
        answer(f"{table}: {number} {verdict}")
    answer(f"vectors: {done.filled.taken} taken over, {done.filled.embedded} embedded anew")
    if done.dead:
        say(f"{done.dead} dead letters stay with the source.", style="yellow")
    if not done.complete:
        say("Somebody wrote meanwhile, or the target is in use: the copies differ.", style="red")
        raise typer.Exit(WRONG)
