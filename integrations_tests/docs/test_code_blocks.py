"""Every code block of the README and of the site runs, or says why not."""

import ast
from pathlib import Path

import pytest

from .pages import (
    NEVER_RUN,
    ROOT,
    RUN,
    Block,
    blocks_of,
    is_as_promised,
    missing_extras,
    pages,
    printed_by,
)


def check(text: str, folder: Path) -> None:
    """Run a page as a reader does who pastes it from top to bottom."""
    blocks = blocks_of(text)
    for block in blocks:
        where = f"the block in line {block.line}"
        assert block.language in RUN | NEVER_RUN, f"{where}: nobody knows whether it runs"
        if block.language == "python":
            flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            compile("\n" * (block.line - 1) + block.code, "page", "exec", flags)
    if missing := missing_extras(text):
        pytest.skip(f"needs the extras {missing}")
    run = [block for block in blocks if block.runs]
    for block, printed in zip(run, printed_by(run, folder) if run else [], strict=True):
        if not is_as_promised(block.promised, printed):
            pytest.fail(f"line {block.line} promises {block.promised}\nand prints {printed}")


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_runs_and_prints_what_its_comments_promise(page: Path, tmp_path: Path):
    check(page.read_text("utf-8"), tmp_path)


def fenced(*blocks: str) -> str:
    return "\n\n".join(f"```{block}\n```" for block in blocks) + "\n"


def test_blocks_share_a_namespace_and_a_folder(tmp_path):
    python = "python\nfrom pathlib import Path\nPath('a').write_text('b')\nprint(1)\n#> 1"
    check(fenced(python, "sh\ncat a\n#> b", "python\nprint(Path.cwd().name)\n#> work"), tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        fenced("python\nprint(1)\n#> 2"),
        fenced("python\nprint(1)"),
        fenced("python\nprint(1)\n#> 1\n#> 2"),
        fenced("python\nx = 1", "python\nprint(y)\n#> 1"),
        fenced("sh\necho 1\n#> 2"),
        fenced("sh\nfalse\ntrue"),
        fenced("console\n$ ls"),
        '=== "In a tab"\n\n    ```python\n    print(1)\n    #> 2\n    ```\n',
        "<!-- not run: -->\n" + fenced("python\n1 / 0"),
    ],
)
def test_a_page_that_does_not_do_what_it_says_fails(page, tmp_path):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(page, tmp_path)


def test_a_block_is_not_run_for_a_reason_alone(tmp_path):
    check("<!-- not run: needs a key -->\n" + fenced("python\n1 / 0"), tmp_path)

    with pytest.raises(SyntaxError):
        check("<!-- not run: needs a key -->\n" + fenced("python\n1 /"), tmp_path)


def test_an_error_names_the_line_of_the_page(tmp_path):
    with pytest.raises(AssertionError, match=r"page\.py\", line 8"):
        check("# Page\n\n" + fenced("python\nx = 1", "python\n1 / 0"), tmp_path)


def test_three_dots_stand_for_what_varies():
    assert is_as_promised(["id ... of a", "...", "end"], ["id 7f of a", "x", "y", "end"])
    assert is_as_promised(["...", "end"], ["end"])
    assert not is_as_promised(["id ... of a"], ["id 7f", " of a"])
    assert not is_as_promised(["...", "end"], ["end", "more"])


def test_a_page_that_needs_what_is_not_installed_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.0.1")

    with pytest.raises(pytest.skip.Exception, match="langgraph"):
        check("<!-- needs: langgraph, mem0 -->\n" + fenced("python\n1 / 0"), tmp_path)


@pytest.mark.parametrize(("installed", "missing"), [("2.2.1", []), ("99.0", ["mem0ai"])])
def test_any_version_that_a_group_names_will_do(installed, missing, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda _: installed)

    assert missing_extras("<!-- needs: mem0ai -->\n") == missing


def test_a_longer_fence_holds_a_shorter_one():
    page = "````text\n```python\n1 / 0\n```\n````\n\n" + fenced("python\nx = 1")

    assert [Block("text", "```python\n1 / 0\n```\n", 2), Block("python", "x = 1\n", 8)] == (
        blocks_of(page)
    )
