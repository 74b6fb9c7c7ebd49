"""What is known of a person: statements alone, each matter once, what holds now first."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commonplace import Memory, Message, Scope
from commonplace.agents import run_plan
from commonplace.agents.about import about
from commonplace.agents.standing_instructions import instruction_facts
from commonplace.sans_io import on
from commonplace.testing.fakes import HashEmbedder, ScriptedChat

BEGIN = datetime(2026, 11, 1, 9, tzinfo=UTC)
TURNS = [
    "Hi there!", "I live in Rome.", "Which food am I allergic to?", "I'm allergic to peanuts.",
    "Can you translate this: good night", "I moved to Lyon last week.", "I have a cat.",
    "I have a cat allergy medicine for my son.", "I'm allergic to peanuts!", "Thanks",
    "Do I like tea? By the way, my brother lives in Oslo.", "What is 3+4?", "I don't like jazz.",
    "My favourite colour is blue.", "My favourite colour is green now.", "我对花生过敏吗？",
]  # fmt: skip


def test_each_matter_once_and_what_holds_now(tmp_path: Path):
    with Memory.open(str(tmp_path)) as memory:
        session = Scope(user_id="alice", session_id="s")
        for day, text in enumerate(TURNS):
            at = BEGIN + timedelta(days=day)
            answer = Message(text="Noted.", role="assistant", at=at)
            memory.add([Message(text=text, at=at), answer], session, infer=False)
        memory.add("Alice is allergic to peanuts.", Scope(user_id="alice"))

        known = run_plan(about(Scope(user_id="alice")), on(memory))

    assert [(one.text, [old.text for old in one.earlier]) for one in known] == [
        ("My favourite colour is green now.", ["My favourite colour is blue."]),
        ("I don't like jazz.", []),
        ("By the way, my brother lives in Oslo.", []),
        ("I have a cat allergy medicine for my son.", []),
        ("I have a cat.", []),
        ("I moved to Lyon last week.", ["I live in Rome."]),
        ("Alice is allergic to peanuts.", []),
    ]
    assert known[-1].since == BEGIN + timedelta(days=TURNS.index("I'm allergic to peanuts."))


def test_what_is_said_again_in_other_words_holds_since_it_was_said_first(tmp_path: Path):
    turns = [
        "We keep three hens in the yard.", "My neighbour Ivo fixes clocks.", "怕蛇，看到就腿软。",
        "Ivo next door is a clock repairer.", "Out in our yard there are three hens.",
        "My sister Ulla keeps three hens, too.", "蛇我最怕了，见到腿就发软。",
    ]  # fmt: skip
    with Memory.open(str(tmp_path)) as memory:
        known_of(memory, turns)
        known = run_plan(about(Scope(user_id="alice")), on(memory))

    assert [(one.text, (one.since - BEGIN).days, one.earlier) for one in known] == [
        (turns[5], 5, ()), (turns[6], 2, ()), (turns[3], 1, ()), (turns[4], 0, ()),
    ]  # fmt: skip


def test_one_matter_is_one_line_where_it_is_not_sure_whether_it_changed(tmp_path: Path):
    turns = [
        "我侄女在广州读高中。", "我家养了一只黑狗，叫豆包。", "侄女高中毕业了，去了南京读书。",
        "我的狗豆包是黑色的。",
    ]  # fmt: skip
    with Memory.open(str(tmp_path)) as memory:
        assert known_of(memory, turns) == turns[:1:-1]


def test_what_a_newer_line_tells_with_more_is_no_line_of_its_own(tmp_path: Path):
    turns = [
        "My dog is called Pepper and she's nine.", "I mostly write Kotlin these days.",
        "Pepper, my dog, turned nine and still steals the socks.",
        "I've gone back to Java for most of my code; Kotlin only for hobby stuff.",
    ]  # fmt: skip
    with Memory.open(str(tmp_path)) as memory:
        assert known_of(memory, turns) == turns[:1:-1]


@pytest.mark.parametrize(
    ("turns", "earlier"),
    [
        (["Thanksgiving is at our place, Ruth and my brother Hank are coming.",
          "Ruth's new boyfriend Gabe will be at the dinner."], ()),
        (["The vet moved Pixel's checkup to Monday the 16th at 10.",
          "Vet wants Pixel off chicken."], ()),
        (["My sister Ann works at Shell.", "My sister Beth works at BP."], ()),
        (["周末吃火锅，目前叫了小米和阿杰。", "小米临时要出差，火锅她来不了了。"], ()),
        (["My daughter Nele lives in Ghent.", "Nele has moved to Antwerp for her studies."], (0,)),
        (["I have one cleaner, Olga, who comes on Mondays and Thursdays.",
          "Olga left; Piet is my cleaner now."], (0,)),
        (["My budget for food is 40 pounds a week.", "I can spend 55 a week on food now."], (0,)),
        (["I drive a blue Skoda Fabia.", "Sold the Skoda; I don't have a car any more."], (0,)),
        (["vet appointment for Pixel is on friday 13th 3pm",
          "vet moved pixel's thing to monday the 16th at 10",
          "Vet wants Pixel off chicken, her skin flares up"], (0,)),
    ],
)  # fmt: skip
def test_a_line_stands_alone_unless_it_was_clearly_replaced(turns, earlier, tmp_path: Path):
    with Memory.open(str(tmp_path)) as memory:
        known_of(memory, turns)
        known = run_plan(about(Scope(user_id="alice")), on(memory))

    folded = [old.text for one in known for old in one.earlier]
    assert folded == [turns[at] for at in earlier]
    assert {one.text for one in known} == {one for one in turns if one not in folded}


def test_no_newer_line_hides_a_standing_instruction(tmp_path: Path):
    rule = Message(text="Never suggest recipes with alcohol to me.", at=BEGIN)
    session = Scope(user_id="alice", session_id="s")
    with Memory.open(str(tmp_path)) as memory:
        memory.add([rule, *instruction_facts([rule])], session, infer=False)
        newer = "The new medication list: lisinopril in the morning and atorvastatin at night."
        assert known_of(memory, [newer]) == [newer, rule.text]


def known_of(memory: Memory, turns: Sequence[str]) -> list[str]:
    """List what is known of a user who says these things, a day apart."""
    messages = [
        Message(text=text, at=BEGIN + timedelta(days=day)) for day, text in enumerate(turns)
    ]
    memory.add(messages, Scope(user_id="alice", session_id="s"), infer=False)
    return [one.text for one in run_plan(about(Scope(user_id="alice")), on(memory))]


def test_what_states_nothing_is_left_out_with_the_default_embedder(tmp_path: Path):
    stated = [
        "Three brothers, no sisters.", "Celiac, so no bread.", "Switched to decaf for good.",
        "We close on the flat in Mainz next Tuesday.", "Hoping to see Petra in the spring.",
        "Our CI runs on version 2.11 of the runner.", "我在给女儿攒学费。", "下周三去牙科。",
        "Unsere Katze heißt Minka.", "Mi abuela vive en Teruel.", "来月、京都に転勤します。",
        "Mon vélo est rouge.",
    ]  # fmt: skip
    others = [
        "Aha, that explains it.", "Yeah, I figured as much.", "Tighten my opening paragraph.",
        "Compose my toast in rhyme.", "Delete the third bullet.", "what makes bread rise",
        "for row in rows:\n    print(row)", "说得好。", "把我的标题改短。", "月亮为什么会变圆",
        "Mach den Schluss knapper.", "Explica la fotosíntesis.", "Résume ce texte.",
    ]  # fmt: skip
    with Memory.open(str(tmp_path / "default")) as memory:
        assert sorted(known_of(memory, [*stated, *others])) == sorted(stated)
    with Memory.open(str(tmp_path / "other"), embedder=HashEmbedder()) as memory:
        assert "Aha, that explains it." in known_of(memory, others)


def test_text_stands_as_it_was_said(tmp_path: Path):
    turns = {
        "I look after nginx.service at work.  It is on 1.0!": None,
        "我搬到了3.5公里外。我很喜欢那里。": None,
        "My mail is ida@b.example\nand I use .NET daily.": (
            "My mail is ida@b.example and I use .NET daily."
        ),
        "I keep bees in Ulm, my aunt keeps geese, what else is there?": (
            "I keep bees in Ulm, my aunt keeps geese"
        ),
    }
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        known = known_of(memory, [*turns])

    assert sorted(known) == sorted(kept or " ".join(said.split()) for said, kept in turns.items())


def test_what_is_quoted_is_no_statement_of_the_user(tmp_path: Path):
    own = [
        '"The Big Lebowski" is my favourite film.', "我最喜欢的书是“百年孤独与其他的故事集”。",
        'My boss said "you are fired, pack your things" and I cried.',
        'My dog is called "Max". He is five years old. My cat is called "Tom".',
        'My TV is 55" wide. I sit three metres away. My desk is 60" long.',
    ]  # fmt: skip
    others = [
        '"I have been a customer for years. I hate the roses." How should I reply?',
        "> I am out of the office until Monday.\n> My deputy is Jan.\n\nHow do I answer?",
        "“亲爱的家长，明天是校服日，我在门口收钱。”这样写行吗",
        "„Ich bin Pilot. Ich fliege nachts.“ Was heißt das?", "«Vivo en Lima y bailo». ¿Es así?",
        "Proofread this please: I am a dentist in Oslo. My wife owns a bakery.",
    ]  # fmt: skip
    beside = "I like tea.\n| I live in Rome.\nI work at Shell."
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        found = known_of(memory, [*own, *others, beside])

    assert sorted(found) == sorted([*own, "I like tea. I work at Shell."])


def test_facts_stand_for_the_turns_that_they_were_drawn_from(tmp_path: Path):
    turns = ["My phone number is 416 555 0132.", "Hm, let me see.", "New number: 416 555 0199."]
    facts = [[f"The user says: {turns[0]}"], [], [f"The user says: {turns[2]}"]]
    chat = ScriptedChat(
        [json.dumps({"facts": [{"text": text} for text in texts]}) for texts in facts]
    )
    with Memory.open(str(tmp_path), chat=chat) as memory:
        for day, text in enumerate(turns):
            turn = Message(text=text, at=BEGIN + timedelta(days=day))
            memory.add([turn], Scope(user_id="bob", session_id="s"))
        known = run_plan(about(Scope(user_id="bob")), on(memory))

    assert [(one.text, [old.text for old in one.earlier]) for one in known] == [
        (*facts[2], facts[0])
    ]


def test_a_revoked_instruction_does_not_hold(tmp_path: Path):
    turns = [
        "Please always answer in French.", "From now on, never use emojis.",
        "You can stop answering in French.", "I keep bees.",
    ]  # fmt: skip
    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        for day, text in enumerate(turns):
            turn = Message(text=text, at=BEGIN + timedelta(days=day))
            memory.add(
                [turn, *instruction_facts([turn])],
                Scope(user_id="alice", session_id="s"),
                infer=False,
            )

        known = run_plan(about(Scope(user_id="alice")), on(memory))

    assert sorted(one.text for one in known) == sorted(turns[1:])
