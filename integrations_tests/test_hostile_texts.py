"""Texts of 32 KiB that are made to take long: whatever reads one reads it in a moment."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from commonplace import Memory, Message, Policy, Scope
from commonplace.agents import clean, find_instructions, is_small_talk, is_visible, render, to_query
from commonplace.retrieval.forget_requests import split_forget_requests
from commonplace.retrieval.lexical import entity_mentions, query_terms, tokens
from commonplace.retrieval.times import asked_times
from commonplace.retrieval.utterance_kinds import knows_nothing, statements

SIZE = 32 * 1024
LONGEST = 0.5  # seconds of CPU; a pattern that tries a text in every way takes many times as much
ALICE = Scope(user_id="alice")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PARTS = (
    "a", "A", " ", "\n", "0", "-", "_", ".", ",", "?", "? ", "!", "! ", "=", ":", "~", "*", "#",
    "/", "'", '"', "“", "(", "[", "<", "&lt", "`", "|", "> ", "。", "？ ", "，", "我", "一", "年",
    "吗", "吗 ", "a ", "a. ", "a, ", "a? b", "Al ", "A.", "1 ", "1-", "2020-", "2020 ", "1 of ",
    "May ", "may, ", "last ", "去年", "十", "before ", "list ", "please ", "and ", "ok, ", "so, ",
    "from now on ", "always ", "you should ", "i want you to ", "if i ask ", "请", "以后", "记住",
    "translate this ", "把", "forget ", "delete ", "thank you ", "hi ", "好的", "\u0301", "e\u0301",
    "\u200d", "\U0001f469\u200d", "\ufdfa", "ﬃ", "İ", "[system", "system: ", "<|im_start|>",
    "**user",
)  # fmt: skip
READERS: dict[str, Callable[[str], Any]] = {
    "asked_times": lambda text: asked_times(text, NOW),
    "clean": clean,
    "entity_mentions": entity_mentions,
    "is_small_talk": is_small_talk,
    "is_visible": is_visible,
    "knows_nothing": knows_nothing,
    "query_terms": query_terms,
    "statements": statements,
    "to_query": to_query,
    "tokens": tokens,
}

SIZES = {"entity_mentions": 8 * 1024}  # of a question at most, which is all that it reads


def texts(size: int) -> list[str]:
    """Make texts of each part, with an end that fits and with one that does not."""
    made = []
    for part in PARTS:
        many = part * (size // len(part.encode()))
        made += [many, f"x{many[len(part) + 2 :]}!x", f"{many[len(part) :]}\n"]
    return made


def seconds(call: Callable[[], Any]) -> float:
    """Measure the CPU of the quickest of three calls, of one if that was quick."""
    least = float("inf")
    for _ in range(3):
        started = time.process_time()
        call()
        least = min(least, time.process_time() - started)
        if least < LONGEST:
            break
    return least


@pytest.mark.parametrize("name", READERS)
def test_a_hostile_text_is_read_in_a_moment(name: str) -> None:
    for text in texts(SIZES.get(name, SIZE)):
        assert seconds(lambda text=text: READERS[name](text)) < LONGEST, text[:20]


@pytest.mark.parametrize("read", [find_instructions, split_forget_requests])
def test_a_hostile_turn_is_looked_through_in_a_moment(read: Callable[[str], Any]) -> None:
    for text in [*texts(1_000), *texts(300)]:  # of a longer turn, or sentence, none is read
        assert seconds(lambda text=text: read(text)) < LONGEST, text[:20]


def test_hostile_texts_are_stored_found_and_shown_in_a_moment(memory: Memory) -> None:
    hostile = [text for text in texts(SIZE) if is_visible(text)]
    for text in hostile:
        memory.add(Message(text=text), ALICE, wait=False)
    assert memory.flush().dead == 0

    for text in ["what does Alice like?", *(one[:2_000] for one in hostile[::9])]:
        question = to_query(text)
        if not question:
            continue
        took = seconds(lambda asked=question: memory.search(asked, ALICE, top_k=50))
        assert took < 3 * LONGEST, text[:20]
    found = memory.search("a", ALICE, top_k=50)
    assert len(found) > 10
    assert seconds(lambda: render(found, Policy())) < LONGEST
