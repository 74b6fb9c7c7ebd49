"""Log of the last notes: what each recall for a turn showed and left out, in the memory's store.

Its rows stand among the memory's checkpoints, each under the scope of its turn: an erasure removes
them with the scope, and a copy or a backup has them with all else. No record's text is in them.
"""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from ..concurrency import start_call
from ..errors import MemoryClosedError
from ..ports.checkpoints import Address, Blob, Checkpoint, Checkpoints, Selection
from ..retrieval.forget_requests import split_forget_requests
from ..sans_io import Plan, call
from ..types import Match, Record, Scope
from .explanation import Explanation, LeftOut, explain_note
from .health import WarnOnce
from .lazy_memory import LazyMemory
from .note import shown
from .policy import Policy
from .recall import Rule, search_scope, to_query

if TYPE_CHECKING:
    from ..memory_admin import MemoryAdmin  # it loads the engines

KEPT = 200
"""Notes that are kept of a memory: the last ones of all its users."""
_TYPE = "commonplace/note"
_FIRST, _END = "note-", "note."  # every id begins with the one, and comes before the other


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedMatch:
    """A match that a note showed, or left out by a rule; `parts` add up to the score's logit."""

    id: str
    score: float
    parts: dict[str, float]
    rule: Rule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedNote:
    """A note, or that there was none because nothing was found.

    Attributes:
        scope: of the turn.
        question: what the user wrote, as it would be stored; None if the policy keeps none.
        shown: in the order of the note.
        left_out: best first.
    """

    id: str
    at: datetime
    scope: Scope
    question: str | None
    shown: Sequence[LoggedMatch]
    left_out: Sequence[LoggedMatch]


class NoteLog:
    """Writes the notes of an agent's turns, on a thread that no turn waits for.

    What comes while it writes is written next, 200 notes at most. What cannot be written is lost.
    """

    def __init__(self, lazy: LazyMemory, policy: Policy, warn: WarnOnce) -> None:
        self._lazy, self._policy, self._warn = lazy, policy, warn
        self._lock = threading.Lock()
        self._waiting: deque[Callable[..., LoggedNote]] = deque(maxlen=KEPT)
        self._is_writing = False

    def add(
        self,
        at: datetime,
        scope: Scope,
        query: str,
        left_out: Sequence[tuple[Match, Rule]],
        found: Sequence[Match],
    ) -> None:
        """Take what a recall found that began at a moment; returns at once."""

        def make_note(admin: "MemoryAdmin") -> LoggedNote:
            lines = {match.record.id for match in shown(found, self._policy)}
            others = [*left_out, *((match, "room") for match in found)]
            question = None
            if self._policy.note_log == "questions":
                question = to_query(split_forget_requests(query).stated)
                question = admin.redact(question) if admin.redact else question
            return LoggedNote(
                id=f"{_FIRST}{time.time_ns():020}-{uuid.uuid4().hex}", at=at, scope=scope,
                question=question,
                shown=[_to_logged(match) for match in found if match.record.id in lines],
                left_out=[_to_logged(m, rule) for m, rule in others if m.record.id not in lines],
            )  # fmt: skip

        with self._lock:
            self._waiting.append(make_note)
            if self._is_writing:
                return
            self._is_writing = True
        try:
            done = start_call("note-log", self._write)
        except Exception as error:  # no turn may fail
            self._is_writing = False
            self._warn("note log", error)
            return
        self._lazy.keep(done)

    def _write(self) -> None:
        while True:
            with self._lock:
                batch = list(self._waiting)
                self._waiting.clear()
                self._is_writing = bool(batch)
            if not batch:
                return
            try:
                admin = self._lazy.get().admin
                self._put([make_note(admin) for make_note in batch], admin)
            except MemoryClosedError:
                pass
            except Exception as error:  # as above
                self._warn("note log", error)

    def _put(self, notes: Sequence[LoggedNote], admin: "MemoryAdmin") -> None:
        checkpoints = admin.checkpoints
        for note in notes:
            checkpoints.put(_to_row(note), {}, note.scope)
        for scope in {note.scope for note in notes}:  # an erasure may have come before its note
            if admin.was_forgotten(scope, since=min(n.at for n in notes if n.scope == scope)):
                checkpoints.delete([_thread(scope)])
        old = checkpoints.page(Selection(before=_END), limit=len(notes) + 1, offset=KEPT)
        checkpoints.delete_runs([one.address.id for one in old if _is_note(one)])


def logged_notes(checkpoints: Checkpoints, note_id: str | None = None) -> list[LoggedNote]:
    """Read the notes that are kept, of everybody, the latest first; or the one with this id."""
    rows = checkpoints.page(Selection(id=note_id, before=_END), limit=KEPT)
    return [msgspec.json.decode(one.body.data, type=LoggedNote) for one in rows if _is_note(one)]


def explain_logged(note: LoggedNote, policy: Policy) -> Plan[Explanation]:
    """Explain a note that was logged, with its records as they are now.

    What is no longer stored, or has expired, is missing.
    """
    logged = [*note.shown, *note.left_out]
    where = search_scope(note.scope, policy)
    records: Sequence[Record] = yield call("get_many", [one.id for one in logged], where)
    known = {one.id: one for one in records}
    matches = [
        (Match(record=known[one.id], score=one.score, score_details=one.parts), one.rule)
        for one in logged
        if one.id in known
    ]
    return explain_note(
        [match for match, rule in matches if rule is None],
        [LeftOut(match=match, rule=rule) for match, rule in matches if rule is not None],
        policy,
        note.at.astimezone(),
    )


def _to_logged(match: Match, rule: Rule | None = None) -> LoggedMatch:
    parts = {name: round(float(value), 4) for name, value in match.score_details.items()}
    score = round(float(match.score), 6)
    return LoggedMatch(id=match.record.id, score=score, parts=parts, rule=rule)


def _thread(scope: Scope) -> str:
    return f"commonplace-notes/{scope.key}"


def _is_note(row: Checkpoint) -> bool:
    return row.body.type == _TYPE


def _to_row(note: LoggedNote) -> Checkpoint:
    return Checkpoint(
        address=Address(thread=_thread(note.scope), namespace="", id=note.id),
        body=Blob(type=_TYPE, data=msgspec.json.encode(note)),
        run=note.id,
    )
