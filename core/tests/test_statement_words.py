"""Words of statements, and of questions for what holds now or held before."""

import time

import pytest

from commonplace.retrieval.slots import slots_in, tells_state
from commonplace.retrieval.statement_words import (
    asks_before,
    asks_first,
    asks_now,
    change_words,
    matter_words,
    values_in,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I moved to Lyon.", True),
        ("I started at Bosch on Monday.", True),
        ("We switched to MySQL.", True),
        ("I'm no longer vegan.", True),
        ("我搬到上海了。", True),
        ("项目换成Go了。", True),
        ("Ich trinke keinen Kaffee mehr, inzwischen nur Tee.", True),
        ("Ya no uso el coche, voy en tren.", True),
        ("会社を辞めて、パン屋を始めました。", True),
        ("لم أعد أعمل في البنك.", True),
        ("انتقلت إلى طنجة في الربيع.", True),
        ("أسكن في فاس.", False),
        ("Ich wohne in Ulm.", False),
        ("I live in Lyon.", False),
        ("I like olives.", False),
        ("我喜欢吃辣。", False),
    ],
)
def test_words_of_change_are_found(text, expected) -> None:
    assert expected == change_words(text)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where do I live?", "now"),
        ("What is my phone number now?", "now"),
        ("Who is my boss?", "now"),
        ("我现在住在哪里？", "now"),
        ("Where did I live before?", "before"),
        ("What was my former job?", "before"),
        ("Where did I use to work?", "before"),
        ("我以前住在哪里？", "before"),
        ("我原来的电话是多少？", "before"),
        ("Wo wohne ich?", "now"),
        ("¿Dónde trabajo actualmente?", "now"),
        ("أين أسكن الآن؟", "now"),
        ("أين كنت أسكن سابقا؟", "before"),
        ("أين عملت في البداية؟", "first"),
        ("ماذا اشتريت في فاس؟", None),
        ("Was habe ich in Ulm gekauft?", None),
        ("Where did I live originally?", "first"),
        ("What did I study at first?", "first"),
        ("我最初在哪里工作？", "first"),
        ("What was our first idea for the roof?", "first"),
        ("Which language did I learn first?", "first"),
        ("我第一份工作是什么？", "first"),
        ("When was my first lesson?", None),
        ("When did the foal first stand?", None),
        ("What was the first thing Ben said?", None),
        ("小马第一次站起来过没有？", None),
        ("第一个孩子哪年出生？", None),
        ("Where did I live before Cardiff?", "before"),
        ("What did I take before rizatriptan?", "before"),
        ("Welches Auto hatten wir vor dem Kia?", "before"),
        ("What did I eat before the race?", None),
        ("What happened before Monday?", None),
        ("Was war vor zwei Jahren?", None),
        ("What was my latest reading?", "now"),
        ("When did I go to Rome?", None),
        ("What did Anna say about the film?", None),
        ("Quel était l'ancien digicode ?", "before"),
        ("¿Cuál era mi antigua dirección?", "before"),
        ("Wie war meine alte Nummer?", "before"),
        ("前の暗証番号は何番だった？", "before"),
        ("駅前の店の名前は？", None),
        ("夕食前の薬は何？", None),
        ("Was habe ich vorige Woche gekocht?", None),
        ("¿Cuál es mi libro más antiguo?", "now"),
        ("Quelle est ma plus ancienne photo ?", None),
    ],
)
def test_questions_ask_for_what_holds_or_held(question, expected) -> None:
    asked = {"now": asks_now, "before": asks_before, "first": asks_first}

    assert [expected] * bool(expected) == [name for name, asks in asked.items() if asks(question)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("i live in lyon.", {("home", ""): False}),
        ("i moved to lyon.", {("home", ""): True}),
        ("i live in lyon now.", {("home", ""): True}),
        ("i like olives.", {}),
        ("i'm a nurse.", {("occupation", ""): False}),
        ("i'm a night owl.", {}),
        ("we got a new bike.", {("which", "bike"): True}),
        ("i bought a new bike lock.", {}),
    ],
)
def test_slots_are_filled_and_changed(sentence, expected) -> None:
    assert expected == slots_in(sentence)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice lives in Lyon.", True),
        ("Alice works for Renault.", True),
        ("Alice went to Rome.", False),
        ("Alice used to live in Rome.", False),
        ("Alice wants to live in Rome.", False),
        ("Alice lives in Lyon." * 30, False),
    ],
)
def test_states_are_told_from_what_happened(text, expected) -> None:
    assert expected == tells_state(text)


@pytest.mark.parametrize("part", ["a ", "my ", "I moved to ", "1", "一", "我的", "is ", ",", " "])
def test_a_long_text_is_left_alone_quickly(part) -> None:
    long = (part * 32_768)[:32_768]
    matter_words(long[:400])  # loads what tells languages and stems
    start = time.process_time()
    for read in (asks_now, asks_before, asks_first, change_words, tells_state, values_in):
        read(long)
    matter_words(long[:400])

    assert time.process_time() - start < 0.1
