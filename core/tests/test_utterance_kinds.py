"""What a turn is for: requests tell nothing that lasts, and statements that look like one do."""

import pytest

from commonplace.retrieval.utterance_kinds import own_words, statements


@pytest.mark.parametrize(
    "text",
    [
        "Draft a caption for the new rye loaf",
        "Help me plan Saturday's menu",
        "Please come up with three names for the loaf.",
        "Find me a recipe without eggs",
        "Outline my talk on flour",
        "Could you design a flyer for the van?",
        "Brainstorm gift ideas for Eva",
        "convert 4:35 per km to min per mile",
        "bit friendlier",
        "把4:35每公里换算成每英里",
        "起草一封道歉信",
        "帮我想几个店名",
        "给我设计一张传单",
        "我能不能吃芒果",
    ],
)
def test_a_request_states_nothing(text: str) -> None:
    assert statements(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Find a vet for my cat Miso.",
        "Draft beer is what I like.",
        "Plan B is to sell the van.",
        "Help arrives on Monday.",
        "Converted 200 dollars yesterday.",
        "Outline of the day: run at six, shop at eight.",
        "Finding the keys took me an hour.",
        "Make a note that Eva is allergic to sesame.",
        "Design is what my brother studies.",
        "List of my allergies: nuts, sesame.",
        "设计是我的工作。",
        "他动不动就生气",
        "明天去不去都行",
        "想念家里的面包。",
        "起草合同是我的日常工作。",
    ],
)
def test_what_only_looks_like_a_request_is_a_statement(text: str) -> None:
    assert len(statements(text)) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("My unit is backup.timer. It runs daily.", 2),
        ("I hacked .NET 9 and ./deploy.sh together!", 1),
        ("你改了redis.conf吗？", 0),
    ],
)
def test_a_dot_within_a_word_ends_no_sentence(text: str, told: int) -> None:
    assert len(statements(text)) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("When do I see Dr. Osei?", 0),
        ("Does Sgt. Malone live at No. 14?", 0),
        ("When does J. R. R. Smith come?", 0),
        ("is the meeting at 5 p.m. or 6 p.m. tomorrow?", 0),
        ("什么时候见Dr. Chen？", 0),
        ("My cardiologist is Dr. Osei.", 1),
        ("My dentist is Dr. Bowen. When do I see him?", 1),
        ("I live on Elm St. What's the nearest pharmacy?", 1),
        ("My daughter is 7. What should I get her?", 1),
        ("1. I take lisinopril. 2. The dog takes none.", 2),
        ("你好吗?我叫小明!我住在杭州。", 2),
    ],
)
def test_an_abbreviation_ends_no_sentence(text: str, told: int) -> None:
    assert len(statements(text)) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I'm vegan, what can I order?", "I'm vegan"),
        ("We're moving, any tips?", "We're moving"),
        ("Our car broke, who could mend it?", "Our car broke"),
        ("I wonder, what is my name?", None),
        ("I forgot, when is the exam?", None),
        ("I'm back, what did I miss?", None),
        ("So, my question, where do I live?", None),
        ("我吃素，能点什么？", "我吃素"),
        ("我住在杭州，附近有什么好吃的？", "我住在杭州"),
        ("家里wifi密码是otter-92，你能记住吗？", "家里wifi密码是otter-92"),
        ("我想问一下，明天下雨吗？", None),
        ("我忘了，会议几点？", None),
        ("我有个问题，今天几号？", None),
    ],
)
def test_what_is_stated_before_a_question_is_kept(text: str, told: str | None) -> None:
    assert statements(text) == (() if told is None else (told,))


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("Proofread this please: I am a dentist. My wife owns a bakery.", ""),
        ("Here's my friend's bio, shorten it: I was raised in Kenya.", ""),
        ("I live in Graz. Translate my letter\n\nDear Sue,\nI married Tim.", "I live in Graz."),
        ('Translate into French: "I own a boat." I live in Bonn.', "I live in Bonn."),
        ("Übersetze bitte: „Ich wohne in Paris.“", ""),
        ("Traduce al inglés: «Vivo en Lima».", ""),
        ("请把下面的内容翻译成英文：\n我住在成都。", ""),
        *((own, own) for own in (
            "My to-do list: call the bank. Please always remind me on Fridays.",
            "Note to self: I moved to Lyon.",
            "Two things: forget my old address, and I live in Graz now.",
            "Please remember: never call me before nine.",
            "I translate for a living: mostly novels.",
            "Summarise in three bullets from now on: no intro.",
            "Make this a rule: never use emojis.",
            "Fix my address: it's 5 Elm Street.",
            "我的工作是翻译：主要翻译小说。",
            "以后翻译的时候：都用繁体中文。",
        )),
    ],
)  # fmt: skip
def test_a_text_to_work_on_is_not_in_the_users_own_words(text: str, own: str) -> None:
    assert own_words(text).strip() == own
    assert len(own_words(text)) == len(text)
