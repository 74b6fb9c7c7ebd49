"""Every code block of the README and of the site runs, or says why not."""

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
    syntax_of,
)


def parsed(text: str) -> list[Block]:
    """Read the blocks of a page, each of which is of a known language and free of errors."""
    blocks = blocks_of(text)
    for block in blocks:
        where = f"the block in line {block.line}"
        assert block.language in RUN | NEVER_RUN, f"{where}: nobody knows whether it runs"
        if block.language == "python":
            syntax_of(block)
    return blocks


def check(text: str, folder: Path) -> None:
    """Run a page as a reader does who pastes it from top to bottom."""
    blocks = parsed(text)
    if missing := missing_extras(text):
        pytest.skip(f"needs the extras {missing}")
    run = [block for block in blocks if block.runs]
    for block, printed in zip(run, printed_by(run, folder) if run else [], strict=True):
        if not is_as_promised(block.promised, printed):
            pytest.fail(f"line {block.line} promises {block.promised}\nand prints {printed}")


@pytest.mark.parametrize(
    "alike", pages(), ids=lambda alike: " ".join(str(one.relative_to(ROOT)) for one in alike)
)
def test_a_page_runs_and_prints_what_its_comments_promise(alike: list[Path], tmp_path: Path):
    first, *others = (page.read_text("utf-8") for page in alike)
    for text in others:
        parsed(text)
    check(first, tmp_path)


def test_only_pages_of_the_same_code_and_the_same_promises_are_run_as_one(tmp_path, monkeypatch):
    code = "python\nprint(1)\n#> 1"
    texts = [
        fenced(code),
        fenced(code.replace(")\n", ")  # one\n")),
        fenced(code.replace("#> 1", "#> 2")),
        fenced(code.replace("(1", "('1'")),
        "<!-- needs: mem0 -->\n" + fenced(code),
        "nothing",
        "nothing",
    ]
    (tmp_path / "docs").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "docs" / f"{number}.md").write_text(text)
    monkeypatch.setitem(pages.__globals__, "ROOT", tmp_path)

    assert [[one.stem for one in alike] for alike in pages()] == [["0", "1"], *map(list, "23456")]


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
