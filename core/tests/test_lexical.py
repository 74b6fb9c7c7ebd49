"""The lexical arm: what counts as the same word, and how much it weighs."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.ports.stores import Terms
from commonplace.retrieval.lexical import (
    count_words,
    document_terms,
    query_terms,
    query_words,
    tokens,
)


def test_forms_of_an_english_word_are_one_term() -> None:
    assert tokens("hikes") == tokens("Hiking") == tokens("hiked")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What's parked outside?", {"park", "outsid"}),
        ("Don’t I eat fish?", {"eat", "fish"}),
        ("Who'll feed Sam's cat?", {"feed", "sam", "cat"}),
    ],
)
def test_what_an_apostrophe_shortens_is_no_word_of_a_question(question, words) -> None:
    assert words == query_words(question).keys()


def test_question_words_are_left_out() -> None:
    assert [] == tokens("What did she do, and why?")


PAIRS = [  # a question, a text, and how many words of the question the text has in some form
    ("Welche Bücher habe ich gelesen?", "Gestern habe ich ein Buch über Vögel gelesen.", 2),
    ("Wann fahren wir nach Muenchen?", "Die Fahrt nach München ist am Freitag.", 1),
    ("que reunion tengo manana", "Mañana hay una reunión con el banco.", 2),
    ("¿Qué comida prefiere mi hermana?", "Mis hermanas prefieren las comidas picantes.", 3),
    ("À quels médicaments suis-je allergique ?", "Je suis allergique à un medicament.", 2),
    ("Qual è la canzone preferita di Giulia?", "Giulia canta le sue canzoni preferite.", 3),
    ("reuniao de amanha", "Amanhã temos uma reunião com o banco.", 2),
    ("Voor welke medicijnen ben ik allergisch?", "Ik ben allergisch voor een medicijn.", 2),
    ("Vilka böcker har jag läst?", "Jag har läst en bok och andra böcker om fåglar.", 2),
    ("Köpeğimin adı ne?", "Köpeğimiz Karabaş çok oyuncu.", 1),
    ("İstanbul'a ne zaman gidiyoruz?", "Istanbul için bilet aldım.", 1),
    ("Как зовут мою собаку?", "Наших собак зовут Рекс и Белка.", 2),
    ("Кто чинил котёл?", "Мастер придёт чинить котел.", 2),
    ("في أي مدينة يسكن أحمد؟", "احمد يسكن في مدينه صغيرة.", 3),
    ("ماذا قال الطبيب؟", "قالَ الطّبيب إن أحـــب المشي.", 2),
    ("ما لون الدراجة؟", "اشتريت درّاجة لونها أحمر.", 2),
    ("Πού δουλεύει η αδερφή μου;", "Οι αδερφές μου δουλεύουν στο σχολείο.", 2),
    ("मेरी किताबें कहाँ हैं?", "यह किताब मेज पर है।", 1),
]


@pytest.mark.parametrize(("question", "text", "shared"), PAIRS)
def test_a_question_shares_words_with_a_text_of_its_language(
    question: str, text: str, shared: int
) -> None:
    held = {*document_terms(text).indices}

    assert shared == sum(1 for forms in query_words(question).values() if held & {*forms})
    assert held & {*query_terms(question).indices}


@pytest.mark.parametrize("word", ["Mañana", "manana"])
def test_a_text_tells_what_a_single_word_does_not(word: str) -> None:
    text = "Mañana hay una reunión con el banco."

    assert {*query_terms(word).indices} & {*document_terms(text).indices}


def test_an_english_word_in_another_language_keeps_its_english_form() -> None:
    text = "Wir haben heute drei Meetings mit dem Kunden in Köln."

    assert {*query_terms("meeting").indices} <= {*document_terms(text).indices}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "I flew to Los Angeles, La Paz and Rio de Janeiro",
            "flew los angel la paz rio de janeiro",
        ),
        ("Die Hard and El Mariachi are his favorite movies", "die hard el mariachi favorit movi"),
        ("We ate crème brûlée at Chez Panisse", "ate crème brûlée chez paniss"),
        ("Los Angeles", "los angel"),
        ("Van der Berg", "van der berg"),
        ("The angle η is 30 degrees", "angl η 30 degre"),
    ],
)
def test_foreign_names_leave_an_english_text_as_it_is(text: str, expected: str) -> None:
    assert expected.split() == tokens(text)
    assert [(word,) for word in dict.fromkeys(expected.split())] == [
        (word,) for word in query_words(text)
    ]
    assert all(len(forms) == 1 for forms in query_words(text).values())


def test_the_forms_of_a_word_of_a_question_share_its_weight() -> None:
    question = "¿Qué comida prefieren mis hermanas?"
    weight = dict(zip(*(query_terms(question).indices, query_terms(question).weights), strict=True))

    for forms in query_words(question).values():
        assert len(forms) > 1
        assert pytest.approx(1.0) == sum(weight[form] for form in forms)


def test_a_word_of_several_forms_counts_as_one_word_of_a_text() -> None:
    text = "los perros duermen en la cocina"
    weights = document_terms(text).weights

    assert len(tokens(text)) == 3 < len(weights)
    assert {weights[0]} == {*weights}


def test_chinese_becomes_characters_and_overlapping_pairs() -> None:
    assert ["喝", "咖", "啡", "喝咖", "咖啡"] == tokens("喝咖啡")


def test_japanese_and_korean_are_split_too() -> None:
    assert "すし" in tokens("すしが好き")
    assert "커피" in tokens("커피를")


def test_a_word_is_split_where_chinese_meets_latin() -> None:
    assert ["python", "课"] == tokens("Python课")


def test_full_width_letters_are_the_usual_ones() -> None:
    assert tokens("ABC 123") == tokens("ＡＢＣ　１２３")


def test_accents_composed_or_not_are_the_same_word() -> None:
    assert tokens("caf\u00e9") == tokens("cafe\u0301")


@pytest.mark.parametrize("text", ["", " ", "?!…", "🎉", "the of and"])
def test_a_text_without_words_has_no_terms(text: str) -> None:
    assert Terms() == document_terms(text) == query_terms(text)


def test_a_question_weighs_its_repetitions() -> None:
    [weight] = query_terms("tea, tea and tea").weights

    assert 3.0 == weight


def test_repetition_in_a_document_saturates() -> None:
    [once] = document_terms("tea").weights
    [often] = document_terms("tea " * 10).weights

    assert once < often < 2.5


def test_a_text_of_average_length_weighs_one() -> None:
    terms = document_terms(" ".join(f"word{number}" for number in range(32)))

    assert pytest.approx([1.0] * 32) == terms.weights


def test_terms_are_the_same_in_every_process() -> None:
    assert (969995185,) == query_terms("coffee").indices


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("one two  three", 3),
        ("hello — world!", 2),
        ("我喜欢喝咖啡", 4),
        ("我爱 Python", 2),
    ],
)
def test_words_are_counted_in_every_script(text: str, words: int) -> None:
    assert words == count_words(text)


def test_threads_stem_alike() -> None:
    words = [f"{stem}ing{number}ly running flies" for number in range(40) for stem in ("a", "b")]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(tokens, words * 4))
    finally:
        sys.setswitchinterval(interval)

    assert [tokens(text) for text in words * 4] == together


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_terms_are_ascending_unique_32_bit_numbers_with_positive_weights(text: str) -> None:
    for terms in (document_terms(text), query_terms(text)):
        assert sorted(set(terms.indices)) == list(terms.indices)
        assert all(0 <= index < 2**32 for index in terms.indices)
        assert len(terms.indices) == len(terms.weights)
        assert all(weight > 0 for weight in terms.weights)
    assert count_words(text) >= 0
