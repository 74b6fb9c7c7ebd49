"""What stands around a time expression: whether it is a name or a habit, or tells of the future.

"Who is Wednesday Addams?" names no day, 三月兔 no month, and "Que fais-je le lundi ?" asks for
every Monday. Only so many characters around an expression are looked at that the length of the
text does not matter.
"""

import re

from ..patterns import lazy_pattern

_AROUND = 40
_SENTENCE = 60  # characters before and after, in which a habit is told
_NAMED = lazy_pattern(
    r"\b(?:mrs?|ms|miss|dr|aunt|uncle|named|called|street|avenue|herrn?|frau|familie|onkel|tante"
    r"|namens|straße|strasse|platz|calle|plaza|avenida|señora?|doña|don|tí[oa]|llamad[oa]|rue"
    r"|place|monsieur|madame|oncle|nommée?)\.?(?:\s+(?:des?|der|del|du|las?|le))*\s+$",
    re.IGNORECASE,
)
_QUOTED_BEFORE = lazy_pattern(r"[«“„「『《\"‘][^»”」』》\"’?!？！]{0,20}$")
_QUOTED_AFTER = lazy_pattern(r"[^«„「『《?!？！]{0,20}?[»”“」』》\"’]")
_BEGINNING = lazy_pattern(r"(?:^|[.?!¿¡:\n\"“«(—–-])\s*$")
_END = lazy_pattern(r"\s*(?:$|[.,?!;:)…])")
_CAPITAL_BEFORE = lazy_pattern(r"[^\W\d_][,;]?\s+(?!I\s)[A-Z][\w'’]*\s+$")
_CAPITAL_AFTER = lazy_pattern(r"\s+(?!I\b)[A-Z]")
_HABIT = lazy_pattern(
    r"\b(?:usually|normally|always|often|generally|typically|every|each|normalerweise|meistens"
    r"|gewöhnlich|üblicherweise|immer|normalmente|siempre|suel(?:o|es?|en|emos)|habitualmente"
    r"|generalmente|habitude|toujours|habituellement|généralement|normalement)\b"
    r"|每|毎|平时|平時|通常|一般|经常|經常|总是|總是|习惯|習慣|いつも|普段|ふだん|たいてい",
    re.IGNORECASE,
)
_REPEATED = frozenset(("W", "k", "S", "m", "M", "wN", "wh", "wd", "Nn"))
_ON = lazy_pattern(
    r"\b(?:on|by|since|until|till|from|to|through|and|or|before|after|of)\s+$", re.IGNORECASE
)
_PART_OF_DAY = lazy_pattern(r"\s+(?:mornings?|afternoons?|evenings?|nights?|and|or|at)\b")
_PARTS_OF_DAYS = lazy_pattern(r"\s+(?:mornings|afternoons|evenings|nights)\b")
_WHO = lazy_pattern(r"\b(?:who is|who's|does|with|about|like)\s+$", re.IGNORECASE)
_IN = lazy_pattern(r"\b(?:in|since|by|until|till|during)\s+$", re.IGNORECASE)
_POSSESSIVE = lazy_pattern(r"['’]s\b")
_PERSON = lazy_pattern(r"\b(?:und|mit|von|wohnt|kennt|mag|heißt|sagt|wer ist)\s+$", re.IGNORECASE)
_WEEKDAY_AND = lazy_pattern(r"tag(?:abend)?\s+und\s+$", re.IGNORECASE)
_MEASURED = lazy_pattern(r"\s*(?:[€$%‰]|[A-ZÄÖÜ]|km\b|mal\b)")
_NOUN = lazy_pattern(r"(?:[A-ZÄÖÜ][\w-]*|\d|[^\w\s])\s*$")
_EN = lazy_pattern(r"\ben\s+$", re.IGNORECASE)
_LE = lazy_pattern(r"\ble\s+$", re.IGNORECASE)
_FRENCH_PAST = lazy_pattern(
    r"\b(?:ai|as|a|avons|avez|ont|suis|es|sommes|êtes|étai\w+|avai\w+)\b", re.IGNORECASE
)
_IDIOM = lazy_pattern(r"\b(?:von heute auf|guten|auf)\s+$|\b(?:media|buena|una|aquella)\s+$", re.I)

_NAMED_EASTERN = lazy_pattern(r"(?:叫做?|名叫|名为|认识|認識|黑色|小|第)$")
_NAME_GOES_ON = lazy_pattern(
    r"さん|ちゃん|くん|様|君|先生|小姐|姐|哥|妹|嫂|子(?!供)|香|是谁|是誰|叫|喜欢|喜歡|讨厌|住在|的(?:生日|电话|電話|名字)"
)
_COMPOUND = lazy_pattern(r"[天花雪兔饼餅病雨堂](?![气氣了费費多])|人形|革命|[一二三两兩\d]+[次回]")
_AFTER_SHORT_WEEKDAY = lazy_pattern(r"[のにはもとかまだ、。？?夜朝昼午\s]|$")
_COMPANY = lazy_pattern(r"餐厅|酒吧|乐队|头条|頭條|方舟|会更好|會更好")


def is_time(text: str, first: int, last: int, signs: str, language: str) -> bool:
    """Tell whether what looks like a time expression is one.

    Args:
        first: place where it begins.
        last: place where it has ended.
        signs: of its words, from `time_words`.
        language: in whose table they are; "" is Chinese and Japanese.
    """
    before, after = text[max(0, first - _AROUND) : first], text[last : last + _AROUND]
    if _QUOTED_AFTER.match(after) and _QUOTED_BEFORE.search(before):
        return False
    told, kind = text[first:last], signs.strip("F-.")
    if kind in _REPEATED and _HABIT.search(text, max(0, first - _SENTENCE), last + _SENTENCE):
        return False
    if not language:
        return _is_eastern_time(before, told, after, kind)
    if kind[-1:] in ("W", "m", "M", "D", "g") or "m" in kind:
        check, named = _CHECKS.get(language), _NAMED.search(before)
        return not named and (check is None or check(before, told, after, kind, signs))
    if kind == "Y" and language == "de":
        return _MEASURED.match(after) is None and _NOUN.search(before) is None
    return told.lower() != "weekends"


def _is_eastern_time(before: str, told: str, after: str, kind: str) -> bool:
    if kind[-1:] == "D":
        of_something = told == "前日" and before.endswith("の")
        return not (of_something or _NAME_GOES_ON.match(after) or _COMPANY.match(after))
    if kind in ("Ty", "Ly"):  # 这年头, 上年纪
        return after[:1] not in ("头", "頭", "纪", "紀")
    if kind not in ("Nn", "W", "wN", "wh", "wd"):
        return True
    if _NAMED_EASTERN.search(before) or _NAME_GOES_ON.match(after):
        return False
    if kind == "Nn":
        return _COMPOUND.match(after) is None
    is_short = told.endswith("曜") and _AFTER_SHORT_WEEKDAY.match(after) is None
    return not is_short and _COMPANY.match(after) is None


def _is_english_time(before: str, told: str, after: str, kind: str, signs: str) -> bool:
    if kind == "D":
        return told.isupper() or not told[:1].isupper() or _BEGINNING.search(before) is not None
    if kind == "W":
        return _is_english_weekday(before, after)
    if kind == "m":
        if signs != "m" or not _IN.search(before) or _POSSESSIVE.match(after):
            return False
        return not (_CAPITAL_AFTER.match(after) and "in" in before)
    return not told.islower() or _is_english_month(before, told, after, kind)


def _is_english_weekday(before: str, after: str) -> bool:
    if _CAPITAL_BEFORE.search(before) or _CAPITAL_AFTER.match(after) or _WHO.search(before):
        return False
    is_plain = _ON.search(before) or _BEGINNING.search(before) or _END.match(after)
    return not _PARTS_OF_DAYS.match(after) and bool(is_plain or _PART_OF_DAY.match(after))


def _is_english_month(before: str, told: str, after: str, kind: str) -> bool:
    """Tell whether "may" or "march" in small letters is a month rather than a verb."""
    if "may" not in told and "march" not in told:
        return True
    if kind in ("Tm", "Lm", "Xm"):
        return kind != "Tm" and not before.rstrip().endswith("the")
    if kind == "Em":
        return not before.rstrip().lower().endswith("how")
    if kind in ("Nm", "N.m"):
        return _END.match(after) is not None
    return kind != "mN" or _ON.search(before) is not None


def _is_german_time(before: str, told: str, after: str, kind: str, signs: str) -> bool:
    if kind == "g":
        return _IDIOM.search(before) is None
    if kind == "W":
        return _PERSON.search(before) is None or _WEEKDAY_AND.search(before) is not None
    return True


def _is_romance_time(before: str, told: str, after: str, kind: str, signs: str) -> bool:
    """Tell it for Spanish and French, which write days and months with small letters."""
    capital = told[:1].isupper() and not told.isupper() and not _BEGINNING.search(before)
    if kind == "g" and _IDIOM.search(before):
        return False
    if kind == "m":
        return not capital or _EN.search(before) is not None
    return not (capital and kind in ("W", "D", "g"))


def _is_french_time(before: str, told: str, after: str, kind: str, signs: str) -> bool:
    if kind == "W" and _LE.search(before) and not _FRENCH_PAST.search(before):
        return False
    return _is_romance_time(before, told, after, kind, signs)


# In Arabic no word of the table is another one.
_CHECKS = {
    "en": _is_english_time,
    "de": _is_german_time,
    "es": _is_romance_time,
    "fr": _is_french_time,
}

# -- the future of statements ------------------------------------------------------------------

_SENTENCE_ENDS = lazy_pattern(r"[.!?。！？\n](?:\s|$)|[。！？]")
_TOLD_BEFORE = lazy_pattern(
    r"\b(?:was|were|did|had|went|got|took|made|saw|met|came|ate|bought|been|\w{2,}ed|war|waren"
    r"|hatten?|wurden?|ge\w{2,}(?:t|en)|fue|fui|era|estaba|estuve|tuve|hice|fuimos|comí|\w{2,}é"
    r"|\w{2,}ó|étai\w*|avai\w*|ai \w+|suis allée?|a eu)\b|了|过|過|た(?=[。、\s]|$)|ました|でした",
    re.IGNORECASE,
)
_TOLD_AHEAD = lazy_pattern(
    r"\b(?:won't|shall|must|need to|have to|have an?|plan(?:ning)? to|due|deadline|upcoming|is|are"
    r"|starts?|begins?|leaves?|leaving|flying|moving|i'm|we're|muss|müssen|möchte|soll|ist|sind"
    r"|findet|habe|beginnt|fliege|fahre|ziehe|fällt|voy|vas?|vamos|van|tengo|tenemos|tiene|es|son"
    r"|debo|hay|tendr\w+|empieza|vais|allons|dois|est|sont|pars|commence|j'ai)\b"
    r"|有|在|是|ます|です|だ(?=[。、\s]|$)|ある",
    re.IGNORECASE,
)
_AHEAD_ANYWAY = lazy_pattern(
    r"\b(?:will|going to|gonna|wird|werde|werden|wirst|voy a|vas? a|vamos a|será|tendr[éá]"
    r"|\w{3,}[aei]r[éá]|\w{2,}ra|\w{2,}rai|scheduled|prévue?)\b|['’]ll\b"
    r"|要|[会會](?![いうえっ议議社])|将|將|打算|准备|準備|计划|計劃|予定|つもり",
    re.IGNORECASE,
)
_NOT_COUNTED = lazy_pattern(r"\bthe\s+$", re.IGNORECASE)
_OF_SOMETHING = lazy_pattern(r"\s+(?:of|before|after)\b|(?<=日)子")
_OF_ANOTHER = lazy_pattern(r"(?:following|previous)\b", re.IGNORECASE)
_OFFSET = lazy_pattern(  # up to the end of a time
    r"(?i)\b(?:days|weeks?|fortnights?|months?|tagen?|wochen?|monaten?|jours|semaines?|días"
    r"|semanas?)\s+(?:from|after|before|nach|vor|après|avant|(?:después|antes)\s+de)\s+"
    r"(?!(?:last|next)$)\S+(?:\s+\S+)?$|\b(?:über)?morgen\s+in\s+\w+\s+\w+$"
)
_OFFSET_BEHIND = lazy_pattern(
    r"(?i)\s+(?:week\b(?!\s+(?:\d|one|two|three))|(?:from|after|before)\s+(?:next\s|tomorrow"
    r"|(?!to)\w+day\b)|in\s+\w+\s+(?:wochen?|tagen|monaten?)\b)|(?:[之以]后|算?起)[\d一二两三四五六七八九十]"
)
_STATED = 200  # characters before and after a time, at most, that tell when its sentence is


def is_ahead(text: str, first: int, last: int) -> bool:
    """Tell whether the sentence around a time is about the future."""
    before, after = text[max(0, first - _STATED) : first], text[last : last + _STATED]
    start = max((one.end() for one in _SENTENCE_ENDS.finditer(before)), default=0)
    end = _SENTENCE_ENDS.search(after)
    sentence = f"{before[start:]} {after[: end.start()] if end else after}"
    is_told = _TOLD_AHEAD.search(sentence) and not _TOLD_BEFORE.search(sentence)
    return bool(is_told or _AHEAD_ANYWAY.search(sentence))


def is_offset(text: str, first: int, last: int) -> bool:
    """Tell whether a time is counted from another one, or another from it: "tomorrow week"."""
    before = text[max(0, first - _AROUND) : last]
    return bool(_OFFSET.search(before) or _OFFSET_BEHIND.match(text, last))


def is_counted(text: str, first: int, last: int) -> bool:
    """Tell whether a time that is counted from a moment is counted from that of its text.

    "The last week of May" and "the next week" in a story are not.
    """
    before = text[max(0, first - _AROUND) : first]
    if _OF_ANOTHER.match(text, first) or _OF_SOMETHING.match(text, last):
        return False
    return _NOT_COUNTED.search(before) is None
