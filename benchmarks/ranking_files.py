"""Memories with known answers from files of others, which are evaluation only: LoCoMo and BEAM."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import evidence
import locomo as locomo_format
from beam import UNANSWERABLE, conversation
from evidence import Session
from ranking_cases import Case, Half, Question

# Those that weights may be chosen on; the other five only judge.
DEVELOPING = frozenset({"conv-26", "conv-30", "conv-41", "conv-42", "conv-43"})
_SEEDS = 1_000  # from here on, none that a report judges by


def locomo(path: Path, half: Half = "develop") -> list[Case]:
    """Read a half of the conversations of a file in LoCoMo's format."""
    told, questions = locomo_format.read(path)
    cases = _by_user("LoCoMo", "en", told, questions)
    return [case for user, case in cases.items() if (user in DEVELOPING) == (half == "develop")]


def conversations(seed: int) -> list[Case]:
    """Make up whole conversations, of other seeds than `benchmarks/locomo.py` judges by."""
    made = (
        ("long messages", "en", locomo_format.long_messages),
        ("whole lists", "en", locomo_format.lists),
        ("Chinese lives", "zh", locomo_format.chinese),
    )
    return [
        case
        for kind, language, make in made
        for case in _by_user(kind, language, *make(_SEEDS + seed)).values()
    ]


def beam(folder: Path) -> list[Case]:
    """Read conversations in BEAM's format: of each folder `chat.json` and its questions.

    Only what the user said is told. A question counts if it cites any of it, or nothing answers it.
    """
    folders = sorted(folder.glob("*/chat.json"), key=lambda path: path.parent.name)
    told = [conversation(one.parent) for one in folders]
    return [
        _case(
            "BEAM",
            one.sessions,
            [each for each in one.questions if each.gold or each.category == UNANSWERABLE],
            one.asked_at,
        )
        for one in told
    ]


def _by_user(
    kind: str, language: str, told: Sequence[Session], asked: Sequence[evidence.Question]
) -> dict[str, Case]:
    users = dict.fromkeys(one.scope.user_id or "" for one in told)
    cases = {}
    for user in users:
        sessions = [one for one in told if one.scope.user_id == user]
        questions = [one for one in asked if one.scope.user_id == user]
        at = evidence.day_after(sessions) if sessions[0].scope.session_id else locomo_format.START
        cases[user] = _case(kind, sessions, questions, at, language)
    return cases


def _case(
    kind: str,
    sessions: Sequence[Session],
    asked: Sequence[evidence.Question],
    at: datetime,
    language: str = "en",
) -> Case:
    return Case(
        kind=kind,
        language=language,
        form="turns",
        sessions=tuple(sessions),
        questions=tuple(
            Question(
                kind=one.category,
                text=one.text,
                scope=one.scope,
                gold=one.gold,
                things=one.things,
                asked_at=at,
                expects="answer" if one.gold else "foreign",
            )
            for one in asked
        ),
    )
