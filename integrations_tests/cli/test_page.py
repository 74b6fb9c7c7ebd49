"""docs/cli.md names every command, and shows a session that is as it would be now."""

import re
from pathlib import Path

import pytest

from .session import PAGE, record, recorded
from .test_exit_codes import NAMES

VARIES = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\dZ)?|[\d.]+ kB")


@pytest.mark.skipif(not PAGE.exists(), reason="the documents are not here")
def test_the_recorded_session_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "COMMONPLACE_PATH", "COMMONPLACE_EMBEDDER"):
        monkeypatch.delenv(name, raising=False)
    page = PAGE.read_text("utf-8")
    told, now = (VARIES.sub("…", one) for one in (recorded(page), record(page, tmp_path)))

    assert told.count("\n$ commonplace ") == 9
    assert told == now, "run: python integrations_tests/cli/session.py"


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_every_command_with_an_example(name: str):
    page = PAGE.read_text("utf-8")

    assert re.search(rf"^\| `{name}[ `]", page, re.MULTILINE)
    assert re.search(rf"^(id=\$\()?commonplace {name}\b", page, re.MULTILINE)
