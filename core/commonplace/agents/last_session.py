"""Summary of the last session in the note of a new one, its turns, and its end with them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from ..errors import RecordNotFoundError
from ..sans_io import Plan, call
from ..types import Match, Record, Scope, SessionPage
from .framework_values import clean
from .note import Conversation, without_held
from .policy import WRITE_PATIENCE, Policy

_EXAMINED = 5  # sessions, of which the first that has a summary counts


def last_summary(
    scope: Scope, where: Scope, policy: Policy, held: Conversation | None
) -> Plan[list[Match]]:
    """Read the summary of the last session, for the first turn of another one.

    It helps, and is shown, if the conversation does not hold it, and if no fact that was extracted
    from the turns that it stands for has ended since: it would tell what no longer holds.

    Args:
        scope: of the turn.
        where: what the turn may recall.
    """
    is_wanted = not policy.kinds or "summary" in policy.kinds
    if scope.session_id is None or not (policy.summaries and is_wanted) or policy.where is not None:
        return []
    own: SessionPage = yield call("sessions", scope, limit=1)
    if own and own[0].turns > 1:  # one may be what the user just said
        return []
    page: SessionPage = yield call("sessions", where, limit=_EXAMINED)
    others = (one.summary for one in page if one.scope.session_id != scope.session_id)
    found = without_held([one for one in others if one is not None][:1], held)
    if found and found[0].sources:
        sources = found[0].sources
        outdated: Mapping[str, datetime] = yield call("admin.outdated_turns", where, sources)
        found = [] if outdated else found
    return [Match(record=one, score=1.0, score_details={"summary": 1.0}) for one in found]


def covered_turns(turns: Sequence[Record], held: Conversation | None) -> list[str]:
    """List the ids of the turns that a summary stands for: those before what is still held.

    Args:
        turns: the last of the session, in order.
        held: what the framework left in the conversation beside the summary; None for nothing.
    """
    left, end = Counter(map(clean, held.texts if held else ())), len(turns)
    while end and left[turns[end - 1].text] > 0:
        end -= 1
        left[turns[end].text] -= 1
    return [one.id for one in turns[:end]]


def delete_summaries(gone: Sequence[Record], where: Scope) -> Plan[None]:
    """Delete the summaries of the sessions that deleted records were said in.

    They may tell what was to be forgotten.
    """
    scopes = {one.scope for one in gone}
    sources: Collection[str] = {source for one in gone for source in one.sources}
    if sources:
        turns: Sequence[Record] = yield call("get_many", list(sources), where)
        scopes |= {one.scope for one in turns}
    for scope in scopes:
        if scope.session_id is not None and where.covers(scope):
            with suppress(RecordNotFoundError):
                yield call("delete", scope.summary_id, where, wait=WRITE_PATIENCE)
