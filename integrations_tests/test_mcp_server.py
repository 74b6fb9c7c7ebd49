"""The MCP server, driven by the client of the SDK over stdio and HTTP, in processes of its own."""

import asyncio
import hashlib
import json
import re
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from commonplace import Memory, Message, Scope

pytest.importorskip("mcp")

from .mcp_client import COMMAND, http_server, over_http, over_stdio

ALICE = Scope(user_id="alice")


def texts(answer: dict) -> list[str]:
    return [one["text"] for one in answer["memories"]]


async def test_every_tool_resource_and_prompt_over_stdio(tmp_path: Path):
    place = str(tmp_path / "memory")
    async with over_stdio(place, "--user", "alice") as client:
        tools = {tool["name"]: tool for tool in await client.listed("tools")}
        assert list(tools) == [
            "add_memory", "search_memory", "update_memory", "forget_memory", "list_memories",
            "memory_history", "memory_relations", "restore_memory",
        ]  # fmt: skip
        assert all(tool["outputSchema"]["type"] == "object" for tool in tools.values())
        assert not any("user" in tool["inputSchema"]["properties"] for tool in tools.values())
        kind = tools["add_memory"]["inputSchema"]["properties"]["kind"]
        assert set(kind["enum"]) == {"fact", "preference", "procedure", "profile"}
        hints = {name: tool["annotations"] for name, tool in tools.items()}
        assert {name for name, hint in hints.items() if hint["readOnlyHint"]} == {
            "search_memory", "list_memories", "memory_history", "memory_relations",
        }  # fmt: skip
        assert {name for name, hint in hints.items() if hint["destructiveHint"]} == {
            "update_memory", "forget_memory",
        }  # fmt: skip

        added = await client.call(
            "add_memory", facts=["Alice is allergic to peanuts.", "Alice lives in Lyon."]
        )
        assert [one["event"] for one in added["changes"]] == ["ADD", "ADD"]
        again = await client.call("add_memory", facts=["Alice lives in Lyon."])
        assert [one["event"] for one in again["changes"]] == ["NONE"]
        await client.call("add_memory", facts=["Alice is a nurse."], kind="profile")

        [best] = (await client.call("search_memory", query="What must Alice not eat?", limit=1))[
            "memories"
        ]
        assert best["text"] == "Alice is allergic to peanuts."
        assert 0 < best["score"] <= 1
        home = added["changes"][1]["id"]
        updated = await client.call("update_memory", memory_id=home, text="Alice lives in Nice.")
        assert updated["changes"] == [
            {"event": "UPDATE", "id": home, "text": "Alice lives in Nice."}
        ]
        gone = await client.call("forget_memory", memory_id=home)
        assert gone["changes"][0]["event"] == "DELETE"
        assert "Alice lives in Nice." not in texts(await client.call("list_memories"))
        await client.call("restore_memory", memory_id=home)
        history = (await client.call("memory_history", memory_id=home))["versions"]
        assert [one["event"] for one in history] == ["ADD", "UPDATE", "DELETE", "RESTORE"]
        assert [one["text"] for one in history][1:3] == ["Alice lives in Nice.", None]
        assert (await client.call("memory_relations", entity="Alice"))["relations"] == []

        first = await client.call("list_memories", limit=2)
        rest = await client.call("list_memories", limit=2, cursor=first["cursor"])
        assert len(first["memories"]) == 2
        assert rest["cursor"] is None
        assert len({*texts(first), *texts(rest)}) == 3
        page = await client.call("memory_history", memory_id=home, limit=3)
        last = await client.call("memory_history", memory_id=home, cursor=page["cursor"])
        assert [one["event"] for one in last["versions"]] == ["RESTORE"]

        assert {one["uri"] for one in await client.listed("resources")} == {"memory://profile"}
        assert {one["uriTemplate"] for one in await client.listed("resource_templates")} == {
            "memory://recent/{n}", "memory://session/{id}",
        }  # fmt: skip
        assert "Alice is a nurse." in await client.read("memory://profile")
        assert "peanuts" not in await client.read("memory://profile")
        assert (await client.read("memory://recent/2")).count("\n- ") == 2
        guide = await client.prompt("use_memory")
        assert set(re.findall("`(.*?)`", guide)) == {
            "search_memory", "add_memory", "update_memory", "forget_memory",
        }  # fmt: skip


async def test_wrong_calls_are_answered_with_what_would_be_right(tmp_path: Path):
    async with over_stdio(str(tmp_path / "memory"), "--user", "alice") as client:
        answers = {
            "no such tool": await client.call("remember", text="x"),
            "another user": await client.call("search_memory", query="x", user_id="bob"),
            "missing": await client.call("search_memory"),
            "empty": await client.call("add_memory", facts=[]),
            "a turn": await client.call("add_memory", facts=["x"], kind="episode"),
            "unknown kind": await client.call("add_memory", facts=["x"], kind="secret"),
            "too many": await client.call("list_memories", limit=5_000),
            "made-up id": await client.call("forget_memory", memory_id="17"),
            "made-up id, update": await client.call("update_memory", memory_id="17", text="x"),
            "too long an id": await client.call("update_memory", memory_id="x" * 300, text="x"),
            "not deleted": await client.call("restore_memory", memory_id="17"),
            "no history": await client.call("memory_history", memory_id="17"),
            "made-up cursor": await client.call("list_memories", cursor="17"),
            "blank": await client.call("add_memory", facts=["  "]),
        }
        for case, part in {
            "no such tool": "The tools are add_memory, search_memory",
            "another user": "'user_id' is no parameter. The parameters of search_memory are query,",
            "missing": "query: Field required",
            "empty": "facts: List should have at least 1 item",
            "a turn": "kind: Input should be 'fact'",
            "unknown kind": "kind: Input should be 'fact'",
            "too many": "limit: Input should be less than or equal to 50",
            "made-up id": "'17'",
            "made-up id, update": "'17'",
            "too long an id": "memory_id='xxx",
            "not deleted": "'17'",
            "no history": "'17'",
            "made-up cursor": "cursor",
            "blank": "text",
        }.items():
            assert part in str(answers[case]), (case, answers[case])
            assert "Traceback" not in answers[case]
            assert "pydantic" not in answers[case]
        for uri in ("memory://recent/0", "memory://recent/many"):
            with pytest.raises(Exception, match=r"must be in 1\.\.50"):
                await client.read(uri)
        assert (await client.call("list_memories"))["memories"] == []


async def test_users_over_http_never_see_each_other(tmp_path: Path):
    tokens, place = tmp_path / "tokens", tmp_path / "memory"
    lines = {user: f"{hashlib.sha256(f'{user}-token'.encode()).hexdigest()} {user}" for user in
             ("alice", "bob")}  # fmt: skip
    tokens.write_text("# who may\n" + "\n".join(lines.values()))

    async def live(url: str, user: str, city: str) -> list[list[str]]:
        async with over_http(url, f"{user}-token") as client:
            seen = []
            for number in range(8):
                await client.call("add_memory", facts=[f"{user} saw {city}, day {number}."])
                seen.append(texts(await client.call("search_memory", query="Who saw a city?")))
                seen.append(texts(await client.call("list_memories", limit=50)))
                seen.append((await client.read("memory://recent/50")).splitlines()[1:])
            return seen

    with http_server(place, "--tokens", str(tokens)) as url:
        alice, bob = await asyncio.gather(live(url, "alice", "Lyon"), live(url, "bob", "Nice"))
        assert all("Lyon" in text for seen in alice for text in seen)
        assert len(alice[-2]) == 8
        assert all("Nice" in text for seen in bob for text in seen)
        assert len(bob[-2]) == 8
        assert [status(url, token) for token in (None, "wrong", "bob-token")] == [401, 401, 200]
        tokens.write_text(lines["alice"])  # bob's token ends at once
        assert [status(url, token) for token in ("bob-token", "alice-token")] == [401, 200]


def status(url: str, token: str | None) -> int:
    """Send a request, and return the status of the answer."""
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Host": "memory.example.org",  # as a proxy passes on
    }
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        with urlopen(Request(url, body, headers)) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


async def test_a_folder_is_shared_with_an_agent_in_another_process(tmp_path: Path):
    place = str(tmp_path / "memory")
    with Memory.open(place) as agent:
        agent.add(
            [Message(text="My sister is called Ines.", id="1"), Message(text="I ski.", id="2")],
            Scope(user_id="alice", session_id="trip/1 of 2"),
        )
        async with over_stdio(place, "--user", "alice") as client:
            found = await client.call("search_memory", query="What is my sister called?")
            assert "Ines" in found["memories"][0]["text"]
            assert found["memories"][0]["session"] == "trip/1 of 2"
            said = await client.read("memory://session/trip%2F1%20of%202")
            assert said.index("Ines") < said.index("ski")
            turn = found["memories"][0]["id"]
            [corrected] = (
                await client.call("update_memory", memory_id=turn, text="Alice's sister is Inès.")
            )["changes"]
            assert corrected["id"] != turn
            assert corrected["event"] == "ADD"
            assert agent.get(turn, ALICE) is None
            await client.call("add_memory", facts=["Alice plays the violin."])
        [match] = agent.search("Which instrument does Alice play?", ALICE, top_k=1)
        assert match.text == "Alice plays the violin."


def test_what_was_accepted_survives_a_server_that_is_killed_before_it_is_applied(tmp_path: Path):
    place = tmp_path / "memory"
    long = [f"Fact {number}: {'heron wagon river stone ' * 80}".strip() for number in range(20)]
    with subprocess.Popen(
        [*COMMAND, str(place), "--user", "alice"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip

        def send(**message: object) -> None:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()

        about = {"protocolVersion": "2025-06-18", "capabilities": {}}
        send(
            id=1, method="initialize", params={**about, "clientInfo": {"name": "t", "version": "1"}}
        )
        server.stdout.readline()
        send(method="notifications/initialized")
        call = {"name": "add_memory", "arguments": {"facts": long}}
        journal = sqlite3.connect(f"file:{place / 'memory.db'}?mode=ro", uri=True)
        send(id=2, method="tools/call", params=call)
        deadline = time.monotonic() + 60
        while not journal.execute("SELECT count(*) FROM op").fetchone()[0]:
            assert time.monotonic() < deadline
        server.send_signal(signal.SIGKILL)
        journal.close()
        assert server.stdout.read() == ""  # nobody was answered

    with Memory.open(str(place)) as agent:
        agent.flush()
        assert sorted(record.text for record in agent.list(ALICE)) == sorted(long)


async def test_a_project_is_served_to_whoever_works_on_it(tmp_path: Path):
    env = {"HOME": str(tmp_path), "CLAUDE_PROJECT_DIR": str(tmp_path / "shop"), "LOGNAME": "ann"}
    async with over_stdio("--project", env=env) as client:
        await client.call("add_memory", facts=["The shop is deployed with ship.sh."])
    with Memory.open(str(tmp_path / ".commonplace")) as memory:
        [record] = memory.list(Scope(user_id="ann", agent_id=str(tmp_path / "shop")))
    assert record.text == "The shop is deployed with ship.sh."


def test_a_command_that_does_not_say_whose_memories_is_refused(tmp_path: Path):
    for words in ([], ["--user", "alice", "--tokens", "x"]):
        done = subprocess.run(
            [*COMMAND, str(tmp_path / "memory"), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "--tokens" in done.stderr
    bad = tmp_path / "tokens"
    bad.write_text("my-secret-token alice")
    done = subprocess.run(
        [*COMMAND, str(tmp_path / "m"), "--tokens", str(bad)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "line 1" in done.stderr
    assert "my-secret" not in done.stderr
