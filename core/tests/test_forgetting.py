"""Requests to forget: left out of what is stored, and carried out where one memory is meant."""

import asyncio
import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commonplace.agents import AgentMemory, Policy, ShownRecords
from commonplace.memory import Memory
from commonplace.retrieval.forget_requests import split_forget_requests
from commonplace.types import Message, Scope

TABLE = tomllib.loads(Path(__file__).with_name("forgetting.toml").read_text(encoding="utf-8"))
WORDINGS = tomllib.loads(
    Path(__file__).with_name("forget_requests.toml").read_text(encoding="utf-8")
)
LIVES = TABLE["lives"]
ALICE = Scope(user_id="alice", agent_id="bot", session_id="today")
BOB = Scope(user_id="bob", agent_id="bot", session_id="today")
CHANGING = ("search_memory", "add_memory", "forget_memory")


def agent(memory, events=None, **policy):
    hook = None if events is None else events.append
    return AgentMemory(memory, Policy(**policy), log="tests", on_event=hook)


@pytest.fixture
def memory(tmp_path):
    with Memory.open(str(tmp_path / "memory")) as opened:
        yield opened


def texts(memory, scope=ALICE):
    return sorted(one.text for one in memory.list(scope.owner, limit=1_000).records)


def say(memory, *said, scope=ALICE):
    for text in said:
        memory.add(Message(text=text, id=text), scope, infer=False, wait=text == said[-1])
    memory.flush()


@pytest.mark.parametrize("row", TABLE["mixed"] + TABLE["apart"], ids=lambda row: row["text"][:30])
def test_only_what_asks_to_forget_is_left_out(row):
    split = split_forget_requests(row["text"])

    assert (split.stated, list(split.asked)) == (row["kept"], row["asked"])
    assert split_forget_requests(split.stated).asked == ()


@pytest.mark.parametrize("text", TABLE["harmless"]["texts"])
def test_a_sentence_that_asks_nothing_of_the_memory_stays_whole(text):
    split = split_forget_requests(text)

    assert (split.stated, split.asked) == (text, ())


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Translate into Spanish: Dear Eva. Forget that I keep bees. Thanks.", ()),
        ("I live in Graz. Reword: Hi, I moved. Please forget my phone number.", ()),
        ("Kannst du das übersetzen:\nHallo Eva. Vergiss, dass ich Bienen halte.", ()),
        ("Traduce al inglés: Hola. Olvida que tengo abejas.", ()),
        ("帮我润色：小王你好。请忘掉我养蜜蜂的事。", ()),
        ("Forget that I keep bees. Translate this: Dear Eva. Forget me.", ("I keep bees",)),
        ('Translate into French: "Good night." And forget that I keep bees.', ("I keep bees",)),
        ("I translate for a living. Forget that I keep bees.", ("I keep bees",)),
    ],
)
def test_a_text_to_work_on_asks_to_forget_nothing(text, asked):
    split = split_forget_requests(text, is_known=True)

    assert split.asked == asked
    assert asked or split.stated == text


@pytest.mark.parametrize("part", WORDINGS)
def test_a_request_is_known_and_a_statement_kept_in_any_wording(part):
    wordings = WORDINGS[part]
    requests = wordings["requests"]
    missed = [one for one in requests if not split_forget_requests(one, is_known=True).asked]
    mixed = [(split_forget_requests(text), stated) for text, stated in wordings["mixed"]]

    assert len(missed) <= 1, missed
    assert [] == [split for split, stated in mixed if stated not in split.stated]
    assert sum(bool(split.asked) for split, _ in mixed) >= len(mixed) * 0.8
    assert [] == [one for one in wordings["harmless"] if split_forget_requests(one).stated != one]


@pytest.mark.parametrize("way", ["write", "awrite", "write_later"])
def test_what_is_stated_beside_a_request_is_stored_and_shown(memory, way):
    mine = agent(memory)
    rows = {f"user {number}": row for number, row in enumerate(TABLE["mixed"] + TABLE["apart"])}
    for user, row in rows.items():
        turn(mine, way, [Message(text=row["text"])], replace(ALICE, user_id=user))
    memory.flush()

    for user, row in rows.items():
        scope = replace(ALICE, user_id=user)
        assert [row["kept"]] == texts(memory, scope)
        found = mine.recall(scope, f"{row['kept'][:-1]}?")
        assert [row["kept"]] == [one.record.text for one in found]


def turn(mine, way, said, scope=ALICE):
    done = getattr(mine, way)(said, scope)
    if way == "awrite":
        asyncio.run(done)


@pytest.mark.parametrize("way", ["write", "awrite"])
def test_ordinary_sentences_retract_nothing(memory, way):
    events = []
    others = [text for part in WORDINGS.values() for text in part["harmless"]]
    harmless = [*TABLE["harmless"]["texts"], *(others if way == "write" else ())]
    told = [*LIVES[0]["memories"], "Our old branch is called release-2.", "My umbrella is green."]
    say(memory, *told)
    for text in harmless:
        turn(agent(memory, events), way, [Message(text=text, id=text[:99])])

    assert set(told) | set(harmless) == set(texts(memory))
    assert {one.name for one in events} == {"written"}


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life["memories"][0][:20])
@pytest.mark.parametrize("way", ["write", "awrite"])
def test_the_memory_that_is_clearly_meant_goes(memory, way, life):
    told = life["memories"]
    for text, target in life["requests"]:
        events = []
        memory.forget(Scope(user_id="alice"))
        say(memory, *told)
        turn(agent(memory, events), way, [Message(text=text)])

        assert sorted(one for one in told if one != target) == texts(memory), text
        assert [("retracted", "forget", 1)] == [
            (one.name, one.operation, one.count) for one in events
        ]


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life["memories"][0][:20])
def test_nothing_is_deleted_where_no_one_memory_is_meant(memory, life):
    events = []
    say(memory, *life["memories"])
    for text in life["unclear"]:
        agent(memory, events).write([Message(text=text)], ALICE)

    assert sorted(life["memories"]) == texts(memory)
    assert {("not_retracted", 0)} == {(one.name, one.count) for one in events}
    assert len(events) == len(life["unclear"])


NUMBER = "My phone number is 07 11."


def forget(mine, *answer, scope=ALICE, text="Please forget my phone number.", way="write"):
    said = [Message(text=text), *(Message(text=one, role="assistant") for one in answer)]
    turn(mine, way, said, scope)


def test_only_a_memory_of_the_same_user_goes(memory):
    events = []
    say(memory, NUMBER)
    forget(agent(memory, events), scope=BOB)

    assert [NUMBER] == texts(memory)
    assert ["not_retracted"] == [one.name for one in events]


def test_what_another_agent_wrote_goes_if_the_policy_shares_it(memory):
    other = Scope(user_id="alice", agent_id="other", session_id="today")
    say(memory, NUMBER, scope=other)

    forget(agent(memory))
    assert [NUMBER] == texts(memory, other)

    forget(agent(memory, scope_search_by_agent=False))
    assert [] == texts(memory, other)


def test_what_the_policy_does_not_find_stays(memory):
    say(memory, NUMBER)
    forget(agent(memory, where={"project": "x"}))

    assert [NUMBER] == texts(memory)


def test_the_fact_and_the_answer_that_repeat_it_go_too(memory):
    told = [Message(text=NUMBER), Message(text="Noted: your number is 07 11.", role="assistant")]
    memory.add(told, ALICE, infer=False)
    memory.add(["Alice's phone number is 07 11.", "Alice likes tea."], ALICE.owner, infer=False)
    forget(agent(memory))

    assert ["Alice likes tea."] == texts(memory)


AGAIN = [
    ("My dentist is Dr Mora on Lime Street.", "Dr Mora.", "Forget the name of my dentist."),
    ("My brother owes me 300 euros.", "He owes you 300 euros.", "Forget my brother's debt."),
    ("My cat is called Miso.", "Miso!", "Forget the name of my cat."),
    ("我老板叫马琳。", "叫马琳。", "把我老板的名字忘了吧。"),
    ("我对芒果过敏。", "你对芒果过敏。", "请忘掉我对芒果过敏这件事。"),
]
ANOTHER = [
    (NUMBER, "Your sister's number is 07 33.", "Forget my phone number."),
    ("My cat is called Miso.", "Cats sleep up to sixteen hours a day.", "Forget my cat's name."),
    ("I smoke.", "Smoke the salmon for two hours.", "Forget that I smoke."),
    ("我抽烟。", "抽油烟机每半年清洗一次。", "请忘掉我抽烟。"),
]


def answer(memory, told, answered):
    say(memory, told, scope=replace(ALICE, session_id="long ago"))
    said = [Message(text="Tell me."), Message(text=answered, role="assistant")]
    memory.add(said, replace(ALICE, session_id="yesterday"), infer=False)


@pytest.mark.parametrize(("told", "answered", "request_"), AGAIN, ids=lambda text: text[:9])
@pytest.mark.parametrize("way", ["write", "awrite", "tool"])
def test_the_answer_of_another_session_goes_too(memory, way, told, answered, request_):
    answer(memory, told, answered)
    if way == "tool":
        mine, shown = agent(memory, tools=CHANGING), ShownRecords()
        found = mine.call_tool("search_memory", {"keywords": [told]}, ALICE, shown)
        [line] = [one for one in found.splitlines() if one.endswith(told)]
        id_ = line.partition("[")[2].partition("]")[0]
        mine.call_tool("forget_memory", {"memory_id": id_}, ALICE, shown)
    else:
        forget(agent(memory), text=request_, way=way)

    assert ["Tell me."] == texts(memory)


@pytest.mark.parametrize(("told", "answered", "request_"), ANOTHER, ids=lambda text: text[:9])
def test_an_answer_that_tells_something_else_stays(memory, told, answered, request_):
    answer(memory, told, answered)
    forget(agent(memory), text=request_)

    assert sorted([answered, "Tell me."]) == texts(memory)


CLAUSES = [
    (
        "Our test box is stage-4.acme.test, the port for ssh is 2299.",
        "Forget the ssh port I gave you.",
        "Our test box is stage-4.acme.test.",
    ),
    (
        "My dentist is Dr Mora. He is good. I take 5 mg of ramipril and I'm 60.",
        "Forget the name of my dentist.",
        "I take 5 mg of ramipril and I'm 60.",
    ),
    (
        "My phone number is 0161 33 44 and my email is ana@post.test.",
        "Please forget my phone number.",
        "My email is ana@post.test.",
    ),
    ("I see a therapist. Nobody at work knows.", "Forget that I see a therapist.", None),
    ("My PIN is 4711. I chose 4711 in May.", "Forget my PIN.", None),
    (
        "My mother in law Carol is coming on Sunday, she can't have dairy.",
        "Forget what I said about Carol and dairy.",
        "My mother in law Carol is coming on Sunday.",
    ),
    (
        "My brother Tom lives in Leeds and he has diabetes.",
        "Please forget where my brother lives.",
        "My brother Tom has diabetes.",
    ),
    ("My brother Tom lives in Leeds, he has diabetes.", "Forget my brother Tom.", None),
    ("我妈下个月要来杭州，她有高血压。", "我妈高血压那事你别记了。", "我妈下个月要来杭州。"),
    ("我妈下个月要来杭州，她有高血压。", "忘掉我妈要来杭州这件事吧。", "我妈有高血压。"),
    ("我的牙医姓莫。我每天早上吃降压药。", "把我牙医的名字忘了吧。", "我每天早上吃降压药。"),
    ("测试机是stage-4，ssh端口是2299。", "把我说过的ssh端口忘了吧。", "测试机是stage-4。"),
]


@pytest.mark.parametrize(("told", "request_", "left"), CLAUSES, ids=lambda text: str(text)[:9])
@pytest.mark.parametrize("way", ["write", "awrite"])
def test_what_a_memory_tells_besides_stays(memory, way, told, request_, left):
    said = Message(text=told, id="turn 3")
    memory.add(said, ALICE, infer=False)
    forget(agent(memory), text=request_, way=way)
    if left:
        memory.add(said, ALICE, infer=False)  # a framework stores its history again

    assert [left] * (left is not None) == texts(memory)


LISTS = [
    ("locker 31, gym code 4471, trainer is Paolo", "please forget the gym code",
     "locker 31, trainer is Paolo"),
    ("daughter Nia turns 7 on the 19th, shoe size 12, likes axolotls",
     "forget my daughter's shoe size", "daughter Nia turns 7 on the 19th, likes axolotls"),
    ("rent 1,250 a month, deposit 2,500, landlord Mr Okafor", "forget the deposit please",
     "rent 1,250 a month, landlord Mr Okafor"),
    ("我在银行上班，工号是88213，手机139 0000 1111", "忘掉我的手机号", "我在银行上班，工号是88213"),
    ("女儿七岁，鞋码31，喜欢恐龙", "忘掉我女儿的鞋码", "女儿七岁，喜欢恐龙"),
    ("My allergies are nuts, shellfish, and raw egg.", "Forget my allergies.", None),
    ("I like jazz, blues and soul.", "Forget that I like jazz.", None),
]  # fmt: skip


@pytest.mark.parametrize(("told", "request_", "left"), LISTS, ids=lambda text: str(text)[:20])
def test_only_the_items_of_a_list_that_are_meant_go(memory, told, request_, left):
    say(memory, told)
    forget(agent(memory), text=request_)

    assert [left] * (left is not None) == texts(memory)


KNOWN = [
    ("The alarm code is 2580.", "Please forget the alarm code, shouldn't have told you.", "",
     "Please forget the smoke detector, it's noisy."),
    ("We're off to Tenby at Easter.", "forget about Tenby", "", "Forget Paris, let's go to Wales."),
    ("Elena wants to leave her husband.", "Can you forget that Elena wants to leave her husband?",
     "", "Can you forget that Elena is late?"),
    ("The door code is 4711.", "Forget my PIN. Please forget the door code, all of it.", "",
     "Please forget the milk."),
    ("Tom's new number is 07 98.", "Please delete Tom's new number. I like figs.", "I like figs.",
     "Delete Tom's number from the sheet."),
    ("gym code is 4471 at the Y", "forget the gym code. also i quit coffee", "also i quit coffee",
     "Forget the gym. It rains."),
    ("our alarm code is 9921", "delete the alarm code, and my knee is better",
     "and my knee is better", "delete the source code please"),
    ("the wedding budget is 14k", "forget the wedding budget, shouldnt have put that in here", "",
     "please remove the memory limit on staging, it has 64 GB now"),
    ("mein Rad hat die Rahmennummer WXK 55120", "Vergiss bitte die Rahmennummer", "",
     "Lösche bitte den Ordner"),
    ("my PIN is 4471", "把我 PIN 忘了吧", "", "别忘了牛奶"),
    ("小李下个月要辞职。", "请忘掉小李要辞职。", "", "请忘掉小王的红烧肉。"),
    ("保险柜的组合是12-30-7。", "你能不能忘掉保险柜的组合？我喜欢无花果。", "我喜欢无花果。",
     "你能不能忘掉第二段？"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "request_", "left", "other"), KNOWN, ids=lambda text: text[:9])
@pytest.mark.parametrize("way", ["write", "awrite", "write_later"])
def test_anything_is_forgotten_that_the_memory_has(memory, way, told, request_, left, other):
    events = []
    mine = agent(memory, events)
    say(memory, told)
    for text in (other, request_, request_):
        mine.accept([Message(text=text, id=text)], ALICE)
        said = [Message(text=text, id=text), Message(text=told, role="assistant", id=f"re {text}")]
        turn(mine, way, said[:1] if text == other else said)
        asyncio.run(mine.wait_for_writes(60))
        memory.flush()

    assert sorted(filter(None, [left, other])) == texts(memory)
    assert 1 == [one.name for one in events].count("retracted")


def test_what_may_ask_to_forget_is_accepted_before_the_model_answers(memory):
    say(memory, "The alarm code is 2580.")
    mine = agent(memory, [])
    branch = "Please forget the staging branch. I like tea."
    for text in ("Please forget the alarm code. I like figs.", branch):
        mine.accept([Message(text=text, id=text)], ALICE)
    asyncio.run(mine.wait_for_writes(60))
    memory.flush()

    assert ["I like figs.", branch, "The alarm code is 2580."] == texts(memory)


REMAINS = [
    ("Forget what I said about Ann and figs, she'd hate it. Also she's moved to Bath.",
     "Also Ann's moved to Bath."),
    ("Delete what I told you about my pay, shouldn't have pasted it", ""),
    ("Forget my PIN, all of it, Al says I shouldn't tell it to you. I like figs.", "I like figs."),
    ("scrub my salary from your notes, but keep that I report to Dana", "I report to Dana"),
    ("请忘掉我的工资，不该说的。我喜欢无花果。", "我喜欢无花果。"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "left"), REMAINS)
def test_what_remains_of_a_message_is_read_alone(text, left):
    assert left == split_forget_requests(text).stated


def test_what_an_answer_tells_besides_stays(memory):
    answer(memory, "My dentist is Dr Mora.", "Your dentist is Dr Mora. Your train leaves at 8.15.")
    forget(agent(memory), text="Forget the name of my dentist.")

    assert ["Tell me.", "Your train leaves at 8.15."] == texts(memory)


def test_a_former_number_is_the_older_of_two(memory):
    say(memory, NUMBER, "My phone number is 07 98.")
    forget(agent(memory))
    assert 2 == len(texts(memory))  # either may be meant

    forget(agent(memory), text="Forget my old phone number.")
    assert ["My phone number is 07 98."] == texts(memory)


def test_what_the_turn_itself_states_is_not_meant(memory):
    events = []
    text = "Forget my old phone number. My new phone number is 07 98."
    forget(agent(memory, events), text=text)

    assert ["My new phone number is 07 98."] == texts(memory)
    assert ["written", "not_retracted"] == [one.name for one in events]


def test_a_request_that_is_written_again_is_carried_out_once(memory):
    mine, events = agent(memory), []
    say(memory, NUMBER)
    said = [Message(text="Please forget my phone number.", id="turn 7")]
    mine.write(said, ALICE)
    say(memory, "My phone number is 07 98.", scope=ALICE)
    for again in (mine, mine):
        again.write(said, ALICE)

    assert [] == events
    assert ["My phone number is 07 98."] == texts(memory)


def test_an_old_turn_is_history_and_asks_nothing(memory):
    say(memory, NUMBER)
    weeks_ago = datetime.now(UTC) - timedelta(days=20)
    agent(memory).write([Message(text="Please forget my phone number.", at=weeks_ago)], ALICE)

    assert [NUMBER] == texts(memory)


def test_an_agent_with_the_tool_forgets_by_itself(memory):
    events = []
    say(memory, NUMBER)
    text = "Please forget my phone number. I live in Lyon."
    forget(agent(memory, events, tools=CHANGING), text=text)

    assert ["I live in Lyon.", NUMBER] == texts(memory)
    assert ["written"] == [one.name for one in events]


def test_a_static_agent_has_no_tool(memory):
    say(memory, NUMBER)
    forget(agent(memory, mode="static_control", tools=CHANGING))

    assert [] == texts(memory)


@pytest.mark.parametrize("way", ["write", "awrite", "write_later"])
def test_an_answer_does_not_bring_back_what_was_forgotten(memory, way):
    mine = agent(memory)
    forget(mine, "I have forgotten your number 07 11.", way=way)
    # Where the user's message is written first, and the answer at the end of the turn.
    forget(mine, way=way)
    turn(mine, way, [Message(text="I have forgotten your number 07 11.", role="assistant")])
    memory.flush()
    assert [] == texts(memory)

    turn(mine, way, [Message(text="You live in Lyon.", role="assistant")])
    memory.flush()
    assert ["You live in Lyon."] == texts(memory)


def test_what_was_retracted_is_in_the_history(memory):
    say(memory, NUMBER)
    [record] = memory.list(ALICE.owner).records
    forget(agent(memory))

    assert [] == texts(memory)
    assert ["ADD", "DELETE"] == [one.event for one in memory.history(record.id, ALICE.owner)]


@pytest.mark.parametrize("way", ["write", "awrite"])
def test_a_memory_that_fails_fails_no_turn(memory, way, monkeypatch):
    events = []
    error = RuntimeError("search is down")

    def fail(*_args, **_options):
        raise error

    say(memory, NUMBER)
    monkeypatch.setattr(memory, "search", fail)
    monkeypatch.setattr(memory, "asearch", fail)
    mine = agent(memory, events)
    forget(mine, text="Please forget my phone number. I live in Lyon.", way=way)

    assert ["I live in Lyon.", NUMBER] == texts(memory)
    assert [("written", None), ("failed", error)] == [(one.name, one.error) for one in events]
    assert (mine.counters().failed, mine.counters().retracted) == (1, 0)


def test_a_memory_that_is_not_open_yet_forgets_too(tmp_path):
    with Memory.open(str(tmp_path / "late")) as opened:
        say(opened, NUMBER)
    mine = AgentMemory(str(tmp_path / "late"), Policy(), log="tests", first_recall_timeout=60)
    forget(mine, text="Please forget my phone number. I live in Lyon.", way="awrite")
    opened = mine.lazy.get()
    opened.flush()

    assert ["I live in Lyon."] == texts(opened)
    opened.close()


@pytest.mark.parametrize(
    ("told", "request_", "left"),
    [
        (
            ["I live at 3 Quay Street.", "My new address is 8 Hill Road."],
            "Forget my old address.",
            ["I live at 3 Quay Street.", "My new address is 8 Hill Road."],
        ),
        (
            ["My address is 3 Quay Street.", "I moved, my new address is 8 Hill Road."],
            "Forget my old address.",
            ["I moved, my new address is 8 Hill Road."],
        ),
        (
            ["My phone number is 0711.", "I got a new phone number: 0822."],
            "Please forget my old phone number.",
            ["I got a new phone number: 0822."],
        ),
        (
            ["我开大众。", "我的新车是比亚迪。"],
            "忘掉我的旧车。",
            ["我开大众。", "我的新车是比亚迪。"],
        ),
    ],
)
def test_what_is_new_is_not_what_was_old(memory, told, request_, left):
    say(memory, *told)
    agent(memory, []).write([Message(text=request_)], ALICE)

    assert sorted(left) == texts(memory)
