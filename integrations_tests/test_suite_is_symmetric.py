"""One word, five places: an adapter's folder, extra, contract entry, test, example, README row."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
LINTER = PROJECT["tool"]["importlinter"]
ADAPTERS = sorted(
    path.name.removeprefix("commonplace_") for path in (ROOT / "adapters").glob("commonplace_*")
)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_is_in_every_place_its_word_belongs(adapter: str):
    package = f"commonplace_{adapter}"
    layers = next(
        one["layers"] for one in LINTER["contracts"] if one["name"].startswith("adapters ")
    )
    fenced = next(
        one["source_modules"] for one in LINTER["contracts"] if one["name"].startswith("a driver ")
    )
    readme = (ROOT / "README.md").read_text("utf-8")

    assert adapter in EXTRAS
    assert package in LINTER["root_packages"]
    assert package in layers[0].split(" | ")
    assert package in fenced
    tests = ROOT / "integrations_tests" / "adapters"
    assert (tests / f"test_{adapter}.py").is_file() or any((tests / adapter).rglob("test_*.py"))
    assert (ROOT / "examples" / f"with_{adapter}.py").is_file()
    assert any(
        line.startswith("|") and f"`{package}`" in line and f"`{adapter}`" in line
        for line in readme.splitlines()
    )


def test_all_holds_every_extra_that_a_program_uses():
    (everything,) = EXTRAS["all"]
    name, _, named = everything.removesuffix("]").partition("[")

    assert name == PROJECT["project"]["name"]
    assert sorted(set(EXTRAS) - {"all", "testing"}) == sorted(named.split(","))


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {"all"}))
def test_every_requirement_of_an_extra_has_a_lower_bound(extra: str):
    assert [one for one in EXTRAS[extra] if ">=" not in one] == []
