"""Memories with known answers from files of others, which are evaluation only: LoCoMo and BEAM."""

from collections import defaultdict
from pathlib import Path

import beam as beam_format
import evidence
import locomo as locomo_format
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
        Case(
            kind="LoCoMo",
            language="en",
            form="turns",
            sessions=tuple(each),
            questions=tuple(
                Question(
                    kind=one.category,
                    text=one.text,
                    scope=one.scope,
                    gold=one.gold,
                    asked_at=evidence.day_after(each),
                )
                for one in asked[user]
            ),
        )
        for user, each in sessions.items()
        if (user in DEVELOPING) == (half == "develop")
    ]


def beam(folder: Path) -> list[Case]:
    """Read conversations in BEAM's format: of each folder `chat.json` and its questions.

    Only what the user said is told. A question counts if it cites any of it, or nothing answers it.
    """
    folders = sorted(folder.glob("*/chat.json"), key=lambda path: path.parent.name)
    return [_case(beam_format.conversation(one.parent)) for one in folders]


def _case(told: beam_format.Conversation) -> Case:
    return Case(
        kind="BEAM",
        language="en",
        form="turns",
        sessions=told.sessions,
        questions=tuple(
            Question(
                kind=one.category,
                text=one.text,
                scope=one.scope,
                gold=one.gold,
                asked_at=told.asked_at,
                expects="foreign" if one.category == beam_format.UNANSWERABLE else "answer",
            )
            for one in told.questions
            if one.gold or one.category == beam_format.UNANSWERABLE
        ),
    )
