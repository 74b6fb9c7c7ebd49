"""Requests to forget: which clauses of a user's text ask for it, and what the text states beside.

Found by their form, without a model, in English and Chinese and with the plainest words of German
and Spanish. "Forget it", "I always forget my keys" and "delete the old branch" ask nothing of a
memory. A doubtful clause is left alone: what is found is not stored.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from .utterance_kinds import is_small_talk, needs_no_memory, sentence_spans

_MAX_TEXT = 1_000  # characters: in a longer one the user has pasted what others wrote
_OBJECT = 300  # characters of a request that are searched for what it names

_BREAK = re.compile(
    r",(?=\s)(?!\s(?:dass|was|wo|wie|wer)\b)|[;:](?=\s)|[，；：]|\s[—–-]{1,2}(?=\s)|\s(?=(?:and|but|because|since|so|und|aber|weil|y"
    r"|pero|porque)\s)",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:said|says|told \w+|wrote|writes|asked|shouted|sings|sang|goes|reads|sagte|dijo)\W*$"
    r"|[说讲道]\W*$",
    re.IGNORECASE,
)
# What is a person's own, and so what a memory has of him.
_DATA = (
    r"(?:numbers?|address(?:es)?|e-?mails?|birthday|passwords?|pin|passcode|iban|salary|diagnosis"
    r"|allerg(?:y|ies)|medication|date of birth)\b"
)
_OWN = (
    r"(?:about )?(?:(?:all|any) of )?(?:that (?:i|we|my|our|you|he|she|they)\b"
    r"|(?:what|where|how|who|when|which|why)\b(?: [\w'’]+){0,3}? (?:i|we|my|our|you|he|she|they)\b"
    r"|(?:everything|anything|all|whatever)\b(?! else)|(?:my|our|mine|me)\b"
    r"|(?:the|this|these|those) (?:old|previous|former|wrong|other|first|last|earlier)\b"
    r"|the (?:thing|part|note|fact|memory|memories|one)s? (?:about|that|where|i|we|on)\b"
    rf"|(?:the |this )?(?:\w+ )?{_DATA}"
    rf"|(?:(?-i:[A-Z])[\w.]+ ){{0,2}}(?-i:[A-Z])\w+['’]s (?:\w+ ){{0,3}}?{_DATA})"
)
_LEAD = r"\s*(?:(?:and|so|but|also|then|now|hey|hi|oh|ok|okay|well|just|actually)\b[, ]*)*"
_WISH = (
    r"(?:(?:can|could|would|will) you (?:please |kindly |just |now )*"
    r"|i(?: want|['’]d like| would like| need) you to (?:please )?"
    r"|(?:please|kindly) (?:just |now )?)"
)
_MAY = r"you (?:can|may|should|must|could) (?:now |also |safely |just |please )*"
_DELETE = r"(?:delete|erase|remove|wipe|clear|drop|purge|scrub)"
_YOUR_MEMORY = r"your (?:[\w-]+ )?(?:memory|memories|notes|records|mind)"
_CHINESE_LEAD = (
    r"\s*(?=[^，。]{0,8}(?:请|帮|麻烦|拜托|你(?:可以|能|应该)|(?:希望|想让|要)你))"
    r"(?:请|帮我|帮忙|麻烦|拜托|可以|能不能|能|应该|希望|我?想让|我?要|你|您|那|所以|也|就|顺便|对了|另外|还有)+"
)
_CHINESE_DATA = "(?:电话|手机|号码?|地址|住址|生日|身份证|密码|邮箱|银行卡|工资)"
_CHINESE_DELETE = "(?:删除|删掉|删了|抹掉|清除|去掉)"
_CHINESE_OWN = "(?:我|关于|有关|那[个件条]|这[个件条]|之前|以前|刚才|所有|一切|全部|旧)"
_FROM_MEMORY = "从(?:你的?)?(?:记忆|脑[子海]|记录)[里中]?"

_THEN = r"\s*(?:那|就|也|所以|对了)*"
_ALL = f"(?:都|全|给|{_FROM_MEMORY})*"
_CHINESE_END = r"(?:了|吧|好吗|可以吗|吗)*\W*$"
_GERMAN_OWN = (
    r"(?:(?:alles|was|wo|wie|wer|mich|(?:meine?|unsere?)[mnrs]?)\b|(?:die|den|das) (?:alte|vorige))"
)
_SPANISH_OWN = r"(?:lo que|mis?|nuestr[oa]s?|todo|dónde|(?:el|la) (?:viej|antigu|anterior)\w*)\b"

# In each form the last group that takes part is what is meant.
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_LEAD}(?:{_WISH}|{_MAY})?forget ({_OWN}.*)",
        rf"{_LEAD}(?:would|do) you mind forgetting ({_OWN}.*)",
        rf"{_LEAD}{_WISH}forget (?!(?:about )?(?:it|that|this)\b\W*(?:please\W*)?$)(.+)",
        rf"{_LEAD}(?:{_WISH}|{_MAY})?{_DELETE} (.{{1,200}}?) (?:from|out of) {_YOUR_MEMORY}\b",
        rf"{_LEAD}(?:{_WISH}|{_MAY})?{_DELETE} ({_OWN}.{{0,200}}?) from memory\W*$",
        rf"{_LEAD}(?:{_WISH}|{_MAY})?{_DELETE} (?:(?:all|everything|anything|what(?:ever)?|that) )+"
        r"you (?:know|remember|have (?:stored|saved|noted))\b(.*)",
        rf"{_LEAD}(?:{_WISH}|{_MAY})?{_DELETE} (?:(?:(?:your|any|all|every) )+memor(?:y|ies) of"
        r"|(?:(?:your|any|all|every|the) )+memor(?:y|ies) (?:about|that|where))\b(.*)",
        rf"{_LEAD}(?:please )?(?:stop remembering|please (?:don['’]t|do not) remember"
        r"|(?:you (?:(?:don['’]t|do not) (?:need|have) to|no longer (?:need|have) to)|no need to"
        rf"|i (?:don['’]t|do not) want you to) remember) ({_OWN}.*)",
        rf"{_CHINESE_LEAD}(?:把|将)?(.{{1,60}}?){_ALL}忘[掉记了]{_CHINESE_END}",
        rf"{_THEN}(?:把|将)(.{{1,60}}?){_ALL}(?:忘掉|忘[了记]?吧){_CHINESE_END}",
        rf"{_CHINESE_LEAD}忘[掉记了]({_CHINESE_OWN}.*)",
        rf"{_THEN}(?:忘掉|忘[记了](?!.*(?<!吧)了\W*$))({_CHINESE_OWN}.*)",
        rf"{_THEN}[你请可以]*(?:不要再|别再|不用再?|不必再?|不需要再?)(?:继续)?记[着住得]"
        rf"({_CHINESE_OWN}.*)",
        rf"(?:{_CHINESE_LEAD}|{_THEN}){_FROM_MEMORY}{_CHINESE_DELETE}(.+)",
        rf"(?:{_CHINESE_LEAD}|{_THEN})(?:把|将)?(.{{1,60}}?){_FROM_MEMORY}{_CHINESE_DELETE}",
        rf"(?:{_CHINESE_LEAD}|{_THEN})(?:把|将)(.{{1,60}}?(?:记忆|记录)){_ALL}{_CHINESE_DELETE}",
        rf"(?:{_CHINESE_LEAD}|{_THEN}){_CHINESE_DELETE}(?:所有|全部|你)*((?:关于|有关).+?)的?(?:记忆|记录)",
        rf"(?:{_CHINESE_LEAD}|{_THEN}){_CHINESE_DELETE}(?:所有|全部)*你(?:记得|知道|记住|存)的(.*)",
        rf"(?:{_CHINESE_LEAD}|{_THEN}){_CHINESE_DELETE}(我的.{{0,6}}{_CHINESE_DATA}.*)",
        r"\s*(?:(?:und|also|dann|bitte) )*vergiss(?: bitte| doch| einfach)*,? "
        rf"(?:dass (.+)|({_GERMAN_OWN}.*))",
        rf"\s*(?:kannst|könntest|würdest) du (?:bitte )?({_GERMAN_OWN}.*?)(?: bitte)?"
        r" vergessen\W*$",
        rf"\s*du (?:kannst|darfst|sollst) ({_GERMAN_OWN}.*?) (?:jetzt )?vergessen\W*$",
        r"\s*(?:bitte )?(?:lösche?|entferne?|streiche?) (?:bitte )?(.+?) aus deine[mn]"
        r" (?:gedächtnis|speicher|notizen)",
        r"\s*(?:(?:y|por favor) )*olv[ií]da(?:te)?(?: por favor)?(?: de)? "
        rf"(?:que (.+)|({_SPANISH_OWN}.*))",
        rf"\s*¿?(?:puedes|podrías) olvidar (?:que (.+)|({_SPANISH_OWN}.*))",
        r"\s*(?:por favor )?(?:borra|elimina|quita) (.+?) de tu memoria",
    )
)
_ASKS_POLITELY = re.compile(
    r"\s*¿?(?:(?:and|so|but|also|please|then) )*(?:(?:can|could|would|will|do) you\b|(?:kannst"
    r"|könntest|würdest|puedes|podrías)\b)|[\u4e00-\u9fff]",
    re.IGNORECASE,
)
# Where a clause of its own begins behind a request: with a subject and a verb, or a reason.
_CLAUSE = re.compile(
    r"\s*(?:(?:and|so|now|instead|these days|from now on|only|then|also|actually|though)\b[, ]*)*"
    r"(?:(?:but|because|since|aber|weil|denn|pero|porque|ahora)\b"
    r"|(?!i\.e\b)(?:i|it|he|she|we|they|you|there)(?:['’]\w+)?\b|(?:that|this)(?:['’]s| is| was)\b"
    r"|(?:my|our|the|his|her|their|(?-i:[A-Z])\w+)(?:['’]s)?\s(?:[\w'’-]+ ){0,4}?(?:is|are|was|were"
    r"|has|have|had|will|would|got|moved|lives?|works?|changed|died|left)\b"
    r"|(?!(?:who|whose|which|that|where|when|what|how)\b)(?:[\w'’-]+ ){1,4}?(?:is|are|was|were|will"
    r"|ist|sind|es|son)\b"
    r"|(?:just |no longer |not )*(?:moved|changed|sold|bought|got|quit|left|lost|switched|started"
    r"|stopped|married|need(?:ed)?)\b"
    r"|(?:use|remember|note|keep in mind|call|write|send|ask|tell|show|let)\b"
    r"|(?:und |jetzt |inzwischen )*(?:ich|er|sie|es|wir|das|(?:die|der|das) neue|meine?)\b"
    r"|(?:y |ya )*(?:es|soy|vivo|tengo|el nuevo|la nueva)\b)",
    re.IGNORECASE,
)
# "Forget my PIN. It's 4711." tells what is to be forgotten, and not what holds instead.
_RESTATES = re.compile(
    r"\W*(?:(?:it|that|which)(?:['’]s| is| was)|i\.e\.|that is|namely|也?就是|是)"
    r"(?!.*(?:\b(?:now|new|changed|instead|these days|wrong)\b|[新改换]|现在))",
    re.IGNORECASE,
)
_NAMES_DATA = re.compile(rf"\b{_DATA}|{_CHINESE_DATA}|\bpins?\b", re.IGNORECASE)
_FORMER = re.compile(r"\b(?:old|former|previous|wrong)\b|[旧错]|以前|之前", re.IGNORECASE)
_CHINESE_LIST = re.compile(r"\s*(?:以及|还有|和|包括|跟|谢|好吗|可以吗|行吗|拜托|麻烦)")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_POLITE = re.compile(
    r"\s*(?:please|por favor|bitte|对了|另外|还有|那|also|one more thing|ps|btw"
    r"|by the way|oh|anyway|übrigens|por cierto|顺便)\s*",
    re.I,
)
_TAIL = re.compile(
    r"(?:[,，\s]*(?:please|thanks?|thank you|now|again|any ?more|for good|completely|then|okay|ok"
    r"|bitte|por favor|from (?:your )?(?:memory|notes)|谢谢|好吗|可以吗|[了吧啊呢哈]))*[\W_]*$",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"^\s*(?:about |that |dass |que |(?:everything|anything|all) (?:you know )?about )+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ForgetSplit:
    """A text, divided into what asks to forget something and the rest.

    Attributes:
        stated: the text without the clauses that ask; the text itself if none does, empty if
            nothing remains but a greeting or thanks.
        asked: what each of them names, such as "my old number"; empty if none asks.
    """

    stated: str
    asked: tuple[str, ...] = ()


def split_forget_requests(text: str) -> ForgetSplit:
    """Divide a user's text into the clauses that ask to forget something, and what it states.

    Quotations, code and texts of more than 1,000 characters may be somebody else's words, and are
    not divided.
    """
    return ForgetSplit(text) if len(text) > _MAX_TEXT else _cached_split(text)


def _split(text: str) -> ForgetSplit:
    if needs_no_memory(text):
        return ForgetSplit(text)
    kept: list[str] = []
    asked: list[str] = []
    is_introduced = False
    meant: list[str] = []
    for start, end, after in sentence_spans(text):
        body = text[start:end]
        if _restates(body, meant):
            continue
        is_other = is_introduced or _is_quoted(text, start)
        stated, meant = (body, []) if is_other else _split_sentence(body)
        asked += meant
        if stated:
            kept.append(stated + text[end:after])
        is_introduced = body.rstrip().endswith((":", "："))
    if not asked:
        return ForgetSplit(text)
    stated = "".join(kept).strip()
    return ForgetSplit("" if is_small_talk(stated) else stated, tuple(dict.fromkeys(asked)))


_cached_split = lru_cache(maxsize=4_096)(_split)


def _is_quoted(text: str, at: int) -> bool:
    before = text[:at]
    return bool(
        before.count('"') % 2
        or before.count("```") % 2
        or before.count("“") > before.count("”")
        or before.count("「") > before.count("」")
    )


def _split_sentence(sentence: str) -> tuple[str, list[str]]:
    """Return what a sentence states, and what each of its requests names."""
    kept: list[str] = []
    asked: list[str] = []
    request = ""
    cuts = [0, *(one.start() for one in _BREAK.finditer(sentence)), len(sentence)]
    for start, end in pairwise(cuts):
        separator = _BREAK.match(sentence, start) if start else None
        clause = sentence[separator.end() if separator else start : end]
        is_asking = not (separator and separator[0] in ":：") and _asks(clause, sentence, kept)
        if is_asking or (request and not _is_clause(clause, separator, request)):
            if is_asking and request:
                asked.append(_named(request))
                request = ""
            request = f"{request}{separator[0] if separator and request else ''}{clause}"
            continue
        if request:
            named, request = _named(request), ""
            asked.append(named)
            if _restates(clause, [named]):
                continue
        kept.append(sentence[start:end] if kept else clause.lstrip())
    is_cut_off = bool(request)
    if request:
        asked.append(_named(request))
    if not asked:
        return sentence, []
    if is_cut_off and all(_POLITE.fullmatch(one) or is_small_talk(one) for one in kept):
        return "", asked
    stated = "".join(kept)
    if is_cut_off and stated:
        mark = sentence.rstrip()[-1:]
        stop = "。" if _CHINESE.search(stated) else "."
        stated = stated.rstrip(",;，； ") + (stop if mark in ".!?。！？" else "")
    return stated, asked


def _asks(clause: str, sentence: str, kept: list[str]) -> bool:
    if kept and _REPORTED.search(kept[-1]):
        return False
    if re.search(r"[?？]\W*$", sentence) and not _ASKS_POLITELY.match(clause):
        return False
    return any(form.match(clause) for form in _FORMS)


def _is_clause(clause: str, separator: "re.Match[str] | None", request: str) -> bool:
    """Return whether a clause behind a request stands on its own."""
    if is_small_talk(clause) or _POLITE.fullmatch(clause):
        return False
    if _CHINESE.search(clause):
        return not _CHINESE_LIST.match(clause)
    if separator is not None and separator[0].strip() in {";", "；", "—", "–", "-", "--"}:
        return True
    if not _CLAUSE.match(clause):
        return False
    is_joined = separator is not None and separator[0].isspace()
    is_and = re.match(r"\s*(?:and|und|y)\b", clause, re.IGNORECASE)
    return not (is_joined and is_and and re.search(r"\b(?:that|what|dass|que) ", request))


def _restates(clause: str, named: list[str]) -> bool:
    """Return whether a clause tells the number or the like that is asked to be forgotten."""
    return bool(
        named
        and _NAMES_DATA.search(named[-1])
        and not _FORMER.search(named[-1])
        and _RESTATES.match(clause)
    )


def _named(request: str) -> str:
    """Read from a request what is to be forgotten."""
    found = next(filter(None, (form.match(request) for form in _FORMS)), None)
    if found is None:
        return ""
    named = found[found.lastindex or 0][:_OBJECT]
    return _TAIL.sub("", _HEAD.sub("", named, count=1)).strip()
