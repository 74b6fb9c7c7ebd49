"""Retraction: deletes the memory that a user's request to forget clearly means.

For agents without the tool `forget_memory`, whose model cannot do it. Where two memories may be
meant, or everything, nothing is deleted.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from ..errors import RecordNotFoundError
from ..retrieval.lexical import has_cjk, vocabulary
from ..retrieval.statement_words import change_words, subject
from ..retrieval.utterance_kinds import normalize
from ..sans_io import Plan, call
from ..types import LIKELY, Match, Record, Scope
from .policy import WRITE_PATIENCE, Policy
from .recall import search_scope, to_query

_LEAST = 0.35  # score of what is meant, and far above that of others
_SURE = 0.8  # score of what is meant where it has half of the words alone
_RIVAL = 0.4  # share of the best score from which one with as many of the words may be meant, too
_MARGIN = 0.2  # of the score of another, with fewer of the words, that may be meant all the same
_SHARED = 0.6  # share of the words of two records of which one repeats the other
_FOUND = 20
_TOGETHER = timedelta(minutes=10)  # a fact or an answer and the turn that it comes from

# What every request may say, and so what tells no memory from another.
_GENERAL = vocabulary(
    "about all anything everything whatever know knew remember told tell said say saying mention "
    "mentioned talked spoke shared gave me my mine our us I we you your yesterday today earlier "
    "before ago last old older former previous wrong other first favourite favorite thing things "
    "part note fact memory memories one stuff name called conversation words message ever"
)
_CHINESE_GENERAL = frozenset(
    "我你的了吗呢吧在是有这那件条个事过对什么怎样所一切全部话说提到关于以前之刚才旧叫把和也都"
)
_TOLD = re.compile(
    r"^(?:what(?:ever)?|the \w+|everything|anything|all)(?: that)? (?:i|we)(?:['’]ve| have)?"
    r" (?:\w+ ){1,3}about |^我?(?:之前|以前|刚才)?(?:跟你|和你)?(?:说|提到?|讲)过?的?关于",
    re.IGNORECASE,
)
_FORMER = re.compile(r"\b(?:old|former|previous)\b|[旧]|以前|之前", re.IGNORECASE)


def retract(
    scope: Scope,
    named: Sequence[str],
    policy: Policy,
    before: datetime,
    own: Collection[str] = (),
) -> Plan[list[Record]]:
    """Delete what each request names, where one memory is clearly meant; return what is deleted.

    An assistant's answer and an extracted fact that repeat it go too, and the summary of its
    session. What is meant scores above .35, tells of the same person, and has more of the words
    that are named than every other such memory; of two that have as many the older is meant by "my
    old number".

    Args:
        named: what is to be forgotten, such as "my old number".
        before: only what was stored earlier is meant.
        own: ids of the records of the request's own turn, which are not meant.
    """
    where = search_scope(scope, policy)
    gone: dict[str, Record] = {}
    for text in filter(None, (to_query(_TOLD.sub("", one)) for one in named)):
        words = _content(text)
        if not words:
            continue
        found: Sequence[Match] = yield call(
            "search", text, where, top_k=_FOUND, where=policy.where, kinds=policy.kinds
        )
        others = [one for one in found if one.record.id not in own]
        earlier = [one for one in others if one.record.created_at < before]
        meant = _meant(text, words, [one for one in earlier if one.record.id not in gone])
        if meant is None:
            continue
        for record in [meant, *_repetitions(meant, [one.record for one in earlier])]:
            if record.id not in gone and where.covers(record.scope):
                try:
                    yield call("delete", record.id, where, wait=WRITE_PATIENCE)
                except RecordNotFoundError:
                    continue  # another did it
                gone[record.id] = record
    if gone:
        yield from delete_summaries(list(gone.values()), where)
    return list(gone.values())


def _content(text: str) -> frozenset[str]:
    """Read the words of a text that tell what it is about; of Chinese, the characters."""
    words = vocabulary(text) - _GENERAL
    return frozenset(
        word
        for word in words
        if (len(word) == 1 and word not in _CHINESE_GENERAL if has_cjk(word) else len(word) > 1)
    )


def _shares(words: frozenset[str], text: str, told: str) -> float:
    """Return the share of the words in what was told.

    One word alone counts in the form that it has in the request: who parked in the street does not
    mean the park.
    """
    if len(words) == 1 and not has_cjk(text):
        said = {word.removesuffix("s") for word in normalize(told).split()}
        kept = [one for one in normalize(text).split() if vocabulary(one) & words]
        return float(any(one.removesuffix("s") in said for one in kept))
    return len(words & _content(told)) / len(words)


def _meant(text: str, words: frozenset[str], matches: Iterable[Match]) -> Record | None:
    """Choose the one record that a request means; None if there is none, or another may be."""
    about = subject(text, text.lower())
    ranked: list[tuple[float, Match]] = []
    for match in matches:
        record = match.record
        of = subject(record.text, record.text.lower())
        share = _shares(words, text, record.text)
        is_named = about != "me" and about in record.text.lower()
        is_other = about not in ("", "user") and of not in ("", "user", about) and not is_named
        if record.role != "assistant" and not is_other and share >= 0.5:
            ranked.append((share, match))
    if _FORMER.search(text):
        ranked = _without_new(ranked)
    if not ranked:
        return None
    share, best = max(ranked, key=lambda one: (one[0], one[1].score))
    if best.score < (_LEAST if share > 0.5 else _SURE):
        return None
    others = [
        match.record
        for other, match in ranked
        if match is not best
        and (match.score > best.score + _MARGIN or (other == share and _rivals(match, best)))
        and match.record not in _repetitions(best.record, [match.record])
    ]
    if not others:
        return best.record
    if _FORMER.search(text) and all(other == share for other, _ in ranked):
        return min((match.record for _, match in ranked), key=lambda one: one.occurred_at)
    return None


def _rivals(match: Match, best: Match) -> bool:
    """Tell whether another match fits nearly as well, or did until the best one replaced it."""
    is_former = match.replaced_by.get(best.record.id, 0.0) >= LIKELY
    return is_former or match.score >= _RIVAL * best.score


def _without_new(ranked: Sequence[tuple[float, Match]]) -> list[tuple[float, Match]]:
    """Leave out what tells of something new, which "my old number" does not mean.

    That is what says so, and what replaces another that may be meant.
    """
    newer = {id_ for _, one in ranked for id_, odds in one.replaced_by.items() if odds >= LIKELY}
    return [
        (share, one)
        for share, one in ranked
        if one.record.id not in newer and not change_words(one.record.text)
    ]


def _repetitions(meant: Record, records: Iterable[Record]) -> list[Record]:
    """Find the records that say the same: of equal text, or made of the same turn."""
    return [one for one in records if one.id != meant.id and _repeats(one, meant)]


def _repeats(one: Record, meant: Record) -> bool:
    if normalize(one.text) == normalize(meant.text):
        return True
    is_answer = one.role == "assistant" and one.scope == meant.scope
    is_drawn = (one.kind == "episode") != (meant.kind == "episode")
    if not (is_answer or is_drawn) or abs(one.created_at - meant.created_at) > _TOGETHER:
        return False
    words, other = _content(meant.text), _content(one.text)
    return len(words & other) >= _SHARED * min(len(words), len(other)) > 0


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
