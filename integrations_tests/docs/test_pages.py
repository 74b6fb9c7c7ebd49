"""Pages that list something list all of it."""

import ast
import re

import pytest

from .pages import ROOT

PACKAGES = {
    "commonplace": None,
    **{
        path.name: path.name.removeprefix("commonplace_")
        for path in (ROOT / "adapters").glob("commonplace_*")
    },
}


def error_classes() -> set[str]:
    """Name the public error classes of `commonplace.errors` and of the adapters."""
    files = [ROOT / "core/commonplace/errors.py", *(ROOT / "adapters").rglob("*.py")]
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and re.fullmatch(r"[A-Z]\w*Error", node.name):
                found.add(node.name)
    return found


def test_every_error_class_has_an_entry():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    entries = re.findall(r"^###? (\w+Error)$", page, re.MULTILINE)

    assert sorted(error_classes()) == sorted(entries)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package: str):
    tree = ast.parse((ROOT / where(package) / package / "__init__.py").read_text("utf-8"))
    [names] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    pages = [*(ROOT / "docs" / "reference").glob(f"{PACKAGES[package] or '*'}.md")]
    words = set(re.findall(r"\w+", " ".join(page.read_text("utf-8") for page in pages)))

    shown = words | error_classes()  # the module of errors is shown whole

    assert names
    assert [name for name in names if name not in shown] == []


def where(package: str) -> str:
    return "core" if package == "commonplace" else "adapters"
