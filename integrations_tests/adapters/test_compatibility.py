"""`docs/compatibility.md` says what calls do, on frameworks' own implementations and on ours."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
COMMAND = PROJECT / "benchmarks" / "compatibility.py"
PAGE = PROJECT / "docs" / "compatibility.md"


@pytest.fixture
def compatible(monkeypatch):
    monkeypatch.syspath_prepend(str(COMMAND.parent))
    return importlib.import_module("compatible")


# Sections by what they import: a process is for one framework and release.
FRAMEWORKS = {
    "langgraph": (
        "langgraph_store", "langgraph_sqlite", "langgraph_saver", "langgraph_graph",
        "langgraph_documents", "langgraph_middleware",
    ),
    "mem0": ("mem0",),
    "mem0_v1": ("mem0_v1",),
    "strands": ("strands_store", "strands_sessions", "strands_storage", "strands_tool"),
    "agentscope_v2": ("agentscope_v2",),
    "agentscope_v1": ("agentscope_v1",),
    "agentscope_runtime": ("agentscope_runtime",),
    "adk": ("adk_memory", "adk_sessions"),
    "openai_agents": ("openai_agents_sessions",),
}  # fmt: skip


@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_page_says_what_a_run_shows(framework):
    # In a process of its own: what the frameworks read when they are imported stays there.
    sections = FRAMEWORKS[framework]
    command = [sys.executable, "-W", "ignore", str(COMMAND), *sections, "--check"]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)

    told = dict(line.split(": ", 1) for line in run.stderr.splitlines()[-3:])
    absent = [one for one in sections if one in told["not here"].split(", ")]
    here = ", ".join(one for one in sections if one not in absent)
    assert (here or "-") == told["run"], run.stderr
    assert run.returncode == 0, run.stderr
    if absent:
        pytest.skip(f"not installed, or another release: the frameworks of {', '.join(absent)}")


def test_every_section_is_tested_and_on_the_page(compatible):
    sections = [section for sections in FRAMEWORKS.values() for section in sections]

    assert list(compatible.MODULES) == sections
    assert list(compatible.split(PAGE.read_text("utf-8"))) == ["", *sections]


def case(compatible, run, why):
    return compatible.Section(
        name="made up",
        title="",
        packages=("pytest",),
        columns={"x": (lambda *_: 1, lambda *_: 2)},
        cases=[compatible.Case("call(n)", run, why)],
        interface={},
    )


@pytest.mark.parametrize(
    ("run", "why", "problem"),
    [
        (lambda subject: subject, "", "without a reason"),
        (lambda subject: 3, "because", "no difference any more"),
        (lambda subject: {}[subject], "because", "no difference any more"),
    ],
)
def test_a_difference_needs_a_reason_and_a_reason_a_difference(compatible, run, why, problem):
    with pytest.raises(compatible.ProblemError, match=problem):
        compatible.table(case(compatible, run, why))


def test_a_call_that_only_ours_refuses_is_told_so(compatible):
    section = case(compatible, lambda subject: {1: None}[subject], "name another")

    assert "| `call(n)` | refused | name another |" in compatible.table(section)


def test_what_is_the_same_is_listed(compatible):
    assert "Same: `call(n)`." in compatible.table(case(compatible, lambda subject: None, ""))


def test_a_method_or_an_argument_without_a_case_is_told(compatible):
    section = case(compatible, lambda subject: None, "")
    interface = {"call": lambda n, m: None, "other": lambda: None}

    with pytest.raises(compatible.ProblemError, match=r"call\(m\): no case\nother: no case"):
        compatible.table(compatible.dataclasses.replace(section, interface=interface))
