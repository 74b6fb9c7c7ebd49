"""The page of figures is what its results say; nothing is measured here."""

import importlib.util
import json
import re
import sys
from types import ModuleType
from typing import Any

import pytest

from .pages import ROOT

PLOTS = ROOT / "docs/images/benchmarks"


@pytest.fixture(scope="module")
def report() -> ModuleType:
    path = ROOT / "benchmarks/report_page.py"
    spec = importlib.util.spec_from_file_location("report_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks/results.json").read_text("utf-8"))
    return found


def results_of(rows: list[list[str]]) -> dict[str, Any]:
    table = {
        "title": "Calls",
        "columns": ["p50 in ms (times ours)", "commonplace", "chromadb"],
        "rows": rows,
        "caption": "",
        "command": "others.py",
    }
    part = {"small": False, "seconds": 1, "load": 0.1, "made": "2026-01-01", "tables": [table]}
    return {"machine": {"processor": "one"}, "parts": {"others": part}}


def test_the_page_is_made_of_the_results(report: ModuleType, results: dict[str, Any]):
    page = (ROOT / "docs/benchmarks.md").read_text("utf-8")

    assert page == report.page(results), "run benchmarks/report.py --from benchmarks/results.json"


def test_every_part_was_measured_and_no_cell_is_empty(report: ModuleType, results: dict[str, Any]):
    page = report.page(results)

    assert sorted(results["parts"]) == sorted(one["name"] for one in report.TEXTS["parts"])
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert [row for row in rows if re.search(r"\|\s*\|", row)] == []
    assert "not measured" not in page.replace("LoCoMo was not measured", "")
    for rival in ("mem0ai", "SqliteStore", "SqliteSaver", "chromadb", "Mem0Middleware",
                  "FileMemoryStore", "FileSessionManager", "BM25"):  # fmt: skip
        assert f"| {rival}" in page, rival


def test_every_plot_is_there_and_names_what_it_compares(report: ModuleType):
    named = [plot for one in report.TEXTS["parts"] for plot, _ in one["plots"]]

    assert sorted(named) == sorted(file.stem for file in PLOTS.iterdir())
    assert "chromadb" in (PLOTS / "search.svg").read_text("utf-8")
    assert "BM25" in (PLOTS / "recall.svg").read_text("utf-8")


def test_where_we_are_slower_is_said_and_nothing_else(report: ModuleType):
    rows = [["add", "2", "1 (0.50)"], ["search", "2", "1.9 (0.95)"], ["open", "1", "3 (3.00)"]]

    page = report.page(results_of(rows))

    told = page.partition("## Where commonplace is slower")[2].partition("\n## ")[0]
    assert "1 of the 3 comparisons" in told
    assert "| Calls: add | chromadb | 2 | 1 | 2.0 |" in told
    assert "search" not in told.partition("\n\nA write here")[0]


def test_a_small_or_a_busy_run_says_so(report: ModuleType):
    made = results_of([["add", "1", "2 (2.00)"]])
    assert "small run" not in report.page(made)
    made["parts"]["others"] |= {"small": True, "load": 3.0}

    page = report.page(made)

    assert "A small run, to try the command: others." in page
    assert "busy before: others." in page


def test_plots_are_drawn_from_the_results(tmp_path, monkeypatch, results: dict[str, Any]):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    from report_plots import draw

    draw(results, tmp_path)

    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(
        one.name for one in PLOTS.iterdir()
    )
