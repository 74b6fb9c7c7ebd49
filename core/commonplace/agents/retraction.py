"""Retraction: takes out what a user's request to forget clearly means, and what says it again.

By words for agents without the tool `forget_memory`, whose model cannot do it. Where two memories
may be meant, or everything, nothing goes.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from ..errors import RecordNotFoundError
from ..retrieval.forget_requests import readable
from ..retrieval.lexical import has_cjk, vocabulary
from ..retrieval.statement_words import CHINESE_PEOPLE, PEOPLE, change_words, subject
from ..retrieval.utterance_kinds import normalize, sentence_spans
from ..sans_io import Plan, call
from ..types import LIKELY, Match, Record, Scope, now
from .policy import WRITE_PATIENCE, Policy
from .recall import search_scope, to_query

_LEAST = 0.35  # score of what is meant, and far above that of others
_SURE = 0.85  # score of what is meant where it has half of the words alone
_RIVAL = 0.4  # share of the best score from which one with as many of the words may be meant, too
_MARGIN = 0.2  # of the score of another, with fewer of the words, that may be meant all the same
_SHARED = 0.6  # share of the words of two records of which one repeats the other
_FOUND = 20
_ENDS = ".!?。！？"
_TOGETHER = timedelta(minutes=10)  # a fact and the turn that it comes from

# What every request may say, and so what tells no memory from another.
_GENERAL = vocabulary(
    "about all anything everything whatever know knew remember told tell said say saying mention "
    "mentioned talked spoke shared gave me my mine our us I we you your yesterday today earlier "
    "before ago last old older former previous wrong other first favourite favorite thing things "
    "part note fact memory memories one stuff name called conversation words message ever"
)
_CHINESE_GENERAL = frozenset(
    "我你的了吗呢吧在是有这那件条个事过对什么怎样所一切全部话说提到关于以前之刚才旧叫把和也都数"
)
_TOLD = re.compile(
    r"^(?:what(?:ever)?|the \w+|everything|anything|all)(?: that)? (?:i|we)(?:['’]ve| have)?"
    r" (?:\w+ ){1,3}about |^我?(?:之前|以前|刚才)?(?:跟你|和你)?(?:说|提到?|讲)过?的?关于"
    r"|^(?:d(?:ie|as|en|er)|(?:mein|unser)e?n?) ",
    re.IGNORECASE,
)
_FORMER = re.compile(
    r"\b(?:old|former|previous)\b|旧|(?:以前|之前)(?!.{0,4}[说提讲告])", re.IGNORECASE
)
# Where a noun stands in a text that tells of it, and not of what else happened there.
_TELLS_OF = (
    r"\b(?:my|our|meine?|unsere?|\w+['’]s) (?:[\w-]+ ){{0,2}}(?:{0})s?\b(?: (?-i:[A-Z])\w+)?"
    r"(?:\W*$|[,:=]| (?:is|are|was|were|has|have|ends|ist|sind|hat|heißt)\b)"
    r"|(?:^|[,;] )(?:{0}) (?-i:[A-Z])|(?:^|[,;] )(?:[\w-]+ )?(?:{0})(?: is| ist)? \S*\d\S*\d"
    r"|\b(?:is|are|was) (?:my|our) (?:\w+ )?(?:{0})s?\b"
    r"|\b(?:ha(?:ve|s|d|t|be)|own|got|see|use|take|drive|need) (?:[\w-]+ ){{0,3}}(?:{0})s?\b"
    r"|\b(?:i|we)(?:['’]m)?(?: (?!my|our|the|an?\b)[\w-]+){{0,3}} (?:{0})\b|(?:{0})[是叫姓为:：\d]"
    r"|(?:我|[他她们家]的).{{0,4}}(?:{0}).{{0,2}}[是叫姓在有为欠\d]|[有开欠]\w{{0,6}}(?:{0})"
)
# Who asks to forget a name or a number does not mean a text without any.
_KINDS = (
    (re.compile(r"\bname\b|[名姓]"), re.compile(r"(?<=.) \W?[A-ZÀ-Þ]|^\w+ is (?:my|our)|[叫姓是]")),
    (
        re.compile(r"\bpin$|(?:number|nummer|code|token)$|[号码]$"),
        re.compile("[\\d一二三四五六七八九十百千万]|(?<=[一-鿿])[a-zA-Z]"),
    ),
)
_PASSING = r"\b(?:the|an?|this|that|at|to) (?:\w+ )?(?:{0})s?\b(?! (?:is|are|ends)\b|:)"
# Where a clause begins that may state something of its own; what does; what is read behind another.
_CLAUSE = re.compile(
    r"(?:,|;|,? and|,? but) (?=(?:my|our|the|[\w-]+)(?: [\w-]+){1,4} (?:is|are|was|were|has|have"
    r"|ends)\b"
    r"|(?:i|we|s?he)(?:['’]\w+)? \w)|[，；,;](?=[我他她]|[^，它这那]{2,8}[是叫在有姓])",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"\b(?i:i|we|my|our|me|us|you|your)\b|^(?:[Tt]he|[A-ZÀ-Þ]\w+ (?:is|has|was|\w+(?:s|ed))) "
    r"|[我你]|^[^他她它这那]{2,8}[是叫在有姓]"
)
# Where an item of a list may begin that tells of something else, such as "shoe size 12".
_ITEM = re.compile(
    r"[,;]\s+(?=(?:(?:and|my|our|the) )*+"
    r"((?-i:[A-Z]+\b|[a-z][a-zß-ÿ'’-]+|[A-ZÀ-Þ][a-zß-ÿ-]+(?= [\da-z]))) \S)"
    r"|(?:[，；]|(?<=[一-鿿])[,;]|、(?=[^\W\da-z]{2,4}[\da-z]))\s*"
    r"(?=([^\W\da-z][^，；、,;]{2}|[a-z]+ ?\d))",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"\b(?:s?he|its?|they|him|hers?|his|them|theirs?|there(?! (?:is|are|was))|(?:that|this)(?:['’]s"
    r"| is| was))\b|[他她它]|[这那](?!个?[周星月])",
    re.IGNORECASE,
)
_PERSON = re.compile(
    rf"\b(?i:my|our) (?:[\w-]+ ){{0,2}}?(?:{'|'.join(PEOPLE)})(?:[ -]in[ -]law)?(?: [A-Z]\w+)*"
    rf"|(?:我们?[的家]?)?{CHINESE_PEOPLE}(?:[小老阿].)?"
)
_CHINESE_NOUN = re.compile(
    "(?:关于)?我们?[家的]?的?([\u4e00-\u9fff]{1,4}?)(?:的?(?:名字?|事情?)|叫什么.*|是谁|住?在?哪.*)?"
)


def retract(
    scope: Scope,
    named: Sequence[str],
    policy: Policy,
    before: datetime,
    own: Collection[str] = (),
) -> Plan[list[Record]]:
    """Delete what each request names, where one memory is clearly meant; return what is changed.

    Of a text that states other things, too, the clauses that are named are taken out. What repeats
    it goes too, and the summary of its session. What is meant scores above .35, tells
    of the same person, and has more of the words that are named than every other such memory; of
    two that have as many the older is meant by "my old number".

    Args:
        named: what is to be forgotten, such as "my old number".
        before: only what was stored earlier is meant.
        own: ids of the records of the request's own turn, which are not meant.
    """
    where = search_scope(scope, policy)
    gone: dict[str, Record] = {}
    for text, words in _texts(named):
        earlier = yield from _earlier(text, where, policy, before, own)
        meant = _meant(text, words, [one for one in earlier if one.record.id not in gone])
        if meant is None:
            continue
        share = _shares(words, text, meant.text)
        part, rest = _cut(meant.text, partial(_shares, words, text), share)
        again = yield from repetitions(replace(meant, text=part), where, policy, words)
        for record, left in ((meant, rest), *again):
            is_new = record.id in own or record.created_at >= before
            if record.id not in gone and not is_new and (yield from take_out(record, left, where)):
                gone[record.id] = record
    if gone:
        yield from delete_summaries(list(gone.values()), where)
    return list(gone.values())


def is_known(
    scope: Scope, named: Sequence[str], policy: Policy, own: Collection[str]
) -> Plan[bool]:
    """Tell whether the user has told something with the words of each thing that is named."""
    texts = _texts(named)
    for text, words in texts:
        found = yield from _earlier(text, search_scope(scope, policy), policy, now(), own)
        enough = _SHARED if len(words) > 1 else 0.9 if text[0].isupper() or has_cjk(text) else 1.0
        told = [one.record for one in found if one.score >= _LEAST]
        shares = [_shares(words, text, one.text) for one in told if one.role != "assistant"]
        if max(shares, default=0.0) < enough:
            return False
    return bool(texts)


def _texts(named: Iterable[str]) -> list[tuple[str, frozenset[str]]]:
    """Read what is to be searched for, each with its words; those without any are left out."""
    texts = [to_query(_TOLD.sub("", one)) for one in named]
    return [(text, words) for text in texts if (words := _content(text))]


def _earlier(
    text: str, where: Scope, policy: Policy, before: datetime, own: Collection[str]
) -> Plan[list[Match]]:
    found: Sequence[Match] = yield call(
        "search", text, where, top_k=_FOUND, where=policy.where, kinds=policy.kinds
    )
    return [one for one in found if one.record.id not in own and one.record.created_at < before]


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

    Of one word alone, or one Chinese noun, 1 if it is what is told of, .9 if it is in it in the
    same form, .4 in passing: who parked in the street does not mean the park, and who saw the
    doctor does not say who that is. -1 if there is no name or number where one is asked for.
    """
    if any(kind.search(text) and not has.search(told) for kind, has in _KINDS):
        return -1.0
    noun = _CHINESE_NOUN.fullmatch(text)
    if noun is None and len(words) > 1:
        return len(words & _content(told)) / len(words)
    said = normalize(text).split()
    kept = [noun[1]] if noun else [one for one in said if vocabulary(one) & words]
    form = "|".join(re.escape(one.removesuffix("s")) for one in kept)
    if re.search(_TELLS_OF.format(form), told, re.IGNORECASE):
        return 1.0
    if has_cjk(text):
        return 0.9 if kept[0] in told else 0.8 * len(words & _content(told)) / len(words)
    is_passing = re.search(_PASSING.format(form), told, re.IGNORECASE)
    is_asked_so = re.search(_PASSING.format(form), text, re.IGNORECASE)
    is_there = re.search(rf"\b(?:{form})s?\b", told, re.IGNORECASE)
    is_said = is_asked_so or not is_passing or text[0].isupper()  # a name means one thing anywhere
    return (0.9 if is_said else 0.4) if is_there else 0.0


def _cut(text: str, fit: Callable[[str], float], least: float) -> tuple[str, str]:
    """Divide a text into the clauses that fit what is meant, and what can be read without them.

    A clause of "she" is read as one of whom the clause before it names; of a list, only the items
    that fit best are meant. All of it is meant if no clause alone fits, or nothing else states
    something of its own.
    """
    sentences: list[tuple[list[tuple[str, str, str]], int, int]] = []
    who = before = ""
    for start, end, after in sentence_spans(text):
        read: list[tuple[str, str, str]] = []
        for part in _CLAUSE.split(text[start:end].rstrip(_ENDS)):
            is_led = _BEHIND.match(part)
            alone = readable(part, who) if is_led and who else part
            is_matter = is_led or fit(part) > fit(before)
            read.append((part, alone, before if is_matter else ""))
            who, before = (who if is_led else _person(part)), part
        sentences.append((read, start, after))
    every = [one for read, *_ in sentences for one in read]
    meant = [one for one in every if fit(one[1]) >= least]
    meant = meant or [one for one in every if one[2] and fit(f"{one[2]} {one[0]}") >= least]
    comma = "，" if has_cjk(text) else ", "
    items = {one: _divide(one, fit, least) for one in meant}
    gone = comma.join(part for parts, _ in items.values() for part in parts)
    values = {one for one in _values(gone) if any(map(str.isdigit, one))}
    rest, is_gone, is_own = "", False, False
    for read, start, after in sentences:
        left: list[str] = []
        for part, alone, before in read:
            own, was_gone = _OWN.search(alone), is_gone
            is_behind = was_gone and (own is None or (alone == part and _BEHIND.search(part)))
            _, others = items.get((part, alone, before), ((), ()))
            is_gone = bool((part, alone, before) in items or is_behind or values & _values(part))
            if others or not is_gone:
                left += others or [alone if was_gone else part]
                is_own = is_own or bool(others) or own is not None
        whole = text[start:after]
        if left == [part for part, *_ in read]:
            rest += whole
        elif left:
            mark = whole[len(whole.rstrip().rstrip(_ENDS)) :]
            first = left[0][:1].upper() if whole[0].isupper() else left[0][:1]
            rest += comma.join([first + left[0][1:], *left[1:]]) + mark
    return (gone, rest.strip()) if meant and is_own else (text, "")


def _divide(
    clause: tuple[str, str, str], fit: Callable[[str], float], least: float
) -> tuple[list[str], list[str]]:
    """Divide a clause that is meant into the items that fit best, and the others.

    An item begins with a word that tells something. The first may only say whose the others are.
    """
    part, alone, _ = clause
    items: list[str] = []
    begin = 0
    for mark in _ITEM.finditer(part):
        if vocabulary(mark[1] or mark[2]) and not _BEHIND.match(part, mark.end()):
            items.append(part[begin : mark.start()])
            begin = mark.end()
    items.append(part[begin:])
    fits = [fit(one) for one in items]
    best = max(fits)
    gone = [one for one, share in zip(items, fits, strict=True) if share == best]
    if best < least and len(gone) > 1 and gone[0] == items[0]:
        del gone[0]
    if items[0] in gone and _OWN.search(part) and not has_cjk(part):
        gone += [one for one in items if not _values(one)]  # "I like jazz, blues and soul"
    others = [one for one in items if one not in gone]
    return (gone, others) if best > 0 and others else ([alone or part], [])


def _person(clause: str) -> str:
    """Read whom "she" means behind a clause, as it names them; "" if it names nobody."""
    if named := [*_PERSON.finditer(clause)]:
        return named[-1][0]
    name = subject(clause, clause.lower())
    return clause[: len(name)] if name and clause.lower().startswith(name) else ""


def _meant(text: str, words: frozenset[str], matches: Iterable[Match]) -> Record | None:
    """Choose the one record that a request means; None if there is none, or another may be."""
    about = subject(text, text.lower())
    ranked: list[tuple[float, Match]] = []
    for match in matches:
        record = match.record
        of = subject(record.text, record.text.lower())
        is_named = about != "me" and about in record.text.lower()
        is_other = about not in ("", "user") and of not in ("", "user", about) and not is_named
        share = _shares(words, text, record.text)
        if record.role != "assistant" and not is_other and share >= 0:
            ranked.append((share, match))
    if _FORMER.search(text):
        ranked = _without_new([one for one in ranked if one[0] >= 0.5])
    share, best = max(ranked, key=lambda one: (one[0], one[1].score), default=(0.0, None))
    if best is None or share < 0.5 or best.score < (_LEAST if share > 0.5 else _SURE):
        return None
    is_sure = share == 1.0 and len(words) > 1  # else another may tell of it in other words
    others = [
        match.record
        for other, match in ranked
        if match is not best
        and _is_rival(match, best, may_be=other == share or (not is_sure and not other))
        and not _repeats(match.record, best.record, words, match.record.text)
    ]
    if not others:
        return best.record
    if _FORMER.search(text) and all(other == share for other, _ in ranked):
        return min((match.record for _, match in ranked), key=lambda one: one.occurred_at)
    return None


def _is_rival(match: Match, best: Match, *, may_be: bool) -> bool:
    """Tell whether another match fits far better than the best one, or may be meant and fits.

    It fits nearly as well, or did until the best one replaced it.
    """
    is_former = match.replaced_by.get(best.record.id, 0.0) >= LIKELY
    is_near = is_former or match.score >= _RIVAL * best.score
    return (may_be and is_near) or match.score > best.score + _MARGIN


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


def repetitions(
    meant: Record, where: Scope, policy: Policy, words: Collection[str] = ()
) -> Plan[list[tuple[Record, str]]]:
    """Find the answers and facts, of any session, that say a memory again, each with what remains.

    Args:
        words: that a request to forget names.
    """
    found: Sequence[Match] = yield call(
        "search", to_query(meant.text), where, top_k=_FOUND, where=policy.where, kinds=policy.kinds
    )
    others = [one.record for one in found if _repeats(one.record, meant, words, one.text)]
    return [(one, _cut(one.text, partial(_repeats, one, meant, words), 1)[1]) for one in others]


def _repeats(one: Record, meant: Record, asked: Collection[str], text: str) -> bool:
    """Tell whether a text of a record says another record again.

    That is an answer with a name or number of it, or with most of its words; a fact drawn from it;
    and what has the words that are asked for, one of its names or numbers, and no other word.
    """
    if one.id == meant.id or normalize(text) == normalize(meant.text):
        return one.id != meant.id
    words, others = _content(meant.text), _content(text)
    values, other_values = _values(meant.text), _values(text)
    is_told = bool(values & other_values)
    is_asked = is_told and bool(asked) and others.issuperset(asked)
    if (one.kind == "episode") != (meant.kind == "episode"):
        is_told = abs(one.created_at - meant.created_at) <= _TOGETHER
    elif one.role != "assistant":
        return is_asked and others <= words and not change_words(text)
    elif not (values and other_values):
        shared = vocabulary(meant.text) & vocabulary(text)
        pairs = [word for word in shared if has_cjk(word) and len(word) > 1]
        is_told = bool(pairs) or len([one for one in words & others if not has_cjk(one)]) > 1
    enough = _SHARED * min(len(words), len(others))
    return is_asked or (is_told and len(words & others) >= enough > 0)


def _values(text: str) -> frozenset[str]:
    """Read the numbers of a text, and the words that begin with a capital."""
    found = re.findall(r"\d(?:[\d\s.,:/-]*\d)?|\b[A-ZÀ-Þ]\w+", text)
    return frozenset(normalize(one).replace(" ", "") for one in found if _content(one))


def take_out(record: Record, rest: str, where: Scope) -> Plan[bool]:
    """Leave the rest of a record, or delete it if there is none; tell whether it was there."""
    if not where.covers(record.scope):
        return False
    try:
        if rest:
            yield call("update", record.id, rest, where, wait=WRITE_PATIENCE)
        else:
            yield call("delete", record.id, where, wait=WRITE_PATIENCE)
    except RecordNotFoundError:
        return False  # another did it
    return True


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
