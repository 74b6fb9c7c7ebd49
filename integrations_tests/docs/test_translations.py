"""Translated pages have the code of the English ones: a change of one without the other fails."""

import ast
from pathlib import Path

import pytest

from .pages import NEEDS, ROOT, Block, blocks_of, syntax_of

DOCS = ROOT / "docs"
TRANSLATED = sorted(
    [
        *(DOCS / name for name in ("adk.md", "index.md", "openai_agents.md")),
        *(DOCS / "tutorial").glob("*.md"),
        *(DOCS / "how-to").glob("*.md"),
    ]
)
PAIRS = [(ROOT / "README.md", ROOT / "README.zh.md")] + [
    (page, DOCS / "zh" / page.relative_to(DOCS)) for page in TRANSLATED
]


def differences(english: str, translated: str) -> list[str]:
    """List how the code of two pages differs, other than in texts, comments and variables."""
    if NEEDS.findall(english) != NEEDS.findall(translated):
        return ["they need other extras"]
    ours, theirs = blocks_of(english), blocks_of(translated)
    if [one.language for one in ours] != [one.language for one in theirs]:
        return [f"{[one.language for one in ours]} is not {[one.language for one in theirs]}"]
    return [
        f"the block in line {one.line} is not that in line {other.line} of the translation"
        for one, other in zip(ours, theirs, strict=True)
        if (one.reason, shape(one)) != (other.reason, shape(other))
    ]


def shape(block: Block) -> list[str]:
    """Reduce a block to what a translation keeps.

    Of Python the syntax tree without the names of variables and the texts; of the rest the number
    of lines and of `#>` comments.
    """
    if block.language != "python":
        return [str(block.code.count("\n")), str(len(block.promised or ()))]
    tree = syntax_of(block)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = "name"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = "text"
    return [ast.dump(tree), str(len(block.promised or ()))]


@pytest.mark.parametrize(
    ("english", "translated"), PAIRS, ids=[str(one.relative_to(ROOT)) for _, one in PAIRS]
)
def test_a_translated_page_has_the_code_of_the_english_one(english: Path, translated: Path):
    assert differences(english.read_text("utf-8"), translated.read_text("utf-8")) == []


def test_every_translated_page_has_an_english_one():
    pages = {page.relative_to(DOCS / "zh") for page in (DOCS / "zh").rglob("*.md")}

    assert pages == {page.relative_to(DOCS) for page in TRANSLATED}


PAGE = """\
<!-- needs: mem0 -->

```python
alice = Scope(user_id="alice")
print(memory.search("tea", alice, top_k=1))  # one
#> [...]
```

<!-- not run: needs a key -->
```sh
ls
```
"""


def test_texts_comments_and_variables_may_differ():
    translated = PAGE.replace("alice", "lihua").replace("tea", "茶").replace("one", "一条")

    assert translated != PAGE
    assert differences(PAGE, translated) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("top_k=1", "top_k=2"),
        ("top_k", "limit"),
        ("search", "asearch"),
        ("user_id", "agent_id"),
        ("#> [...]\n", ""),
        ("ls\n", "ls\nls\n"),
        ("```sh", "```text"),
        ("<!-- not run: needs a key -->\n", ""),
        ("needs: mem0", "needs: strands"),
        ("```\n\n<!--", "```\n\n```python\n```\n\n<!--"),
    ],
)
def test_other_code_is_a_difference(old: str, new: str):
    assert old in PAGE
    assert differences(PAGE, PAGE.replace(old, new)) != []
