"""Failures of models on the real embedded engines: their causes, and what is left of a write."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from commonplace import (
    Backlog,
    Extraction,
    InvalidRecordError,
    Memory,
    Message,
    ModelFailedError,
    ModelRefusedError,
    Scope,
    Settings,
)
from commonplace.testing.fakes import HashEmbedder, ScriptedChat

ALICE = Scope(user_id="alice")
FACTS_ONLY = Extraction(keep_messages=False)
QUICK = Settings(retry_after=0.01)
SAID = Message(text="I moved to Lyon.")
FACT = '{"facts": [{"text": "Alice lives in Lyon.", "kind": "fact"}]}'


class ProviderError(Exception):
    """An error as packages of providers raise it."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code


class Chat:
    """Raises, and counts how often it is asked."""

    id = "chat/1"

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        self.calls += 1
        raise self.error


class AsyncChat(Chat):
    async def complete(  # type: ignore[override]
        self, system: str, user: str, *, schema: Mapping[str, Any]
    ) -> str:
        return super().complete(system, user, schema=schema)


class Embedder(HashEmbedder):
    """Raises for documents."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.calls = 0

    def embed(self, texts: Sequence[str], *, purpose: Any) -> Any:
        if purpose == "query":
            return super().embed(texts, purpose=purpose)
        self.calls += 1
        raise self.error


class Unfit:
    """Does not take what it is given."""

    id = "chat/2"

    def complete(self, prompt: str) -> str:
        raise AssertionError(prompt)


def open_memory(folder: Path, chat: Any = None, embedder: Any = None) -> Memory:
    return Memory.open(str(folder), chat=chat, embedder=embedder or HashEmbedder(), settings=QUICK)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_chat_model_that_refuses_is_asked_once_and_nothing_is_pending(
    tmp_path: Path, status: int
) -> None:
    chat = Chat(ProviderError(status))
    with open_memory(tmp_path, chat) as memory:
        with pytest.raises(ModelRefusedError, match=r"chat/1.*key, model or arguments") as caught:
            memory.add(SAID, ALICE, infer=FACTS_ONLY)
        left = memory.flush(60)
        [letter] = memory.admin.dead_letters(ALICE)

    assert caught.value.__cause__ is chat.error
    assert (1, Backlog(pending=0, dead=1)) == (chat.calls, left)
    assert f"status {status}" in letter.reason


async def test_an_asynchronous_chat_model_that_refuses_is_asked_once(tmp_path: Path) -> None:
    chat = AsyncChat(ProviderError(401))
    with open_memory(tmp_path, chat) as memory:
        with pytest.raises(ModelRefusedError) as caught:
            await memory.aadd(SAID, ALICE, infer=FACTS_ONLY)
        left = await memory.aflush(60)

    assert caught.value.__cause__ is chat.error
    assert (1, Backlog(pending=0, dead=1)) == (chat.calls, left)


def test_a_dead_letter_is_retried_with_the_chat_model_of_who_retries_it(tmp_path: Path) -> None:
    folder, embedder = str(tmp_path), HashEmbedder()
    with Memory.open(folder, embedder=embedder) as first:  # the engines stay open
        with Memory.open(folder, embedder=embedder, chat=Chat(ProviderError(401))) as refused:
            with pytest.raises(ModelRefusedError):
                refused.add(SAID, ALICE, infer=FACTS_ONLY)
            [letter] = first.admin.dead_letters()
        with Memory.open(folder, embedder=embedder, chat=ScriptedChat([FACT])) as mended:
            assert mended.admin.retry([letter.operation]) == 1
            assert mended.flush() == Backlog(pending=0, dead=0)

        assert [one.text for one in first.list(ALICE).records] == ["Alice lives in Lyon."]


def test_a_chat_model_that_cannot_be_called_is_no_failure_that_passes(tmp_path: Path) -> None:
    with open_memory(tmp_path, Unfit()) as memory, pytest.raises(ModelRefusedError) as caught:
        memory.add(SAID, ALICE, infer=FACTS_ONLY)

    assert isinstance(caught.value.__cause__, TypeError)


def test_an_embedder_that_refuses_fails_the_write_at_once(tmp_path: Path) -> None:
    embedder = Embedder(ProviderError(401))
    with open_memory(tmp_path, embedder=embedder) as memory:
        with pytest.raises(ModelRefusedError) as caught:
            memory.add("Alice rows", ALICE)
        left = memory.flush(60)

    assert caught.value.__cause__ is embedder.error
    assert Backlog(pending=0, dead=1) == left
    assert embedder.calls <= 2  # before the write is accepted, and after


async def test_dead_letters_are_those_of_the_scope_that_is_asked_for(tmp_path: Path) -> None:
    cook, bob = Scope(user_id="alice", agent_id="cook"), Scope(user_id="bob")
    with open_memory(tmp_path, embedder=Embedder(ProviderError(401))) as memory:
        for scope in (ALICE, cook, bob):
            with pytest.raises(ModelRefusedError):
                await memory.aadd("somebody rows", scope)
        every = {one.scope for one in memory.admin.dead_letters()}
        asked = [{one.scope for one in memory.admin.dead_letters(it)} for it in (ALICE, cook, bob)]
        awaited = [one.scope for one in await memory.admin.run(memory.admin.dead_letters, bob)]

    assert every == {ALICE, cook, bob}
    assert asked == [{ALICE, cook}, {cook}, {bob}]
    assert awaited == [bob]


def test_the_cause_of_what_is_tried_again_is_told_after_some_attempts(tmp_path: Path) -> None:
    chat = Chat(ProviderError(503))
    with open_memory(tmp_path, chat) as memory:
        with pytest.raises(ModelFailedError, match="again") as caught:
            memory.add(SAID, ALICE, infer=FACTS_ONLY)
        pending = memory.flush(0).pending
        memory.close(0)

    assert caught.value.__cause__ is chat.error
    assert (1, []) == (
        pending,
        [one for one in [caught.value] if isinstance(one, ModelRefusedError)],
    )


@pytest.mark.parametrize("late", [False, True])
def test_who_follows_a_write_is_told_that_it_failed(tmp_path: Path, late: bool) -> None:
    told: list[Exception] = []
    done = threading.Event()

    def note(error: Exception) -> None:
        told.append(error)
        done.set()

    with open_memory(tmp_path, Chat(ProviderError(401))) as memory:
        write = memory.add(SAID, ALICE, infer=FACTS_ONLY, wait=False)
        if late:
            memory.flush(60)
        memory.admin.follow(write, note)
        assert done.wait(60)
        memory.admin.follow(memory.add("Alice rows", ALICE, infer=False), note)
        memory.flush(60)

    assert [ModelRefusedError] == [type(one) for one in told]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("{}", []),
        ("Sure!\n```json\n{}\n```", []),
        (FACT.replace("lives in", "lives\n\tin"), ["Alice lives\n\tin Lyon."]),
        (f"Here it is:\n```json\n{FACT}\n```\nAnything else?", ["Alice lives in Lyon."]),
    ],
)
def test_an_answer_as_models_write_it_is_read_at_once(
    tmp_path: Path, answer: str, expected: list[str]
) -> None:
    with open_memory(tmp_path, ScriptedChat([answer])) as memory:
        memory.add(SAID, ALICE, infer=FACTS_ONLY)
        found = [one.text for one in memory.list(ALICE).records]

    assert expected == found


def test_a_long_message_is_cut_for_the_prompt_and_refused_only_where_it_is_kept(
    tmp_path: Path,
) -> None:
    text = "BEGIN " + "word " * 200_000 + "END"
    chat = ScriptedChat([FACT])
    with open_memory(tmp_path, chat) as memory:
        memory.add(Message(text=text), ALICE, infer=FACTS_ONLY)
        found = [one.text for one in memory.list(ALICE).records]
        for infer in (True, False):
            with pytest.raises(InvalidRecordError, match="32768 bytes"):
                memory.add(Message(text=text), ALICE, infer=infer)
        left = memory.flush(60)

    [call] = chat.calls
    assert ["Alice lives in Lyon."] == found
    assert Backlog(pending=0, dead=0) == left
    assert len(call.user) < 34_000
    assert "BEGIN word" in call.user
    assert "word END" in call.user
