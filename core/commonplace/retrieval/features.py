"""Features of the candidates of one search: what the score of each is a weighted sum of.

Every feature is one array operation over all candidates, in `FEATURES`; `CandidateArrays` has the
arrays that they are made of. How much a feature weighs, in which kind of memory, is nothing that
this module knows: `benchmarks/train_ranking.py` measures it and writes `weights.json`.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ports.stores import Expansion, Hit
from ..types import Record, Scope, is_short
from .answer_types import asked_type, fits
from .calibration import Scale
from .excerpts import excerpt
from .lexical import has_cjk, kept_if_short, near_words, query_words, term_indices, vocabulary
from .personal import Former, answers, asks_former, asks_memory
from .replacement import FAR, Pair, likelihoods, pairs, since, to_statement
from .statement_words import asked_subjects, asks_now, change_words, subject_fits
from .times import AskedTime, asked_times, names_time, time_fit, without_time_words
from .utterance_kinds import states_nothing

Floats = NDArray[Any]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.intp]

IMAGINED = 30  # candidates without any of the question's words, so that few are not all common
_EPSILON = 1e-9
_SURE = 2.5  # power of a likelihood: what is doubtful changes little
_COMPARED = 8  # best statements of which newer ones replace older ones
_NEAREST = 20  # candidates in which a mistyped word, or a time, is looked for
_STEPS = (-2, -1, 1, 2)  # places of the turns that count as around one
_PLACES = 32  # bits of a place, in a number that has the session's in front
_FIRST_POWER = 8  # by which a first relation that says less than another leads on less
_BRIEF = 8  # words up to which a turn may state nothing without asking
_QUESTION_MARK = re.compile(r"[?？؟]\W*$")
_ASKING = 60  # last characters of a turn in which it asks
_LETTERS = re.compile(r"[^\W_]+")
_END_SIGNS = " .,;:!?。，；：！？…~～"
_YOU = re.compile(r"\b(?:you|your|yours|du|dein|tu|vous)\b|你|您", re.IGNORECASE)
# Characters that Chinese questions are full of, whatever they ask for.
_PARTICLES = frozenset(
    "的了是在我你他她它们这那有和与就都也很不要会能什么怎样哪谁多少几吗呢吧啊为个得着给从对"
)


class CandidateArrays:
    """The candidates of one search, as arrays with a row each.

    Args:
        question: the text of the search.
        hits: the candidates, each once; at least one.
        expansions: of the relationship graph, for some of them.
        scale: of the embedder's cosines, for the script of the question.
        at: the moment of the question.
        vector: of the question, by the default embedder; empty without.
    """

    def __init__(
        self,
        question: str,
        hits: Sequence[Hit],
        expansions: Sequence[Expansion],
        scale: Scale,
        at: datetime,
        vector: Sequence[float] = (),
    ) -> None:
        self._question = question
        self._hits = hits
        self._expansions = {one.id: one for one in expansions}
        self._at = at
        self._scale = scale
        self._vector = vector
        self.records = [hit.record for hit in hits]
        self.cosine: Floats = scale.place(np.array([hit.dense for hit in hits]))
        self.words = np.array([hit.words for hit in hits], float)
        self.is_turn: Mask = np.array([one.kind == "episode" for one in self.records])
        self.has_turns = bool(self.is_turn.any())
        self.is_assistant: Mask = np.array([one.role == "assistant" for one in self.records])
        self.zeros: Floats = np.zeros(len(hits))  # not to be changed

    # -- of the whole result ---------------------------------------------------------------------

    @cached_property
    def stating(self) -> Mask:
        """Candidates that state something, equal turns once: what all of them are compared with.

        A question that was asked before is nearer to itself than any answer and has all its words.
        Compared with it, the answer would count for less each time that it is asked for.
        """
        found = ~self._is_empty_and_short
        if not self.has_turns:
            return found
        kept = np.zeros(len(found), bool)
        kept[[standing for _, standing in distinct(self.records, range(len(found)))]] = True
        return found & kept if (found & kept).any() else kept

    @cached_property
    def company(self) -> float:
        """How much turns gain by those around them, in 0..1: short ones all, long ones nothing."""
        if not self.has_turns:
            return 0.0
        # What somebody pasted once does not make the others long.
        mean = float(np.minimum(self.words[self.is_turn], 100).mean())
        return min(1.0, max(0.0, (38 - mean) / 8))

    @cached_property
    def long(self) -> float:
        """How much the turns are long messages, in 0..1; 0 without turns."""
        return 1 - self.company if self.has_turns else 0.0

    @cached_property
    def many(self) -> float:
        """How much this is a long conversation: in a short one each turn is near a good one."""
        return self.company * min(1.0, max(0.0, (float(self.is_turn.sum()) - 20) / 40))

    @cached_property
    def is_cjk(self) -> float:
        """1 for a question in Chinese, Japanese or Korean, whose words are pairs of characters."""
        return float(has_cjk(self._question))

    @cached_property
    def standing_out(self) -> Floats:
        """By how much each is nearer than usual: in a long conversation all is a little alike."""
        usual = self.cosine[self.stating]
        mean = usual.sum() / len(usual)  # quicker than `mean` and `std`
        usual -= mean
        found: Floats = (self.cosine - mean) / ((usual @ usual / len(usual)) ** 0.5 + 0.05)
        return found

    # -- words of the question -------------------------------------------------------------------

    @cached_property
    def lexical(self) -> Floats:
        """BM25 as a share of the best."""
        found = np.array([hit.lexical for hit in self._hits])
        best = found[self.stating].max()
        return found / best if best > _EPSILON else np.zeros(len(found))

    @cached_property
    def _words(self) -> dict[str, tuple[int, ...]]:
        """The distinct words of the question, and which columns of a hit's terms each has."""
        forms = query_words(self._question)
        indices = sorted({index for one in forms.values() for index in one})
        places = {index: place for place, index in enumerate(indices)}
        return {word: tuple(places[index] for index in one) for word, one in forms.items()}

    @cached_property
    def _held(self) -> Floats:
        """Which of the question's words each text has: a column for each word, 0 or 1."""
        terms = [hit.terms for hit in self._hits]
        size = max(map(len, terms))
        if not size:
            return np.zeros((len(self._hits), len(self._words)))
        none = (0.0,) * size
        has_form = np.zeros((size, len(self._words)))
        for column, forms in enumerate(self._words.values()):
            has_form[list(forms), column] = 1.0
        held = np.array([one or none for one in terms]) > 0
        return (held.astype(float) @ has_form > 0).astype(float)

    @cached_property
    def excerpts(self) -> list[str]:
        """The passage of each candidate that fits best; of a short text, all of it."""
        texts = [one.text for one in self.records]
        weights = self._rarity_of(self._held).tolist() if self._long else ()
        for row in self._long:
            texts[row] = excerpt(self._hits[row], self._question, weights)
        return texts

    @cached_property
    def _long(self) -> list[int]:
        """The candidates whose texts have several passages, which are compared by their best."""
        return [row for row, one in enumerate(self.records) if not is_short(one.text)]

    @cached_property
    def _terms(self) -> Floats:
        """Which of the question's words each candidate has, a long one in its excerpt."""
        found = self._held.copy()
        forms = query_words(self._question).values() if self._long else ()
        for row in self._long:
            held = term_indices(self.records[row].indexed_part(self.excerpts[row]))
            found[row] = [not held.isdisjoint(indices) for indices in forms]
        self._add_near_words(found)
        return found

    def _add_near_words(self, found: Floats) -> None:
        """Give words that no candidate has, as if mistyped, to those that have the nearest word."""
        words = [*self._words]
        strange = {words[i] for i in np.flatnonzero(~found.any(axis=0))}
        if not strange:
            return
        nearest = np.argsort(-self.cosine, kind="stable")[:_NEAREST]
        told = {int(i): vocabulary(self.records[i].indexed_part(self.excerpts[i])) for i in nearest}
        meant = near_words(strange, set().union(*told.values()))
        for word, others in meant.items():
            rows = [i for i, one in told.items() if not one.isdisjoint(others)]
            found[rows, words.index(word)] = 1.0

    @cached_property
    def _rarity(self) -> Floats:
        """The weight of each word, in sum 1: the fewer candidates have it, the more it weighs."""
        return self._rarity_of(self._terms)

    def _rarity_of(self, held: Floats) -> Floats:
        rest = without_time_words(self._question)
        content = self._words if rest == self._question else query_words(rest)
        counted = [word in content and _PARTICLES.isdisjoint(word) for word in self._words]
        stated = held[self.stating]
        return _rarity(stated.sum(axis=0), len(stated), np.array(counted, float))

    @cached_property
    def coverage(self) -> Floats:
        """Share of the question's words that the candidate has, rare ones above all."""
        return self._terms @ self._rarity

    @cached_property
    def codes(self) -> Floats:
        """The same of the question's numbers and codes alone."""
        are_codes = [any(map(str.isdigit, word)) for word in self._words]
        weights = self._rarity * np.array(are_codes, float)
        total = weights.sum()
        return self._terms @ (weights / total) if total else np.zeros(len(self._hits))

    # -- tokens of the question ------------------------------------------------------------------

    @cached_property
    def _best(self) -> Floats | None:
        """The best cosine of each of the question's tokens in each candidate; None without any."""
        lates = [hit.late for hit in self._hits]
        size = max(map(len, lates))
        if not size:
            return None
        missing = (np.nan,) * size
        return np.array([late or missing for late in lates])

    @cached_property
    def _token_weights(self) -> Floats:
        """The weight of each token, in sum 1; only where there are any."""
        best = np.asarray(self._best)
        there = best[~np.isnan(best[:, 0]) & self.stating]
        # From a cosine of .5 on a token counts as there, at 1 in full; quicker than np.clip.
        counts = np.minimum(np.maximum(2 * there - 1, 0), 1).sum(axis=0)
        return _rarity(counts, len(there), np.ones(best.shape[1]))

    @cached_property
    def late(self) -> Floats:
        """How near the question's tokens are to some of the candidate's; a guess without tokens."""
        guess = 0.20 + 0.17 * self.cosine + 0.70 * self.coverage
        if self._best is None:
            return guess
        found = self._best @ self._token_weights
        return np.where(np.isnan(found), guess, found)

    @cached_property
    def own(self) -> Floats:
        """What a candidate says by itself; about 0 for one without relation."""
        return 0.4 * self.cosine + 0.3 * self.coverage + 0.5 * (self.late - 0.3)

    # -- turns around ----------------------------------------------------------------------------

    @cached_property
    def _sessions(self) -> NDArray[np.int64]:
        """Number of the session of each turn; -1 for what is in none."""
        numbers: dict[Scope, int] = {}
        return np.array(
            [
                -1 if one.position is None else numbers.setdefault(one.scope, len(numbers))
                for one in self.records
            ],
            np.int64,
        )

    @cached_property
    def _near(self) -> Numbers:
        """By step, a row each, the row of the turn so far away; that behind the last if missing."""
        missing = len(self.records)
        places = np.array([one.position or 0 for one in self.records], np.int64) + len(_STEPS)
        keys = np.where(self._sessions < 0, -1, self._sessions << _PLACES | places)
        order = keys.argsort(kind="stable")
        ordered = keys[order]
        wanted = np.where(keys < 0, -2, keys + np.array(_STEPS)[:, None])
        at = np.minimum(ordered.searchsorted(wanted), missing - 1)
        return np.where(ordered[at] == wanted, order[at], missing)

    def _around(self, values: Floats, missing: float = 0.0) -> Floats:
        """Values of the turns around each, in the order of `_STEPS`."""
        padding = np.full((1, *values.shape[1:]), missing)
        found: Floats = np.concatenate([values, padding])[self._near]
        return found

    @cached_property
    def asks(self) -> Mask:
        """Turns that end with a question."""
        if not self.has_turns:
            return np.zeros(len(self.records), bool)
        return np.array(
            [
                one.kind == "episode" and _QUESTION_MARK.search(one.text[-_ASKING:]) is not None
                for one in self.records
            ]
        )

    @cached_property
    def is_empty(self) -> Mask:
        """Turns that state nothing: they only ask or agree, or say that they know nothing."""
        found = self._is_empty_and_short.copy()
        for row in self._long:
            found[row] = self.is_turn[row] and states_nothing(
                self.excerpts[row], self._is_doubtful[row], bool(self.is_assistant[row])
            )
        return found

    @cached_property
    def _is_empty_and_short(self) -> Mask:
        if not self.has_turns:
            return np.zeros(len(self.records), bool)
        are = self.is_turn.tolist(), self._is_doubtful, self.is_assistant.tolist()
        return np.array(
            [
                is_turn
                and (is_doubtful or is_answer)
                and is_short(hit.record.text)
                and self._is_silent(hit, is_doubtful, is_answer)
                for is_turn, is_doubtful, is_answer, hit in zip(*are, self._hits, strict=True)
            ]
        )

    def _is_silent(self, hit: Hit, is_doubtful: bool, is_answer: bool) -> bool:
        text = hit.record.text
        if states_nothing(text, is_doubtful, is_answer):
            return True
        if not (is_answer and len(self._vector) and len(hit.vector)):
            return False
        return not answers(text, hit.vector, self._vector)

    @cached_property
    def _is_doubtful(self) -> list[bool]:
        """Turns that ask or are brief, and so may state nothing."""
        found: list[bool] = (self.asks | (self.words <= _BRIEF)).tolist()
        return found

    @cached_property
    def _given(self) -> Floats:
        """What each turn gives to those around it."""
        return np.where(self.is_empty, 0.0, self.own)

    @cached_property
    def turn_share(self) -> Floats:
        """How much each candidate gains by the turns around it: brief turns less, facts nothing."""
        return self.company * self.is_turn * np.minimum(1.0, self.words / 6)

    @cached_property
    def late_gain(self) -> Floats:
        """What `late` grows by where each token is looked for in the turns around, too."""
        if self._best is None:
            return np.zeros(len(self.records))
        best = np.where(np.isnan(self._best), -1.0, self._best)
        given = np.where(self.is_empty[:, None], -1.0, best)
        around = np.maximum(best, self._around(given, -1.0).max(axis=0))
        gain: Floats = np.maximum(0.0, (around - best) @ self._token_weights)
        return gain

    @cached_property
    def coverage_gain(self) -> Floats:
        """What `coverage` grows by where each word is looked for in the turns around, too."""
        given = np.where(self.is_empty[:, None], 0.0, self._terms)
        around = np.maximum(self._terms, self._around(given).max(axis=0))
        gain: Floats = (around - self._terms) @ self._rarity
        return gain

    @cached_property
    def beside(self) -> Floats:
        """Mean of what the turns before and after say."""
        found: Floats = self._around(self._given)[1:3].sum(axis=0) / 2
        return found

    @cached_property
    def session_gain(self) -> Floats:
        """By how much the session's best turn, with those around it, says more."""
        before_last, before, after, after_next = self._around(self._given)
        whole = self._given + 0.3 * (before + after)
        whole = whole + 0.1 * (before_last + after_next)
        whole = np.where(self.asks, whole / 2, whole)
        found = np.zeros(len(self.records))
        in_one = self._sessions >= 0
        best = np.full(int(self._sessions.max()) + 1 if in_one.any() else 0, -np.inf)
        np.maximum.at(best, self._sessions[in_one], whole[in_one])
        found[in_one] = best[self._sessions[in_one]] - self.own[in_one]
        return found

    @cached_property
    def answered(self) -> Floats:
        """What the turn before says, if it asks and this one states something.

        To answer another question than the one asked now says nothing against a turn.
        """
        asked = np.where(self.asks, np.maximum(self.own, 0.0), 0.0)
        _, before, _, _ = self._around(asked)
        found: Floats = before * ~self.is_empty
        return found

    # -- who, when, what kind --------------------------------------------------------------------

    @cached_property
    def _named(self) -> set[str]:
        """Speakers whom the question names."""
        spoken = set(_LETTERS.findall(self._question.casefold()))
        names = {one.name for one in self.records if one.name}
        return {name for name in names if _is_named(name, spoken)}

    @cached_property
    def is_speaker(self) -> Mask:
        """Turns of the one speaker whom the question names; none if it names several."""
        if len(self._named) != 1:
            return np.zeros(len(self.records), bool)
        return np.array([one.name in self._named for one in self.records])

    @cached_property
    def addresses(self) -> Mask:
        """Turns in which another speaker says "you", where the question names one."""
        if len(self._named) != 1:
            return np.zeros(len(self.records), bool)
        return np.array(
            [
                one.name is not None and one.name not in self._named and bool(_YOU.search(text))
                for one, text in zip(self.records, self.excerpts, strict=True)
            ]
        )

    @cached_property
    def _asked_times(self) -> Sequence[AskedTime]:
        return asked_times(self._question, self._at)

    @cached_property
    def told_then(self) -> Floats:
        """How well the moment of each candidate fits the time that the question names."""
        if not self._asked_times:
            return self.zeros
        return np.array([time_fit(self._asked_times, one.occurred_at) for one in self.records])

    @cached_property
    def dated(self) -> Floats:
        """How well each candidate fits that time: 1 for one of the nearest that names it itself."""
        found = self.told_then.copy()
        nearest = np.argsort(-self.own, kind="stable")[:_NEAREST] if self._asked_times else ()
        for row in nearest:
            text, said = self.excerpts[row], self.records[row].occurred_at
            if found[row] < 1 and names_time(text, said, self._asked_times):
                found[row] = 1.0
        return found

    @cached_property
    def about(self) -> Floats:
        """Whether each is about whom the question names: 1 yes, -1 somebody else, 0 unknown."""
        asked = asked_subjects(self._question)
        if not asked:
            return self.zeros
        texts, names = ([getattr(one, key) for one in self.records] for key in ("text", "name"))
        return np.array(subject_fits(asked, texts, names))

    @cached_property
    def type_fit(self) -> Floats:
        """Whether each has an answer of the kind that is asked for: 1 yes, -1 no, 0 unknown."""
        asked = asked_type(self._question)
        if asked is None:
            return self.zeros
        return np.array([fits(text, asked) for text in self.excerpts])

    @cached_property
    def asks_memory(self) -> float:
        """How much speaks for a question to a memory, and against a text that needs none."""
        return asks_memory(self._question, self._vector)

    @cached_property
    def direction(self) -> float:
        """1 where the question asks for what holds now, -1 for what was before, else 0."""
        return -1.0 if self._former else float(asks_now(self._question))

    @cached_property
    def _former(self) -> Former:
        return asks_former(self._question, self._vector)

    @cached_property
    def change(self) -> Floats:
        """What each says that tells of a change, where the question is for what holds or held."""
        if not self.direction:
            return self.zeros
        says = np.array([change_words(text) for text in self.excerpts])
        return self.direction * says * np.minimum(np.maximum(self.own, 0.0), 1.0)

    @cached_property
    def _compared(self) -> Numbers:
        """The rows that may replace one of the best; without known vectors these alone."""
        return np.arange(len(self.records)) if self._scale.of_default else np.sort(self._best_rows)

    @cached_property
    def _vectors(self) -> Floats | None:
        """The vector of each of these; None if a candidate has none."""
        vectors = [hit.vector for hit in self._hits]
        if not all(map(len, vectors)):
            return None
        return np.asarray([vectors[row] for row in self._compared.tolist()], np.float32)

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], Pair]:
        """The best statements, each with newer ones that may replace it, as rows."""
        rows, vectors = self._compared, np.asarray(self._vectors)
        best = np.searchsorted(rows, self._best_rows)
        nearness = self._scale.place(vectors[best] @ vectors.T)
        near = np.flatnonzero((nearness >= FAR).any(axis=0))  # each of the best is near itself
        at = rows.tolist()
        told = [self.records[at[n]] for n in near.tolist()]
        places = np.zeros(len(rows), np.intp)
        places[near] = _numbered([(since(one), one.position or 0) for one in told])
        is_newer = (places > places[best, None]) & ~self.is_empty[rows]
        if not is_newer.any():
            return {}
        found = pairs(
            lambda n: to_statement(self.records[at[n]]),  # a long text tells of several matters
            self._question,
            best.tolist(),
            np.where(is_newer, nearness, 0.0),
            self.cosine[rows],
            vectors if self._scale.of_default else None,
        )
        return {(at[old], at[new]): pair for (old, new), pair in found.items()}

    @cached_property
    def replaced_by(self) -> dict[int, dict[int, float]]:
        """What may replace each of the best statements, and how likely, all by their rows.

        Empty where there are no vectors, without which nothing can be said, and where the question
        names a time at which something was told: that held then.
        """
        found: dict[int, dict[int, float]] = {}
        if self._vectors is None or self.told_then.any() or not self._pairs:
            return found
        each = likelihoods([*self._pairs.values()])
        for (old, new), likelihood in zip(self._pairs, each.tolist(), strict=True):
            found.setdefault(old, {})[new] = likelihood
        return found

    @cached_property
    def _replacing(self) -> list[tuple[int, int, float]]:
        """The same where the question does not name the older value, which it then asks for.

        "What did I say of Paris?" asks for what "I moved to Lyon." has replaced.
        """
        asked = set(_LETTERS.findall(self._question.casefold()))

        def is_named(old: int, new: int) -> bool:
            pair = self._pairs[old, new]
            return not asked & pair.older.values <= pair.newer.values

        each = ((old, *one) for old, newer in self.replaced_by.items() for one in newer.items())
        return [(old, new, odds) for old, new, odds in each if not is_named(old, new)]

    @cached_property
    def replaced(self) -> Floats:
        """How likely a newer statement replaces each."""
        found = np.zeros(len(self.records))
        for old, _, odds in self._replacing:
            found[old] = max(found[old], odds)
        return found

    @cached_property
    def replaces(self) -> Floats:
        """How likely each replaces one of the best statements, and holds; less for weaker ones."""
        if not self._replacing:
            return self.zeros
        found = np.zeros(len(self.records))
        shares = np.clip(self.own / max(float(self.own[self.stating].max()), _EPSILON), 0.0, 1.0)
        for old, new, odds in self._replacing:
            found[new] = max(found[new], odds * shares[old])
        held: Floats = found * (1 - self.replaced)
        return held

    @cached_property
    def first(self) -> Floats:
        """How likely each was replaced and replaced nothing, where that is asked for."""
        return self.replaced * (1 - self.replaces) if self._former == "first" else self.zeros

    @cached_property
    def _best_rows(self) -> Numbers:
        """The candidates that say most themselves, best first."""
        said = np.where(self.is_empty, -np.inf, self.own)
        return np.argsort(-said, kind="stable")[:_COMPARED]

    @cached_property
    def newer(self) -> Floats:
        """Place in time among those that fit about as well, from -1 for the oldest to 1."""
        found = np.zeros(len(self.records))
        best = float(self.own[self.stating].max())
        rows = np.flatnonzero((self.own >= 0.6 * best) & ~self.is_empty)
        if best <= 0 or len(rows) < 2:
            return found
        times = [(self.records[i].occurred_at, self.records[i].position or 0) for i in rows]
        places = _numbered(times)
        if places.max():
            found[rows] = 2 * places / places.max() - 1
        return found

    # -- relations -------------------------------------------------------------------------------

    @cached_property
    def related(self) -> Floats:
        """How well the question fits the relation of a named entity that the candidate states.

        The entity alone is no evidence, and one of which much is told is little.
        """
        if not self._expansions:
            return self.zeros
        paths = self._paths(1)
        named = np.array([one.named[0] if one and one.named else 0.0 for one in paths])
        counts = np.array([one.relations if one else 0 for one in paths], float)
        number = len(self.records)
        counts = np.clip(counts, 1.0, number)
        found: Floats = named * _surprise(counts, number) / _surprise(np.ones(1), number)
        return found

    @cached_property
    def led_to(self) -> Floats:
        """Weight of a path of two relations to it, times how well the question fits the first.

        The first one fits that the question names, and by half the one whose record says most.
        """
        if not self._expansions:
            return self.zeros
        paths = self._paths(2)
        weights = np.array([one.weight if one else 0.0 for one in paths])
        named = np.array([one.named[0] if one and one.named else 0.0 for one in paths])
        own = {one.id: value for one, value in zip(self.records, self.own, strict=True)}
        said = [
            max((own.get(id_, 0.0) for id_ in one.via), default=0.0) if one else 0.0
            for one in paths
        ]
        firsts = self.own[[one is not None for one in self._paths(1)]]
        most = max(float(firsts.max(initial=0.0)), *said, _EPSILON)
        share = np.clip(np.array(said) / most, 0.0, 1.0) ** _FIRST_POWER
        found: Floats = weights * np.maximum(named, share / 2)
        return found

    def _paths(self, hops: int) -> list[Expansion | None]:
        """The path of so many relations that leads to each candidate, if one does."""
        found = [self._expansions.get(one.id) for one in self.records]
        return [one if one is not None and one.hops == hops else None for one in found]

    @cached_property
    def length(self) -> Floats:
        """Logarithm of the number of words, up to 400, less that of a usual turn.

        Of a record with passages, the words of a usual one of them, as one is compared.
        """
        compared = self.words / np.maximum([len(hit.passages) for hit in self._hits], 1)
        found: Floats = np.minimum(np.log(np.maximum(1.0, compared)), 6.0) - 3.0
        return found


def distinct(records: Sequence[Record], order: Sequence[int]) -> list[tuple[int, int]]:
    """Group equal turns of one speaker, so that each counts once.

    Equal are texts but for case, spaces, final punctuation and Unicode form. Other records are
    groups of their own: what a caller stored under two keys is meant to be there twice.

    Args:
        order: indices of records, best first.

    Returns:
        For each group, in the order of its best, the index of the best and of the one that stands
        for all: the newest, but of those that end with a question mark only if all do.
    """
    groups: dict[object, list[int]] = {}
    for i in order:
        record = records[i]
        if record.kind == "episode" and record.role is not None:
            key = record.role, record.name, _plain(record.text)
            groups.setdefault(key, []).append(i)
        else:
            groups[i] = [i]
    return [
        (group[0], max(group, key=lambda i: _standing(records[i])) if group[1:] else group[0])
        for group in groups.values()
    ]


@kept_if_short
def _plain(text: str) -> str:
    folded = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(folded.casefold().split()).rstrip(_END_SIGNS)


def _standing(record: Record) -> tuple[bool, datetime, int, datetime, str]:
    is_told = not record.text.rstrip().endswith(("?", "？"))
    place = -1 if record.position is None else record.position
    return is_told, record.occurred_at, place, record.created_at, record.id


Feature = Callable[[CandidateArrays], Floats]


def _of_turns(compute: Feature) -> Feature:
    """Make a feature of what candidates gain by the turns around them, which is 0 without turns."""

    def gain(candidates: CandidateArrays) -> Floats:
        if not candidates.company:
            return candidates.zeros
        return candidates.turn_share * compute(candidates)

    return gain


FEATURES: Mapping[str, Feature] = {
    # What the text is near to, on the embedder's own scale; its square bounds it.
    "cosine": lambda c: c.cosine,
    "cosine_squared": lambda c: np.maximum(c.cosine, 0.0) ** 2,
    "standing_out": lambda c: c.standing_out,
    # MaxSim (ColBERT, arXiv 2004.12832) over word vectors, each word weighed by its rarity here.
    "late": lambda c: c.late,
    # BM25, and the share of the question's words, of its numbers and codes alone too.
    "lexical": lambda c: c.lexical,
    "coverage": lambda c: c.coverage,
    "coverage_squared": lambda c: c.coverage**2,
    "codes": lambda c: c.codes,
    # A long text says more, and so it fits by chance more often.
    "length_fact": lambda c: c.length * ~c.is_turn,
    "length_turn": lambda c: c.length * c.is_turn,
    # The turns around: the same measures over a window, the session's best, the question before.
    "late_around": _of_turns(lambda c: c.late_gain),
    "coverage_around": _of_turns(lambda c: c.coverage_gain),
    "beside": _of_turns(lambda c: c.beside),
    "session": _of_turns(lambda c: c.session_gain),
    "answered": _of_turns(lambda c: c.answered),
    # A turn that only asks or agrees answers nothing; a user's that asks beside it may.
    "asks": lambda c: (c.asks & c.is_empty) * 1.0,
    "echo": lambda c: c.is_empty * np.maximum(c.cosine, 0.0),
    "echo_beside": lambda c: (c.asks & ~c.is_empty & ~c.is_assistant) * np.maximum(c.cosine, 0.0),
    "empty": lambda c: c.is_empty * 1.0,
    # Who says it.
    "speaker": lambda c: c.is_speaker * 1.0,
    "about": lambda c: np.maximum(c.about, 0.0),
    "about_other": lambda c: np.maximum(-c.about, 0.0),
    "addresses": lambda c: c.addresses * 1.0,
    # When it was told, and what kind of answer it has.
    "date": lambda c: c.dated,
    "on_date": lambda c: (c.dated == 1.0) * 1.0,
    "type": lambda c: c.type_fit,
    # What holds now, or was before.
    "change": lambda c: c.change,
    "newer_asked": lambda c: c.direction * c.newer if c.direction else c.zeros,
    "replaced": lambda c: c.replaced**_SURE if c.direction >= 0 else c.zeros,
    "replaced_asked": lambda c: c.replaced * c.cosine.clip(0, 1) if c.direction < 0 else c.zeros,
    "replaces": lambda c: c.replaces**_SURE if c.direction >= 0 else c.zeros,
    "first": lambda c: c.first,
    # Relations of the entities that the question names.
    "relation": lambda c: c.related,
    "two_relations": lambda c: c.led_to,
}
"""The features, by name, in the order in which they are added up."""


_SAID = [
    [*FEATURES].index(name)
    for name in (
        "cosine", "cosine_squared", "standing_out", "late", "lexical", "coverage",
        "coverage_squared", "codes", "type",
    )
]  # fmt: skip
"""The columns of what a text says itself."""


def matrix(candidates: CandidateArrays) -> Floats:
    """Compute all features: a row for each candidate, a column for each of `FEATURES`.

    What states nothing says no more than what states most: a question asked before is no answer,
    however near it is.
    """
    rows = np.array([compute(candidates) for compute in FEATURES.values()]).T.copy()
    silent = np.flatnonzero(candidates.is_empty)[:, None]
    if len(silent):
        rows[silent, _SAID] = np.minimum(
            rows[silent, _SAID], rows[candidates.stating].max(axis=0)[_SAID]
        )
    return rows


KINDS: Mapping[str, Callable[[CandidateArrays], float]] = {
    "always": lambda _: 1.0,
    "long": lambda c: c.long,
    "many": lambda c: c.many,
    "cjk": lambda c: c.is_cjk,
}
"""Kinds of memory and question, each in 0..1; every weight has a part for each."""

BACKGROUND: Mapping[str, Callable[[CandidateArrays], float]] = {
    "company": lambda c: c.company,
    # A question about nothing that is here is a little like everything, or like nothing at all.
    "most_cosine": lambda c: float(c.cosine[c.stating].max()),
    "mean_cosine": lambda c: float(c.cosine[c.stating].sum() / c.stating.sum()),
    "most_late": lambda c: float(c.late[c.stating].max()),
    "most_coverage": lambda c: float(c.coverage[c.stating].max()),
    "number": lambda c: float(np.log(c.stating.sum())),
    # Going on with a task, or writing a haiku, needs nothing that was told before.
    "asks_memory": lambda c: c.asks_memory,
}
"""What the slope and the constant of the logit depend on beside the kind; no order does."""

LEADS: Mapping[str, Callable[[Floats], float]] = {
    # Of several that say as much, none is likely to be the answer.
    "lead": lambda sums: min(3.0, float(sums.max() - max([0.0, *_second(sums)]))),
    "above_mean": lambda sums: float(sums.max() - sums.sum() / len(sums)),
}
"""The same of the weighted sums of the candidates that state something."""

OF_BEST = tuple(f"best_{name}" for name in FEATURES)
"""The same of the best of them: what makes an order is not all that makes an answer."""


def kind_of(candidates: CandidateArrays) -> Floats:
    """Compute the kind of the memory and question, in the order of `KINDS`."""
    return np.array([compute(candidates) for compute in KINDS.values()])


def background_of(candidates: CandidateArrays) -> Floats:
    """Compute what slope and constant depend on: `KINDS`, then `BACKGROUND`."""
    more = [compute(candidates) for compute in BACKGROUND.values()]
    return np.concatenate([kind_of(candidates), more])


def leads_of(sums: Floats, rows: Floats) -> Floats:
    """Compute what slope and constant depend on last: `LEADS`, then `OF_BEST`.

    Args:
        sums: the weighted sum of each of `CandidateArrays.stating`. rows: the features of each.
    """
    best = rows[sums >= sums.max() - _EPSILON]
    best = best.sum(axis=0) / len(best)  # quicker than `mean`
    return np.concatenate([[compute(sums) for compute in LEADS.values()], best])


def _numbered(values: Sequence[Any]) -> Numbers:
    """Number values in their order, equal ones the same, from 0."""
    found = np.zeros(len(values), np.intp)
    order = sorted(range(len(values)), key=values.__getitem__)
    place = 0
    for former, at in pairwise(order):
        place += values[former] != values[at]
        found[at] = place
    return found


def _rarity(counts: Floats, number: int, weights: Floats) -> Floats:
    """Weigh words by how few of the candidates have them, in sum 1; all 0 if none counts."""
    found = _surprise(counts, number) * weights
    total = found.sum()
    scaled: Floats = found / total if total > 0 else found
    return scaled


def _surprise(counts: Floats, number: int) -> Floats:
    """How much it says to be one of so many of the candidates."""
    found: Floats = np.log1p((number + IMAGINED - counts + 0.5) / (counts + 0.5))
    return found


def _second(sums: Floats) -> list[float]:
    """Return the second greatest of some sums; none if there is only one."""
    return [] if len(sums) < 2 else [float(np.partition(sums, -2)[-2])]


def _is_named(name: str, spoken: set[str]) -> bool:
    """Tell whether a question has somebody's first name, or what is left of it when shortened."""
    first = _LETTERS.match(name.casefold())
    return first is not None and (first[0] in spoken or first[0][:3] in spoken)
