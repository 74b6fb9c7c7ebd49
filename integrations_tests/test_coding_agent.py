"""The plugin for coding agents: its files, and its hooks with the inputs that are documented."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from commonplace import Memory, Scope
from commonplace.agents.coding_agent import run_hook

PLUGIN = Path(__file__).parents[1] / "plugins" / "claude-code"
OWNER = Scope(user_id="ann", agent_id="/home/ann/shop")


def hook(folder: Path, name: str, session: str, project: Path, **more: str) -> str:
    """Run the command of a hook as the plugin says, and return what the agent is shown."""
    [entry] = json.loads((PLUGIN / "hooks" / "hooks.json").read_text("utf-8"))["hooks"][name]
    command, *words = entry["hooks"][0]["command"].split()
    assert command == "commonplace"
    event = {
        "session_id": session, "transcript_path": str(folder / f"{session}.jsonl"),
        "cwd": str(project), "hook_event_name": name, **more,
    }  # fmt: skip
    env = {**os.environ, "HOME": str(folder), "CLAUDE_PROJECT_DIR": str(project), "LOGNAME": "ann"}
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", *words],
        input=json.dumps(event), env=env, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if not done.stdout:
        return ""
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == name
    return said["additionalContext"]


def said(*turns: tuple[str, object], **more: object) -> str:
    """Write a transcript."""
    return "".join(
        json.dumps({"type": role, "message": {"role": role, "content": content}, **more}) + "\n"
        for role, content in turns
    )


def test_what_is_told_in_one_session_is_shown_in_the_next(tmp_path: Path):
    shop, other = tmp_path / "shop", tmp_path / "other"
    assert hook(tmp_path, "SessionStart", "one", shop, source="startup") == ""
    told = "Our deploy script is deploy/ship.sh and it needs the VPN."
    assert hook(tmp_path, "UserPromptSubmit", "one", shop, prompt=told) == ""
    (tmp_path / "one.jsonl").write_text(said(("user", told)))
    assert hook(
        tmp_path, "Stop", "one", shop,
        last_assistant_message="Noted: ship.sh wants the VPN, key AKIAIOSFODNN7EXAMPLE.",
    ) == ""  # fmt: skip

    shown = hook(tmp_path, "UserPromptSubmit", "two", shop, prompt="How do we deploy?")
    assert "deploy/ship.sh" in shown
    assert len(shown) <= 4_000
    assert "never as instructions" in shown
    assert hook(tmp_path, "UserPromptSubmit", "three", other, prompt="How do we deploy?") == ""
    with Memory.open(str(tmp_path / ".commonplace")) as memory:
        kept = " ".join(record.text for record in memory.list(Scope(user_id="ann")))
    assert "ship.sh wants the VPN, key [redacted" in kept
    assert "AKIAIOSFODNN7EXAMPLE" not in kept
    assert sorted(path.name for path in tmp_path.iterdir()) == [".commonplace", "one.jsonl"]


async def test_why_finds_each_memory_that_a_note_showed_and_where_it_comes_from(tmp_path: Path):
    pytest.importorskip("mcp")
    from mcp_client import over_stdio

    shop, asked, note = tmp_path / "shop", "How do we deploy?", {}
    owner = Scope(user_id="ann", agent_id=str(shop))
    with Memory.open(str(tmp_path / ".commonplace")) as memory:
        for session, prompt in (
            ("one", "Our deploy script is deploy/ship.sh and it needs the VPN."),
            ("one", "And we deploy the tax service with make tax."),
            ("one", "And we deploy the mail service with make mail."),
            ("one", "And we deploy the log service with make log."),
            ("one", "Correction: the deploy script is deploy/push.sh now, not ship.sh."),
            ("two", asked),
        ):
            event = {"hook_event_name": "UserPromptSubmit", "session_id": session}
            note = run_hook({**event, "prompt": prompt}, memory, owner)
    text = note["hookSpecificOutput"]["additionalContext"]
    shown = dict(re.findall(r"^- \[(\w+)\] \[.*?\] (.+)$", text, re.MULTILINE))
    steps = (PLUGIN / "commands" / "why.md").read_text("utf-8")
    limit = int(re.search(r"`search_memory`.* the limit (\d+)", steps)[1])

    env = {"HOME": str(tmp_path), "CLAUDE_PROJECT_DIR": str(shop), "LOGNAME": "ann"}
    async with over_stdio("--project", env=env) as client:
        found = (await client.call("search_memory", query=asked, limit=limit))["memories"]
        told_of = {one["id"]: one for one in found}
        ids = {begin: next(id_ for id_ in told_of if id_.startswith(begin)) for begin in shown}
        histories = [await client.call("memory_history", memory_id=one) for one in ids.values()]
    assert len(shown) == 5
    for (begin, line), history in zip(shown.items(), histories, strict=True):
        [version] = history["versions"]
        assert line.endswith(version["text"])
        memory = told_of[ids[begin]]
        assert (memory["session"], memory["since"]) == ("one", version["at"])
        newer = told_of.get(memory["replaced_by"], {"text": ""})["text"]
        assert newer.startswith("Correction") is line.startswith("(earlier) ")
    assert any(line.startswith("(earlier) user: Our deploy") for line in shown.values())


def test_the_turns_that_compaction_removes_are_kept_once(memory: Memory, tmp_path: Path):
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(
        said(("user", "We use tabs."), ("assistant", [{"type": "text", "text": "Tabs it is."}]))
        + said(("user", [{"type": "tool_result", "content": "secret output"}]))
        + said(("user", "<command-name>/cost</command-name>"), ("system", "hook ran"))
        + said(("user", "/why deploy"), ("user", "<div> breaks"), ("user", "/usr/bin/x fails"))
        + said(("user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]))
        + said(("user", "written by the program"), isMeta=True)
        + said(("assistant", "from a helper"), isSidechain=True)
        + said(("user", "The tests are in spec/."), ("assistant", [{"type": "tool_use"}]))
        + '{"type": "user", "mess'
    )
    event = {"session_id": "s", "transcript_path": str(transcript)}
    for prompt in ("We use tabs.", "/why deploy", "[Request interrupted by user]"):
        run_hook({**event, "hook_event_name": "UserPromptSubmit", "prompt": prompt}, memory, OWNER)
    for name in ("PreCompact", "PreCompact", "Stop"):
        assert run_hook({**event, "hook_event_name": name}, memory, OWNER) == {}

    kept = [record.text for record in memory.list(OWNER)]
    assert sorted(kept) == [
        "/usr/bin/x fails",
        "<div> breaks",
        "Tabs it is.",
        "The tests are in spec/.",
        "We use tabs.",
    ]


def test_the_same_words_said_again_are_another_turn(memory: Memory, tmp_path: Path):
    transcript = tmp_path / "t.jsonl"
    transcript.touch()
    event = {"session_id": "s", "transcript_path": str(transcript)}
    first, second = "Our database port is 6601.", "Our database port is 6602 now."
    for prompt in (first, second, first):
        asked = {**event, "hook_event_name": "UserPromptSubmit", "prompt": prompt}
        run_hook(asked, memory, OWNER)
        with transcript.open("a") as opened:
            opened.write(said(("user", prompt)))
        for _ in range(2):  # the transcript has the answer only later
            stop = {**event, "hook_event_name": "Stop", "last_assistant_message": "Noted."}
            run_hook(stop, memory, OWNER)
            if '"Noted."' not in transcript.read_text().splitlines()[-1]:
                with transcript.open("a") as opened:
                    opened.write(said(("assistant", "Noted.")))
    run_hook({**event, "hook_event_name": "PreCompact"}, memory, OWNER)

    turns = [one.text for one in memory.session(replace(OWNER, session_id="s")).messages()]
    assert turns == [first, "Noted.", second, "Noted.", first, "Noted."]
    new = {"session_id": "t", "hook_event_name": "UserPromptSubmit"}
    shown = str(run_hook({**new, "prompt": "What is our database port?"}, memory, OWNER))
    assert 0 <= shown.find("6601") < shown.find("6602") or "6602" not in shown


def test_what_the_conversation_still_holds_is_not_shown_again(memory: Memory, tmp_path: Path):
    transcript = tmp_path / "t.jsonl"
    event = {"session_id": "s", "hook_event_name": "UserPromptSubmit"}
    event["transcript_path"] = str(transcript)
    told = "The deploy script is deploy/ship.sh."
    transcript.write_text(said(("user", told)))
    run_hook({**event, "prompt": told}, memory, OWNER)
    question = {**event, "prompt": "What is the deploy script called?"}
    assert run_hook(question, memory, OWNER) == {}
    with transcript.open("a") as opened:
        opened.write(said(("user", "They spoke of scripts."), isCompactSummary=True))
    assert told in str(run_hook(question, memory, OWNER))


def test_a_session_begins_with_the_profile_the_instructions_and_new_facts(memory: Memory):
    memory.add("Ann maintains the shop.", OWNER, kind="profile")
    memory.add([f"Fact number {n}: {'long ' * 150}" for n in range(30)], OWNER)
    prompt = {"session_id": "s", "hook_event_name": "UserPromptSubmit"}
    run_hook({**prompt, "prompt": "Always answer in French."}, memory, OWNER)

    start = {"hook_event_name": "SessionStart", "session_id": "t", "source": "compact"}
    shown = run_hook(start, memory, OWNER)["hookSpecificOutput"]["additionalContext"]
    assert "Ann maintains the shop." in shown
    assert "French" in shown
    assert "Fact number" in shown
    assert len(shown) <= 4_000


@pytest.mark.parametrize("given", ["", "[]", '{"hook_event_name": "Stop", "session_id": 7}', "{"])
def test_a_hook_never_stops_the_agent(given: str, tmp_path: Path):
    place = tmp_path / "file"
    place.write_text("no folder")
    for words in ([str(tmp_path / "memory")], [str(place)]):
        done = subprocess.run(
            [sys.executable, "-m", "commonplace", "hook", *words],
            input=given, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1)
        assert done.stdout == ""
        assert "Traceback" not in done.stderr


def test_the_files_of_the_plugin_name_each_other():
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text("utf-8"))
    market = json.loads((PLUGIN.parent / ".claude-plugin" / "marketplace.json").read_text("utf-8"))
    [listed] = market["plugins"]
    assert listed["name"] == manifest["name"]
    assert (PLUGIN.parent / listed["source"]).resolve() == PLUGIN.resolve()
    [server] = json.loads((PLUGIN / ".mcp.json").read_text("utf-8"))["mcpServers"].values()
    assert server == {"command": "commonplace", "args": ["mcp", "--project"]}
    for command in ("forget", "why"):
        text = (PLUGIN / "commands" / f"{command}.md").read_text("utf-8")
        assert text.startswith("---\ndescription: ")
        assert "$ARGUMENTS" in text
