"""What commands print: on terminals of any width, into pipes, and of texts that mean harm."""

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from commonplace import Fact, Relation, Scope
from commonplace.cli import output

from .populated import opened
from .test_commands import dead_letter, hold

ALICE = Scope(user_id="alice")
HOSTILE = (
    "plain \x1b[31mred\x1b]0;title\x07 \u202egnp.exe\u202c \u2066hidden\u2069 \u200b\ufeff\u2028"
    "next\nAll is well.\rover\ttab \x9b31m \x7f \U000e0041 \u061c"
)
FAMILY = "👩\u200d👧 می\u200cخواهم 全角\u3000空格"  # joiners and a wide space do no harm


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make stdout that of a terminal of so many columns, which knows no escape sequences."""

    def make(columns: int, kind: str = "dumb") -> None:
        monkeypatch.delenv("NO_COLOR", raising=False)
        for name, value in (("COLUMNS", str(columns)), ("LINES", "25"), ("TERM", kind)):
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("FORCE_COLOR", "1")

    return make


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    """Id of a record in ./memory whose text, metadata and relations mean harm."""
    relation = Relation(subject="Eve\u202e", predicate="is\u2066", object="a\u200bname")
    metadata = {"k\x1b[2J": HOSTILE, "nested": [{HOSTILE: 1}]}
    fact = Fact(text=HOSTILE, metadata=metadata, relations=(relation,))
    with opened(tmp_path / "memory") as memory:
        changes = memory.add([fact, FAMILY], ALICE).changes
    return changes[0].id


def harmful(text: str) -> list[str]:
    """List the characters that may steer a terminal, line ends of ours and tabs of pipes aside."""
    joiners = "\u200c\u200d"
    found = {one for one in text if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp", "Cs")}
    return sorted(map(ascii, found - {"\n", "\t", *joiners}))


COMMANDS = [
    ["search", "plain red"], ["search", "plain red", "--explain"], ["list"], ["show"], ["history"],
    ["graph"], ["graph", "--mermaid"], ["forget", "--dry-run"], ["delete"],
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids="-".join)
@pytest.mark.parametrize("columns", [None, 20, 200])
def test_stored_text_cannot_steer_a_terminal(
    run, hostile: str, terminal, words: list[str], columns: int | None
):
    if columns:
        terminal(columns)
    record = [hostile] if words[0] in ("show", "history", "delete") else []
    done = run(*words, *record, "--user", "alice")

    assert (done.exit_code, harmful(done.output)) == (0, [])
    assert not any(line.startswith("All is well") for line in done.stdout.splitlines())
    if words[0] in ("search", "list", "show", "history", "delete") and columns != 20:
        assert r"\x1b[31mred" in done.stdout
        assert r"\u202egnp.exe" in done.stdout


@pytest.mark.parametrize("words", [["search", "plain red"], ["list"], ["graph"]], ids="-".join)
def test_data_for_programs_is_exact_and_harmless(run, hostile: str, words: list[str]):
    done = run(*words, "--user", "alice", "--json")
    found = json.loads(done.stdout)

    assert harmful(done.stdout) == []
    assert done.stdout.count("\n") == 1
    if words[0] == "list":
        [family, record] = found["records"]
        assert (record["text"], family["text"]) == (HOSTILE, FAMILY)
        assert record["metadata"] == {"k\x1b[2J": HOSTILE, "nested": [{HOSTILE: 1}]}
        assert "全角\u3000空格" in done.stdout


def test_what_is_said_of_errors_and_dead_letters_is_harmless(run, tmp_path: Path):
    hold(tmp_path / "memory")
    dead_letter(tmp_path / "memory", HOSTILE)
    ill = run("doctor")
    refused = run("list", f"nowhere{HOSTILE}", "--user", "alice")
    visible = "".join(one for one in HOSTILE if one >= " ")
    missing = run("list", f"nowhere{visible}", "--user", "alice")

    assert (ill.exit_code, refused.exit_code, missing.exit_code) == (1, 2, 1)
    assert harmful(ill.output + refused.output + missing.output) == []
    assert "All is well." not in ill.stdout.splitlines()


def test_joiners_and_wide_spaces_stay(run, hostile: str):
    assert FAMILY in run("list", "--user", "alice").stdout


# -- terminals -------------------------------------------------------------------------------------


@pytest.fixture
def chinese(tmp_path: Path) -> list[str]:
    """Texts in ./memory, of double width."""
    texts = [
        "爱丽丝每天早上喝绿茶，晚上从不喝咖啡。",
        "她住在里昂",
        "Alice is allergic to peanuts.",
    ]
    with opened(tmp_path / "memory") as memory:
        memory.add(texts, ALICE)
    return texts


@pytest.mark.parametrize("columns", [12, 20, 40, 58, 80, 200])
@pytest.mark.parametrize("words", [["list"], ["search", "绿茶", "--explain"]], ids="-".join)
def test_tables_keep_all_of_a_text_in_any_width(
    run, chinese: list[str], terminal, columns: int, words: list[str]
):
    terminal(columns)
    done = run(*words, "--user", "alice")
    text = "".join(done.stdout.split())

    assert done.exit_code == 0
    if words == ["list"] and columns >= 40:
        assert all(cell_len(line.rstrip()) <= columns for line in done.stdout.splitlines())
    for one in chinese:
        beside = columns >= 200 or columns < 40
        assert not beside or "".join(one.split()) in text
        assert all(character in text for character in one if character != " ")


def test_a_terminal_shows_short_ids_and_show_takes_them(run, chinese: list[str], terminal):
    [whole, *_] = json.loads(run("list", "--user", "alice", "--json").stdout)["records"]
    terminal(80)
    shown = run("list", "--user", "alice").stdout

    assert whole["id"][:8] in shown
    assert whole["id"] not in shown
    assert whole["id"] in run("show", whole["id"][:8], "--user", "alice").stdout


def test_a_long_text_is_shortened_in_tables_only(run, tmp_path: Path, terminal):
    with opened(tmp_path / "memory") as memory:
        memory.add("long " * 200, ALICE)
    piped = run("list", "--user", "alice").stdout
    terminal(80)

    assert "long " * 199 in piped
    shown = run("list", "--user", "alice").stdout
    assert "… (1000 characters)" in " ".join(shown.split())
    [record] = json.loads(run("list", "--user", "alice", "--json").stdout)["records"]
    assert run("show", record["id"], "--user", "alice").stdout.count("long") == 200


def test_colours_end_where_nobody_wants_them(run, terminal, monkeypatch: pytest.MonkeyPatch):
    terminal(80, "xterm-256color")
    coloured = run("list", "nowhere", "--user", "alice").stderr
    monkeypatch.setenv("NO_COLOR", "1")
    plain = run("list", "nowhere", "--user", "alice").stderr

    assert "\x1b[31m" in coloured
    assert "\x1b[3" not in plain
    assert "has no memory" in plain


def test_progress_tells_amount_total_rate_and_time(run, lived: Path, terminal):
    quiet = run("copy", lived, "first")
    terminal(100, "xterm-256color")
    done = run("copy", lived, "second")

    assert quiet.stderr == ""
    assert done.exit_code == 0, done.output
    for stage in ("graph", "vectors", "check source", "check target"):
        assert stage in done.stderr
    assert "85 of 85" in done.stderr
    assert "/s" in done.stderr
    assert "0:00:0" in done.stderr
    assert "kB of " in run("import", "file", export(run, lived), "third").stderr
    assert " of " in run("backup", lived, "all.db").stderr
    assert "record " in run("salvage", lived, "fourth").stderr
    assert "85 of 85" in run("reindex", lived).stderr
    assert "85 of 85" in run("stats", lived).stderr


def export(run, place: Path) -> str:
    assert "85 of 85" in run("export", place, "all.jsonl").stderr
    return "all.jsonl"


# -- pipes -----------------------------------------------------------------------------------------


def command(*words: str, **options) -> "subprocess.CompletedProcess[bytes]":
    """Run the installed command to its end, in a process of its own."""
    options["env"] = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "commonplace", *words],
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
        **options,
    )


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A memory made with the default embedder, which no listing loads."""
    from commonplace import Memory
    from commonplace.cli import arguments

    place = tmp_path / "real"
    with Memory.open(str(place), embedder=arguments.embedder_of("sentence-encoder")) as memory:
        memory.add(["早上喝绿茶 🍵", "a second text"], ALICE)
    return place


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["lines", "json"])
@pytest.mark.parametrize("forced", ["", "1"], ids=["pipe", "terminal"])
def test_a_reader_that_goes_away_ends_a_command_quietly(real: Path, more: list[str], forced: str):
    read, write = os.pipe()
    os.close(read)
    try:
        env = {"FORCE_COLOR": forced} if forced else {}
        done = command("list", str(real), "--user", "alice", *more, stdout=write, env=env)
    finally:
        os.close(write)

    assert (done.returncode, done.stderr) == (output.READER_GONE, b"")


def test_a_pipe_gets_whole_lines_whatever_the_terminal_is(real: Path):
    done = command(
        "list", str(real), "--user", "alice", stdout=subprocess.PIPE, env={"COLUMNS": "9"}
    )

    texts = [line.split("\t")[-1] for line in done.stdout.decode().splitlines()]
    assert texts[0] == "text"
    assert sorted(texts[1:]) == ["a second text", "早上喝绿茶 🍵"]


def test_an_encoding_that_lacks_a_character_gets_an_escape(real: Path):
    env = {"PYTHONIOENCODING": "ascii"}
    lines, data = (
        command("list", str(real), "--user", "alice", *more, stdout=subprocess.PIPE, env=env)
        for more in ([], ["--json"])
    )

    assert (lines.returncode, data.returncode) == (0, 0), lines.stderr + data.stderr
    assert rb"\u65e9\u4e0a" in lines.stdout
    found = json.loads(data.stdout)["records"]
    assert sorted(one["text"] for one in found) == ["a second text", "早上喝绿茶 🍵"]


# -- stats and the data of operators ---------------------------------------------------------------


def test_stats_count_every_user_and_kind(run, lived: Path):
    hold(lived)
    done = run("stats", lived)
    data = json.loads(run("stats", lived, "--json").stdout)

    lines = done.stdout.splitlines()
    assert lines[0] == "user\tepisode\tfact\trecords"
    assert lines[1] == "user 0\t3\t14\t17"
    assert lines[6] == "all users\t15\t70\t85"
    assert lines[7].startswith(f"{lived / 'memory.db'}: ")
    assert lines[8:] == ["pending writes: 1", "dead letters: 0"]
    assert data["users"][0] == {"user_id": "user 0", "records": {"episode": 3, "fact": 14}}
    assert (data["pending"], data["dead"]) == (1, 0)
    assert data["files"][str(lived / "memory.db")] >= (lived / "memory.db").stat().st_size


def test_stats_need_no_embedder_and_show_who_has_no_user(run, tmp_path: Path, monkeypatch):
    with opened(tmp_path / "memory", "fastembed:small") as memory:
        memory.add("of an agent alone", Scope(agent_id="helper"))
        memory.add("of many", Scope(user_id="u"))
    monkeypatch.setattr(output, "on_terminal", lambda: False)

    assert "(no user)\t1\t1\n" in run("stats").stdout
    assert run("list", "--user", "u").exit_code == 1  # made with another embedder


def test_every_operators_command_gives_data(run, lived: Path, tmp_path: Path):
    def data(*words: object) -> dict:
        done = run(*words, "--json")
        assert done.exit_code == 0, done.output
        assert done.stdout.count("\n") == 1
        found: dict = json.loads(done.stdout)
        return found

    assert data("doctor", lived)["state"]["counts"]["live"] == 85
    assert data("retry", lived) == {"retried": 0, "dead": 0, "pending": 0}
    assert data("copy", lived, "copy")["report"]["target"]["counts"]["record"] == 90
    lines = data("export", lived, "all.jsonl")["lines"]
    assert lines == len(Path("all.jsonl").read_text("utf-8").splitlines()) - 2
    assert data("import", "file", "all.jsonl", "back")["complete"] is True
    assert data("backup", lived, "all.db")["bytes"] == Path("all.db").stat().st_size
    assert data("salvage", lived, "saved")["read"]["record"] == 90
    assert data("reindex", lived)["embedded"] == 85
    assert data("reembed", lived, "--embedder", "fastembed:small")["embedded"] == 85


def test_a_damaged_file_is_data_too(run, lived: Path):
    content = bytearray((lived / "memory.db").read_bytes())
    content[4096 * 3 :] = bytes(len(content) - 4096 * 3)
    (lived / "memory.db").write_bytes(content)
    done = run("doctor", lived, "--json")
    found = json.loads(done.stdout)

    assert done.exit_code == 1
    assert (found["healthy"], found["state"]) == (False, None)
    assert list(found["damaged"]) == [str(lived / "memory.db")]
