"""Memories with known answers from files of others, which are evaluation only: LoCoMo and BEAM."""

from collections import defaultdict
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


def locomo(path: Path, half: Half = "develop") -> list[Case]:
    """Read a half of the conversations of a file in LoCoMo's format."""
    sessions: dict[str, list[Session]] = defaultdict(list)
    asked: dict[str, list[evidence.Question]] = defaultdict(list)
    told, questions = locomo_format.read(path)
    for session in told:
        sessions[session.scope.user_id or ""].append(session)
    for question in questions:
        asked[question.scope.user_id or ""].append(question)
    return [
        _case("LoCoMo", each, asked[user], evidence.day_after(each))
        for user, each in sessions.items()
        if (user in DEVELOPING) == (half == "develop")
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


def _case(
    kind: str, sessions: Sequence[Session], asked: Sequence[evidence.Question], at: datetime
) -> Case:
    return Case(
        kind=kind,
        language="en",
        form="turns",
        sessions=tuple(sessions),
        questions=tuple(
            Question(
                kind=one.category,
                text=one.text,
                scope=one.scope,
                gold=one.gold,
                asked_at=at,
                expects="answer" if one.gold else "foreign",
            )
            for one in asked
        ),
    )
