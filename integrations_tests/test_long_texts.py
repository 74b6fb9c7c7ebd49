"""Facts inside long texts: found from any place, and shown in excerpts, notes and tools."""

import contextlib
import functools
import random
import sqlite3
import threading
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from commonplace import Memory, Message, Scope, Settings
from commonplace.admin import reindex
from commonplace.agents import AgentMemory, Policy, render
from commonplace.models.sentence_encoder import SentenceEncoder
from commonplace.settings import Location
from commonplace.testing.fakes import HashEmbedder, HashTokenEmbedder

DATA = tomllib.loads(Path(__file__).with_name("long_texts.toml").read_text("utf-8"))
SIZES = (600, 2_000, 6_000, 20_000, 32 * 1024)  # bytes of a text at most
SHORT = 40  # sentences beside them
SCOPES = {"fact": Scope(user_id="a"), "turn": Scope(user_id="a", session_id="s")}


def sentence(language: str, chance: random.Random) -> str:
    parts: dict[str, Any] = DATA[language]
    thing, verb = chance.choice(parts["objects"]), chance.choice(parts["verbs"])
    opening, subject = chance.choice(parts["openings"]), chance.choice(parts["subjects"])
    verb = verb.format(object=thing)
    return str(parts["sentence"].format(opening=opening, subject=subject, verb=verb, object=thing))


def around(fact: str, size: int, place: str, language: str, chance: random.Random) -> str:
    """Make up a text of nearly so many bytes with a fact at the start, in the middle, or last."""
    parts: list[str] = []
    left = size - len(fact.encode()) - 120
    while left > 0:
        parts.append(sentence(language, chance) + "\n" * (chance.random() < 0.1))
        left -= len(parts[-1].encode())
    parts.insert({"start": 0, "middle": len(parts) // 2, "end": len(parts)}[place], fact + " ")
    return "".join(parts).strip()


def tell(memory: Memory, kind: str, place: str, language: str) -> list[dict[str, str]]:
    """Tell a text around each fact, and short sentences; return the facts."""
    facts: list[dict[str, str]] = DATA[language]["facts"]
    chance = random.Random(f"{place} {language}")
    texts = [
        around(one["fact"], SIZES[n % len(SIZES)], place, language, chance)
        for n, one in enumerate(facts)
    ]
    texts += [sentence(language, chance).strip() for _ in range(SHORT)]
    memory.add(texts if kind == "fact" else [Message(text=text) for text in texts], SCOPES[kind])
    return facts


class EncodesOnce(SentenceEncoder):
    """Encodes the same texts once, however often and for how many memories it is asked."""

    def embed_tokens(self, texts: Sequence[str], *, purpose: Any) -> Any:
        return self._encode(tuple(texts), purpose)

    @functools.cache  # noqa: B019 -- there is one, as long as the tests of this module run
    def _encode(self, texts: tuple[str, ...], purpose: Any) -> Any:
        return super().embed_tokens(texts, purpose=purpose)


@pytest.fixture(scope="module")
def encoder() -> EncodesOnce:
    """The embedder that is shipped; the texts of a fact and of a turn are the same."""
    return EncodesOnce()


@pytest.mark.parametrize("kind", ["fact", "turn"])
@pytest.mark.parametrize("place", ["start", "middle", "end"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_fact_inside_a_long_text_is_found_and_shown(
    tmp_path: Path, encoder: EncodesOnce, language: str, place: str, kind: str
) -> None:
    policy = Policy(recall_timeout=60)  # a late one is another matter
    with Memory.open(str(tmp_path), embedder=encoder) as memory:
        facts = tell(memory, kind, place, language)
        agent = AgentMemory(memory, policy, log="tests")
        missed: dict[str, list[str]] = {"search": [], "note": [], "tool": []}
        for one in facts:
            matches = memory.search(one["question"], SCOPES["fact"], top_k=5)
            note = render(agent.recall(SCOPES["fact"], one["question"]), policy)
            words = {"keywords": [one["question"]]}
            answer = agent.call_tool("search_memory", words, SCOPES["fact"])
            shown = {"search": " ".join(match.excerpt for match in matches)}
            shown |= {"note": note, "tool": answer}
            for where, text in shown.items():
                missed[where] += [] if one["answer"] in text else [one["question"]]
            assert len({match.record.id for match in matches}) == len(matches)

    for where, questions in missed.items():
        found = len(facts) - len(questions)
        assert found >= 19, (where, questions)


def test_a_folder_from_before_passages_works_and_gets_them_when_it_is_reindexed(
    tmp_path: Path,
) -> None:
    place, user, settings = str(tmp_path / "memory"), SCOPES["fact"], Settings()
    text = " ".join(f"Sentence {n} has the words w{n} and v{n}." for n in range(60))
    with Memory.open(place, embedder=HashTokenEmbedder()) as memory:
        memory.add([text, "A short one has w3."], user)
    with contextlib.closing(sqlite3.connect(tmp_path / "memory" / "memory.db")) as connection:
        (packed,) = connection.execute("SELECT max(length(passages)) FROM point").fetchone()
        connection.execute("ALTER TABLE point DROP COLUMN passages")
        connection.commit()

    with Memory.open(place, embedder=HashTokenEmbedder()) as memory:
        former = memory.search("w41 v41", user, ranking="similarity")
        assert len(former) == 2
        assert "v41" in former[[one.text for one in former].index(text)].excerpt
    reindex(Location.find(place, settings), settings, HashTokenEmbedder())

    with Memory.open(place, embedder=HashTokenEmbedder()) as memory:
        found = {one.text: one for one in memory.search("w41 v41", user, ranking="similarity")}
        assert found[text].score > {one.text: one for one in former}[text].score + 0.1
        assert "v41" in found[text].excerpt
    assert packed > 1_000


def test_a_new_text_has_only_its_own_passages_and_an_erased_one_none(tmp_path: Path) -> None:
    user = SCOPES["fact"]
    first = " ".join(f"Sentence {n} names alpha{n}." for n in range(60))
    second = " ".join(f"Sentence {n} names beta{n}." for n in range(60))
    with Memory.open(str(tmp_path), embedder=HashEmbedder(512)) as memory:
        (change,) = memory.add(first, user).changes
        (before,) = memory.search("alpha50", user, ranking="similarity")
        memory.update(change.id, second, user)
        (match,) = memory.search("beta50", user, ranking="similarity")
        (former,) = memory.search("alpha50", user, ranking="similarity")
        assert "alpha50" in before.excerpt
        assert "beta50" in match.excerpt
        assert former.score < before.score
        assert memory.forget(user).complete
        assert memory.search("beta50", user) == []


def test_a_long_text_is_accepted_without_a_wait_for_its_passages(tmp_path: Path) -> None:
    gate = threading.Event()

    class Gated(HashEmbedder):
        def embed(self, texts: Any, *, purpose: Any) -> Any:
            assert gate.wait(60)
            return super().embed(texts, purpose=purpose)

    text = ("A line of pasted text. " * 1_500)[: 32 * 1024]
    with Memory.open(str(tmp_path), embedder=Gated()) as memory:
        result = memory.add(text, SCOPES["fact"], wait=False)
        assert result.pending
        gate.set()
        memory.flush(30)
        assert memory.search("pasted text", SCOPES["fact"])[0].text == text
