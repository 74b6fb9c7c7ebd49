"""Commands for the memories of one scope: what they print, for people and for programs."""

import json
import math
import re
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from commonplace import Fact, InvalidRecordError, Message, Relation, Scope
from commonplace.cli import arguments
from commonplace.cli import memories as commands
from commonplace.cli.app import app

from .populated import MONDAY, opened

ALICE = Scope(user_id="alice")
TALK = Scope(user_id="alice", agent_id="helper", session_id="talk")


@pytest.fixture
def ids(tmp_path: Path) -> list[str]:
    """Ids of what a small memory in ./memory holds of Alice, in the order of the writes."""
    facts = [
        Fact(text="Alice likes tea", kind="preference", metadata={"n": 1}, at=MONDAY),
        *(
            Fact(
                text=f"Alice lives in {city}",
                at=MONDAY + timedelta(days=day),
                relations=(Relation(subject="Alice", predicate="lives_in", object=city),),
            )
            for day, city in enumerate(("Rome", "Oslo"), start=1)
        ),
    ]
    with opened(tmp_path / "memory") as memory:
        written = [change.id for fact in facts for change in memory.add(fact, ALICE).changes]
        memory.add("said in a session", TALK)
        memory.add("of Bob alone", Scope(user_id="bob"))
        memory.update(written[0], "Alice likes green tea", ALICE)
    return written


def parsed(done: Result) -> dict:
    """Parse the one JSON document that a command printed."""
    assert done.exit_code == 0, done.output
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def rows(done: Result) -> list[list[str]]:
    """Split what a command printed for a pipe, the headings first."""
    assert done.exit_code == 0, done.output
    return [line.split("\t") for line in done.stdout.splitlines()]


def metadata(*given: str) -> list[str]:
    """Write metadata as words of a command."""
    return [word for one in given for word in ("--metadata", one)]


# -- add -------------------------------------------------------------------------------------------


def test_add_makes_a_memory_and_tells_what_became_of_the_text(run, tmp_path: Path):
    done = run("add", "Alice is tall", "--user", "alice")
    again = run("add", "Alice is tall", "--user", "alice")

    with opened(tmp_path / "memory") as memory:
        [record] = memory.list(ALICE).records
    assert (done.exit_code, done.stdout) == (0, f"Remembered: {record.id} Alice is tall\n")
    assert (again.exit_code, again.stdout) == (0, f"Known: {record.id} Alice is tall\n")
    assert record.times_told == 2


def test_a_long_text_is_no_place(run, tmp_path: Path):
    text = "很长的话" * 100
    done = run("add", text, "--user", "alice")
    found = run("search", f"{text}?", "--user", "alice")
    longer = run("add", text * 30, "--user", "alice")

    assert (done.exit_code, found.exit_code, longer.exit_code) == (0, 0, 2)
    assert text in found.stdout
    assert "32768 bytes" in longer.stderr


def test_add_takes_the_whole_scope_a_kind_and_metadata(run, tmp_path: Path):
    words = ("--user", "alice", "--agent", "helper", "--session", "talk", "--kind", "preference")
    more = ("--metadata", "city=Lyon=2", "--metadata", "year:=2026", "--metadata", "a:b=c")
    done = run("add", tmp_path / "there", "likes tea", *words, *more, "--json")

    assert parsed(done)["changes"][0]["event"] == "ADD"
    with opened(tmp_path / "there") as memory:
        [record] = memory.list(TALK).records
    assert (record.kind, record.scope) == ("preference", TALK)
    assert record.metadata == {"city": "Lyon=2", "year": 2026, "a:b": "c"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "TEXT is missing"),
        (("a text",), "Give --user, --agent or --session"),
        (("a text", "--user", "*"), "must not be a wildcard"),
        (("a text", "--user", "alice", "--kind", "joke"), "kind='joke'"),
        (("a text", "--user", "alice", "--metadata", "plain"), "must be KEY=TEXT"),
        (("a text", "--user", "alice", "--metadata", "n:=one"), "must be KEY:=JSON"),
        (
            ("a text", "--user", "alice", *metadata("a=1", "a=2")),
            "'a=2' gives 'a' twice",
        ),
        (("a text", "--user", "alice", *metadata("a:=1", "b=1", "a=1")), "'a=1' gives 'a' twice"),
        ((" ", "--user", "alice"), "text=' '"),
    ],
)
def test_a_wrong_add_is_bad_usage(run, tmp_path: Path, words: tuple[str, ...], said: str):
    done = run("add", *words)

    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("add", "a text", "--user", "alice", "--user", "bob"), "--user"),
        (("add", "--user=alice", "a text", "--user", "alice"), "--user"),
        (("search", "tea", "--agent", "a", "--user", "alice", "--agent", "b"), "--agent"),
        (("list", "--user", "alice", "--limit", "3", "--limit", "4"), "--limit"),
        (("forget", "--session", "a", "--session", "b", "--yes"), "--session"),
        (("doctor", "memory", "--embedder", "a", "--embedder", "b"), "--embedder"),
        (("import", "file", "a", "b", "--embedder", "a", "--embedder", "b"), "--embedder"),
        (("import", "mem0", "a", "b", "--embedder", "a", "--embedder", "b"), "--embedder"),
    ],
)
def test_an_option_that_is_given_twice_is_bad_usage(run, ids, words: tuple[str, ...], option: str):
    before = parsed(run("list", "--user", "alice", "--json"))
    done = run(*words)

    assert done.exit_code == 2
    assert f"{option} is given twice. Give it once." in done.stderr
    assert parsed(run("list", "--user", "alice", "--json")) == before


def test_a_flag_that_is_given_twice_is_given(run, ids):
    assert len(parsed(run("list", "--user", "alice", "--json", "--json"))["records"]) == 3


@pytest.mark.parametrize("text", [" ", "a text"])
def test_a_wrong_add_makes_no_memory(run, tmp_path: Path, text: str):
    done = run("add", tmp_path / "new", text, "--user", "alice", "--kind", "joke")

    assert done.exit_code == 2
    assert not (tmp_path / "new").exists()


def test_a_memory_without_the_text_is_not_taken_for_the_text(run, ids, tmp_path: Path):
    done = run("add", tmp_path / "memory", "--user", "alice")
    named = run("search", "graph=a,vectors=b", "--user", "alice")

    assert (done.exit_code, named.exit_code) == (2, 2)
    assert "TEXT is missing" in done.stderr
    assert "QUESTION is missing" in named.stderr


def test_add_says_that_it_makes_a_memory_and_only_then(run, tmp_path: Path):
    first, second = (run("add", text, "--user", "alice") for text in ("tea", "rye"))
    named = run("add", "./other", "tea", "--user", "alice", "--json")

    assert first.stderr == f"Made a new memory in {tmp_path / 'memory'}.\n"
    assert (second.exit_code, second.stderr) == (0, "")
    assert named.stderr == f"Made a new memory in {tmp_path / 'other'}.\n"
    assert named.stdout.startswith("{")


@pytest.mark.parametrize("word", ["alice", "I like tea", "爱丽丝"])
def test_a_word_that_names_no_folder_is_no_place_for_a_new_memory(run, tmp_path: Path, word: str):
    done = run("add", word, "likes tea", "--user", "alice")

    assert (done.exit_code, done.stdout) == (2, "")
    assert f"no memory in a folder {word!r}. Give './{word}'" in done.stderr
    assert "--user says whose memory it is" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_a_place_for_a_new_memory(run, tmp_path: Path):
    (tmp_path / "notes").mkdir()

    assert run("add", "notes", "likes tea", "--user", "alice").exit_code == 0
    assert run("add", "notes", "likes rye", "--user", "alice").stderr == ""
    assert len(rows(run("list", "notes", "--user", "alice"))) == 3


@pytest.mark.parametrize(
    ("piped", "stored"),
    [
        ("Alice likes tea\n", "Alice likes tea"),
        ("\ufeff爱丽丝喜欢茶\r\n", "爱丽丝喜欢茶"),
        ("two\n\nlines", "two\n\nlines"),
    ],
)
def test_a_dash_is_the_text_on_standard_input(run, tmp_path: Path, piped: str, stored: str):
    words = ["add", "-", "--user", "alice", "--kind", "preference", "--json"]
    added = parsed(CliRunner().invoke(app, words, input=piped))
    words = ["update", str(tmp_path / "memory"), added["changes"][0]["id"], "-", "--user", "alice"]
    updated = CliRunner().invoke(app, words, input=f"{piped} again")

    with opened(tmp_path / "memory") as memory:
        [record] = memory.list(ALICE).records
        texts = [version.text for version in memory.history(record.id, ALICE)]
    assert (updated.exit_code, record.kind) == (0, "preference")
    assert texts == [stored, f"{piped} again".lstrip("\ufeff")]


@pytest.mark.parametrize(
    ("piped", "said"),
    [
        (b"", "Standard input is empty. Pipe a text into the command"),
        (b" \n\n", "Standard input is empty."),
        (b"\xff\xfe", "Standard input is not text in UTF-8."),
        (b"a" * 2**16, "32768 bytes"),
    ],
)
def test_standard_input_that_is_no_text_is_bad_usage(run, tmp_path: Path, piped: bytes, said: str):
    done = CliRunner().invoke(app, ["add", "-", "--user", "alice"], input=piped)

    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


# -- search and list -------------------------------------------------------------------------------


def test_search_prints_the_best_first_for_a_pipe(run, ids):
    found = rows(run("search", "green tea", "--user", "alice"))

    assert found[0] == ["score", "id", "kind", "since", "text"]
    assert found[1][1:] == [ids[0], "preference", "2026-01-05", "Alice likes green tea"]
    assert float(found[1][0]) > 0


def test_search_explains_scores(run, ids):
    explained = rows(run("search", "green tea", "--user", "alice", "--explain"))
    [best, *_] = parsed(run("search", "green tea", "--user", "alice", "--json"))["matches"]

    assert explained[0][4] == "logit is made of"
    assert "cosine +" in explained[1][4]
    logit = math.fsum(best["score_details"].values())
    assert best["score"] == pytest.approx(1 / (1 + math.exp(-logit)))
    assert best["record"]["scope"] == {"user_id": "alice", "agent_id": None, "session_id": None}


def test_search_and_list_narrow_down(run, ids):
    def texts(*words: str) -> list[str]:
        found = parsed(run(*words, "--user", "alice", "--json"))
        return [
            one.get("record", one)["text"] for one in found.get("matches", found.get("records"))
        ]

    assert texts("search", "tea", "--top-k", "1") == ["Alice likes green tea"]
    assert texts("search", "tea", "--filter", '{"n": 1}') == ["Alice likes green tea"]
    assert texts("search", "tea", "--kind", "episode") == []
    assert texts("search", "Rome", "--superseded", "--top-k", "1") == ["Alice lives in Rome"]
    assert texts("list", "--kind", "preference") == ["Alice likes green tea"]
    assert texts("list", "--filter", '{"n": {"gte": 2}}') == []
    assert texts("list", "--session", "talk") == ["said in a session"]
    assert "Alice lives in Rome" not in texts("list")
    assert "Alice lives in Rome" in texts("list", "--superseded")
    assert "of Bob alone" not in texts("list", "--superseded")


def test_list_says_that_there_is_more(run, ids):
    done = run("list", "--user", "alice", "--limit", "2")

    assert len(rows(done)) == 3
    assert done.stderr == "There are more: give a --limit above 2.\n"
    assert parsed(run("list", "--user", "alice", "--limit", "2", "--json"))["more"] is True
    assert parsed(run("list", "--user", "alice", "--json"))["more"] is False
    assert rows(run("list", "--user", "alice", "--superseded"))[0][3] == "until"


def test_nothing_found_is_said_on_stderr_and_no_failure(run, ids):
    for words in (["search", "tea"], ["list"], ["graph"]):
        done = run(*words, "--user", "carol")

        assert (done.exit_code, done.stdout) == (0, "")
        assert "othing" in done.stderr or "no relations of user 'carol'" in done.stderr
        assert "--user" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [["search", "tea"], ["list"], ["graph"], ["forget", "--yes"], ["forget", "--dry-run"]],
    ids="-".join,
)
def test_nothing_of_no_user_suggests_a_user(run, ids, words: list[str]):
    done = run(*words, "--session", "talk")

    assert done.exit_code == 0
    assert done.stderr.endswith("Memories of a user are only found with --user.\n")
    if words[0] != "search":
        assert "session 'talk' without a user" in done.stderr
    assert "is erased" not in done.stderr


@pytest.mark.parametrize("given", ["{", "[]", "1", '{"a": {"is": 1}}', '{"user_id": "bob"}', ""])
@pytest.mark.parametrize("command", [["search", "tea"], ["list"]])
def test_a_filter_that_is_none_is_bad_usage(run, ids, command: list[str], given: str):
    done = run(*command, "--user", "alice", "--filter", given)

    assert (done.exit_code, done.stdout) == (2, "")
    assert "ilter" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["search", "tea"], ["list"], ["show", "0000"], ["history", "0000"], ["graph"],
        ["update", "0000", "text"], ["delete", "0000"], ["restore", "0000"], ["forget", "--yes"],
        ["forget", "--dry-run"],
    ],
)  # fmt: skip
def test_every_command_of_a_scope_asks_whose_memory_it_is(run, ids, words: list[str]):
    done = run(*words)

    assert done.exit_code == 2
    assert "Give --user, --agent or --session" in done.stderr


# -- show, history, graph --------------------------------------------------------------------------


def test_show_takes_the_beginning_of_an_id(run, ids):
    shown = dict(rows(run("show", ids[2][:8], "--user", "alice")))
    data = parsed(run("show", ids[2].upper()[:13], "--user", "alice", "--json"))

    assert (shown["id"], shown["text"]) == (ids[2], "Alice lives in Oslo")
    assert (shown["since"], shown["told"]) == ("2026-01-07 00:00:00Z", "once")
    assert shown["relation 1"] == "Alice lives_in Oslo (since 2026-01-07)"
    assert data["record"]["id"] == ids[2]
    assert data["relations"][0]["object"] == "Oslo"
    assert dict(rows(run("show", ids[0], "--user", "alice")))["metadata.n"] == "1"


def test_sessions_are_listed_and_one_is_shown(run, ids, tmp_path: Path):
    with opened(tmp_path / "memory") as memory:
        memory.add([Message(text="Hi"), Message(text="Hello", role="assistant")], TALK)
        memory.session(TALK).summarize("They greeted each other.")
        memory.session(TALK).put_state({"step": 2, "note": "a"})
    [headings, listed] = rows(run("sessions", "--user", "alice"))
    of_talk = ("--user", "alice", "--agent", "helper", "--session", "talk")
    shown = rows(run("show", *of_talk))
    data = parsed(run("show", "memory", *of_talk, "--json"))

    assert headings == ["session", "agent", "turns", "first", "last", "summary"]
    assert listed[:3] == ["talk", "helper", "2"]
    assert listed[-1] == "They greeted each other."
    assert shown[:3] == [["summary", listed[-1]], ["state.note", "a"], ["state.step", "2"]]
    assert [row[1:] for row in shown[3:]] == [
        ["who", "text"],
        ["user", "Hi"],
        ["assistant", "Hello"],
    ]
    assert data["state"] == {"step": 2, "note": "a"}
    assert parsed(run("sessions", "--user", "alice", "--json"))["sessions"][0]["turns"] == 2
    for words in (("sessions", "--user", "bob"), ("show", "--user", "bob", "--session", "talk")):
        assert run(*words).stdout == ""
    for words in (("show", "--user", "alice"), ("show", "memory", "--user", "alice")):
        assert "ID is missing" in run(*words).stderr
    empty = run("show", "", "--user", "alice")
    assert (empty.exit_code, "--session" in empty.stderr) == (2, True)
    assert "None" not in empty.stderr


def test_about_tells_each_matter_once_and_keeps_what_held_before(run, ids, tmp_path: Path):
    with opened(tmp_path / "memory") as memory:
        memory.add([Message(text="Which tea do I like?"), Message(text="I like green tea!")], TALK)
        memory.add(Message(text="My phone number is 07 11."), TALK)
        memory.add(Message(text="My phone number is 07 98 now."), TALK)
    told = rows(run("about", "--user", "alice"))
    data = parsed(run("about", "memory", "--user", "alice", "--json"))["known"]
    nobody = run("about", "--user", "carol")

    assert told[0] == ["id", "since", "until", "text"]
    assert [ids[2], "2026-01-07", "", "Alice lives in Oslo"] in told
    assert not [row for row in told if "?" in row[-1]]
    texts = [row[-1] for row in told]
    now = texts.index("My phone number is 07 98 now.")
    assert texts[now + 1] == "(earlier) My phone number is 07 11."
    [number] = [one for one in data if one["text"] == "My phone number is 07 98 now."]
    assert [one["text"] for one in number["earlier"]] == ["My phone number is 07 11."]
    assert (nobody.exit_code, nobody.stdout) == (0, "")


def test_a_search_marks_what_a_newer_match_replaced(run, tmp_path: Path):
    with opened(tmp_path / "memory") as memory:
        memory.add("My phone number is 07 11.", TALK)
        memory.add("My phone number is 07 98 now.", TALK)
    texts = {row[-1] for row in rows(run("search", "What is my phone number?", "--user", "alice"))}

    assert {"(earlier) My phone number is 07 11.", "My phone number is 07 98 now."} <= texts


def test_show_of_what_another_has_finds_nothing(run, ids):
    for words in (
        ["show", ids[0]], ["history", ids[0]], ["show", ids[0][:8]], ["history", "f"],
        ["update", ids[0], "mine"], ["update", ids[0][:8], "mine"], ["delete", ids[0]],
        ["delete", ids[0][:8]], ["restore", ids[0]],
    ):  # fmt: skip
        done = run(*words, "--user", "carol")

        assert (done.exit_code, done.stdout) == (1, "")
        assert "No record" in done.stderr
    assert dict(rows(run("show", ids[0], "--user", "alice")))["text"] == "Alice likes green tea"


def test_a_beginning_of_several_ids_is_bad_usage(run, tmp_path: Path):
    with opened(tmp_path / "memory") as memory:
        memory.add([f"text {number}" for number in range(40)], ALICE)  # of 16 first digits
    counts = [run("show", digit, "--user", "alice") for digit in "0123456789abcdef"]

    assert 2 in {one.exit_code for one in counts}
    several = next(one for one in counts if one.exit_code == 2)
    assert re.search(r"is the beginning of \d+ ids\. Give more of it: ", several.stderr)


def test_history_is_oldest_first_and_also_of_what_was_deleted(run, ids, tmp_path: Path):
    lines = rows(run("history", ids[0][:10], "--user", "alice"))
    with opened(tmp_path / "memory") as memory:
        memory.delete(ids[0], ALICE)
    data = parsed(run("history", ids[0], "--user", "alice", "--json"))

    assert [one[1:] for one in lines[1:]] == [
        ["ADD", "Alice likes tea"],
        ["UPDATE", "Alice likes green tea"],
    ]
    assert [one["event"] for one in data["versions"]] == ["ADD", "UPDATE", "DELETE"]


def test_update_replaces_a_text_and_keeps_the_former(run, ids, tmp_path: Path):
    done = run("update", ids[0][:8], "Alice likes rye", "--user", "alice")
    again = run("update", tmp_path / "memory", ids[0], "Alice likes rye", "--user", "alice")
    data = parsed(run("update", ids[0], "Alice likes oats", "--user", "alice", "--json"))

    assert (done.exit_code, done.stdout) == (0, f"Updated: {ids[0]} Alice likes rye\n")
    assert again.exit_code == 0
    assert (data["changes"][0]["event"], data["pending"]) == ("UPDATE", False)
    assert [one[2] for one in rows(run("history", ids[0], "--user", "alice"))][-2:] == [
        "Alice likes rye",
        "Alice likes oats",
    ]
    assert dict(rows(run("show", ids[0], "--user", "alice")))["metadata.n"] == "1"


def test_delete_removes_one_memory_and_keeps_its_history(run, ids):
    done = run("delete", ids[0][:8], "--user", "alice")
    data = parsed(run("delete", ids[1], "--user", "alice", "--json"))
    again = run("delete", ids[0], "--user", "alice")

    assert (done.exit_code, done.stdout) == (0, f"Deleted: {ids[0]} Alice likes green tea\n")
    assert data["changes"][0]["event"] == "DELETE"
    assert (again.exit_code, again.stdout) == (1, "")
    assert ids[0] in again.stderr
    assert len(rows(run("list", "--user", "alice"))) == 3
    assert rows(run("history", ids[0], "--user", "alice"))[-1][1] == "DELETE"


def test_restore_brings_a_deleted_memory_back_once(run, ids):
    early = run("restore", ids[0][:8], "--user", "alice")
    run("delete", ids[0][:8], "--user", "alice")
    done = run("restore", ids[0], "--user", "alice")
    run("delete", ids[0], "--user", "alice")
    short = run("restore", ids[0][:8], "--user", "alice")
    data = parsed(run("restore", ids[0], "--user", "alice", "--json"))

    assert (early.exit_code, early.stdout) == (2, "")
    assert "is not deleted. " in early.stderr
    assert (done.exit_code, done.stdout) == (0, f"Restored: {ids[0]} Alice likes green tea\n")
    assert (short.exit_code, short.stdout) == (1, "")
    assert [(one["event"], one["text"]) for one in data["changes"]] == [
        ("RESTORE", "Alice likes green tea")
    ]
    assert len(rows(run("list", "--user", "alice"))) == 4
    assert rows(run("history", ids[0], "--user", "alice"))[-1][1] == "RESTORE"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["restore"], "ID is missing"),
        (["update"], "ID is missing"),
        (["update", "0000"], "TEXT is missing"),
        (["update", "MEMORY"], "ID is missing"),
        (["update", "MEMORY", "0000"], "TEXT is missing"),
        (["update", "WHOLE", " "], "text=' '"),
        (["delete"], "ID is missing"),
        (["delete", "MEMORY"], "ID is missing"),
    ],
)
def test_a_change_that_lacks_a_word_is_bad_usage(
    run, ids, tmp_path: Path, words: list[str], said: str
):
    named = {"MEMORY": str(tmp_path / "memory"), "WHOLE": ids[0]}
    done = run(*(named.get(one, one) for one in words), "--user", "alice")

    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(rows(run("list", "--user", "alice"))) == 4


def test_a_graph_is_text_a_flowchart_or_data(run, ids):
    assert run("graph", "--user", "alice").stdout == "Alice lives_in Oslo (since 2026-01-07)\n"
    both = run("graph", "--user", "alice", "--superseded", "--entity", "rome", "--hops", "2")
    assert both.stdout.startswith("Alice lives_in Rome (since 2026-01-06, until 2026-01-07)\n")
    chart = run("graph", "--user", "alice", "--mermaid").stdout
    assert chart.startswith('flowchart LR\n  n0["Alice"]\n')
    [relation] = parsed(run("graph", "--user", "alice", "--json"))["relations"]
    assert (relation["subject"], relation["object"]) == ("Alice", "Oslo")
    assert run("graph", "--user", "alice", "--hops", "9").exit_code == 2
    assert run("graph", "--user", "alice", "--mermaid", "--json").exit_code == 2


# -- forget ----------------------------------------------------------------------------------------


def left(tmp_path: Path) -> int:
    with opened(tmp_path / "memory") as memory:
        return len(memory.list(ALICE, include_superseded=True).records)


def test_forget_counts_first_and_erases_only_when_told(run, ids, tmp_path: Path):
    dry = rows(run("forget", "--user", "alice", "--dry-run"))
    data = parsed(run("forget", "--user", "alice", "--dry-run", "--json"))
    refused = run("forget", "--user", "alice")

    assert dry[0] == ["what", "number"]
    assert ["memories", "4"] in dry
    assert {one[0] for one in dry}.isdisjoint(data["rows"])
    assert data["rows"]["graph.records"] == 4
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Nobody can be asked here: give --yes to erase for good.")
    assert left(tmp_path) == 4


def test_forget_prints_the_receipt(run, ids, tmp_path: Path):
    done = run("forget", "--user", "alice", "--yes")

    assert ["memories", "4", "0"] in rows(done)
    assert done.stderr == "Everything of user 'alice' is erased.\n"
    receipt = parsed(run("forget", "--user", "bob", "--yes", "--json"))
    assert (receipt["removed"]["graph.records"], receipt["complete"]) == (1, True)
    assert set(receipt["left"].values()) == {0}
    assert left(tmp_path) == 0


def test_forget_of_no_user_names_what_was_erased(run, ids, tmp_path: Path):
    with opened(tmp_path / "memory") as memory:
        memory.add("of no user", Scope(session_id="talk"))
    done = run("forget", "--session", "talk", "--yes")

    assert ["memories", "1", "0"] in rows(done)
    assert done.stderr == "Everything of session 'talk' without a user is erased.\n"
    assert left(tmp_path) == 4


def test_nothing_to_forget_is_not_asked_about(run, ids, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(commands, "can_ask", lambda: True)
    done = run("forget", "--session", "talk")

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("Nothing is stored for session 'talk' without a user in ")
    assert "Erase for good?" not in done.output


def test_a_dry_run_counts_what_the_receipt_says(run, ids):
    counted = parsed(run("forget", "--user", "alice", "--dry-run", "--json"))["rows"]
    removed = parsed(run("forget", "--user", "alice", "--yes", "--json"))["removed"]
    removed.pop("journal.rows")  # the erasure's own

    assert {name: counted[name] for name in removed} == removed


@pytest.mark.parametrize(("answer", "code", "number"), [("y\n", 0, 0), ("n\n", 1, 4), ("", 130, 4)])
def test_forget_asks_on_a_terminal(
    run, ids, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, number: int
):
    monkeypatch.setattr(commands, "can_ask", lambda: True)
    done = CliRunner().invoke(app, ["forget", "--user", "alice"], input=answer)

    assert done.exit_code == code, done.output
    assert "4 memories of user 'alice' in " in done.stderr
    assert ("Nothing was erased." in done.stderr) is bool(number)
    assert "half done" not in done.stderr
    assert left(tmp_path) == number


def test_what_is_left_of_an_erasure_is_a_failure(run, ids, monkeypatch: pytest.MonkeyPatch):
    from commonplace import EraseReceipt, Memory

    receipt = EraseReceipt(scope=ALICE, removed={"a": 1}, left={"b": 2}, at=MONDAY)
    monkeypatch.setattr(Memory, "forget", lambda *_: receipt)
    done = run("forget", "--user", "alice", "--yes")

    assert done.exit_code == 1
    assert "b\t0\t2\n" in done.stdout
    assert "run the same command again" in done.stderr


# -- the location ----------------------------------------------------------------------------------


READS = [
    ["search", "tea", "--user", "alice"], ["list", "--user", "alice"],
    ["show", "0000", "--user", "alice"], ["history", "0000", "--user", "alice"],
    ["update", "0000", "text", "--user", "alice"], ["delete", "0000", "--user", "alice"],
    ["graph", "--user", "alice"], ["forget", "--user", "alice", "--yes"],
    ["forget", "--user", "alice", "--dry-run"], ["stats"], ["doctor"], ["reindex"],
    ["reembed", "--embedder", "sentence-encoder"],
]  # fmt: skip


@pytest.mark.parametrize("words", READS, ids=lambda words: "-".join(words[:1]))
def test_a_missing_memory_is_never_made_by_a_read(run, tmp_path: Path, words: list[str]):
    left_out = run(*words)
    given = run(words[0], "nowhere", *words[1:])

    for done in (left_out, given):
        assert (done.exit_code, done.stdout) == (1, "")
        assert "has no memory" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", READS, ids=lambda words: "-".join(words[:1]))
def test_the_file_of_a_memory_is_not_its_folder(run, ids, tmp_path: Path, words: list[str]):
    done = run(words[0], tmp_path / "memory" / "memory.db", *words[1:])

    assert (done.exit_code, done.stdout) == (2, "")
    assert f"give the folder {str(tmp_path / 'memory')!r}" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["backup", "memory", "no/all.db"], "no/all.db cannot be written, as there is no folder"),
        (["export", "memory", "no/all.jsonl"], "there is no folder 'no'. Make the folder first"),
        (["import", "file", "no.jsonl", "new"], "no.jsonl is not there. Give a file that"),
    ],
    ids=["backup", "export", "import"],
)
def test_what_is_not_there_is_named_with_a_way_out(run, ids, words: list[str], said: str):
    done = run(*words)

    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
    assert "Errno" not in done.stderr


def test_an_export_of_one_user_takes_the_place_that_is_left_out(run, ids, tmp_path: Path):
    run("add", "Bob is tall", "--user", "bob")
    hers = run("export", "--user", "alice", "hers.jsonl")
    again = run("export", "memory", "again.jsonl", "--user", "alice")
    without = run("export", "memory", "--user", "alice")

    assert (hers.exit_code, again.exit_code) == (0, 0)
    text = (tmp_path / "hers.jsonl").read_text("utf-8")
    assert text == (tmp_path / "again.jsonl").read_text("utf-8")
    assert '"user_id":"alice"' in text
    assert "bob" not in text.lower()
    assert (without.exit_code, without.stdout) == (2, "")
    assert "FILE is missing" in without.stderr


def test_a_model_that_fastembed_lacks_is_bad_usage():
    pytest.importorskip("fastembed", reason="pip install 'commonplace-memory[local]'")
    with pytest.raises(InvalidRecordError, match=r"'fastembed:no' is no model of fastembed. Give"):
        arguments.embedder_of("fastembed:no")


def test_the_environment_names_the_memory_that_is_left_out(
    run, ids, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "memory").rename(tmp_path / "elsewhere")
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path / "elsewhere"))

    assert len(rows(run("list", "--user", "alice"))) == 4
    assert run("doctor").exit_code == 0
    assert run("list", tmp_path / "nowhere", "--user", "alice").exit_code == 1
