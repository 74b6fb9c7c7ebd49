"""One word, several places: each adapter and each engine is named wherever it belongs."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
LINTER = PROJECT["tool"]["importlinter"]
ENGINES = PROJECT["tool"]["commonplace"]["engines"]
FRAMEWORKS = PROJECT["tool"]["commonplace"]["adapters"]
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
    neutral = next(one for one in LINTER["contracts"] if one["name"].startswith("the core "))
    readme = (ROOT / "README.md").read_text("utf-8")

    named = FRAMEWORKS.get(adapter, {"import": adapter, "distribution": ""})
    extra = adapter.replace("_", "-")

    assert extra in EXTRAS
    assert "".join(EXTRAS[extra]).startswith(named["distribution"])
    assert package in LINTER["root_packages"]
    assert named["import"].partition(".")[0] in neutral["forbidden_modules"]
    assert package in layers[0].split(" | ")
    assert package in fenced
    tests = ROOT / "integrations_tests" / "adapters"
    assert (tests / f"test_{adapter}.py").is_file() or any((tests / adapter).rglob("test_*.py"))
    assert (ROOT / "examples" / f"with_{adapter}.py").is_file()
    assert any(
        line.startswith("|") and f"`{package}`" in line and f"`{extra}`" in line
        for line in readme.splitlines()
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_is_in_every_place_its_word_belongs(engine: str):
    declared = ENGINES[engine]
    package = f"commonplace.backends.{engine}"
    opened_by = PROJECT["project"]["entry-points"]["commonplace.engines"]
    fenced = next(one for one in LINTER["contracts"] if one["name"].startswith("a driver "))
    pins = (ROOT / "constraints.txt").read_text("utf-8").replace("-", "_")
    configurations = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    design = (ROOT / "docs" / "design.md").read_text("utf-8").splitlines()

    assert engine in EXTRAS
    assert engine in [scheme for scheme, value in opened_by.items() if value.startswith(package)]
    assert declared["driver"] in fenced["forbidden_modules"]
    assert f"{package}.* -> {declared['driver']}" in fenced["ignore_imports"]
    assert f"\n{declared['driver']}==" in pins
    assert f"\n  {engine}:\n" in (ROOT / "compose.yaml").read_text("utf-8")
    assert (ROOT / "integrations_tests" / "servers" / f"test_{engine}.py").is_file()
    assert f"| {declared['shown']} | `{engine}` |" in configurations
    for port in declared["ports"]:
        [row] = [line for line in design if line.startswith(f"| `{port}` |")]
        assert engine in row.lower()


def test_every_scheme_belongs_to_an_engine_of_the_table():
    values = PROJECT["project"]["entry-points"]["commonplace.engines"].values()

    assert {value.split(":")[0].rpartition(".")[2] for value in values} == set(ENGINES)


def test_all_holds_every_extra_that_a_program_uses():
    (everything,) = EXTRAS["all"]
    name, _, named = everything.removesuffix("]").partition("[")

    assert name == PROJECT["project"]["name"]
    assert sorted(set(EXTRAS) - {"all", "testing"}) == sorted(named.split(","))


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {"all"}))
def test_every_requirement_of_an_extra_has_a_lower_bound(extra: str):
    assert [one for one in EXTRAS[extra] if ">=" not in one] == []
