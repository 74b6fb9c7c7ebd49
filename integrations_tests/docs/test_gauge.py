"""The gauge of the house: what grew beyond the figures in docs/design.md is named."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "files_passed.py"


@pytest.fixture
def gauge() -> ModuleType:
    spec = importlib.util.spec_from_file_location("files_passed", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_every_figure_and_nothing_grew(gauge: ModuleType) -> None:
    gauge.check(
        {
            "lines of the product": gauge.product_lines(),
            "public names of `Memory`": gauge.names_of_memory(),
        }
    )


def test_what_grew_is_named_with_the_way_out(gauge: ModuleType) -> None:
    figures = gauge.promised()

    with pytest.raises(SystemExit, match=r"a search: 1,000.*(?s:.*)change the figure there"):
        gauge.check({**figures, "files passed by a search": 1_000})


def test_a_figure_that_the_page_lacks_is_named(gauge: ModuleType) -> None:
    with pytest.raises(SystemExit, match="files passed by a dream: no figure"):
        gauge.check({"files passed by a dream": 1})


def test_generated_modules_do_not_count(gauge: ModuleType) -> None:
    import commonplace.memory

    assert gauge.is_generated(commonplace.memory.__file__)
    assert not gauge.is_generated(str(SCRIPT))
