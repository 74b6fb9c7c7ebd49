"""Standing instructions: found in the user's turns, stored beside them, shown in every note."""

import asyncio
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commonplace.agents import AgentMemory, Policy, find_instructions
from commonplace.agents.standing_instructions import without_replaced
from commonplace.memory import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Message, Record, Scope

ALICE = Scope(user_id="alice", agent_id="bot", session_id="today")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
SETS = tomllib.loads((BENCHMARKS / "instructions.toml").read_text(encoding="utf-8"))


@pytest.fixture
def memory(tmp_path):
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as opened:
        yield opened


def agent(memory, **policy):
    return AgentMemory(memory, Policy(**policy), log="tests")


def preferences(memory):
    return [one.text for one in memory.list(ALICE.owner, kinds=("preference",)).records]


@pytest.mark.parametrize(
    "text",
    [
        "Always answer in French.",
        "Please never call me Robert.",
        "I prefer short answers.",
        "From now on, use metric units.",
        "When I ask for a recipe, give it in grams.",
        "Stop answering in French.",
        "no jokes ever pls",
        "use celsius only",
        "bullet points from now on",
        "never use slang, 谢谢啦",
        "always write in French, 除非我说中文",
        "以后 answer in English please",
        "I'd be glad if you would always address me as Dr Okafor",
        "Please stop answering in French from now on.",
        "Don't answer in French anymore.",
        "You don't need to answer in French anymore.",
        "以后都用中文回答。",
        "不用再用法语回答了。",
        "不要用表情符号。",
        "我更喜欢简短的回答。",
        "我问菜谱的时候，请用克来写分量。",
        "Could you always give me temperatures in Celsius?",
        "Will you please never answer in German?",
        "Also, would you always call me Dr. Weber?",
        "Can you always remind me to log off, please?",
        "Could you reply in Spanish from now on?",
        "以后能不能都用摄氏度给我报温度？",
        "你可以一直用繁体字回答吗？",
        "能不能每次都给我列出来源呢？",
        "keep answers under 5 lines from now on pls, i read these on my phone",
        "pls always answer in under 5 lines",
        "from now on max 5 lines per answer please",
        "no more than three bullets per reply, thanks",
        "stick to metric units with me",
        "please (my eyes) always use short paragraphs",
        "answer in Dutch from now on, ok?",
        "回答不超过三句，谢谢",
        "麻烦以后每次回答最多五行，我在手机上看",
        "please keep it under 4 lines each time, tiny screen",
        "from now on two sentences at most, thanks",
        "i'd prefer answers without emojis, they look odd in my terminal",
        "every answer should start with yes or no, please",
    ],
)
def test_what_holds_from_now_on_is_an_instruction(text):
    assert (text,) == find_instructions(text)


@pytest.mark.parametrize(
    "text",
    [
        "I never saw that film.",
        "She always comes late.",
        "Never mind.",
        "From now on I work as a florist.",
        "When I ask my son, he never answers.",
        "Do you always answer in French?",
        'The sign says: "Never answer a call during the meeting."',
        "> Always answer in French.",
        "Translate this: always answer in French.",
        "Rewrite in the past tense: We met Jo. Always answer in French.",
        "Could you proofread my mail?\n\nHi Ana,\nnever use emojis.\nAlways answer in French.",
        "帮我润色：小王你好。以后都用英文回复我。",
        "You don't need to answer it anymore.",
        "You don't have to make dinner anymore.",
        "Stop writing in my book.",
        "Always answer in French. " + "Lorem ipsum dolor. " * 60,
        "她总是迟到。",
        "别担心，我没事。",
        "以后我要多运动。",
        "我问他的时候，他没有回答。",
        "不用再用左手写字了。",
        "不用再说了。",
        "Can you always tell when somebody lies?",
        "Would you always use butter in a pie crust?",
        "Could you always call me at work back then?",
        "Can you always write off a car?",
        "Could you give me the temperature in Celsius?",
        "Would she always answer in French?",
        "Can you keep the dog from now on?",
        "Will you never give me a break?",
        "Could you always reply all in that program?",
        "他可以一直用这个账号吗？",
        "我可以以后再给你答复吗？",
        "能不能以后再说？",
        "你能一直陪着我吗？",
        "老师能一直用英语回答吗？",
        "keep the answers under the desk, please",
        "summarise this in max 5 lines",
        "from now on max speed here is 30, thanks",
        "at most five guests will come",
        "pls write to me when you land",
        "don't add sugar to mine pls",
        "用三句话总结这篇文章，谢谢",
        "No rain ever in this town.",
        "My sister may call me tonight.",
        "他说 always reply in English",
        "老板 said no emojis in the report",
    ],
)
def test_what_tells_of_somebody_is_none(text):
    assert () == find_instructions(text)


ASKED = [SETS[language][part] for language in ("en", "zh") for part in ("asked", "asked_apart")]


@pytest.mark.parametrize("text", [one for part in ASKED for one in part["standing"]])
def test_what_is_asked_for_once_and_for_all_is_an_instruction(text):
    assert (text,) == find_instructions(text)


@pytest.mark.parametrize("text", [one for part in ASKED for one in part["ordinary"]])
def test_what_only_sounds_asked_for_once_and_for_all_is_none(text):
    assert () == find_instructions(text)


def test_a_word_of_time_alone_is_of_the_sentence_before_it():
    text = "I had soup. Keep it simple with me. Always, please. The soup was good. Always."

    assert find_instructions(text) == ("Keep it simple with me. Always, please.",)


def test_only_the_sentence_that_instructs_is_taken():
    text = "Thanks, that helps. Also, never book flights before nine."

    assert ("Also, never book flights before nine.",) == find_instructions(text)


@pytest.mark.parametrize(
    "text",
    [
        "Address me as Prof. Adler from now on.",
        "Never mention Mrs. Koch or the St. Gallen trip.",
        "Always give a source, e.g. a paper.",
        "Always use U.S. spelling in your answers.",
        "Never mention Hart Ltd. in front of my team.",
    ],
)
def test_an_abbreviation_ends_no_instruction(text):
    assert find_instructions(text) == (text,)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "Never use emojis, and keep answers short.",
            ("Never use emojis", "keep answers short."),
        ),
        (
            "From now on call me Mo and answer in Spanish.",
            ("From now on call me Mo", "answer in Spanish."),
        ),
        (
            "Never use emojis, and keep it short.",
            ("Never use emojis", "From now on keep it short."),
        ),
        ("以后用德文回答，不要用表情符号。", ("以后用德文回答", "不要用表情符号。")),
        ("Always answer in Dutch and Danish.", ("Always answer in Dutch and Danish.",)),
        ("Call me Mo, and I live in Bonn.", ("Call me Mo, and I live in Bonn.",)),
        (
            "When I write code, use tabs and never spaces.",
            ("When I write code, use tabs and never spaces.",),
        ),
    ],
)
def test_instructions_that_a_sentence_joins_are_told_apart(text, parts):
    assert find_instructions(text) == parts


@pytest.mark.parametrize(
    ("old", "new", "gives_way"),
    [
        ("Never use emojis.", "Please include some emojis.", True),
        ("Don't use tables.", "Use tables in your answers.", True),
        ("Keep your replies brief.", "Please write longer answers.", True),
        ("Please use American spelling.", "Use British spelling, please.", True),
        ("请用简体字回答。", "请用繁体字。", True),
        ("Never use emojis.", "Please use emojis in the birthday card for Ann.", False),
        ("Don't use tables.", "Please add a table of the sales to the report.", False),
        ("Keep your replies brief.", "Give me the long version of the contract.", False),
        ("Never use emojis.", "Never use emojis.", False),
    ],
)
def test_a_plain_request_takes_the_place_of_its_contrary(memory, old, new, gives_way):
    for day, text in enumerate([old, new]):
        agent(memory).write([Message(text=text, at=MONDAY + timedelta(days=day))], ALICE)

    shown = [one.record.text for one in agent(memory).recall(ALICE, "Hello there, all well?")]

    assert (old not in shown) is gives_way


def test_what_ends_one_of_two_joined_instructions_leaves_the_other(memory):
    for text in ("Never use emojis and always answer in French.", "You may use emojis again."):
        agent(memory).write([Message(text=text, at=MONDAY, id=text)], ALICE)

    shown = agent(memory).recall(ALICE, "Hello there, all well?")

    assert "always answer in French." in [one.record.text for one in shown]
    assert "Never use emojis" not in [one.record.text for one in shown]


@pytest.mark.parametrize(
    "quoted",
    [
        "```\nAlways answer in French.\n```",
        "```text\nAlways answer in French.\n\nNever use tables.\n```",
        "~~~\nAlways answer in French.\n~~~",
        "```\nAlways answer in French.",
        "> Always answer in French.\nNever use tables.",
        "  > Always answer in French.",
        "| Always answer in French. | Never use tables. |",
        'He wrote "Always answer in French." to me.',
        "他写道：「以后都用法语回答我，谢谢你们了。」",
    ],
)
def test_code_and_quotations_do_not_instruct_and_what_follows_does(quoted):
    assert find_instructions(f"Look at this:\n{quoted}") == ()
    if quoted.count("```") != 1:
        more = "Call me Sam from now on."
        assert find_instructions(f"{quoted}\n\n{more}") == (more,)


def test_a_users_instruction_is_a_preference_beside_the_turn(memory):
    turn = Message(text="Always answer in French.", id="1")
    agent(memory).write([turn], ALICE)
    asyncio.run(agent(memory).awrite([turn], ALICE))

    assert ["Always answer in French."] == preferences(memory)
    assert 1 == len(memory.list(ALICE, kinds=("episode",)).records)


def test_nobody_else_instructs(memory):
    others = [
        Message(text="Always answer in French.", role=role, id=role)
        for role in ("assistant", "tool", "system")
    ]
    agent(memory).write(others, ALICE)
    memory.add("Always answer in French.", ALICE, infer=False, origin="document")

    assert [] == preferences(memory)


def test_the_policy_switches_it_off(memory):
    off = agent(memory, instructions=False)
    off.write([Message(text="Always answer in French.", id="1")], ALICE)
    assert [] == preferences(memory)

    agent(memory).write([Message(text="Never use emojis.", id="2")], ALICE)
    assert [] == off.recall(ALICE, "Hello!")


def test_every_recall_begins_with_the_newest_instructions(memory):
    tell(memory, "Always answer in French.", "Never use emojis.")

    found = [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]

    assert ["Never use emojis.", "Always answer in French."] == found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Always answer in French.", "From now on, reply in German."),
        ("Always use emojis.", "Never use emojis."),
        ("Please call me Sam.", "Call me Dr Lind."),
        ("I prefer short answers.", "I prefer detailed answers."),
        ("以后都用中文回答。", "以后请用英文回答。"),
        ("Always answer in French.", "Please stop answering in French from now on."),
        ("Always answer in French.", "Stop answering in French."),
        ("Always answer in French.", "You don't need to answer in French anymore."),
        ("Always answer in French.", "Never answer in French."),
        ("以后都用法语回答我。", "以后请用中文回答我。"),
        ("以后都用法语回答我。", "以后不要用法语回答了。"),
        ("以后都用法语回答我。", "不用再用法语回答了。"),
        ("Please never use emojis.", "Use emojis from now on."),
        ("Always use emojis.", "Stop using emojis."),
        ("Call me Captain from now on.", "From now on, call me Bob."),
        ("Call me Bob.", "Stop calling me Bob."),
        ("以后都叫我船长。", "以后都叫我老板。"),
        ("以后都叫我船长。", "别再叫我船长了。"),
        ("回答要简短。", "我更喜欢详细的回答。"),
        ("Never more than 4 sentences.", "Always at most 8 sentences."),
        ("Keep answers under 100 words.", "Make it 200 words max from now on."),
        ("以后回答最多三句", "以后回答控制在300字以内"),
        ("Use miles when you give me distances.", "Use kilometres when you give me distances."),
        ("Only use fahrenheit.", "Celsius from now on."),
        ("Please call me Ms Alvarez.", "You may call me Ines after all."),
        ("Please call me Ms Alvarez.", "Do call me Ines."),
        ("Always use metric units.", "Always use imperial units."),
        ("从现在起，请用公制单位。", "以后请用英制单位。"),
        ("When I send code, explain every line.", "When I send code, don't explain every line."),
        ("我问菜谱的时候，请用克来写分量。", "我问菜谱的时候，不要用克来写分量。"),
    ],
)
def test_the_newer_of_two_contrary_instructions_is_shown(memory, old, new):
    tell(memory, old, new)

    assert [new] == [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]
    assert {old, new} == set(preferences(memory))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Never use emojis.", "Never use tables."),
        ("Always answer in French.", "When I write in German, answer in German."),
        ("Never call me Robert.", "Call me Sam."),
        ("I prefer short answers.", "I prefer aisle seats."),
        ("Always answer in French.", "Always add a summary."),
        ("Always answer in French.", "Always write emails to my boss in Spanish."),
        ("Always answer in German.", "Stop answering in French."),
        ("Never answer in French.", "Always answer in German."),
        (
            "When I write in German, answer in English.",
            "When I write in English, answer in German.",
        ),
        ("Call me Bob.", "From now on, call my mother mum."),
        ("Call me Bob.", "From now on, call me every evening."),
        ("以后都叫我船长。", "以后叫我妈妈起床要先问我。"),
        ("以后都用中文回答。", "以后请用英文写邮件。"),
        ("Keep your answers short.", "From now on, keep the subject line long."),
        ("Always use short sentences.", "Always use numbered lists."),
        ("Keep answers under 5 lines.", "Always give at most 3 options."),
        ("Keep your emails under 5 lines.", "Keep answers under 10 lines."),
        ("Use celsius from now on.", "Use kilometres from now on."),
    ],
)
def test_instructions_about_other_things_are_all_shown(memory, old, new):
    tell(memory, old, new)

    assert [new, old] == [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]


def test_a_replaced_instruction_is_not_shown_for_a_question_like_it(memory):
    tell(memory, "Call me Captain from now on.", "From now on, call me Bob.")

    found = agent(memory).recall(ALICE, "Do you call me Captain from now on?")

    assert ["From now on, call me Bob."] == [one.record.text for one in found]


def test_what_a_stopped_instruction_had_replaced_does_not_come_back(memory):
    last = "Stop answering in French."
    tell(memory, "Always answer in German.", "Always answer in French.", last)

    assert [last] == [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]


def tell(memory, *texts):
    for day, text in enumerate(texts):
        said = Message(text=text, id=text, at=MONDAY + timedelta(days=day))
        agent(memory).write([said], ALICE)


def test_a_deleted_instruction_is_shown_no_more(memory):
    tell(memory, "Always answer in French.", "Always answer in German.")
    records = memory.list(ALICE.owner, kinds=("preference",)).records
    [german] = [one for one in records if "German" in one.text]
    memory.delete(german.id, ALICE.owner)

    found = [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]

    assert ["Always answer in French."] == found


def test_an_instruction_and_its_turn_are_one_line(memory):
    agent(memory).write([Message(text="Always answer in French.", id="1")], ALICE)

    found = agent(memory).recall(ALICE, "In which language do you answer?")

    assert ["Always answer in French."] == [one.record.text for one in found]


def test_instructions_take_no_more_than_their_room(memory):
    for number in range(20):
        text = f"Always answer request number {number} with {'many ' * 20}words."
        agent(memory).write([Message(text=text, id=str(number))], ALICE)

    found = agent(memory).recall(ALICE, "Hello!")

    assert 0 < sum(len(one.record.text) for one in found) <= 600


# -- what ends an instruction ------------------------------------------------------------------

ENDING, LATER = SETS["ending"], SETS["later"]
WISHES = [triple for part in SETS["wishes"].values() for triple in part["triples"]]


def pairs(name):
    return [pair for part in ENDING.values() for pair in part[name]]


@pytest.mark.parametrize(
    ("old", "new"),
    [*ENDING["apart"]["pairs"], *ENDING["reasons"]["pairs"], *LATER["fresh"]["pairs"]],
)
def test_an_instruction_gives_way_to_what_ends_it_in_other_words(memory, old, new):
    tell(memory, old, new)

    assert old in preferences(memory)
    assert old not in [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "oh and please always use british spelling with me, no americanisms",
            "you needn't bother with the british spelling thing any more, it's for a client",
        ),
        ("always use british spelling please", "stop using british spelling"),
        ("Always use metric units.", "let's go back to pounds and inches"),
        ("From now on call me Walt.", "Walter is fine again"),
        ("Address me as Prof. Adler from now on.", "just Ruth is fine"),
        ("Always put the answer first, no preamble.", "no need to put the answer first any more"),
        ("From now on max 5 lines per answer.", "the 5 line limit is over"),
        ("Never use more than two sentences.", "please elaborate more"),
        ("Use kilograms for me.", "go back to pounds please"),
        ("以后都用英式拼写，不要美式拼写。", "不用英式拼写了，客户是美国人"),
        ("以后说话别太客气。", "还是客气一点吧"),
        ("No jokes ever, please.", "the joke ban is lifted"),
        ("Never use bullet points.", "I take back what I said about bullet points"),
        ("Use metric units only.", "nix the metric thing, our plans are all in feet"),
        ("Use miles only when you give me measurements.", "metric is fine too now"),
        ("以后回答别超过五句话", "五句话的限制取消"),
        ("以后都用英文回答", "之前说的英文回答作废"),
        ("以后都用公制单位。", "还是用磅和英寸吧"),
    ],
)
def test_an_instruction_ends_whatever_else_it_forbids(memory, old, new):
    tell(memory, old, new)

    assert old not in [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *pairs("other"),
        ("Always answer formally.", "stop using tables"),
        ("From now on max 5 lines per answer.", "You can use emojis again."),
        ("Never suggest pork recipes.", "the pork was fine, the wine was not"),
        ("From now on call me Walt.", "Walter is fine, his leg healed"),
        ("Never describe things by colour.", "the colour of the wall is fine"),
        ("Never cite Wikipedia.", "Wikipedia is down again"),
        ("Always use metric units.", "let's go back to the lake in August"),
        ("以后都用英式拼写，不要美式拼写。", "不用表格了"),
        ("Never use emojis.", "the travel ban was lifted"),
        ("以后都用英文回答", "那张优惠券作废了"),
    ],
)
def test_what_ends_one_instruction_leaves_the_others(memory, old, new):
    tell(memory, old, new)

    assert old in [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]


@pytest.mark.parametrize("text", [one for part in ENDING.values() for one in part["ordinary"]])
def test_what_only_sounds_like_it_ends_nothing(text):
    assert () == find_instructions(text)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("Never use emojis.", "You can use emojis again.", []),
        ("不要用表情符号。", "可以用表情了", []),
        ("Always answer in French.", "Back to English, please.", ["Back to English, please."]),
        ("以后都用英文回答。", "改回中文吧", ["改回中文吧"]),
    ],
)
def test_what_only_ends_another_is_not_shown(memory, old, new, shown):
    tell(memory, old, new)

    assert shown == [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]
    assert {old, new} == set(preferences(memory))


@pytest.mark.parametrize(("old", "text", "wish"), WISHES)
def test_a_wish_for_the_text_at_hand_neither_instructs_nor_ends_an_instruction(
    memory, old, text, wish
):
    tell(memory, old)
    held = preferences(memory)
    tell(memory, text, wish)

    assert held == preferences(memory)


@pytest.mark.parametrize(
    "text",
    [
        "More formal, please.",
        "make it more casual please",
        "a bit warmer",
        "skip the intro",
        "Don't add a title.",
        "再正式一点",
        "语气再软一点",
        "口气别那么硬",
        "换成中文",
    ],
)
def test_what_can_only_be_for_one_text_needs_no_request_before_it(text):
    held = ["Be casual with me, always.", "以后都用英文回答我。", "Always add a title."]

    assert () == find_instructions(text, held)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Never use emojis.", "You can use emojis again."),
        ("Always answer in French.", "No more French from now on, thanks."),
        ("以后都用英文回答。", "改回中文吧"),
        ("以后别用表情符号。", "以后可以用表情了"),
    ],
)
def test_what_ends_an_instruction_does_so_beside_a_text_at_hand(memory, old, new):
    tell(memory, old, "Write a poem about the sea.", "帮我写一首诗", new)

    assert old not in [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]


def test_a_request_for_a_text_in_another_session_makes_no_wish_of_an_instruction(memory):
    other = Scope(user_id="alice", agent_id="bot", session_id="yesterday")
    agent(memory).write([Message(text="Write a poem about the sea.", at=MONDAY)], other)
    tell(memory, "No emojis, please.")

    assert ["No emojis, please."] == preferences(memory)


def test_an_ended_instruction_that_is_told_again_holds_again(memory):
    tell(memory, "Never use emojis.", "You can use emojis again.")
    agent(memory).write([Message(text="Never use emojis.", id="again")], ALICE)

    found = [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]

    assert ["Never use emojis."] == found


@pytest.mark.parametrize("text", [one for part in LATER.values() for one in part["ordinary"]])
def test_an_ordinary_sentence_neither_instructs_nor_ends_an_instruction(text):
    held = [old for part in LATER.values() for old, _ in part["pairs"]]

    assert () == find_instructions(text, held)


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("The tables are fine now, the carpenter fixed them.", "Never use tables."),
        ("My phone shows emojis again.", "Never use emojis."),
        ("No more French fries for me.", "Always answer in French."),
        ("Stop the French lessons, they cost too much.", "Always answer in French."),
        ("Now in French, please.", "Always answer in German."),
        ("Greek yoghurt again, please.", "Always answer in German."),
        ("Emojis are fine now.", "Never use emojis in emails to my boss."),
        ("My screen reader is fine again.", "No emoji please, my screen reader goes mad."),
        ("头发可以长一点了。", "回答要简短。"),
        ("法语课取消了。", "以后都用法语跟我说话。"),
        ("我现在可以说英语了。", "以后都用法语跟我说话。"),
    ],
)
def test_what_tells_of_something_else_ends_nothing(text, old):
    held = [_record(old)]
    later = [_record(one) for one in find_instructions(text, [old])]

    assert held[0] in without_replaced([*later, *held])


def _record(text):
    return Record(
        id=text, text=text, scope=ALICE, created_at=MONDAY, updated_at=MONDAY, occurred_at=MONDAY
    )


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("Call me Captain.", "You don't have to call me Captain anymore, Alice is fine.", 0),
        (
            "Show prices in Swiss francs.",
            "Moved to Vienna, so euros make more sense than francs.",
            1,
        ),
        ("每段话后面加个笑话。", "笑话就免了吧，看腻了。", 0),
    ],
)
def test_what_ends_an_instruction_beside_a_reason_is_shown_where_it_gives_a_value(
    memory, old, new, shown
):
    tell(memory, old, new)

    assert [new] * shown == [one.record.text for one in agent(memory).recall(ALICE, "Hello!")]
