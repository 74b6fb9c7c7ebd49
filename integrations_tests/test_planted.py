"""The faults that `nox -s planted` plants: each fits the source as it is now."""

import ast
from pathlib import Path

import pytest

from .planted import FAULTS
from .planted.fault import Fault

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.name)
def test_a_fault_fits_the_source(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text("utf-8")

    assert text.count(fault.old) == 1
    ast.parse(fault.planted(text))
    assert fault.planted(text) != text


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.name)
def test_its_tests_are_there(fault: Fault) -> None:
    tests = fault.tests[: fault.tests.index("-k")] if "-k" in fault.tests else fault.tests

    assert tests
    for one in tests:
        assert (ROOT / one.partition("::")[0]).exists(), one


def test_no_two_faults_have_one_name() -> None:
    names = [one.name for one in FAULTS]

    assert sorted(set(names)) == sorted(names)


def test_what_no_longer_fits_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 1\n", "utf-8")
    twice = Fault(name="n", what="w", file="a.py", old="1", new="2", tests=("t",))

    with pytest.raises(LookupError, match="2 times"):
        twice.plant(tmp_path)
