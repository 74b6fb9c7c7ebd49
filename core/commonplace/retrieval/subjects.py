"""Subjects of sentences: the speaker, somebody of his, or a name.

In English and Chinese, with the plainest words of German, Spanish and Japanese.
"""

import re
from functools import lru_cache

PEOPLE = (
    "mother mom mum father dad parents sister brother siblings twin son daughter kid kids child "
    "children wife husband partner girlfriend boyfriend fiancé fiancée spouse uncle aunt cousin "
    "cousins niece nephew grandmother grandfather grandma grandpa granny grandparents "
    "grandson granddaughter friend friends neighbour neighbor neighbours colleague colleagues "
    "roommate flatmate boss manager landlord dog cat puppy kitten parrot horse rabbit hamster bird "
    "tutor teacher doctor company team schwester bruder mutter vater tochter sohn frau mann "
    "freundin "
    "freund hermana hermano madre padre hija hijo esposa marido amiga amigo"
).split()
_CHINESE_PEOPLE = (
    r"(?:妈妈?|爸爸?|母亲|父亲|父母|爸妈|[表堂]?(?:姐姐?|妹妹?|哥哥?|弟弟?)|儿子|女儿|孩子|老公"
    r"|老婆|丈夫|妻子"
    r"|爷爷|奶奶|外公|外婆|姥姥|姥爷|舅舅|姑姑|叔叔|阿姨|女朋友|男朋友|女友|男友|朋友|闺蜜|同事"
    r"|室友|邻居|同学"
    r"|房东|领导|公司|妹|弟|姉|兄|母|父|友達)"
)
_SUBJECT = re.compile(
    rf"(?:\b(?:my|our|meine?|mi|user['’]s)|^the) (?:\w+ ){{0,2}}?({'|'.join(PEOPLE)})\b"
    r"(?! and (?:i|me)\b)"
    rf"|\b({'|'.join(PEOPLE)}) (?:of the user|des nutzers|del usuario)\b"
    r"|\b(i|we|my|our|me|us|ich|wir|meine?|vivo|trabajo|me|mi)\b"
    r"|\b(?:the |der |die |el |la )?(user|nutzer|nutzerin|usuario|usuaria)\b"
    rf"|(?:我|我们|咱|咱们|用户)(?:的|家)?({_CHINESE_PEOPLE})|([我咱])|(用户|ユーザー)"
    rf"|^({_CHINESE_PEOPLE})(?=[在住的是叫は])"
)
_NAME = re.compile(
    r"^(?!(?:The|We|It|They|This|That|These|There|When|If|Since|Now|After|He|She|You|As|In|On|At"
    r"|From"
    r"|Call|Yesterday|Today|Just|Actually|Correction|Our|My|Ich|Mein|Meine|Wir|Vivo|Trabajo|Me|Mi"
    r"|Ahora|Der|Die|Das|El|La|User|Users|Is|Has|Was|Had|Can|Will|Someone|Somebody|Nobody|Everyone"
    r"|Everybody|People|Finally"
    r"|Recently|Unfortunately|Luckily|Apparently|Currently|Lately|Suddenly|Thankfully|Sadly|Sorry"
    r"|Sold|Left|Moved|Changed|Switched|Started|Stopped|Got|Please|Heads|New|No|Not|Still|Also|So"
    r"|But|And|Well|Oh|By|For|To|With|Last|Next|Some|All|Every|Any|Most|One|Two|Good|Big|Small)\b"
    r"|(?!(?:Ahm|Alfr|Fr|Jar|Moham+|Muham+|N|R|Rash|T|Winifr)ed\b)\w{2,}ed\b"  # "Cancelled it"
    r"|\w+ is (?:my |our )?home\b|\w+ \w+ are\b|\w+ is what\b"
    r"|\w+ (?:the|an?|my|our|your|me|us|it|this|that|to|in|on|at|for|of|with|up|out|off|over)\b"
    r"|\w+ (?:is|are) (?:\w+ )?(?:for|to) me\b)"
    r"([A-Z]\w+)(?: [A-Z]\w+)?(?:['’]s\b| (?!and (?:I|me)\b|is (?:now )?my\b)[a-z])"
)
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏"
    "薛叶阎余潘杜戴"
    "夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
)
_CHINESE_NAME = re.compile(
    rf"^(?!周[会末一二三四五六日]|马上|方案|金额|高[考铁中]|白天|黄金|钱包|江边|常常|老[家板师是]"
    rf"|小[猫狗时区学孩])"
    rf"([小老][^，。我]|[ァ-ヶー]{{2,}}|[^\W\d_a-z]{{1,3}}さん|[A-Z][a-zA-Z]+|[{_SURNAMES}](?:阿姨"
    rf"|叔叔|老师|先生|女士|医生|[^，。我们的在是]{{1,2}}?))"
    r"(?=[在是的住搬跳今有叫喜养每做会去把从对换闻主正刚现离辞怕はがの])"
)
_RELATION = re.compile(rf"(?:['’]s (?:\w+ ){{0,2}}?({'|'.join(PEOPLE)})\b|的({_CHINESE_PEOPLE}))")


def subject(sentence: str, small: str) -> str:
    """Read of whom a sentence tells, "" if it names nobody.

    "me" for its speaker, "user" for the user of a fact, else a relation such as "sister" or a name.

    Args:
        small: the sentence in small letters.
    """
    if name := _NAME.search(sentence) or _CHINESE_NAME.search(sentence):
        of = _RELATION.match(sentence, name.end(1))
        return f"{name[1]} {of[1] or of[2]}".lower() if of else name[1].lower()
    found = _SUBJECT.search(small)
    if found is None:
        return ""
    person, other, self_, user, chinese, chinese_self, chinese_user, bare = found.groups()
    if self_ or chinese_self:
        return "me"
    return "user" if user or chinese_user else person or other or chinese or bare


_SELF = frozenset(["me", "user"])
_HEAD = 300  # characters of a text that tell of whom it is
_CACHED = 4_096
_WORDS = re.compile(r"[^\W_]+")
_NAMED = re.compile(r"(?<![.!?¿¡\s])\s+(?:['\"“‘(])?([A-ZÀ-Þ][^\W\d_]+)")
_ASKING = re.compile(
    r"^[\s¿]*(?:(?:in|at|on|with|for|to|from|by|of|under) )?(?:who|whom|whose|what|which|where|when"
    r"|why|how|wer|wen|wem|wessen|was|welche[rsnm]?|wo|wohin|wann|warum|wie|qui[ée]n|qué|cuál|dónde"
    r"|cuándo|cómo|do|does|did|is|are|was|were|has|have|had|can|could|will|would)\b"
    r"(?:['’]s| (?:is|are|was|were|does|do|did|has|have|had|can|will|would|ist|sind|hat|heißt|es))?"
    r"\s*",
    re.IGNORECASE,
)
_NO_NAMES = re.compile(
    r"^(?:I|I['’]\w+|Mon|Tue|Wed|Thu|Fri|Sat|Sun|January|February|March|April|May|June|July|August"
    r"|September|October|November|December|PIN|ID|OK|TV|English|German|French|Spanish)"
)


def asked_subjects(question: str) -> frozenset[str]:
    """Read of whom a question asks, as `subject`; empty if it names nobody.

    Names come in small letters; somebody of another person only as that person's name.
    """
    text = question[:_HEAD]
    rest = _ASKING.sub("", text, count=1)
    names = {name.lower() for name in _NAMED.findall(f"x {rest}") if not _NO_NAMES.match(name)}
    found = subject(rest, rest.lower())
    if found in _SELF or found in PEOPLE or not found or _CHINESE.search(found):
        return frozenset({*names} or ({found} if found else ()))
    return frozenset({*names, found.split()[0]})


_CHINESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")


def subject_fit(asked: frozenset[str], text: str, speaker: str | None) -> float:
    """Return 1 if a text is about one of those asked for, -1 if it is about another, else 0.

    What names nobody is about the user.

    Args:
        speaker: name of who says it, if known.
    """
    found, words = _read_head(text[:_HEAD])
    if not asked.isdisjoint(words) or any(_CHINESE.search(one) and one in text for one in asked):
        return 1.0
    if found == "me" and speaker:
        found = speaker.lower()
    if not found:
        return 1.0 if asked & _SELF else 0.0
    if found in _SELF:
        return 1.0 if asked & _SELF else -1.0
    return 1.0 if found in asked else -1.0


@lru_cache(maxsize=_CACHED)
def _read_head(head: str) -> tuple[str, frozenset[str]]:
    """Read whom a text is about, and its words but for those of people who speak of themselves."""
    small = head.lower()
    return subject(head, small), frozenset(_WORDS.findall(small)) - _SELF
