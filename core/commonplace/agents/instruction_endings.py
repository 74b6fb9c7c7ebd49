"""What ends or eases a standing instruction, told by comparing it with that instruction.

A sentence ends an older one if it says in a clause of its own that something is over, allowed or
better now, and names what the older one is about: a word of it, or another value of its matter.
What others do ("she no longer answers") ends nothing.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from ..retrieval.lexical import vocabulary
from ..retrieval.utterance_kinds import normalize
from .instruction_forms import ANSWERS, CURRENCY, LANGUAGE, PROGRAMMING, UNITS

_CACHED = 1_024  # sentences
_CACHED_PAIRS = 8_192  # those of 50 instructions are compared in every turn
_LEAST_SHARED = 0.25  # of the words that an instruction is about
_OF_CASE = 2  # words that name an instruction by its case

# That something is needed no more, ...
_OVER = re.compile(
    r"\b(?:no longer|no more|any ?more|any longer|no need|need(?:n['’]t| not)"
    r"|(?:don['’]t|do not|doesn['’]t|won['’]t) (?:have|need|bother|help|want"
    r"|care (?:how|which|what|if|whether))"
    r"|(?:is|are|has|have|does|do)(?:n['’]t| not) (?:needed|necessary|have to|need to)"
    r"|unnecessary|pointless"
    r"|stop|quit|drop|skip|scrap|ditch|lose|cancel|forget|ignore|end|cut|leave|get rid of"
    r"|enough|done with|over with|fed up|gave up|given up"
    r"|(?:tired|sick|bored) of|(?:getting|got|gets) (?:old|boring|annoying|on my nerves)"
    r"|too (?:much|many)|confus\w+|can(?: all)? go\b|trouble|wrong about|silly|never (?:read|use)"
    r"|hard to read|broken|less|fewer|instead of|not just|without|any [\w ]+ (?:goes|will do))\b",
    re.IGNORECASE,
)
# ... is allowed, ...
_ALLOWED = re.compile(
    r"\b(?:again|fine|okay|ok|alright|all right|welcome|allowed|you (?:can|may)|(?:feel )?free to"
    r"|(?:don['’]t|do not|doesn['’]t|wouldn['’]t|won['’]t|never) (?:mind|hurt|bother)"
    r"|bring|after all"
    r"|(?:would|could) (?:actually |really )?help|no problem)\b",
    re.IGNORECASE,
)
# ... or is otherwise now.
_OTHER = re.compile(
    r"\b(?:back|again|now|instead|from (?:now|here) on|please|fine|okay|ok|(?:will|['’]ll) do"
    r"|(?:is|are|makes?|be) (?:\w+ )?(?:easier|better|more sense|clearer|simpler)|it is|than"
    r"|switch(?:ed)?|just be|what i need|rather|after all|you can)\b",
    re.IGNORECASE,
)
_OVER_CHINESE = re.compile(
    r"不用|不必|不需要|没必要|无需|[别不]再|别(?!忘)[^，。]{1,12}了|不要[^，。]{1,12}了|不[^，。]{1,6}了"
    r"|免了|算了|取消|无所谓|随便|少[用说写加点]|不一定|太多|看腻|听累|看不清|烦"
)
_ALLOWED_CHINESE = re.compile(
    r"可以|没关系|没问题|也行|无妨|不介意|还是要|[^，。]能[^，。]+了|恢复"
)
_OTHER_CHINESE = re.compile(
    r"就行|就好|好了|还是|换|改|恢复|正常|[吧啦]\W*$|更方便|更习惯|为好|可以[^，。]*了"
)
_CUES = (
    ("over", _OVER, _OVER_CHINESE),
    ("allowed", _ALLOWED, _ALLOWED_CHINESE),
    ("other", _OTHER, _OTHER_CHINESE),
)
_JOINED = r"^\W*(?:(?:and|but|so|because|since|as|now|okay|ok)\b,? *)*"  # to what stands before
# Whose doing a clause tells of, if not the user's or the assistant's.
_OTHERS = re.compile(
    rf"{_JOINED}(?:(?:he|she|they|we|his|her|their)\b"
    r"|(?:my|our|his|her|their|the|this) (?!(?:answers|replies)\b)[\w'’-]+(?: \w+)?"
    r" (?:can|may|no longer|doesn['’]t|don['’]t|has|have|wants?|stopped|speaks?|switched|went)\b"
    r"|(?:the|these|those|my) \w+ (?:in|on|of|from|at) (?:the|my) )"
    r"|\b(?:i|we|he|she|they) (?:can|could) (?!read)|\b(?:says|said|told)\b"
    r"|^\W*(?:[他她它]|(?:我)?(?:妈|爸|妹|弟|哥|姐|儿子|女儿|老师|医生|朋友|们|同事|老板[^，]*[都说]))"
    r"|我们|说好|老师|医生",
    re.IGNORECASE,
)
# What an assistant is asked to do with one text.
_ONE_TEXT = re.compile(
    r"^\W*(?:please |now |then )*(?:translate|convert|show|send|give|write|say|answer|explain|list"
    r"|find|tell|put|use|make|read)\b(?: me)? (?:the|this|that|it|a|an|my|these|those)\b"
    rf"|^\W*(?:(?:and|now|then|also|again) )*in (?:{LANGUAGE})\b"
    r"|^\W*(?:请|帮我|给我)*(?:把|写一|讲个|列|翻译)|一[封首篇句]",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"[,，；!！.。—]\s*|;\s|\s(?=(?:and|but|because|since|so)\s)", re.IGNORECASE)
_NEGATIVE = re.compile(
    r"\b(?:not|never|stop|no|\w+n['’]t|cannot|skip|avoid|leave out"
    r"|omit|out of|without)\b|不|别(?!字|人)",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\bonly\b|只", re.IGNORECASE)
_FORBIDS = re.compile(r"\b(?:not|never|stop|no|\w+n['’]t|avoid)\b|不|别(?!字|人)", re.IGNORECASE)
# Words that say how an assistant works, or how much something holds, and not what about.
_GENERAL = vocabulary(
    "a about again all allowed always an and answer any anymore are as ask at back be better "
    "but by call can care do don each else end ever every everything fine for free from get "
    "give go good had has have how i if in is it just keep kindly know last like list longer "
    "make me mention message more much my need never no not now of off okay on only or out "
    "over please prefer put really recommend reply respond say send shall should show so some "
    "something speak start stay still stop suggest talk tell than that the them then there "
    "thing things this time to too up us use very want way we what when whenever which will "
    "with word would write you your yours answers replies messages response mine me's re s t "
    "ll ve m d"
)
_GENERAL_CHINESE = re.compile(
    r"回答|回复|答复|直接|给|别(?!字|人)|每段话|后面|最后|开头|结尾|加|每次|每条|每天|以后|今后|从现在[起开始]*|可以|不用|不必|不需要|别再|不要|给我|跟我"
    r"|对我|帮我|我|你|请|都|用|叫|称呼|说话|说|写|一点|一些|尽量|就|了|吧|的|地|得|再|也|还是|很|太|这|那"
    r"|个|时候|没关系|表示|标上|总是|始终|永远|推荐|提醒|什么|怎么|现在|偶尔|里|中|上|像|一样|要|能|好|行"
)
_HAN = re.compile("[\u4e00-\u9fff]+")

# Words of a clause that eases, beside what it eases.
PLAIN_WORDS = frozenset(
    (
        "a able actually add adding again all allowed alright also an and any anymore anyway are "
        "aren't ask asked answer answering answers as at back be become best better bit bother "
        "but by can can't come continue could cut definitely ditch do doesn't don't done drop "
        "either end enough ever every explanations feel few fine for format free from generally "
        "get getting give go going gone good great happy have here honestly hurt if in include "
        "including instead is isn't it's just keep kindly lately leave less let let's level like "
        "little long longer lose loosen lot make may maybe me messages might mind more most much "
        "must necessary need needed needn't nice no normal normally not now of off ok okay on "
        "once only or ordinary out over paragraphs perfectly perhaps plain please preferred "
        "probably problem prose put quite rather really regular relax required replies reply "
        "replying respond responding responses return rid right rule scrap send sentences shall "
        "should since skip so some sometimes sound speak speaking start stick still stop style "
        "such switch system talk talking text thank thanks that that's the them then there "
        "there's things those though to tone too totally unit units unless unnecessary until up "
        "us use using usual usually very want way welcome well will with without won't word words "
        "would wouldn't write writing yes yet you you'd you'll you're your"
    ).split()
)
PLAIN_CHINESE = re.compile(
    r"(?:可以|没关系|没问题|没事|不介意|以后|现在|从现在起|不用|不必|不需要|没必要|无需|不要|那么|这么|还是|偶尔"
    r"|回答|回复|答复|恢复|切换|谢谢|麻烦|语气|格式|单位|符号|[对跟和给]我|你的?|一[点些]|[点些]|就好|就行"
    r"|其实|真的|有点|说话|聊天|交流|时候|之前|原来|这样|那样"
    r"|我(?=不介意|希望|想让你|更?喜欢)|希望|想让|喜欢"
    r"|[用说讲写加带发得地的了吧啦也就都再又行好别太改换转回成到变来请要能正常平时重新去掉取消把免省随挺多少更开])"
)
_MORE_PLAIN = PLAIN_WORDS.union(
    (
        "after before about am any's anything applies basics been being bring broken cancel "
        "care changed "
        "clearer confuse confuses confusing didn't different down dumb easier everything "
        "explain feels first forget gets goes got hard has hear heart help helps i i'd i'm "
        "i've idea ignore know language makes my myself name names nerves never old one "
        "others pick pointless prefer quit read readable recommend rules save say see sense "
        "sick silly simple simpler something spelling suggest suits than these they they're "
        "thing this time tired trouble under useless wants was wasn't were weren't what which "
        "works wrong yourself"
    ).split()
)
_MORE_CHINESE = re.compile(
    "稍微|一下|有点|方便|习惯|一定|规矩|规则|这个|那个|看不[懂清]|什么|免了|无所谓|随便|帮我|推荐|提醒|为好|继续|称呼|顺序|关系"
    rf"|{PLAIN_CHINESE.pattern}|[太都免当套先烦算必么不只叫我腻累听看好也里上中夹点些可以能就没需须说]"
)
_OWN = re.compile(
    rf"{_JOINED}(?:(?:my|our) |i (?!(?:\w+ )?(?:no longer|need|care|mind|want|prefer|never|gave"
    r"|was wrong|don['’]t|do not|would)\b)"
    r"|i(?:['’]d| would) like to\b|(?:the|an?) \w+(?: \w+)? (?:is|are|would)\b"
    r"|i (?:don['’]t|do not|no longer) (?:need|want|mind) (?:a|the|any)?\s*(?:\w+ \w+|"
    rf"{LANGUAGE})\b(?! (?:{ANSWERS}|rule))(?!.*points)"
    rf"|i['’]m (?:\w+ )?(?:fine|okay|ok) with|.*\bhave (?:{LANGUAGE})\b"
    r"|you are welcome to|translate|polish (?:the|that|this|my)\b)"
    r"|^\W*我(?:的|们|现在|以后|又|也|已经)*(?:可以|不用|能|会|开始)",
    re.IGNORECASE,
)
_IT = re.compile(r"\b(?:it|them|those|these|that)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(?:you|your|you['’]\w+|okay to|fine to)\b", re.IGNORECASE)

# What has one value at a time: forms of the values of each matter.
_TONES = (
    r"(?<!to )normal(?:ly)?|loosen|relaxed tone|easier on|gentl\w+|(?:in)?formal\w*"
    r"|polite\w*|casual\w*|(?:brutal\w* )?honest\w*|blunt\w*|harsh\w*|strict\w*|sarcas\w+"
    r"|(?<!['’]d )(?<!would )like an? [\w ]+?(?=[,.!?]|$)"
    r"|正常|温柔|毒舌|严厉|正式|随意|客气|像[^，。]+"
)
_MATTERS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(rf"(?<![a-z])(?:{form})(?![a-z])", re.IGNORECASE)
    for name, form in {
        "language": rf"{LANGUAGE}|[中英法德日韩俄汉粤][文语]|西班牙[文语]|意大利[文语]|说中",
        "programming": rf"{PROGRAMMING}|go(?= is)",
        "currency": CURRENCY,
        "units": UNITS,
        "tone": _TONES,
        "format": "bullet points?|tables?|paragraphs?|plain text|prose|列表|表格|段落",
    }.items()
}
_LEVELS = tuple(  # words that mean the same
    re.compile(form, re.IGNORECASE)
    for form in (
        r"\bsimpl[ey]\w*|\bas if i were|\bbeginner|\bdumb(?:ed)?(?: \w+)? down|\bbasics\b"
        r"|小孩|外行",
        r"\b(?:short(?:er)?|brief(?:er|ly)?|concise|terse|one-lin\w+|at most|max(?:imum)?|under"
        r"|(?:one|two|three|four|five) sentences?)\b|简短|简洁|[别不]要?超过|[^，。]短",
    )
)
_LONG = re.compile(
    r"(?<!any )(?<!no )\blonger\b|\b(?:long|elaborat\w+|in (?:more )?detail|detailed|thorough"
    r"|as much as you (?:like|want)|more than)\b|详细|展开|长[一些点]",
    re.IGNORECASE,
)
_CASE = re.compile(
    r"(?:\b(?:when|whenever|(?<!as )if|unless|(?:each|every) time)\b|如果|每当)[^,，]*|.*时候?",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?:[“「『]|(?<!\w)[\"'‘])([^\"”」』'’]{2,30})[\"”」』'’]")
_REASON = re.compile(
    r",\s*(?:(?:because|since|as|so) )*(?:i|my|we|it|our)\b.*|\b(?:because|since|so that) .*",
    re.IGNORECASE,
)
# Of one kind of text or one person alone.
_OBJECT = re.compile(
    r"\b(?:e-?mails?|letters?|reports?|subjects?|titles?|posts?|tweets?|essays?|commits?)\b|邮件|报告|信|作业|文章",
    re.IGNORECASE,
)


@lru_cache(maxsize=_CACHED)
def may_end(sentence: str) -> bool:
    """Return whether a sentence says that something is over, allowed or otherwise now."""
    return any(map(_clause_cues, _CLAUSES.split(sentence)))


@lru_cache(maxsize=_CACHED_PAIRS)
def ends(newer: str, older: str) -> bool:
    """Return whether a sentence ends or eases an older instruction that it names."""
    if not may_end(newer) or _ONE_TEXT.search(newer):
        return False
    if _OBJECT.search(older) and not _OBJECT.search(newer):
        return False
    main = _CASE.sub("", older)
    ending = {"allowed"} if _NEGATIVE.search(older) else {"over"}
    if _ONLY.search(older):
        ending = {"allowed", "over"}
    for clause in _CLAUSES.split(newer):
        cues = _clause_cues(clause)
        if not cues or _has_more(clause, older, cues):
            continue
        if main == older and _gives_another_value(clause, older, cues):
            return True
        named = newer if _IT.search(clause) else clause
        if ending & cues and _is_named(older, main, named):
            return True
    return False


def _has_more(clause: str, older: str, cues: frozenset[str]) -> bool:
    """Return whether a clause tells of something else than an instruction."""
    if _OWN.search(clause) and not ("over" in cues and clause.lower().startswith("the ")):
        return True
    rest = clause
    for form in (*_MATTERS.values(), *_LEVELS, _LONG):
        rest = form.sub(" ", rest)
    if _HAN.search(clause):
        known = set("".join(_HAN.findall(older)))
        plain = _MORE_CHINESE.sub("", rest)
        return sum(one not in known for one in plain if one.isalnum()) > 0
    said = vocabulary(older)
    words = re.findall(r"[^\W_]+(?:'\w+)?", rest.lower().replace("’", "'"))
    more = {one for one in words if one not in _MORE_PLAIN}
    more = {one for one in more if not vocabulary(one) <= said}
    return len(more) > bool(_YOU.search(clause))


def _is_named(older: str, main: str, newer: str) -> bool:
    """Return whether a sentence has words of what an older instruction is about.

    Args:
        main: the older one without its case.
    """
    said = _about(newer)
    if any(word in normalize(newer) for word in map(normalize, _QUOTED.findall(older))):
        return True
    if main != older and len(_about(older) & said) >= _OF_CASE:
        return True
    about = _about(_REASON.sub("", main))
    return len(about & said) >= max(1, _LEAST_SHARED * len(about))


def _gives_another_value(newer: str, older: str, cues: frozenset[str]) -> bool:
    """Return whether a sentence gives another value to the matter of an older instruction."""
    simple, short = _LEVELS
    if "over" in cues and simple.search(older) and simple.search(newer):
        return True
    if "allowed" in cues and short.search(older) and _LONG.search(newer):
        return True
    if "other" not in cues or _FORBIDS.search(older):
        return False
    for form in _MATTERS.values():
        of = {value.lower() for value in form.findall(older)}
        if of and {value.lower() for value in form.findall(newer)} - of:
            return True
    return False


@lru_cache(maxsize=_CACHED)
def _clause_cues(clause: str) -> frozenset[str]:
    """Read what a clause says of whatever it names: "over", "allowed" or "other"."""
    if not clause or _OTHERS.search(clause):
        return frozenset()
    place = 1 if _HAN.search(clause) else 0
    return frozenset(name for name, *forms in _CUES if forms[place].search(clause))


@lru_cache(maxsize=_CACHED)
def _about(sentence: str) -> frozenset[str]:
    """Read the words that a sentence is about; of Chinese, each two characters side by side."""
    if not _HAN.search(sentence):
        return vocabulary(sentence) - _GENERAL
    plain = _GENERAL_CHINESE.sub(" ", sentence)
    runs = _HAN.findall(plain)
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    return frozenset(pairs | {one for one in vocabulary(plain) if one.isascii()})
