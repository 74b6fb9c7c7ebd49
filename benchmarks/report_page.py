"""Markdown of `docs/benchmarks.md`, from the results that `report.py` keeps; measures nothing."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

RATIO = re.compile(r"^([\d,.]+) \(([\d.]+)\)$")
BUSY = 1.5  # load above which figures of time are too high; the part before was one process
SLOWER = 0.9  # of ours; what lies between is noise
NOT_SHOWN = {"by language and extraction"}
NO_RIVAL = {"no memory"}
OURS = "commonplace"
FINDS_MORE = 0.005  # recall; what is less is noise

TEXTS = tomllib.loads(Path(__file__).with_name("report.toml").read_text("utf-8"))
SETS = {"--long": "long messages", "--lists": "lists", "--chinese": "Chinese"}


def page(results: Mapping[str, Any]) -> str:
    """Write the page; parts without results are left out."""
    order = [text["name"] for text in TEXTS["parts"]]
    parts = {name: results["parts"][name] for name in order if name in results["parts"]}
    lines = [TEXTS["introduction"], *_machine(results["machine"], parts), *_slower(parts)]
    for text in TEXTS["parts"]:
        if text["name"] in parts:
            lines += _section(text, parts[text["name"]]["tables"])
    return "\n".join([*lines, *_again(parts)])


def _section(text: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"## {text['heading']}\n", text["text"]]
    lines += [f"![{says}](images/benchmarks/{plot}.svg)\n" for plot, says in text["plots"]]
    for table in [_recall(tables)] if text["name"] == "recall" else tables:
        if table["title"] not in NOT_SHOWN:
            lines += markdown(table["title"], table["columns"], table["rows"])
            lines += [f"{table['caption']}\n"] if table["caption"] else []
    return lines


def ratios(tables: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str, str, float]]:
    """Read what is compared: title, call, rival, our figure, theirs, and how many times ours."""
    for table in tables:
        columns = table["columns"]
        ours = next((at for at, name in enumerate(columns) if name.startswith(OURS)), None)
        for row in table["rows"]:
            for at, cell in enumerate(row):
                found = RATIO.match(cell)
                if found and ours is not None and columns[at] not in NO_RIVAL:
                    rival = columns[at].partition(" (")[0]
                    yield table["title"], row[0], rival, row[ours], found[1], float(found[2])


def recall_rows(tables: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Read the rows over all questions: the data set, then the system and its figures."""
    for table in tables:
        option = table["command"].split()[1]
        category = ""
        for first, *row in table["rows"]:
            category = first or category
            if category == "overall":
                system = row[0].replace("product's arms", "our arms").replace("product", OURS)
                yield SETS.get(option, "LoCoMo"), [system, *row[1:]]


def _recall(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns = tables[0]["columns"]
    keep = [at for at, name in enumerate(columns) if name not in {"questions", "leak@10", "n"}]
    rows = [[name, *(["", *row][at] for at in keep)] for name, row in recall_rows(tables)]
    counts = [f"{name} {row[-1]}" for name, row in recall_rows(tables) if row[-1]]
    caption = f"Questions: {', '.join(counts)}. Model: {tables[0]['title']}."
    files = {one["command"].split()[1] for one in tables} - set(SETS)
    if files:
        caption += f" LoCoMo is `{files.pop()}`."
    else:
        caption += " LoCoMo was not measured in this run: its file is not in the repository."
    columns = ["data", *(columns[at] for at in keep)]
    return {"title": "All questions", "columns": columns, "rows": rows, "caption": caption}


def _machine(machine: Mapping[str, str], parts: Mapping[str, Any]) -> list[str]:
    lines = ["## Machine and versions\n"]
    lines += [f"- {name}: {text}" for name, text in machine.items()]
    days = sorted({part["made"] for part in parts.values()})
    lines += [f"- measured: {' to '.join(dict.fromkeys([days[0], days[-1]]))}\n"] if days else [""]
    small = [name for name, part in parts.items() if part["small"]]
    busy = [name for name, part in parts.items() if part["load"] > BUSY]
    if small:
        lines.append(
            f"**A small run, to try the command: {', '.join(small)}.** Its figures say little.\n"
        )
    if busy:
        lines.append(
            f"**The machine was busy before: {', '.join(busy)}.** Times may be too high.\n"
        )
    return lines


def _slower(parts: Mapping[str, Any]) -> list[str]:
    """List where another memory takes less than nine tenths of ours, the worst first."""
    every = [one for part in parts.values() for one in ratios(part["tables"])]
    found = [one for one in every if not one[0].endswith(", CPU")]
    rows = [
        [f"{title}: {call}", rival, ours, theirs, f"{1 / ratio:.1f}" if ratio else "over 100"]
        for title, call, rival, ours, theirs, ratio in sorted(found, key=lambda one: one[-1])
        if ratio < SLOWER
    ]
    lines = [
        "## Where commonplace is slower or larger, or finds less\n",
        f"{len(rows)} of the {len(found)} comparisons of this page, the worst first.\n",
    ]
    columns = ["call", "beside", "ours", "theirs", "ours takes, times theirs"]
    lines += [*markdown("", columns, rows), TEXTS["slower"]] if rows else []
    return [*lines, *_finding_less(parts["recall"]["tables"])] if "recall" in parts else lines


def _finding_less(tables: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say where a baseline has a better recall."""
    columns = tables[0]["columns"][1:]
    known = [*recall_rows(tables)]
    ours = {name: row for name, row in known if row[0] == OURS}
    for name, row in known:
        for at in (columns.index("R@1"), columns.index("R@10")):
            if float(row[at]) > float(ours[name][at]) + FINDS_MORE:
                yield f"- {name}: {columns[at]} {row[at]} by {row[0]}, {ours[name][at]} by ours"
    yield ""


def markdown(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a table in Markdown, a line each."""
    lines = [f"**{_cell(title)}**\n"] if title else []
    lines.append(f"| {' | '.join(map(_cell, columns))} |")
    lines.append("|---" * len(columns) + "|")
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return [*lines, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def _again(parts: Mapping[str, Any]) -> list[str]:
    total = sum(part["seconds"] for part in parts.values())
    lines = [
        "## Measure it again\n",
        f"The parts of this page took {total / 60:.0f} minutes: "
        + ", ".join(f"`{name}` {part['seconds']} s" for name, part in parts.items())
        + ". Environments of other memories are installed before.\n",
        "<!-- not run: takes many minutes -->",
        "```sh",
        "# Everything, about 20 minutes:",
        "nox -s benchmarks",
        "nox -s benchmarks -- --locomo locomo10.json          # with recall on LoCoMo",
        "nox -s benchmarks -- --only others --only recall     # some parts again",
        "nox -s benchmarks -- --small                         # to try it",
        "nox -s benchmarks -- --from benchmarks/results.json  # the page again, measuring nothing",
        "```\n",
        "Each part is also a script that prints its tables:\n",
        "| part | command |",
        "|---|---|",
    ]
    for name, part in parts.items():
        made = dict.fromkeys(_command(table["command"]) for table in part["tables"])
        lines.append(f"| {name} | {'<br>'.join(f'`python benchmarks/{one}`' for one in made)} |")
    return [*lines, ""]


def _command(text: str) -> str:
    """Write a command without places on the machine where it ran."""
    return re.sub(r" --(?:environments|peer) \S+", "", text)
