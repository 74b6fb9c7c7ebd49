"""What is uploaded and installed: the README on an index, the version, the constraints."""

import re
import tomllib
from itertools import product
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from packaging.markers import default_environment
from packaging.requirements import Requirement

import commonplace

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
NAME = PROJECT["project"]["name"]
REQUIRED = [
    Requirement(one)
    for many in (
        PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"].values(),
    )
    for one in many
]
PINS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
PYTHONS = [
    one.rpartition(" ")[2]
    for one in PROJECT["project"]["classifiers"]
    if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", one)
]
SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def shown_on_an_index() -> str:
    """Rewrite the README as the build does."""
    text = (ROOT / "README.md").read_text("utf-8")
    for one in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(one["pattern"], one["replacement"], text)
    return text


def tokens(text: str) -> list[Token]:
    found = MarkdownIt("commonmark").enable("table").parse(text)
    return [inner for outer in found for inner in (outer, *(outer.children or []))]


@pytest.mark.parametrize(("python", "system"), list(product(PYTHONS, SYSTEMS)))
def test_every_requirement_has_one_pin_that_fits_it(python: str, system: str):
    machine = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_system": SYSTEMS[system],
    }
    pins: dict[str, list[str]] = {}
    for pin in PINS:
        if pin.marker is None or pin.marker.evaluate({**default_environment(), **machine}):
            pins.setdefault(canonical(pin.name), []).append(str(pin.specifier))
    wrong = [
        str(one)
        for one in REQUIRED
        if one.name != NAME
        and not one.specifier.contains(pins.get(canonical(one.name), ["==0"])[0].removeprefix("=="))
    ]

    assert wrong == [], "run: nox -s constraints"
    assert {name: many for name, many in pins.items() if len(many) > 1} == {}


def test_the_constraints_pin_and_do_nothing_else():
    assert [str(pin) for pin in PINS if pin.extras or pin.url] == []
    assert [str(pin) for pin in PINS if not re.fullmatch(r"==[^,*]+", str(pin.specifier))] == []


def test_on_an_index_the_readme_links_to_nothing_that_is_not_there():
    shown = tokens(shown_on_an_index())
    links = [str(one.attrs["href"]) for one in shown if one.type == "link_open"]
    links += [str(one.attrs["src"]) for one in shown if one.type == "image"]
    html = "".join(one.content for one in shown if one.type.startswith("html_"))
    links += re.findall(r"(?:src|srcset|href)=[\"']([^\"']*)", html)

    assert [one for one in links if not re.match(r"https?://|mailto:|#", one)] == []


def test_on_an_index_the_readme_has_the_same_code():
    before = tokens((ROOT / "README.md").read_text("utf-8"))
    after = tokens(shown_on_an_index())

    def code(found: list[Token]) -> list[str]:
        return [one.content for one in found if one.type in {"fence", "code_block", "code_inline"}]

    assert len(code(before)) > 10
    assert code(before) == code(after)


def test_the_links_of_the_readme_lead_to_files():
    """What the build takes away must have been right in the repository."""
    links = [
        str(one.attrs["href" if one.type == "link_open" else "src"]).partition("#")[0]
        for one in tokens((ROOT / "README.md").read_text("utf-8"))
        if one.type in {"link_open", "image"}
    ]

    assert [one for one in links if ":" not in one and not (ROOT / one).exists()] == []


def test_the_version_has_one_source():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|[ab]\d+|rc\d+)?", commonplace.__version__)
    assert "version" in PROJECT["project"]["dynamic"]
    path = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{commonplace.__version__}"\n' in path.read_text("utf-8")


def test_every_python_is_named_once_and_is_allowed():
    assert len(set(PYTHONS)) == len(PYTHONS) > 3
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
