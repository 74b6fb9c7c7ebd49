"""Forced compaction: what AgentScope's summary drops comes back, and the summary outlives it."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from agentscope.agent import ContextConfig
from agentscope.message import Base64Source, DataBlock, Msg, ToolResultBlock, UserMsg
from agentscope.model import StructuredResponse
from agentscope.state import AgentState

from commonplace import Memory, Scope
from commonplace.agents import HEADER
from commonplace.testing.fakes import HashEmbedder
from commonplace_agentscope import CommonplaceMiddleware, CommonplaceOffloader

from .langgraph.agent.test_sessions import FACTS
from .test_agentscope import ScriptedModel, make
from .test_agentscope import say as say_so

ALICE = Scope(user_id="alice")
SUMMARY = "They spoke of xylophone-42"
PARTS = ("current_state", "important_discoveries", "next_steps", "context_to_preserve")


class SmallModel(ScriptedModel):
    """Has room for two of its answers, and summarises, or fails to."""

    failure: Exception | None = None

    async def count_tokens(self, messages, tools=None, **kwargs):
        return sum(len(str(one.model_dump()["content"])) for one in messages)

    async def generate_structured_output(self, messages, structured_model, **kwargs):
        if self.failure:
            raise self.failure
        told = {"task_overview": SUMMARY, **dict.fromkeys(PARTS, f"{len(self.seen)} calls.")}
        return StructuredResponse(content=told)


async def start(memory: Memory, session: str, failure: Exception | None = None, **more: Any):
    middleware = CommonplaceMiddleware(user_id="alice", client=memory)
    agent = await make(
        middleware,
        state=AgentState(session_id=session),
        context_config=ContextConfig(trigger_ratio=0.5, reserve_ratio=0.2),
        **more,
    )
    agent.model = SmallModel([say_so("I see. " + "la " * 900) for _ in range(20)])
    agent.model.context_size = 8_000
    agent.model.failure = failure
    return agent


async def say(agent, text: str) -> str:
    await agent.reply(UserMsg("alice", text))
    return str(agent.model.seen[-1])


async def test_a_summary_outlives_its_session_and_is_erased_with_it(tmp_path: Path):
    folder = tmp_path / "memory"
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        monday = await start(memory, "monday")
        for fact in FACTS:
            await say(monday, fact)
        shown = {fact: await say(monday, question) for fact, question in FACTS.items()}
        kept = memory.session(Scope(user_id="alice", session_id="monday")).summary()
        tuesday = await start(memory, "tuesday")
        first = await say(tuesday, "Good morning!")

        for fact, text in shown.items():
            before, _, rest = text.partition(HEADER)
            note, _, after = rest.partition("(End of the stored notes.)")
            assert SUMMARY in before + after
            assert fact in note
            assert "Last session" not in note
        assert kept is not None
        assert kept.text.startswith(f"# Task Overview\n{SUMMARY}")
        assert "<system" not in kept.text
        assert f"Last session: Task Overview {SUMMARY}" in first.replace("# ", "")
        assert memory.forget(ALICE).complete
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert not [one.name for one in files if b"xylophone-42" in one.read_bytes()]


async def test_a_summary_stands_for_the_turns_that_left_the_context(tmp_path: Path):
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as memory:
        agent = await start(memory, "monday")
        agent.model.context_size, agent.context_config.reserve_ratio = 24_000, 0.4
        for text in (*FACTS, *FACTS.values()):
            await say(agent, text)
            if agent.state.summary:
                break
        context = "".join(str(one.model_dump()["content"]) for one in agent.state.context)
        session = memory.session(Scope(user_id="alice", session_id="monday"))
        asked = [one for one in session.messages() if one.role == "user"]
        covered = [one.text for one in asked if one.id in session.summary().sources]

        assert 0 < len(covered) < len(asked) - 1
        assert covered == [one.text for one in asked if one.text not in context]


async def test_a_note_takes_no_room_from_the_question(tmp_path: Path):
    long = " I thought of it on a long walk by the river."
    compressed = 0
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as memory:
        agent = await start(memory, "monday")
        for fact in FACTS:
            await say(agent, fact + long * 8)
        for fact, question in FACTS.items():
            before = agent.state.summary
            shown = await say(agent, question)
            compressed += agent.state.summary != before
            assert 0 < shown.index(question) < shown.index(HEADER) < shown.index(fact)
    assert compressed > 1


@pytest.mark.parametrize("failure", [RuntimeError("down")])
async def test_a_summary_that_failed_is_not_kept(tmp_path: Path, failure):
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as memory:
        agent = await start(memory, "monday", failure)
        for text in ("I like tea.", "I like jam."):
            await say(agent, text)

        assert memory.list(ALICE, kinds=["summary"]).records == ()


def reference_in(text: str) -> str:
    return re.search(r"commonplace://[^'\s,]+", text)[0]


async def test_what_an_agent_takes_out_of_its_context_is_kept_and_erased(tmp_path: Path):
    folder = tmp_path / "memory"
    image = Base64Source(
        data=base64.b64encode(b"pixels xylophone-42").decode(), media_type="image/png"
    )
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        offloader = CommonplaceOffloader(memory, user_id="alice")
        agent = await start(memory, "a/b ü", offloader=offloader)
        for fact in FACTS:
            await say(agent, f"xylophone-42: {fact}")
        kept = reference_in(agent.state.summary)
        messages = [Msg.model_validate(one) for one in json.loads(await offloader.read(kept))]
        result = ToolResultBlock(id="1", name="read", output="xylophone-42 " * 1_000)
        long = await offloader.offload_tool_result("monday", result)
        saved = await offloader.offload_data_block(DataBlock(source=image))
        url = str(saved.source.url)
        again = await offloader.offload_data_block(saved)
        bob = CommonplaceOffloader(memory, user_id="bob")

        assert f"xylophone-42: {list(FACTS)[-2]}" in [one.get_text_content() for one in messages]
        assert ToolResultBlock.model_validate_json(await offloader.read(long)) == result
        assert await offloader.read(url) == b"pixels xylophone-42"
        assert again is saved
        assert saved.source.media_type == "image/png"
        parts = [await offloader.read_offloaded(long, offset) for offset in range(0, 99_999, 4_000)]
        assert "".join(parts) == (await offloader.read(long)).decode()
        for one in (kept, long, url):
            assert await bob.read(one) is None
        assert "nothing is kept" in await bob.read_offloaded("elsewhere")
        assert memory.forget(Scope(user_id="alice", session_id="monday")).complete
        assert (await offloader.read(long), await offloader.read(url) is None) == (None, False)
        assert memory.forget(ALICE).complete
        assert (await offloader.read(kept), await offloader.read(url)) == (None, None)
    assert await offloader.offload_context("monday", messages) == ""
    unsaved = DataBlock(source=image)
    assert await offloader.offload_data_block(unsaved) is unsaved
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert not [one.name for one in files if b"xylophone-42" in one.read_bytes()]
