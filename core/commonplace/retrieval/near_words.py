"""Words of a question that were mistyped: the nearest words of what was found."""

from collections import defaultdict
from collections.abc import Collection, Iterable

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
        words: of the records, best first, as not all are compared where they are very many.

    Returns:
        The nearest of each, in order of the alphabet; a word without any is left out.
    """
    wanted = [word for word in dict.fromkeys(asked) if len(word) >= _LEAST and word.isalpha()]
    if not wanted:
        return {}
    by_length: dict[int, list[str]] = defaultdict(list)
    for word in dict.fromkeys(words):
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
