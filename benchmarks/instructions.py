"""Are standing instructions told from ordinary sentences? Precision and recall of their forms.

And do they give way to what ends or eases them, and to nothing else, such as a wish for a text?

    python benchmarks/instructions.py [--misses]

The sentences are in `instructions.toml`. A figure on those that were written with the patterns at
hand flatters them; the ones kept apart say what to expect.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from commonplace.agents import find_instructions
from commonplace.agents.standing_instructions import without_replaced
from commonplace.types import Record, Scope, now

_NOW = now()


def main(
    *, misses: Annotated[bool, typer.Option(help="Print the sentences that went wrong.")] = False
) -> None:
    """Print precision and recall of each set."""
    sets = tomllib.loads(Path(__file__).with_name("instructions.toml").read_text(encoding="utf-8"))
    table = Table(title="standing instructions")
    for name in ("language", "sentences", "precision", "recall", "standing", "ordinary"):
        table.add_column(name)
    ending, later, wishes = (sets.pop(name) for name in ("ending", "later", "wishes"))
    wrong: list[str] = []
    for language, parts in sets.items():
        for part, texts in parts.items():
            missed = [one for one in texts["standing"] if not find_instructions(one)]
            taken = [one for one in texts["ordinary"] if find_instructions(one)]
            found = len(texts["standing"]) - len(missed)
            table.add_row(
                language,
                part,
                f"{found / max(1, found + len(taken)):.3f}",
                f"{found / len(texts['standing']):.3f}",
                str(len(texts["standing"])),
                str(len(texts["ordinary"])),
            )
            wrong += [f"missed: {one}" for one in missed] + [f"taken: {one}" for one in taken]
    Console().print(table)
    Console().print(_ended(ending, wrong))
    Console().print(_later(later, wrong))
    Console().print(_wishes(wishes, wrong))
    if misses:
        Console().print("\n".join(wrong))


def _ended(sets: dict[str, Any], wrong: list[str]) -> Table:
    """Count the instructions that give way to what ends them, and those that should not."""
    table = Table(title="instructions that give way")
    for name in ("sentences", "end", "of", "others end", "of", "ordinary taken", "of"):
        table.add_column(name)
    for part, texts in sets.items():
        held = [pair for pair in texts["pairs"] if not _gives_way(*pair)]
        lost = [pair for pair in texts["other"] if _gives_way(*pair)]
        taken = [one for one in texts["ordinary"] if find_instructions(one)]
        counts = []
        for name, failed in (("pairs", held), ("other", lost), ("ordinary", taken)):
            count = len(texts[name]) - len(failed) if name == "pairs" else len(failed)
            counts += [str(count), str(len(texts[name]))]
        table.add_row(part, *counts)
        wrong += [f"held: {old} | {new}" for old, new in held]
        wrong += [f"lost: {old} | {new}" for old, new in lost]
        wrong += [f"taken: {one}" for one in taken]
    return table


def _later(sets: dict[str, Any], wrong: list[str]) -> Table:
    """Count what is recognised, gives way, and is taken or ended by ordinary sentences."""
    table = Table(title="instructions and what is said later")
    for name in ("sentences", "found", "end", "of", "ordinary taken", "end one", "of"):
        table.add_column(name)
    for part, texts in sets.items():
        pairs, ordinary = texts["pairs"], texts["ordinary"]
        held = [pair for pair in pairs if not _gives_way(*pair)]
        taken = [one for one in ordinary if find_instructions(one)]
        ending = [one for one in ordinary if any(_gives_way(old, one) for old, _ in pairs)]
        found = sum(bool(find_instructions(old)) for old, _ in pairs)
        counts = (found, len(pairs) - len(held), len(pairs), len(taken), len(ending))
        table.add_row(part, *map(str, counts), str(len(ordinary)))
        wrong += [f"held: {old} | {new}" for old, new in held]
        wrong += [f"taken: {one}" for one in taken] + [f"ends: {one}" for one in ending]
    return table


def _wishes(sets: dict[str, Any], wrong: list[str]) -> Table:
    """Count the wishes for one text that are taken for an instruction, or for the end of one."""
    table = Table(title="wishes for the text at hand")
    for name in ("sentences", "taken", "of"):
        table.add_column(name)
    for part, texts in sets.items():
        triples = texts["triples"]
        taken = [one for old, text, one in triples if find_instructions(one, [old], [text])]
        table.add_row(part, str(len(taken)), str(len(triples)))
        wrong += [f"taken: {one}" for one in taken]
    return table


def _gives_way(old: str, new: str) -> bool:
    """Return whether the first of two texts is an instruction that the second one ends."""
    held, later = find_instructions(old), find_instructions(new, find_instructions(old))
    if not held:
        return False
    shown = without_replaced([_record(one) for one in (*later, *held)])
    return not {_record(one).id for one in held} & {one.id for one in shown}


def _record(text: str) -> Record:
    return Record(
        id=text, text=text, scope=Scope(user_id="user"), created_at=_NOW, updated_at=_NOW,
        occurred_at=_NOW,
    )  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
