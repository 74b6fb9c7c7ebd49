"""Plots of `docs/benchmarks.md`, from the results that `report.py` keeps.

SVG with the reader's fonts on a light card, so that they can be read on light and dark pages.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from report_page import RATIO, ratios, recall_rows

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

COLOURS = ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#57606a", "#bf8700"]  # ours first
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "benchmarks",  # the same names of parts each time
    "font.family": "sans-serif",
    "font.size": 10,
    "figure.facecolor": "#f6f8fa",
    "axes.facecolor": "#ffffff",
    "axes.edgecolor": "#57606a",
    "axes.grid": True,
    "grid.color": "#d0d7de",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}
Table = Mapping[str, Any]


def draw(results: Mapping[str, Any], folder: Path) -> None:
    """Draw a plot for each part that has one, into a folder."""
    for part, name, make in (
        ("others", "search", _search),
        ("others", "others", _times),
        ("langgraph", "langgraph", _times),
        ("speed", "growth", _growth),
        ("recall", "recall", _recall),
    ):
        if part in results["parts"]:
            with plt.rc_context(STYLE):
                _save(make, results["parts"][part]["tables"], folder / f"{name}.svg")


def _save(make: Callable[[Axes, list[Table]], None], tables: list[Table], file: Path) -> None:
    figure, axes = plt.subplots(figsize=(7.6, 4.0), layout="constrained")
    make(axes, tables)
    figure.savefig(file, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    # Trailing spaces, which the library writes, are no part of a picture.
    lines = (line.rstrip() for line in file.read_text("utf-8").splitlines())
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _number(cell: str) -> float:
    found = RATIO.match(cell)
    return float((found[1] if found else cell).replace(",", ""))


def _lines(axes: Axes, table: Table, across: str, up: str) -> None:
    """Draw each column over the first one, both axes logarithmic."""
    for at, name in enumerate(table["columns"][1:], 1):
        points = [(_number(row[0]), _number(row[at])) for row in table["rows"] if row[at]]
        axes.plot(*zip(*points, strict=True), marker="o", label=name, color=COLOURS[at - 1])
    axes.set(xscale="log", yscale="log", xlabel=across, ylabel=up)
    _write_plainly(axes.xaxis)
    _write_plainly(axes.yaxis)
    axes.legend(frameon=False)


def _write_plainly(axis: Axis) -> None:
    """Write 1, 2 and 5 of each power of ten as plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def _search(axes: Axes, tables: list[Table]) -> None:
    table = next(one for one in tables if one["title"].startswith("A search"))
    _lines(axes, table, "records in scope", "p50 in ms")


def _growth(axes: Axes, tables: list[Table]) -> None:
    table = next(one for one in tables if one["title"].startswith("Growth"))
    _lines(axes, table, "records", "p50 in ms")


def _times(axes: Axes, tables: list[Table]) -> None:
    """Draw a dot for each call and rival, at how many times ours it takes."""
    dots: dict[str, dict[str, float]] = defaultdict(dict)
    for title, call, rival, *_, ratio in ratios(tables):
        if not title.endswith(", CPU") and not title.startswith("A search"):
            dots[rival][f"saver: {call}" if "saver" in title else call] = max(ratio, 0.005)
    calls = list(dict.fromkeys(call for found in dots.values() for call in found))
    axes.axvline(1, color=COLOURS[0])
    for number, (rival, found) in enumerate(dots.items(), 1):
        places = [calls.index(call) for call in found]
        axes.plot([*found.values()], places, "o", label=rival, color=COLOURS[number])
    axes.set(xscale="log", xlabel="times ours: left of the line the other takes less")
    _write_plainly(axes.xaxis)
    axes.set_yticks(range(len(calls)), calls)
    axes.invert_yaxis()
    axes.figure.set_figheight(1.2 + 0.26 * len(calls))
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


def _recall(axes: Axes, tables: list[Table]) -> None:
    """Draw a group of bars for each data set."""
    at = tables[0]["columns"].index("R@10") - 1
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for name, row in recall_rows(tables):
        found[row[0]][name] = float(row[at])
    sets = list(dict.fromkeys(name for one in found.values() for name in one))
    systems = [name for name, one in found.items() if len(one) == len(sets)]
    width = 0.8 / len(systems)
    for number, system in enumerate(systems):
        places = [place + (number - (len(systems) - 1) / 2) * width for place in range(len(sets))]
        heights = [found[system][name] for name in sets]
        axes.bar(places, heights, width * 0.9, label=system, color=COLOURS[number])
    axes.grid(visible=False, axis="x")
    axes.set_xticks(range(len(sets)), sets)
    axes.set(ylabel="recall at 10", ylim=(0, 1))
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
