"""Forced compaction: what a summary of Strands drops comes back, and the summary outlives it."""

from pathlib import Path

import pytest
from strands import Agent
from strands.agent.conversation_manager import SummarizingConversationManager
from strands.types.exceptions import ContextWindowOverflowException

from commonplace import Memory, Scope
from commonplace.agents import HEADER
from commonplace.testing.fakes import HashEmbedder
from commonplace_strands import CommonplaceStorage, MemoryPlugin
from commonplace_strands.convert import summary_of

from ..langgraph.agent.test_sessions import FACTS

ALICE = Scope(user_id="alice")
SUMMARY = "They spoke of xylophone-42 and the week of Alice."


async def test_a_summary_outlives_its_session_and_is_erased_with_it(tmp_path: Path, make, model):
    folder = tmp_path / "memory"
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        plugin = MemoryPlugin(memory)

        def start() -> Agent:
            writer = Agent(
                model=model([f"{SUMMARY} ({n})" for n in range(20)]), callback_handler=None
            )
            manager = SummarizingConversationManager(
                summary_ratio=0.8, preserve_recent_messages=1, summarization_agent=writer
            )
            return make(plugin, conversation_manager=manager)

        async def say(agent: Agent, text: str, *, is_full: bool = True) -> str:
            if is_full:
                agent.model.script = [ContextWindowOverflowException("full"), "I see."]
            await agent.invoke_async(text, invocation_state={"user_id": "alice"})
            return agent.model.shown()

        monday = start()
        for place, fact in enumerate(FACTS):
            await say(monday, fact, is_full=place > 0)
        shown = {fact: await say(monday, question) for fact, question in FACTS.items()}
        [listed] = memory.sessions(ALICE)
        held = {block["text"] for one in monday.messages for block in one["content"]}
        turns = memory.session(listed.scope).messages(limit=100)
        first = await say(start(), "Good morning!", is_full=False)

        for fact, text in shown.items():
            before, _, rest = text.partition(HEADER)
            note, _, after = rest.partition("(End of the stored notes.)")
            assert SUMMARY in before + after
            assert fact in note
            assert "Last session" not in note
        assert listed.summary is not None
        assert listed.summary.text.startswith(SUMMARY)
        covered = [one.text for one in turns if one.id in listed.summary.sources]
        assert set(FACTS) <= {*covered}
        assert held & {*FACTS.values()} == {*FACTS.values()} - {*covered} != set()
        assert f"Last session: {SUMMARY}" in first
        assert memory.forget(ALICE).complete
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert not [one.name for one in files if b"xylophone-42" in one.read_bytes()]


def test_the_summaries_that_a_context_manager_leaves_among_the_messages_are_read():
    marker = pytest.importorskip("strands._context_manager.methods.summarize")
    texts = [
        marker._format_summarized("12 messages", 1234, "They spoke of tea."),
        "And [Summarized: 2 messages, ~3 tokens] is what I saw.",
        marker._format_summarized("tool result", 99, "A long list."),
        marker._format_summarized("2 messages", 7, "Then of jam."),
    ]
    messages = [{"role": "user", "content": [{"text": text}]} for text in texts]

    assert summary_of({}, messages) == "They spoke of tea.\nThen of jam."
    assert summary_of({"summary_message": messages[1]}, messages) == texts[1]
    assert summary_of({"summary_message": None}, []) == ""


async def test_the_stash_of_a_context_manager_is_erased_with_its_user(tmp_path: Path, make):
    folder = tmp_path / "memory"
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        storage = CommonplaceStorage(memory, user_id="alice")
        agent = make(MemoryPlugin(memory), context_manager={"stash": {"storage": storage}})
        agent.model.get_config = lambda: {"context_window_limit": 100_000}
        asked = "I am xylophone-42."
        await agent.invoke_async(asked, invocation_state={"user_id": "alice"})
        keys = await storage.list("")
        stashed = [await storage.read(key) for key in keys]
        receipt = memory.forget(ALICE)

        assert any(asked.encode() in one for one in stashed)
        assert receipt.complete
        assert await storage.list("") == []
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert not [one.name for one in files if b"xylophone-42" in one.read_bytes()]
