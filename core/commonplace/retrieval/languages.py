"""Language of a text by its words and letters, and the stems of words in each language.

A script that one language uses tells it word by word, so that a question and a stored text agree
however short they are. Among languages in Latin letters the text decides.
"""

import functools
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ..models.stop_words import COMMON_ENGLISH, NAME_PARTICLES, STOP_WORDS, STOP_WORDS_OF

ENGLISH = "english"
_SCRIPTS = {
    "russian": "\u0400-\u0482\u048a-\u052f",
    "arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "hindi": "\u0900-\u097f",
    "armenian": "\u0530-\u058f",
    "tamil": "\u0b80-\u0bff",
}
# Letters of Ukrainian, Serbian, Persian, Urdu and the like, whose words are not reduced.
_UNKNOWN_LETTERS = {
    "russian": re.compile("[іїєґјљњђћџўқғңүұһәө]"),
    "arabic": re.compile("[پچژگکیٹڈڑںےہھ]"),
}
_ONE_SCRIPT = {name: re.compile(f"[{letters}]") for name, letters in _SCRIPTS.items()}
# Alef and yaa in their forms; marks of vowels and the stretching of a line are no letters, and
# neither is the dot that a Turkish capital leaves on a small i.
_ARABIC_LETTERS = str.maketrans("أإآٱىی", "اااايي")
_UNWRITTEN = re.compile(
    "[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]|(?<=i)\u0307"
)
# Letters that English does not have and one or few languages in Latin letters do.
_LETTERS = {
    "basque": "çñü", "catalan": "àçèéíïòóúü·", "czech": "áčďéěíňóřšťúůýž", "danish": "æøå",
    "dutch": "ëï", "estonian": "äõöüšž", "finnish": "äö", "french": "àâæçèéêëîïôùûœ",
    "german": "äöüß", "hungarian": "áéíóöőúüű", "indonesian": "", "irish": "áéíóú",
    "italian": "àèéìòù", "lithuanian": "ąčęėįšųūž", "norwegian": "æøå", "polish": "ąćęłńóśźż",
    "portuguese": "áâãàçéêíóôõú", "romanian": "ăâîșțşţ", "spanish": "áéíñóúü", "swedish": "åäö",
    "turkish": "çğıöşü",
}  # fmt: skip
_PLAIN = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ı": "i"})
_MARK = re.compile("[\u0300-\u036f]")
_MOST_LETTERS = 2  # words with such letters that count, as a name may have them in any text
_MOST_LANGUAGES = 3
_NEAR = 0.75  # of the best language's score
_thread = threading.local()


def plain(word: str) -> str:
    """Write a word in the letters of English, without marks: what is often typed instead."""
    if word.isascii():
        return word
    bare = unicodedata.normalize("NFD", word.translate(_PLAIN))
    return unicodedata.normalize("NFC", _MARK.sub("", bare))


def without_marks(text: str) -> str:
    """Leave out the marks of Arabic and Hebrew that most texts do not write, and a dot on an i."""
    return _UNWRITTEN.sub("", text)


class Languages(NamedTuple):
    """Languages of a text beside English.

    Attributes:
        names: the most likely first, and others that are nearly as likely, such as Danish beside
            Norwegian; empty for English, and where nothing tells.
        is_sure: more than one word tells.
    """

    names: tuple[str, ...]
    is_sure: bool


_NO_OTHER = Languages((), is_sure=False)


def _evidence() -> dict[str, tuple[str, ...]]:
    """Map each word that tells a language in Latin letters to the languages that have it."""
    found: dict[str, dict[str, None]] = {}
    for language in _LETTERS:
        for word in STOP_WORDS_OF[language]:
            for form in {word, plain(word)} - COMMON_ENGLISH:
                if len(form) > 1 or not form.isascii():
                    found.setdefault(form, {})[language] = None
    return {word: tuple(sorted(languages)) for word, languages in found.items()}


_EVIDENCE = _evidence()
_EVIDENT = frozenset(_EVIDENCE)
_STOP_FORMS = {
    language: words | {plain(word) for word in words} for language, words in STOP_WORDS_OF.items()
}
_STOP_FORMS[ENGLISH] = STOP_WORDS
_STOP_FORMS["arabic"] = frozenset(
    without_marks(word).translate(_ARABIC_LETTERS) for word in STOP_WORDS_OF["arabic"]
)


def languages_of(words: Sequence[str], *, is_ascii: bool) -> Languages:
    """List the languages that a text may be in, other than English, of those in Latin letters.

    Args:
        words: of the text, in small letters.
        is_ascii: all letters are those of English.
    """
    evident = _EVIDENT.intersection(words)
    if not evident and is_ascii:
        return _NO_OTHER
    distinct = set(words)
    scores = Counter(language for word in evident for language in _EVIDENCE[word])
    if not is_ascii:
        _add_letters(scores, distinct)
    english = distinct & COMMON_ENGLISH
    likely = {
        language: score
        for language, score in scores.items()
        if score > 2 * len(english - _STOP_FORMS[language])
    }
    if not likely or _may_be_name(evident, distinct, is_ascii=is_ascii):
        return _NO_OTHER
    rare = {
        language: sum(1 / len(_EVIDENCE[w]) for w in evident if language in _EVIDENCE[w])
        for language in likely
    }
    order = sorted(likely, key=lambda language: (-likely[language], -rare[language], language))
    best = likely[order[0]]
    names = tuple(one for one in order[:_MOST_LANGUAGES] if likely[one] >= _NEAR * best)
    return Languages(names, is_sure=best > 1)


def _add_letters(scores: Counter[str], distinct: AbstractSet[str]) -> None:
    """Count words with letters of a language, and discount those with letters that it has not.

    Without words that tell, letters of at least two words do if few languages have them all.
    """
    letters = [found for word in distinct if (found := _MARKED.findall(word))]
    if not scores and len(letters) >= _MOST_LETTERS:
        every = {letter for found in letters for letter in found}
        fitting = [language for language, known in _LETTERS.items() if every <= {*known}]
        if len(fitting) <= _MOST_LANGUAGES:
            scores.update(dict.fromkeys(fitting, 1))
        return
    for language in scores:
        known = _LETTERS[language]
        fit = sum(1 for found in letters if all(one in known for one in found))
        scores[language] += min(fit, _MOST_LETTERS) - min(len(letters) - fit, _MOST_LETTERS)


_MARKED = re.compile("[" + "".join(sorted(set("".join(_LETTERS.values())))) + "]")


def _may_be_name(evident: AbstractSet[str], distinct: AbstractSet[str], *, is_ascii: bool) -> bool:
    """Tell whether what speaks for a language may be of names only, as in "Los Angeles"."""
    others = evident - NAME_PARTICLES
    if not is_ascii and (others or not evident):
        return False
    if any(len(word) > 2 for word in others):
        return False
    return len(evident) < 2 or 3 * len(evident) < len(distinct)


def script_language(word: str) -> str | None:
    """Tell the language of a word by its script; None for Latin and for scripts without stems."""
    for language, letters in _ONE_SCRIPT.items():
        if letters.match(word):
            # A Greek letter by itself is a sign in formulas.
            return None if language == "greek" and len(word) == 1 else language
    return None


def is_stop_word(word: str, language: str) -> bool:
    """Tell whether a word says little by itself in a language."""
    return word in _STOP_FORMS[language]


def stem(word: str, language: str) -> str:
    """Reduce a word to its stem in a language; a number is its own."""
    return word if word[-1].isdigit() else _stem(word, language)


def script_stem(word: str, language: str) -> str | None:
    """Reduce a word to its stem in the language of its script; None for a stop word."""
    unknown = _UNKNOWN_LETTERS.get(language)
    is_unknown = unknown is not None and unknown.search(word) is not None
    if language == "arabic":
        word = word.translate(_ARABIC_LETTERS)
    if is_unknown:
        return word
    if is_stop_word(word, language):
        return None
    found = stem(word, language)
    return plain(found) if language == "greek" else found.replace("ё", "е")


@functools.lru_cache(maxsize=32_768)
def _stem(word: str, language: str) -> str:
    # A stemmer is not thread-safe, so each thread has its own.
    stemmers = _thread.__dict__.setdefault("stemmers", {})
    if language not in stemmers:
        import snowballstemmer  # it brings the stemmers of all languages, which takes long

        stemmers[language] = snowballstemmer.stemmer(language)
    found: str = stemmers[language].stemWord(word)
    return found
