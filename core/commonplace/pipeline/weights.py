"""How much each signal counts; apart so that a benchmark can vary it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What counts how much.

    Attributes:
        dense: of the cosine among short turns; terms get the rest.
        dense_long: the same among facts and long messages.
        speaker: for a speaker whom the question names.
        graph: of the record that is nearest to the question by relations.
        carried: of how far the record that states the first relation fits the question, for what
            lies behind it, which has none of the words that name where to begin.
        behind: of that record's own score, the most that what lies behind it gets.
        neighbours: of the turns at distance 1 and 2, each side.
        session: of the best turn of the same session.
        mention: of a candidate's own score that it gains at most for what it shares with the best.
        short: words per turn up to which turns count as short.
        fade: how steeply the session's share falls beyond, as a power.
        sure, unsure: cosines of the best candidate that say "answers" and "says nothing".
    """

    dense: float = 0.4
    dense_long: float = 0.5
    speaker: float = 0.1
    graph: float = 0.5
    carried: float = 1.0
    behind: float = 0.95
    neighbours: tuple[float, float] = (0.3, 0.1)
    session: float = 0.5
    mention: float = 0.2
    short: float = 30.0
    fade: float = 4.0
    sure: float = 0.85
    unsure: float = 0.3


DEFAULT = Weights()
