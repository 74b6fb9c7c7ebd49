"""Explanation of a recall: the note that a model would be shown, and what was left out of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal

from ..sans_io import Plan, call
from ..types import Match, Scope
from .note import FOOTER, is_earlier, local, note_head, note_lines
from .policy import Policy
from .recall import Rule, recall, search_scope, to_query

_FOUND = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLine:
    """A line of a note, and the match that it shows.

    Attributes:
        is_earlier: a newer one replaces it.
        is_always: it comes with every turn, whatever is asked: its score is none of a search.
    """

    text: str
    match: Match
    is_earlier: bool
    is_always: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A match that a note does not show, and the rule that left it out."""

    match: Match
    rule: Rule | Literal["expired", "threshold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A note, and what was found and is not in it.

    Attributes:
        head: the lines in front of the memories.
        lines: one for each memory, in the order of the note; empty if no note is shown.
        foot: the last line.
        left_out: best first; what has ended, expired or is below the policy's threshold comes last.
    """

    head: Sequence[str]
    lines: Sequence[NoteLine]
    foot: str
    left_out: Sequence[LeftOut]

    @property
    def note(self) -> str:
        """The note, as `commonplace.agents.render` writes it; empty if there is none."""
        lines = [line.text for line in self.lines]
        return "\n".join([*self.head, *lines, self.foot]) if lines else ""


def explain(
    scope: Scope, query: str, policy: Policy, now: datetime | None = None
) -> Plan[Explanation]:
    """Recall for a turn as an agent does, and tell what the note shows and what it leaves out."""
    now = local(now)
    rules: list[tuple[Match, Rule]] = []
    found = yield from recall(scope, query, policy, left_out=rules)
    note = explain_note(found, [LeftOut(match=one, rule=rule) for one, rule in rules], policy, now)
    matches = [*(one.match for one in note.lines), *(one.match for one in note.left_out)]
    seen = {match.record.id for match in matches}
    hidden = yield from _hidden(scope, query, policy, now)
    others = [one for one in hidden if one.match.record.id not in seen]
    return replace(note, left_out=(*note.left_out, *others))


def explain_note(
    found: Sequence[Match], left_out: Sequence[LeftOut], policy: Policy, now: datetime
) -> Explanation:
    """Write the note of what a recall found; what it has no room for is left out, too."""
    lines: dict[str, NoteLine] = {}
    for match, text in note_lines(found, policy, now):
        line = NoteLine(
            text=text,
            match=match,
            is_earlier=is_earlier(match),
            is_always="offset" not in match.score_details,
        )
        lines.setdefault(text, line)
    shown = {line.match.record.id for line in lines.values()}
    others = [*left_out, *(LeftOut(match=one, rule="room") for one in found)]
    return Explanation(
        head=tuple(note_head(policy, now)),
        lines=tuple(lines.values()),
        foot=FOOTER,
        left_out=tuple(one for one in others if one.match.record.id not in shown),
    )


def _hidden(scope: Scope, query: str, policy: Policy, now: datetime) -> Plan[list[LeftOut]]:
    """Find what a search for a note never returns: what has ended, expired or scores too low."""
    text = to_query(query)
    if not text:
        return []
    asked = partial(
        call, "search", text, search_scope(scope, policy), top_k=_FOUND, where=policy.where,
        kinds=policy.kinds,
    )  # fmt: skip
    every: Sequence[Match] = yield asked(include_superseded=True, include_expired=True)
    hidden = []
    for match in every:
        record = match.record
        if record.expires_at is not None and record.expires_at <= now:
            hidden.append(LeftOut(match=match, rule="expired"))
        elif record.valid_to is not None and record.valid_to <= now:
            hidden.append(LeftOut(match=match, rule="superseded"))
    if policy.threshold is not None:
        # Asked as for the note: beside what has ended the same match has another score.
        found: Sequence[Match] = yield asked()
        low = [match for match in found if match.score < policy.threshold]
        hidden += [LeftOut(match=match, rule="threshold") for match in low]
    return hidden
