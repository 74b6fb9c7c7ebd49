"""Long conversations with questions, in BEAM's format (arXiv 2510.27246); evaluation only.

The folder of a conversation has its questions and `chat.json`, or `user_messages.json` where the
whole was too large; the longest consist of folders `plan-0`, `plan-1` and so on with those files.
Only what the user said is told.

Questions cite messages by number. All messages are numbered in their order, the assistant's too,
and through all plans. `user_messages.json` lacks what the user said within a turn, so the numbers
of its messages are unknown, and those of all plans after it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import evidence
from evidence import Question, Session

from commonplace import Message, Scope

UNANSWERABLE = "abstention"
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
# At the end of some messages: which items of the writer's plan they carry out.
_MARK = re.compile(r"\s*->->[^\n]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What one user told, and what is asked then.

    Attributes:
        questions: without gold are those that nothing answers, of the category `UNANSWERABLE`, and
            those that cite nothing of the user, or numbers that are not known.
        asked_at: the day after the last message.
        is_numbered: the number of at least one message is known.
    """

    user: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    asked_at: datetime
    is_numbered: bool

    @property
    def size(self) -> int:
        """How many messages the user told."""
        return sum(len(one.contents) for one in self.sessions)


def conversations(folder: Path) -> list[Conversation]:
    """Read every conversation of a folder, in the order of their numbers."""
    found = {one.parent for one in folder.glob("*/probing_questions*")}
    return [conversation(one) for one in sorted(found, key=_place)]


def conversation(folder: Path) -> Conversation:
    """Read one conversation."""
    user = f"BEAM {folder.name}"
    sessions: list[Session] = []
    ids: dict[int, str] = {}
    at, known, is_known = _FIRST, 0, True
    plans = sorted(folder.glob("plan-*"), key=_place)
    for part in plans or [folder]:
        chat = part / "chat.json"
        is_known = is_known and chat.exists()
        count = 0
        for number, turns in _batches(chat if chat.exists() else part / "user_messages.json"):
            name = f"batch {number}" if part == folder else f"{part.name}, batch {number}"
            scope = Scope(user_id=user, session_id=name)
            messages: list[Message] = []
            for turn in turns:
                at = _day(turn) or at
                text = _MARK.sub("", turn["content"]).strip()
                if turn["role"] == "user" and text:
                    said_at = at + timedelta(minutes=len(messages))
                    messages.append(Message(text=text, id=str(known + count), at=said_at))
                    if is_known:
                        ids[known + count] = evidence.record_id(scope, messages[-1])
                count += 1
            sessions.append(Session(scope=scope, contents=list(messages)))
        known += count if is_known else 0
    return Conversation(
        user=user,
        sessions=tuple(sessions),
        questions=tuple(_questions(folder, user, ids, None if is_known else known)),
        asked_at=evidence.day_after(sessions),
        is_numbered=bool(ids),
    )


def _batches(file: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Read the messages of each batch; the first has its day, if that is told of the batch."""
    for batch in json.loads(file.read_text("utf-8")):
        if "messages" in batch:
            messages = [dict(one) for one in batch["messages"]]
            messages[0]["time_anchor"] = batch["time_anchor"]
            yield batch["batch"], messages
        else:
            turns = [turn if isinstance(turn, list) else [turn] for turn in batch["turns"]]
            yield batch["batch_number"], [one for turn in turns for one in turn]


def _day(turn: dict[str, Any]) -> datetime | None:
    anchor = turn.get("time_anchor")
    return datetime.strptime(anchor, "%B-%d-%Y").replace(hour=9, tzinfo=UTC) if anchor else None


def _questions(
    folder: Path, user: str, ids: dict[int, str], known: int | None
) -> Iterator[Question]:
    """Read the questions; of those that cite a number from `known` on nothing is taken as gold."""
    [file] = folder.glob("**/probing_questions.json")
    for kind, questions in json.loads(file.read_text("utf-8")).items():
        for one in questions:
            cited = set(_numbers(one.get("source_chat_ids", [])))
            is_beyond = known is not None and max(cited, default=0) >= known
            yield Question(
                text=one["question"],
                scope=Scope(user_id=user),
                category=kind.replace("_", " "),
                gold=frozenset()
                if is_beyond or kind == UNANSWERABLE
                else frozenset(ids[number] for number in cited & ids.keys()),
            )


def _numbers(given: Any) -> Iterator[int]:
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, list):
        for one in given:
            yield from _numbers(one)
    elif isinstance(given, int) or (isinstance(given, str) and given.isdigit()):
        yield int(given)


def _place(folder: Path) -> tuple[int, str]:
    """Sort by the number in a name."""
    return int(re.sub(r"\D", "", folder.name) or 0), folder.name
