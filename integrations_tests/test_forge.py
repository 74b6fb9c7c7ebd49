"""Files of the public forge and of containers: they parse, and what they name is there."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PYTHONS = [
    one.rpartition(" ")[2]
    for one in PROJECT["project"]["classifiers"]
    if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", one)
]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
SESSIONS = re.findall(
    r"^@nox\.session.*?^def (\w+)", (ROOT / "noxfile.py").read_text("utf-8"), re.M | re.S
)
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "constraints.txt")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / ".github").rglob("*.*")),
]


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def named_sessions(text: str) -> set[str]:
    """Find the sessions after `nox -s`, without their Pythons and parameters."""
    found = set()
    for command in re.findall(r"nox -s ([^`\n]+)", re.sub(r"\$\{\{.*?\}\}", "X", text)):
        for word in shlex.split(command.partition("&&")[0]):
            if word.startswith("-"):
                break
            found.add(re.sub(r"[-(].*", "", word.rstrip(".,;)")))
    return found


def test_the_sessions_of_nox_are_found():
    assert {"lint", "types", "tests", "full", "core", "backends"} <= set(SESSIONS)
    assert {"lint", "core", "backends"} == named_sessions(
        "`nox -s lint core-${{ matrix.python }}`, nox -s \"backends(engines='neo4j')\" -- -x"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_session_of_nox_that_is_named_exists(page: Path):
    assert named_sessions(page.read_text("utf-8")) - set(SESSIONS) == set()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_jobs_with_steps_and_an_end(workflow: Path):
    jobs = parsed(workflow)["jobs"]

    assert jobs
    for name, job in jobs.items():
        assert job["timeout-minutes"], name
        assert all(("run" in step) != ("uses" in step) for step in job["steps"]), name


def test_the_workflow_runs_every_python_and_three_systems():
    jobs = parsed(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    systems = jobs["systems"]["strategy"]["matrix"]

    assert jobs["tests"]["strategy"]["matrix"]["python"] == PYTHONS
    assert set(systems["python"]) <= set(PYTHONS)
    assert ["macos", "windows"] == [one.partition("-")[0] for one in systems["system"]]


def test_the_workflow_tests_with_the_servers_of_the_compose_file():
    servers = parsed(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["full"]["services"]
    composed = parsed(ROOT / "compose.yaml")["services"]

    assert {name: one["image"] for name, one in servers.items()} == {
        name: composed[name]["image"] for name in servers
    }


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_an_issue_form_asks_something_that_is_required(form: Path):
    read = parsed(form)
    asked = [one for one in read["body"] if one["type"] != "markdown"]

    assert read["name"]
    assert read["description"]
    assert len({one["id"] for one in asked}) == len(asked)
    assert any(one["validations"]["required"] for one in asked if "validations" in one)


def test_the_image_copies_and_installs_what_there_is():
    lines = (ROOT / "Dockerfile").read_text("utf-8")
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = [name for line in re.findall(r"^COPY (.+)", lines, re.M) for name in line.split()[:-1]]
    (extras,) = re.findall(r'"/source\[(.+)\]"', lines)

    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [name for name in copied if f"!{name}" not in ignored] == []
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    assert 'ENTRYPOINT ["commonplace"]' in lines
    assert "commonplace" in PROJECT["project"]["scripts"]
