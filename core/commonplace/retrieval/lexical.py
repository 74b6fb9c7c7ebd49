"""Words of texts by language, their hashed terms; names and mistyped words in questions.

Apart because every index must agree on the terms. Words are reduced to stems, so that "hikes" finds
"hiking"; Chinese, Japanese and Korean runs, which have no spaces, become single characters and
overlapping pairs.

A word of a text in another language than English has several forms, each of which is a term: its
stem in that language, without accents, and what English makes of it. A short text may not tell its
language, and then it has the English form only, which the others have, too. A script that one
language uses tells it word by word, so that a question and a stored text agree however short they
are; among languages in Latin letters the text decides.
"""

import functools
import itertools
import threading
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeVar, cast

from ..models.stop_words import COMMON_ENGLISH, NAME_PARTICLES, STOP_WORDS, STOP_WORDS_OF
from ..patterns import lazy_pattern
from ..ports.stores import Terms
from ..types import fold

F = TypeVar("F", bound=Callable[..., object])
VERSION = "words-2"
# Term weights are stored, so texts are compared with a constant length and not with the mean.
AVERAGE_LENGTH = 32
SATURATION = 1.5
LENGTH_SHARE = 0.4
MAX_CHARACTERS = 32 * 1024
MAX_WORD = 64
_CACHED_CHARACTERS = 2_000

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
# A combining mark belongs to its letter, an apostrophe does not.
_MARKS = "\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff"
_PARTS = lazy_pattern(rf"[{CJK}]+|(?![{CJK}])[^\W_](?:(?![{CJK}])(?:[^\W_]|[{_MARKS}]))*")
# What a question's "what's", "don't" and "I'll" shorten, which no text is looked for by.
_SHORTENED = lazy_pattern(r"(?:n['’]t|['’](?:s|re|ve|ll|d|m))\b")
_ASCII_WORD = lazy_pattern("[a-z0-9]+")
_CJK_CHARACTER = lazy_pattern(rf"[{CJK}]")
_SPACES = lazy_pattern(rf"[{CJK}]|\s+")


# -- languages -------------------------------------------------------------------------------------

_ENGLISH = "english"
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
    "russian": lazy_pattern("[іїєґјљњђћџўқғңүұһәө]"),
    "arabic": lazy_pattern("[پچژگکیٹڈڑںےہھ]"),
}
_ONE_SCRIPT = {name: lazy_pattern(f"[{letters}]") for name, letters in _SCRIPTS.items()}
# Alef and yaa in their forms; marks of vowels and the stretching of a line are no letters, and
# neither is the dot that a Turkish capital leaves on a small i.
_ARABIC_LETTERS = str.maketrans("أإآٱىی", "اااايي")
_UNWRITTEN = lazy_pattern(
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
_MARK = lazy_pattern("[\u0300-\u036f]")
_MOST_LETTERS = 2  # words with such letters that count, as a name may have them in any text
_MOST_LANGUAGES = 3
_NEAR = 0.75  # of the best language's score
_thread = threading.local()


def _plain(word: str) -> str:
    """Write a word in the letters of English, without marks: what is often typed instead."""
    if word.isascii():
        return word
    bare = unicodedata.normalize("NFD", word.translate(_PLAIN))
    return unicodedata.normalize("NFC", _MARK.sub("", bare))


def _without_marks(text: str) -> str:
    """Leave out the marks of Arabic and Hebrew that most texts do not write, and a dot on an i."""
    return _UNWRITTEN.sub("", text)


class _Languages(NamedTuple):
    """Languages of a text beside English.

    Attributes:
        names: the most likely first, and others that are nearly as likely, such as Danish beside
            Norwegian; empty for English, and where nothing tells.
        is_sure: more than one word tells.
    """

    names: tuple[str, ...]
    is_sure: bool


_NO_OTHER = _Languages((), is_sure=False)


def _evidence() -> dict[str, tuple[str, ...]]:
    """Map each word that tells a language in Latin letters to the languages that have it."""
    found: dict[str, dict[str, None]] = {}
    for language in _LETTERS:
        for word in STOP_WORDS_OF[language]:
            for form in {word, _plain(word)} - COMMON_ENGLISH:
                if len(form) > 1 or not form.isascii():
                    found.setdefault(form, {})[language] = None
    return {word: tuple(sorted(languages)) for word, languages in found.items()}


_EVIDENCE = _evidence()
_EVIDENT = frozenset(_EVIDENCE)
_STOP_FORMS = {
    language: words | {_plain(word) for word in words} for language, words in STOP_WORDS_OF.items()
}
_STOP_FORMS[_ENGLISH] = STOP_WORDS
_STOP_FORMS["arabic"] = frozenset(
    _without_marks(word).translate(_ARABIC_LETTERS) for word in STOP_WORDS_OF["arabic"]
)


def _languages_of(words: Sequence[str], *, is_ascii: bool) -> _Languages:
    """List the languages that a text may be in, other than English, of those in Latin letters."""
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
    if not likely or _may_be_foreign_name(evident, distinct, is_ascii=is_ascii):
        return _NO_OTHER
    rare = {
        language: sum(1 / len(_EVIDENCE[w]) for w in evident if language in _EVIDENCE[w])
        for language in likely
    }
    order = sorted(likely, key=lambda language: (-likely[language], -rare[language], language))
    best = likely[order[0]]
    names = tuple(one for one in order[:_MOST_LANGUAGES] if likely[one] >= _NEAR * best)
    return _Languages(names, is_sure=best > 1)


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


_MARKED = lazy_pattern("[" + "".join(sorted(set("".join(_LETTERS.values())))) + "]")


def _may_be_foreign_name(
    evident: AbstractSet[str], distinct: AbstractSet[str], *, is_ascii: bool
) -> bool:
    """Tell whether what speaks for a language may be of names only, as in "Los Angeles"."""
    others = evident - NAME_PARTICLES
    if not is_ascii and (others or not evident):
        return False
    if any(len(word) > 2 for word in others):
        return False
    return len(evident) < 2 or 3 * len(evident) < len(distinct)


def _script_language(word: str) -> str | None:
    """Tell the language of a word by its script; None for Latin and for scripts without stems."""
    for language, letters in _ONE_SCRIPT.items():
        if letters.match(word):
            # A Greek letter by itself is a sign in formulas.
            return None if language == "greek" and len(word) == 1 else language
    return None


def _is_stop_word(word: str, language: str) -> bool:
    """Tell whether a word says little by itself in a language."""
    return word in _STOP_FORMS[language]


def _stem(word: str, language: str) -> str:
    """Reduce a word to its stem in a language; a number is its own."""
    return word if word[-1].isdigit() else _cached_stem(word, language)


def _script_stem(word: str, language: str) -> str | None:
    """Reduce a word to its stem in the language of its script; None for a stop word."""
    unknown = _UNKNOWN_LETTERS.get(language)
    is_unknown = unknown is not None and unknown.search(word) is not None
    if language == "arabic":
        word = word.translate(_ARABIC_LETTERS)
    if is_unknown:
        return word
    if _is_stop_word(word, language):
        return None
    found = _stem(word, language)
    return _plain(found) if language == "greek" else found.replace("ё", "е")


@functools.lru_cache(maxsize=32_768)
def _cached_stem(word: str, language: str) -> str:
    # A stemmer is not thread-safe, so each thread has its own.
    stemmers = _thread.__dict__.setdefault("stemmers", {})
    if language not in stemmers:
        import snowballstemmer  # it brings the stemmers of all languages, which takes long

        stemmers[language] = snowballstemmer.stemmer(language)
    found: str = stemmers[language].stemWord(word)
    return found


# -- words and terms -------------------------------------------------------------------------------


def has_cjk(text: str) -> bool:
    """Tell whether a text has a Chinese, Japanese or Korean character."""
    return _CJK_CHARACTER.search(text) is not None


def tokens(text: str) -> list[str]:
    """Split a text into stems, characters and pairs, in order, repetitions kept.

    Empty list for a text of stop words or signs only.
    """
    return [forms[0] for forms in _forms(text)]


def _forms(text: str, *, is_question: bool = False) -> list[tuple[str, ...]]:
    """List the forms of each word of a text; the first is its stem in the text's language."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS]).lower()
    if is_question:
        folded = _SHORTENED.sub("", folded)
    if is_ascii := folded.isascii():
        words = _ASCII_WORD.findall(folded)
    else:
        words = _PARTS.findall(_without_marks(folded))
    languages = _languages_of(words, is_ascii=is_ascii)
    if is_ascii and not languages.names:
        return [_english(word) for word in words if word not in STOP_WORDS]
    if not is_question:
        languages = languages._replace(names=languages.names[:1])
    return [forms for word in words for forms in _word_forms(word, languages)]


@functools.lru_cache(maxsize=16)
def _question_forms(text: str) -> list[tuple[str, ...]]:
    """List the forms as `_forms`; cached, as one search reads its question more than once."""
    return _forms(text, is_question=True)


def _word_forms(word: str, languages: _Languages) -> list[tuple[str, ...]]:
    if _CJK_CHARACTER.match(word):
        return [(one,) for one in (*word, *map("".join, itertools.pairwise(word)))]
    if (script := _script_language(word)) is not None:
        found = _script_stem(word[:MAX_WORD], script)
        return [] if found is None else [(found,)]
    if _is_stop_word(word, languages.names[0] if languages.is_sure else _ENGLISH):
        return []
    if not languages.names:
        return [_english(word)]
    word = word[:MAX_WORD]
    stems = [_plain(_stem(word, language)) for language in languages.names]
    return [tuple(dict.fromkeys([*stems, *_english(word), *_english(_plain(word))]))]


def _english(word: str) -> tuple[str]:
    word = word[:MAX_WORD]
    if not "a" <= word[-1] <= "z":
        return (word,)  # no English suffix; numbers would drive words from the cache
    return (_cached_stem(word, _ENGLISH),)


def kept_if_short(read: F) -> F:
    """Keep what a function returns for the 4,096 texts that it read last, but for long ones."""
    kept = functools.lru_cache(maxsize=4_096)(read)

    @functools.wraps(read)
    def look(text: str, *args: Any) -> object:
        return kept(text, *args) if len(text) <= _CACHED_CHARACTERS else read(text, *args)

    return cast("F", look)


@kept_if_short
def vocabulary(text: str) -> frozenset[str]:
    """Read the distinct tokens of a text."""
    return frozenset(tokens(text))


@functools.lru_cache(maxsize=4_096)
def term_indices(text: str) -> frozenset[int]:
    """Read the indices of the terms of a text, which must be short, as it is kept."""
    return frozenset(document_terms(text).indices)


def document_terms(text: str) -> Terms:
    """Weigh the terms of a stored text: repetition saturates, long texts count a little less."""
    words = _forms(text)
    counts: dict[str, int] = {}
    for forms in words:
        for form in forms:
            counts[form] = counts.get(form, 0) + 1
    # As BM25 weighs a term that occurs `count` times in a text of so many words.
    share = 1 - LENGTH_SHARE + LENGTH_SHARE * len(words) / AVERAGE_LENGTH
    return _terms(
        {
            form: count * (SATURATION + 1) / (count + SATURATION * share)
            for form, count in counts.items()
        }
    )


def query_terms(text: str) -> Terms:
    """Weigh the terms of a question by their occurrences, each shared among the word's forms."""
    weights: dict[str, float] = {}
    for forms in _question_forms(text):
        for form in forms:
            weights[form] = weights.get(form, 0.0) + 1 / len(forms)
    return _terms(weights)


def query_words(text: str) -> dict[str, tuple[int, ...]]:
    """Map each distinct word of a question to the indices, in `Terms`, of its forms."""
    found: dict[str, dict[int, None]] = {}
    for forms in _question_forms(text):
        found.setdefault(forms[0], {}).update(dict.fromkeys(map(_index, forms)))
    return {word: tuple(indices) for word, indices in found.items()}


def describe(text: str) -> tuple[Terms, int]:
    """Return the terms of a stored text and its length in words."""
    return document_terms(text), count_words(text)


def count_words(text: str) -> int:
    """Count words between spaces; three characters of Chinese, Japanese, Korean count as two."""
    characters = 0 if text.isascii() else len(_CJK_CHARACTER.findall(text))
    parts = _SPACES.split(text)
    spaced = sum(1 for part in parts if part.isalnum() or any(c.isalnum() for c in part))
    return spaced + round(characters / 1.5)


def _terms(weights: dict[str, float]) -> Terms:
    hashed: dict[int, float] = {}
    for word, weight in weights.items():
        index = _index(word)
        hashed[index] = hashed.get(index, 0.0) + weight
    indices = tuple(sorted(hashed))
    return Terms(indices=indices, weights=tuple([hashed[index] for index in indices]))


def _index(word: str) -> int:
    return zlib.crc32(word.encode())


_NAME_PARTS = lazy_pattern(rf"[{CJK}]+|(?:(?![{CJK}])[^\W_])+(?:['’.&-](?:(?![{CJK}])[^\W_])+)*")
_POSSESSIVE = lazy_pattern(r"['’]s$")
_MAX_MENTION_WORDS = 4
_MAX_MENTION_CHARACTERS = 8
_MAX_MENTIONS = 600


def entity_mentions(text: str) -> list[str]:
    """List every run of a text that may be a name, in the form of `model.fold`; at most 600.

    Up to four words, or up to eight characters of Chinese, Japanese or Korean. Runs that begin or
    end with a stop word are left out.
    """
    found: dict[str, None] = {}
    words: list[str] = []
    for part in [*_NAME_PARTS.findall(fold(text)), ""]:
        if part and not _CJK_CHARACTER.match(part):
            words.append(_POSSESSIVE.sub("", part))
            continue
        runs = _runs(words, _MAX_MENTION_WORDS)
        found |= dict.fromkeys(" ".join(run) for run in runs if _may_be_name(run))
        found |= dict.fromkeys("".join(run) for run in _runs(list(part), _MAX_MENTION_CHARACTERS))
        words = []
    return list(found)[:_MAX_MENTIONS]


def _runs(parts: list[str], longest: int) -> list[list[str]]:
    return [
        parts[start : start + length]
        for length in range(1, longest + 1)
        for start in range(len(parts) - length + 1)
    ]


def _may_be_name(run: list[str]) -> bool:
    return run[0] not in STOP_WORDS and run[-1] not in STOP_WORDS


# -- words that were mistyped -------------------------------------------------------------------

_LEAST = 5  # letters of a word that may be mistyped
_LONG = 8  # letters from which two errors are likely to be errors, and not another word
_MOST_PAIRS = 2_000  # are compared letter by letter; some 0.1 seconds


def near_words(asked: Collection[str], words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Map words to those that may be meant: one letter more, less or other, or two exchanged.

    Two such errors for words of eight letters or more. The first letter must be right or exchanged
    with the second: most words that differ in it are other words. Words with a digit and short ones
    are never near.

    Args:
        asked: of which no record has any.
        words: of the records; where they are very many, not all are compared.

    Returns:
        The nearest of each, in order of the alphabet; a word without any is left out.
    """
    wanted = [word for word in dict.fromkeys(asked) if len(word) >= _LEAST and word.isalpha()]
    if not wanted:
        return {}
    initials = {letter for word in wanted for letter in word[:2]}
    by_length: dict[int, list[str]] = defaultdict(list)
    for word in sorted({word for word in words if word[0] in initials}):
        by_length[len(word)].append(word)
    found: dict[str, tuple[str, ...]] = {}
    left = _MOST_PAIRS
    for word in wanted:
        limit = 2 if len(word) >= _LONG else 1
        lengths = range(len(word) - limit, len(word) + limit + 1)
        near: dict[str, int] = {}
        for other in (one for length in lengths for one in by_length.get(length, ())):
            if not left:
                break
            if _is_alike(word, other, limit):
                left -= 1
                near[other] = _errors(word, other, limit)
        best = min(near.values(), default=limit + 1)
        if best <= limit:
            found[word] = tuple(sorted(one for one, errors in near.items() if errors == best))
    return found


def _is_alike(word: str, other: str, limit: int) -> bool:
    begins = word[0] == other[0] or (word[0] == other[1:2] and word[1] == other[0])
    return begins and len({*word} ^ {*other}) <= 2 * limit and other.isalpha()


def _errors(word: str, other: str, limit: int) -> int:
    """Count the errors between two words, an exchange of neighbours as one, up to `limit` + 1."""
    start, end = 0, min(len(word), len(other))
    while start < end and word[start] == other[start]:
        start += 1
    word, other = word[start:], other[start:]
    while word and other and word[-1] == other[-1]:
        word, other = word[:-1], other[:-1]
    before: list[int] = []
    row = list(range(len(other) + 1))
    for n, letter in enumerate(word, 1):
        new = [n]
        for k, facing in enumerate(other, 1):
            least = min(row[k] + 1, new[k - 1] + 1, row[k - 1] + (letter != facing))
            if n > 1 and k > 1 and letter == other[k - 2] and word[n - 2] == facing:
                least = min(least, before[k - 2] + 1)
            new.append(least)
        if min(new) > limit:
            return limit + 1
        before, row = row, new
    return row[-1]
