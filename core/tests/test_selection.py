"""What a note holds, and what it leaves out, in English and in Chinese."""

import itertools
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from commonplace.agents import Conversation, choose, is_small_talk
from commonplace.agents.recall import BESIDE, ENOUGH
from commonplace.types import Match, Record, Scope

AT = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Scope(user_id="alice")
_numbers = itertools.count()


def fact(text: str, score: float = 0.6, **more: Any) -> Match:
    record = Record(
        id=more.pop("id", f"id{next(_numbers)}"),
        text=text,
        scope=ALICE,
        created_at=AT,
        updated_at=AT,
        occurred_at=AT,
        **more,
    )
    return Match(record=record, score=score)


def turn(text: str, score: float = 0.6, role: str = "user", **more: Any) -> Match:
    return fact(text, score, kind="episode", role=role, **more)


def note(query: str, *matches: Match, top_k: int = 5, **held: Any) -> list[str]:
    found = choose(matches, query, top_k=top_k, held=Conversation(**held))
    return [one.record.text for one in found]


# -- held by the conversation ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ("I like tea.", "I like tea."),
        ("I like tea.", "I like. Tea?"),
        ("I like tea.", "Well, i LIKE   tea -- and you?"),
        ("I like tea.", "Hello!\n* I like tea\n* I like rum"),
        ("ＡＢＣ－１２３", "abc 123"),
        ("我喜欢绿茶。", "你知道吗，我喜欢绿茶！还有咖啡。"),
    ],
)
def test_what_the_conversation_says_is_left_out(memory, said):
    query = "Which drinks do I like? 我喜欢喝什么？"

    assert ["I own a cat."] == note(query, fact(memory), fact("I own a cat."), texts=["Hi.", said])


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ("I like tea.", "I like teapots."),
        ("I like tea in winter.", "I like tea."),
        ("tea", "steam"),
        ("我喜欢绿茶。", "我喜欢绿色。"),
    ],
)
def test_what_the_conversation_only_resembles_stays(memory, said):
    assert [memory] == note("What do I drink?", fact(memory), texts=[said])


def test_two_messages_together_say_nothing_that_neither_says():
    assert ["like tea"] == note("Drinks?", fact("like tea"), texts=["I like", "tea is fine"])


def test_what_a_note_in_the_conversation_shows_is_left_out():
    kept, shown = fact("I like tea.", id="a"), fact("I like rum.", id="b")

    assert ["I like tea."] == note("What do I drink?", shown, kept, ids={"b"})


def test_a_statement_is_not_repeated_to_the_user_who_makes_it():
    matches = turn("I like tea."), turn("Tea I like!"), turn("I like green tea.")

    assert ["I like green tea."] == note("I like tea.", *matches)
    assert ["I like green tea."] == note("I like tea. What else do I like?", *matches)
    assert ["我喜欢绿茶。"] == note("我喜欢茶。", turn("我喜欢茶。"), turn("我喜欢绿茶。"))


@pytest.mark.parametrize(
    ("query", "memory"),
    [
        ("Do I like tea?", "I like tea."),
        ("Am I allergic to peanuts?", "I am allergic to peanuts."),
        ("is my cat grey", "My cat is grey."),
        ("我喜欢绿茶吗？", "我喜欢绿茶。"),
    ],
)
@pytest.mark.parametrize("memory_of", [fact, turn])
def test_a_question_does_not_hold_its_own_answer(memory_of, query, memory):
    assert [memory] == note(query, memory_of(memory))


# -- no line twice -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I like tea.", "i like  TEA!"),
        ("I like tea", "I like, tea"),
        ("In winter I like tea.", "I like tea."),
        ("我喜欢绿茶。", "我喜欢绿茶！"),
        ("我喜欢绿茶和咖啡", "我喜欢绿茶"),
    ],
)
def test_what_a_better_line_says_comes_once(first, second):
    assert [first] == note("What do I drink? 我喝什么？", turn(first, 0.9), turn(second, 0.5))


def test_a_fact_and_a_turn_of_one_text_come_once():
    assert ["I like tea."] == note("Which drinks?", fact("I like tea."), turn("i like tea"))


def test_a_word_more_may_be_the_one_that_matters():
    lines = "I like tea.", "I like tea, not coffee."

    assert list(lines) == note("Which drinks?", *map(turn, lines))


def test_the_same_words_in_another_order_may_say_another_thing():
    lines = "I fly from Paris to Lyon on Monday.", "I fly from Lyon to Paris on Monday."

    assert list(lines) == note("When do I fly?", *map(fact, lines))


# -- questions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "asked", "told"),
    [
        ("What is my name?", ["What is my name?", "what's my name"], "My name is Tom."),
        ("Where do I live?", ["And where do I live?", "hi! where do I live"], "I live in Lyon."),
        ("我住在哪里？", ["我住在哪里", "我住在哪里呢？"], "我住在里昂。"),
        ("我的猫叫什么？", ["我的猫叫什么名字？"], "我的猫叫小白。"),
    ],
)
def test_a_question_asked_before_is_no_answer(query, asked, told):
    assert [told] == note(query, *(turn(one, 0.99) for one in asked), turn(told, 0.5))


def test_another_question_is_left_out():
    other = turn("Can you book a table in Lyon?", 0.9)
    told = [turn("I live in Lyon."), turn("Ann lives in Oslo.")]
    lines = [one.record.text for one in told]

    assert lines == note("Where do I live?", other, *told)
    assert lines == note("Where do I live?", other, *told, top_k=2)


def test_where_only_questions_were_found_there_is_no_note():
    assert [] == note("Where do I live?", turn("Can you book a table in Lyon?", 0.9))


def test_a_statement_beside_a_question_counts():
    line = "I live in Lyon. Where can I eat?"

    assert [line] == note("Where do I live?", turn(line))


@pytest.mark.parametrize(
    "line",
    [
        "I don't know where you live.",
        "I do not have any information about that. Could you tell me?",
        "You haven't told me yet!",
        "我不知道您住在哪里。",
        "您还没有告诉我。",
        "抱歉，没有相关的记录。",
    ],
)
def test_an_assistant_that_knows_nothing_says_nothing(line):
    told = turn("I live in Lyon. 我住在里昂。", 0.5)

    assert [told.record.text] == note("Where do I live?", turn(line, 0.9, role="assistant"), told)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("I drive a Volvo XC60.", "Got it, you drive a Volvo XC60."),
        ("My aunt Carol can't have dairy.", "I've noted that your aunt Carol can't have dairy!"),
        ("my dentist is on March 3rd at 9:15", "Noted: your dentist is on March 3rd at 9:15."),
        ("The gate code is 4471.", "Okay! The gate code is 4471. I'll remember that."),
        ("我女儿对花生过敏", "好的，记下了：你女儿对花生过敏。"),
    ],
)
def test_an_answer_that_repeats_the_user_gives_its_place_to_what_he_said(said, answer):
    lines = turn(answer, 0.9, role="assistant"), turn("I live in Lyon.", 0.8), turn(said, 0.7)

    assert note("What do you know about it?", *lines, top_k=2) == [said, "I live in Lyon."]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("I drive a Volvo XC60.", "You should sell the Volvo."),
        ("I'm cooking lamb on Sunday.", "Try rosemary and garlic with your lamb on Sunday."),
        ("My class is on Tuesdays.", "Your class is on Thursdays."),
        ("I eat meat.", "You don't eat meat."),
        ("My flight is on Friday.", "Got it, your flight is on Friday. Terminal 2 opens at 5."),
        ("我的钢琴课在周六", "你的钢琴课在周日。"),
    ],
)
def test_an_answer_that_adds_something_stays(said, answer):
    lines = turn(answer, 0.9, role="assistant"), turn(said, 0.7)

    assert answer in note("What do you know about it?", *lines)


def test_what_a_user_does_not_know_is_said():
    line = "I don't know how to swim."

    assert [line] == note("Should we go to the lake?", turn(line))


@pytest.mark.parametrize(
    "line",
    [
        "Will is my brother.",
        "Do not call me before nine.",
        "When I was young I lived in Oslo.",
        "List of my allergies: peanuts.",
        "我没有什么忌口，只是不吃花生。",
        "不管什么时候都不要给我打电话。",
        "谁都知道我住在里昂。",
    ],
)
def test_a_statement_with_a_word_of_a_question_is_shown(line):
    assert [line] == note("Tell me about myself: 我是谁？", turn(line))


def test_a_fact_is_never_taken_for_a_question():
    assert ["Will is his brother."] == note("Who is Will?", fact("Will is his brother."))


# -- facts and the turns that they were drawn from ---------------------------------------------


@pytest.mark.parametrize(
    ("drawn", "source"),
    [
        ("Alice lives in Lyon.", "I am Alice and since May I have lived in Lyon with two cats."),
        ("用户住在里昂。", "用户说：我五月搬家了，现在住在里昂的老城。"),
    ],
)
def test_a_fact_stands_before_its_turn_which_yields_to_others(drawn, source):
    fact_, source_, other = fact(drawn, 0.5), turn(source, 0.9), turn("Oslo is cold. 冷。", 0.4)

    assert [drawn, source] == note("Where?", source_, fact_)
    assert [drawn, other.record.text, source] == note("Where?", fact_, source_, other)
    assert [drawn, other.record.text] == note("Where?", fact_, source_, other, top_k=2)


def test_a_turn_of_other_words_keeps_its_place():
    lines = "We met in May at the sea.", "Alice lives in Lyon."

    assert list(lines) == note("Where?", turn(lines[0], 0.9), fact(lines[1], 0.5))


# -- floors ------------------------------------------------------------------------------------


def test_below_the_floor_there_is_no_note():
    assert [] == note("What is my name?", fact("I like tea.", ENOUGH - 0.01))
    assert ["I like tea."] == note("What is my name?", fact("I like tea.", ENOUGH))


def test_a_line_far_below_the_best_is_left_out():
    best, near, far = fact("A.", 0.9), fact("B.", 0.9 * BESIDE), fact("C.", 0.9 * BESIDE - 0.01)

    assert ["A.", "B."] == note("Which letter?", best, near, far)


def test_a_line_far_below_what_the_conversation_holds_is_left_out():
    held, near, far = fact("A.", 0.9), fact("B.", ENOUGH + 0.01), fact("C.", 0.9 * BESIDE - 0.01)

    assert ["B."] == note("Which letter?", held, near, far, texts=["A."])
    assert ["B.", "C."] == note("Which letter?", near, far)
    assert [] == note("Which letter?", held, fact("B.", ENOUGH - 0.001), texts=["A."])


def test_at_most_top_k_lines_best_first():
    matches = [fact(f"Letter {letter}.", 0.9 - n / 100) for n, letter in enumerate("ABCDEFG")]

    assert ["Letter A.", "Letter B.", "Letter C."] == note("Which?", *matches, top_k=3)
    assert [] == note("Which?")


# -- small talk --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?!",
        "👍",
        "Hi!",
        "hello there",
        "Good morning, everyone!",
        "Thanks a lot!",
        "thank you so much for your help",
        "OK, thanks, bye!",
        "How are you today?",
        "Great, that helps.",
        "HAVE A NICE DAY :)",
        "你好",
        "您好！",
        "早上好呀",
        "好的，谢谢！",
        "非常感谢您的帮助。",
        "在吗？",
        "没问题，明天见",
        "哈哈哈",
    ],
)
def test_small_talk_gets_no_note(text):
    assert is_small_talk(text)
    assert [] == note(text, fact("I like tea.", 0.99))


@pytest.mark.parametrize(
    "text",
    [
        "Hi, what is my name?",
        "Thanks! Where do I live?",
        "Is tea good?",
        "Book the usual table.",
        "high",
        "你好，我的医生是谁？",
        "谢谢，那我的猫叫什么？",
        "我好冷",
        "thanks " * 40,
    ],
)
def test_what_asks_or_tells_something_is_no_small_talk(text):
    assert not is_small_talk(text)


@pytest.mark.parametrize(
    "text", ["Hi Bob!", "hi 你好", "你好吗？", "thanks for all the help", "thanks, that's perfect"]
)
def test_more_small_talk_gets_no_note(text):
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "Good to know.",
        "nice to hear from you",
        "Great, I'll remember that.",
        "好的，我记住了。",
        "没关系",
    ],
)
def test_an_acknowledgement_is_no_line(text):
    lines = turn(text, 0.9, role="assistant"), turn("I live in Lyon.")

    assert ["I live in Lyon."] == note("What do you know about me?", *lines)


@pytest.mark.parametrize(
    "text",
    [
        "Please forget that I drive a blue Volvo.",
        "Forget my phone number, 555 0100.",
        "请忘记我的电话13800001111。",
        "删除我的电话13800001111",
    ],
)
def test_a_request_to_forget_is_never_shown(text):
    assert [] == note("What do you know about me? 我的电话？", turn(text))


@pytest.mark.parametrize(
    "text", ["I forgot my keys at Ann's.", "我把钥匙忘在安娜家了。", "我忘了带钥匙"]
)
def test_what_somebody_forgot_is_shown(text):
    assert [text] == note("Where are my keys? 钥匙在哪里？", turn(text))


def test_what_the_query_says_is_shown_to_an_agent_that_can_change_it():
    query, memory = "Please forget that I drive a Volvo.", turn("I drive a Volvo.")

    assert [] == choose([memory], query, top_k=5)
    assert [memory] == choose([memory], query, top_k=5, shows_query=True)


# -- time --------------------------------------------------------------------------------------

HOSTILE = [
    "a" * 200,
    "?" * 199 + "x",
    "？ " * 100 + "x",
    " " * 199 + "x",
    "hi " * 66 + "hx",
    "h" + "a" * 198 + "x",
    "good " * 39 + "goodx",
    "and so " * 28 + "what",
    "have a nice " * 16,
    "do not have " + "a" * 188,
    "don't have a " * 15,
    "!?." * 66 + "a",
    "你好" * 99 + "猫",
    "很" * 199 + "x",
    "吗 " * 100 + "x",
    "把" * 199 + "写",
    "请把" * 100,
    "没有相关的" * 40,
    "，。" * 100,
    "\u202e" * 200,
    "e" + "\u0301" * 199,
    "\ufdfa" * 200,  # each is eighteen letters in form NFKC
    "🏳️‍🌈" * 33,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_takes_long(text):
    calls = (
        lambda n: is_small_talk(f"{text[:-1]}{n}"),
        lambda n: note(f"{text[:-1]}{n}", fact("I like tea.")),
        lambda n: note(f"why {n}", turn(f"{text[:-1]}{n}", role="assistant"), fact(f"{n} {text}")),
        lambda n: note(f"why {n}", fact(f"{n}{text}"), texts=[f"{text}{n}"]),
    )
    for place, call in enumerate(calls):
        best = float("inf")
        for number in range(5):  # never the same text: what was read before is cached
            began = time.thread_time()
            call(number + 5 * place)
            best = min(best, time.thread_time() - began)

        assert best < 0.02


# -- follow-ups --------------------------------------------------------------------------------

FOLLOW_UPS = [
    "make it shorter",
    "lgtm, ship it",
    "继续",
    "Write a haiku",
    "in French please",
    "shorter",
    "再短一点",
    "fix the typo",
    "run it again",
    "Make it longer.",
    "a bit more formal please",
    "now in Spanish",
    "looks good to me",
    "ship it!",
    "go ahead",
    "go on",
    "continue",
    "keep going",
    "try again",
    "do it again",
    "one more time",
    "next",
    "undo that",
    "rename it to main.py",
    "run the tests",
    "run the tests again",
    "commit it",
    "push it",
    "use bullet points",
    "as a table please",
    "in one sentence",
    "more detail please",
    "less technical",
    "simplify it",
    "rewrite that in a friendlier tone",
    "turn it into a list",
    "Write a poem about the sea",
    "write a limerick",
    "tell me a joke",
    "flip a coin",
    "what is 17 * 23?",
    "add a docstring",
    "remove the last paragraph",
    "shorten the second paragraph",
    "explain it again",
    "fix it",
    "that's wrong, try again",
    "more",
    "again please",
    "no, the other one",
    "换成英文",
    "翻译成英文",
    "用法语",
    "更正式一点",
    "短一点",
    "长一点",
    "再来一遍",
    "再来一个",
    "接着说",
    "接着写",
    "往下写",
    "可以了，提交吧",
    "运行一下",
    "再跑一遍",
    "改一下错别字",
    "改成列表",
    "写一首俳句",
    "写首诗",
    "讲个笑话",
    "用一句话概括",
    "说得简单点",
    "详细一点",
    "换个说法",
    "重写一遍",
    "好的，继续",
    "没问题，发布吧",
    "下一个",
    "改得正式些",
]
WANTS_MORE = [
    "make it shorter than my last essay",
    "In French, what did I say about Lyon?",
    "continue where we left off with my thesis",
    "run the tests like I prefer",
    "Write an email to my boss",
    "Write a haiku about my dog",
    "Write a birthday poem for my wife",
    "write a cover letter for me",
    "What should I cook tonight?",
    "rename it the way I like",
    "Plan my weekend",
    "Recommend a restaurant",
    "book my usual table",
    "use my address",
    "fix the typo in my address",
    "run it on my server",
    "remind me about it again",
    "in French I struggle with verbs",
    "I moved again",
    "shorter days make me sad",
    "next week I fly to Rome",
    "I want to go on a trip",
    "继续我上次的计划",
    "给我老板写封邮件",
    "推荐一家餐厅",
    "写一首关于我女儿的诗",
    "我又搬家了",
    "再短一点的头发适合我吗",
    "下一个假期我去哪",
    "接着上次的话题",
    "按我的习惯改一下",
    "继续住在北京",
    "make dinner plans",
    "Add it to my calendar",
    "Same as last time please",
    "Do it like before",
    "The usual, please",
    "more about my trip",
    "more coffee for me",
    "push the meeting to Friday",
    "the other one is my sister",
    "try again with my other email",
    "我再来一个城市",
    "帮我订平时那家",
    "send it to Bob",
    "move it to Friday",
    "555 0101",
    "12/05/2026",
    "Change the password",
    "stop smoking",
]


@pytest.mark.parametrize("query", FOLLOW_UPS)
def test_nothing_is_chosen_for_a_follow_up_or_a_task_of_its_own(query):
    assert note(query, fact("I like tea."), turn("My cat is grey.")) == []


@pytest.mark.parametrize("query", WANTS_MORE)
def test_who_means_something_of_his_gets_a_note(query):
    assert note(query, fact("I like tea.")) == ["I like tea."]


@pytest.mark.parametrize(
    "part", ["a bit ", "run it ", "make it ", "shorter ", "再短", "1+", "the other "]
)
def test_a_follow_up_is_told_in_a_moment(part):
    start = time.process_time()
    note((part * 100)[:199] + "?!", fact("I like tea."))

    assert time.process_time() - start < 0.1  # several times what it takes
