"""Forced compaction: what LangChain's summary drops comes back, and the summary outlives it."""

from pathlib import Path

import pytest
from langchain.agents.middleware import SummarizationMiddleware
from langgraph.checkpoint.memory import InMemorySaver

from commonplace import Memory, Scope
from commonplace.agents import HEADER
from commonplace.testing.fakes import HashEmbedder
from commonplace_langgraph import MemoryMiddleware

ALICE = Scope(user_id="alice")
FACTS = {
    "My dog is called Quince.": "What is my dog called?",
    "My locker is number 4711.": "Which number has my locker?",
    "My sister studies law in Ghent.": "What does my sister study?",
    "My bicycle was stolen at the station.": "Where was my bicycle stolen?",
    "My dentist is Doctor Maple.": "Who is my dentist?",
}


def ask(text):
    return {"messages": [{"role": "user", "content": text}]}


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_summary_outlives_its_thread_and_is_erased_with_it(
    tmp_path: Path, make, model, context, is_async
):
    folder = tmp_path / "memory"
    summary = "They spoke of xylophone-42 and the week of Alice."
    with Memory.open(str(folder), embedder=HashEmbedder()) as memory:
        summaries = SummarizationMiddleware(
            model(*[f"{summary} ({n})" for n in range(20)]),
            trigger=("messages", 3),
            keep=("messages", 1),
        )
        scripted = model(*["I see."] * 20)
        agent = make(scripted, MemoryMiddleware(memory), summaries, checkpointer=InMemorySaver())

        async def say(text, thread="monday"):
            given = (ask(text), {"configurable": {"thread_id": thread}})
            if is_async:
                await agent.ainvoke(*given, context=context("alice"))
            else:
                agent.invoke(*given, context=context("alice"))
            return scripted.shown()

        for fact in FACTS:
            await say(fact)
        shown = {fact: await say(question) for fact, question in FACTS.items()}
        monday = Scope(user_id="alice", session_id="monday")
        kept = memory.session(monday).summary()
        first, second = await say("Good morning!", "tuesday"), await say("And now?", "tuesday")
        listed = memory.sessions(ALICE)

        for fact, text in shown.items():
            before, _, rest = text.partition(HEADER)
            note, _, after = rest.partition("(End of the stored notes.)")
            conversation = before + after
            assert summary in conversation  # the rest is dropped
            assert fact in note
            assert fact not in conversation
            assert f"Last session: {summary}" not in note
        assert kept.text.startswith(summary)
        said = [text for one in (*FACTS, *FACTS.values()) for text in (one, "I see.")]
        covered = [one.text for one in memory.get_many(kept.sources, monday)]
        assert covered == said[:18]  # the last question and its answer are still in the thread
        assert f"Last session: {summary}" in first
        assert HEADER in first
        assert "Last session" not in second
        assert [one.scope.session_id for one in listed] == ["tuesday", "monday"]
        assert memory.forget(ALICE).complete
        assert "xylophone-42" not in await say("Hello again!", "friday")
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert not [one.name for one in files if b"xylophone-42" in one.read_bytes()]


@pytest.mark.parametrize("failure", ["No previous conversation history.", RuntimeError("down")])
def test_a_summary_that_failed_is_not_kept(tmp_path: Path, make, model, context, failure):
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as memory:
        summaries = SummarizationMiddleware(
            model(*[failure] * 9), trigger=("messages", 3), keep=("messages", 1)
        )
        agent = make(model(), MemoryMiddleware(memory), summaries, checkpointer=InMemorySaver())
        try:
            for text in ("I like tea.", "I like jam."):
                config = {"configurable": {"thread_id": "monday"}}
                agent.invoke(ask(text), config, context=context("alice"))
        except RuntimeError:
            assert isinstance(failure, RuntimeError)

        assert memory.session(Scope(user_id="alice", session_id="monday")).summary() is None
