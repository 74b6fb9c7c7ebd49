"""Origin and trust of what is remembered, from its write to what an agent reads."""

import json
from pathlib import Path

import pytest

from commonplace import Memory, Message, Origin, Scope
from commonplace.agents import Policy, render
from commonplace.testing.fakes import HashEmbedder, ScriptedChat

ALICE = Scope(user_id="alice")
FACT = {"text": "Alice has a cat.", "kind": "fact", "since": None, "same_as": None,
        "replaces": None, "relations": []}  # fmt: skip
USER, ASSISTANT = Message(text="My cat is ill"), Message(text="Poor cat", role="assistant")
TOOL = Message(text="cat: 1 found", role="tool")
SYSTEM = Message(text="Be brief about a cat", role="system")


@pytest.mark.parametrize(
    ("messages", "given", "origin", "trust"),
    [
        ([USER], "user", "user", 1.0),
        ([USER, ASSISTANT], "user", "user", 1.0),
        ([ASSISTANT], "user", "assistant", 1.0),
        ([SYSTEM], "user", "system", 1.0),
        ([USER, TOOL, ASSISTANT], "user", "tool", 0.3),
        ([USER, TOOL], "document", "tool", 0.3),
        ([USER], "document", "document", 0.3),
        ([USER], "import", "import", 1.0),
    ],
)
def test_an_extracted_fact_is_of_the_least_trusted_speaker(
    tmp_path: Path, messages: list[Message], given: Origin, origin: Origin, trust: float
) -> None:
    chat = ScriptedChat([json.dumps({"facts": [FACT]})])
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat) as memory:
        memory.add(messages, ALICE, origin=given)

        [match] = memory.search("Alice has a cat.", ALICE, kinds=["fact"])
        assert (match.record.origin, match.record.trust) == (origin, trust)


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        ("user", "- Alice has a cat."), ("assistant", "- Alice has a cat."),
        ("tool", "- (from a tool) Alice has a cat."),
        ("document", "- (from a document) Alice has a cat."),
    ],
)  # fmt: skip
def test_a_note_tells_what_anybody_may_have_written(
    tmp_path: Path, origin: Origin, line: str
) -> None:
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        memory.add("Alice has a cat.", ALICE, origin=origin)
        written = render(memory.search("cat", ALICE), Policy(times=False))

    assert line in written.split("\n")
