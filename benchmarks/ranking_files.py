"""Memories with known answers from files of others, which are evaluation only: LoCoMo and BEAM."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import evidence
import locomo as locomo_format
from evidence import Session
from ranking_cases import Case, Half, Question

from commonplace import Message, Scope

# Those that weights may be chosen on; the other five only judge.
DEVELOPING = frozenset({"conv-26", "conv-30", "conv-41", "conv-42", "conv-43"})
_MARK = re.compile(r"\s*->->\s*[\d,\s]*$")


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
                    asked_at=_after(each),
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
    return [
        _conversation(one.parent, f"BEAM {one.parent.name}")
        for one in sorted(folder.glob("*/chat.json"), key=lambda path: path.parent.name)
    ]


def _conversation(folder: Path, user: str) -> Case:
    sessions: list[Session] = []
    ids: dict[int, str] = {}
    at = datetime(2024, 1, 1, tzinfo=UTC)
    for batch in json.loads((folder / "chat.json").read_text("utf-8")):
        scope = Scope(user_id=user, session_id=f"batch {batch['batch_number']}")
        messages: list[Message] = []
        turns = [
            turn for turn in batch["turns"] for turn in (turn if isinstance(turn, list) else [turn])
        ]
        for turn in turns:
            if turn.get("time_anchor"):
                at = datetime.strptime(turn["time_anchor"], "%B-%d-%Y").replace(hour=9, tzinfo=UTC)
            text = _MARK.sub("", turn["content"]).strip()
            if turn["role"] == "user" and text:
                said_at = at + timedelta(minutes=len(messages))
                messages.append(Message(text=text, id=str(turn["id"]), at=said_at))
                ids[int(turn["id"])] = evidence.record_id(scope, messages[-1])
        sessions.append(Session(scope=scope, contents=list(messages)))
    asked = json.loads((folder / "probing_questions.json").read_text("utf-8"))
    return Case(
        kind="BEAM",
        language="en",
        form="turns",
        sessions=tuple(sessions),
        questions=tuple(_probing(asked, user, ids, _after(sessions))),
    )


def _probing(
    asked: dict[str, list[dict[str, Any]]], user: str, ids: dict[int, str], at: datetime
) -> Iterator[Question]:
    for kind, questions in asked.items():
        for one in questions:
            cited = _numbers(one.get("source_chat_ids", []))
            gold = frozenset(ids[number] for number in cited if number in ids)
            is_foreign = kind == "abstention"
            if gold or is_foreign:
                yield Question(
                    kind=kind.replace("_", " "),
                    text=one["question"],
                    scope=Scope(user_id=user),
                    gold=frozenset() if is_foreign else gold,
                    asked_at=at,
                    expects="foreign" if is_foreign else "answer",
                )


def _numbers(given: Any) -> Iterator[int]:
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, list):
        for one in given:
            yield from _numbers(one)
    elif isinstance(given, int) or (isinstance(given, str) and given.isdigit()):
        yield int(given)


def _after(sessions: list[Session]) -> datetime:
    """Name the day after the last turn."""
    times = [
        one.at
        for session in sessions
        for one in session.contents
        if isinstance(one, Message) and one.at is not None
    ]
    return max(times) + timedelta(days=1)
