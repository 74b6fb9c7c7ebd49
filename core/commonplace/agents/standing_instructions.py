"""Standing instructions: sentences by which a user says how he wants things from now on.

Found by their form in the user's own turns, in English and Chinese, without a model. A sentence
that tells of somebody ("she always comes late") or asks for one thing now has another form. A
doubtful one is left out: what is found is shown to the model in every later turn.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import product

from ..retrieval.lexical import tokens, vocabulary
from ..retrieval.utterance_kinds import is_small_talk, needs_no_memory, normalize, sentence_spans
from ..sans_io import Plan, call
from ..types import Fact, Message, Page, Record, Scope
from .instruction_words import (
    ANSWERS,
    CURRENCY,
    HAN,
    LANGUAGE,
    LEAD,
    PLAIN_CHINESE,
    PLAIN_WORDS,
    POLITE,
    PROGRAMMING,
    asks_for_a_manner,
    ends,
    may_end,
)
from .policy import Policy

MARK = "standing_instruction"
"""Key of the metadata of the records that are made of them."""
_MAX_MESSAGE = 1_000  # characters: in a longer one the user has pasted what others wrote
_MAX_INSTRUCTION = 300
_MAX_COUNT = 5
_MAX_RECORDS = 50
_CACHED = 1_024  # sentences: those that are stored are read in every turn

# What an assistant is told to do; "use" and "call" are done to it as well as by it.
_VERB = (
    r"(?:answer|reply|respond|write|use|call|give|keep|make|add|include|mention|start|begin|end"
    r"|explain|show|tell|speak|talk|format|send|ask|check|remind|address|avoid|put|say|provide"
    r"|suggest|recommend|offer|cite|quote|translate|convert|round|list|summari[sz]e|assume|treat"
    r"|refer|book|order|schedule|propose|present|spell|sign|leave|skip|stick|wait|confirm|warn"
    r"|double-check|apologi[sz]e|repeat|share|store|name|greet|sort"
    r"|be (?:brief|concise|thorough|detailed|polite|direct|honest|formal|informal|casual|careful)"
    r"|let me know)\b"
)
_NOT_NOW = (
    r"(?![^.!?]*\b(?:this time|for now|right now|today|tonight|tomorrow|this (?:one|once)"
    r"|(?:this|that|it|them|these|those)[.!]*$))"
)
_NEVER = r"(?:always|never|only ever|don['’]t ever|do not ever)"
_FROM_NOW = (
    r"(?:from now on|from here on|going forward|in (?:the )?future|henceforth|by default|as a rule)"
)
_NEED_NOT = (
    r"(?:you (?:(?:don['’]t|do not|no longer) (?:need|have) to|needn['’]t)"
    r"|(?:there is |there['’]s )?no need to)"
)
_BACK_TO = r"(?:(?:you can|let['’]s) )?(?:(?:go|switch|get|come) back|return) to"
_YOU = (
    r"(?:you (?:should|must|can|may|have to|need to)|make sure (?:to|that you|you)|be sure to"
    r"|remember to|try to"
    r"|i(?:['’]d like| would like| want| need|['’]d prefer| would prefer) you to)"
)
_ENGLISH = tuple(
    re.compile(LEAD + _NOT_NOW + form, re.IGNORECASE)
    for form in (
        rf"{_NEVER} (?:ever )?(?!give up|say never|tell a lie){_VERB}"
        r"(?! (?:\w+ )?(?:with|at|from|in|on) (?:this|that|these|those)\b)",
        rf"(?:{_YOU} )(?:please )?{_NEVER} (?:ever )?{_VERB}",
        rf"(?:{_FROM_NOW}|every time|each time"
        rf"|in all (?:your )?(?:answers|replies|responses|messages))"
        rf"[,:]? (?:please |you (?:should|must|can) |{_NEVER} |only |just |(?:don['’]t|do not) "
        rf"|i(?:['’]d like| would like| want| prefer)(?: you)?(?: to)? )*"
        rf"(?:{_VERB}|(?:answers|replies|responses)\b"
        r"|(?:short|long|brief|detailed|formal|your|no) \w+)",
        r"i (?:(?:really|generally|usually|always|much|strongly|definitely|do|would always) )?"
        r"prefer (?!not\b)\w+",
        r"i(?:['’]d| would)(?: much| really)? (?:prefer|like|love|appreciate)(?: it)?"
        r" (?:if|that|when) you"
        r" (?:always|never|could always|used|wrote|called|answered|kept|did not|didn['’]t)\b",
        r"my preference is\b",
        rf"(?:when|whenever|every time|each time|any time|if) i (?:ask|say|write|send|mention|type"
        rf"|tell|give|request|paste|share|want)\b[^,.!?]{{0,80}}, *(?:then )?(?:please )?"
        rf"(?:{_NEVER} |only |just |first |also )?(?:{_VERB}|(?:don['’]t|do not) {_VERB}"
        rf"|you (?:should|must|can)\b|i (?:mean|want|expect|need|prefer|always want)\b)",
        rf"{_VERB}.*\bfrom now on\W*$",
        r"(?:only|exclusively) (?:answer|reply|respond|write|use|speak|suggest|recommend|show|give"
        r"|call)\b",
        r"(?:don['’]t|do not) (?:ever |please )?(?:call me|use|add|include|suggest|recommend"
        r"|address|send me|give me|show me|ask me|start|apologi[sz]e|mention|repeat"
        r"|(?:write|answer|reply|respond|speak|talk)(?: to me| me)? in)\b"
        r"(?! (?:this|that|it|the|them|these|those|a cab|an ambulance|back|later)\b)",
        r"(?:you (?:can|may|should) )?stop (?:using|calling|adding|sending|suggesting|asking"
        r"|including|apologi[sz]ing|mentioning|recommending|repeating|addressing"
        r"|(?:answering|replying|responding|writing|speaking)(?: to me| me)? in"
        r" (?!(?:a|the|my|this|that)\b))\b",
        rf"{_NEED_NOT} (?:answer|reply|respond|write|speak|talk|use|add|include|mention|cite"
        r"|give me|address me|call me (?-i:[A-Z])\w*)\b"
        r"(?!.* (?:him|her|them|it|this|that|the|my)\b)"
        r".*\b(?:any ?more|any longer|from now on)\W*$",
        rf"{_NEED_NOT} (?:mention|include|cite|add|suggest|recommend|remind me|ask me|apologi[sz]e"
        r"|repeat|explain)\b(?!.* (?:him|her|them|it)\b).*\b(?:any ?more|any longer)\W*$",
        rf"{_BACK_TO} calling me (?-i:[A-Z])(?!.*\b(?:when|later|at|on|after)\b)",
        r"(?:call|address) me (?:by my|as |(?-i:[A-Z]))(?!.*\b(?:when|later|at|on|after|back)\b)",
        r"you can (?:just |also )?call me (?!(?:mon|tues|wednes|thurs|fri|satur|sun)day\b)"
        r"(?-i:[A-Z])[\w'’-]+(?: (?-i:[A-Z])[\w'’-]+)?(?: again| now| instead)*\W*$",
        r"keep (?:all |all of )?(?:your|the) (?:answers|replies|responses|messages|explanations"
        r"|summaries|emails)\b",
        r"i (?:always|never) want (?:you\b|to (?:see|get|receive|read)\b|\w+ (?:answers|replies))",
        r"i (?:don['’]t|do not) (?:ever )?(?:want|like) (?:you to\b|it when you\b)",
        r"i (?:hate|dislike) it when you\b",
        r"no \w+(?: \w+)? in your (?:answers|replies|responses|messages)\b",
    )
)
_DO = (
    "(?:回答|回复|答复|使用|用|叫我|称呼|给我|写|说|提醒|加上?|附上?|带上?|列|发|推荐|解释|标注|按"
    "|先|直接|提供|告诉我|保持|讲|翻译|总结|建议|提及?|提到|问我|重复|道歉|安排|预订|订|注明|默认|简短)"
)
_NOT_NOW_CHINESE = "(?!.*(?:这次|今天|今晚|明天|暂时|这一次|刚才))"
_LEAD_CHINESE = (
    r"^\W*(?:(?:对了|还有|另外|那|还是|麻烦|请|希望|拜托)[，,]?"
    "|(?:你(?:要|得|一定要)?|帮我)?(?:记住|记得)(?:[，,：:]|(?=以后|今后|从现在|从今|永远|不要|别|每次)))*"
)
_CHINESE = tuple(
    re.compile(_LEAD_CHINESE + _NOT_NOW_CHINESE + form)
    for form in (
        "(?:以后(?!再)|今后|从现在起|从现在开始|从今以后|从今往后|往后|将来)[，,]?(?:请|你|也|都|就|每次|一律|总是"
        "|始终|尽量|统一|要|只|不要|别|不用|不必|再|给我|跟我|对我|和我|的|回答|所有|任何|[，,])*"
        f"(?:{_DO}|我(?:问|说|提到|让你|发))",
        f"(?:你)?(?:要|得|应该|必须)?(?:总是|始终|一律|永远|务必|每次都?|一直)(?:要|请|都|只|用|以|不要|别)*{_DO}",
        "(?:你)?(?:永远|千万|绝对|再也|以后|都)*(?:不要|别|不准|不许|禁止|不可以)(?:再|总是?|老是?|给我|对我|跟我|在)*"
        r"(?:用|使用|叫我|称呼我|说|发|写|加|推荐|提|问我|重复|道歉|回复|建议|开玩笑)(?!这|那|它|他|她|笑|了|力|心|功)",
        "(?:你)?(?:不用|不必|不需要|无需|别)叫我(?!起|吃|来|去|一|回|接|上|下|看|买|做|过)[^，。！？]{1,8}了\\W*$",
        "(?:你)?(?:不用|不必|不需要|无需)(?:再|继续)(?:叫我|称呼我|用[^，。]{1,8}(?:回答|回复|答复))",
        "我(?:个人)?(?:还是|一直|总是|通常|就)?(?:更|比较|更加|最)?(?:偏好|偏爱|倾向于)",
        "我(?:个人|还是|一直|总是|通常)*(?:更喜欢|比较喜欢|更愿意|更习惯)(?!过)",
        "(?:当|每当|每次|如果|只要|凡是)?我(?:每次)?(?:问|说|提到|发给?你?|让你|要求|叫你|请你)(?![他她它])[^。！？]{0,30}"
        "(?:的?时候?|[，,]|就)[，,]?(?:请|你|都|就|要|先|直接|不要|别|务必|必须|一律|总是|只)*"
        f"(?:给我|[^，。]{{0,4}}{_DO})",
        "(?:你的?)?(?:所有|每次)?(?:的)?(?:回答|回复|答复|答案|解释)(?:请|都|要|得|应该|尽量|必须|务必|一律|不要|别)+",
        r"(?:叫|称呼|喊)我(?:为|做)?[^，。！？\s]{1,8}(?:就好|就行|就可以了?|吧|即可)\W*$|请(?:叫|称呼)我",
        "(?:我)?(?:希望|想让|要求|想要)?你(?:能)?(?:总是|每次|以后|一直|始终|永远|都)+(?:能|要|用|不要|别)*"
        + _DO,
        "(?:我)?(?:不喜欢|讨厌|不希望|不想让)你(?:总|老|一直|再|每次)*" + _DO,
    )
)
# What an instruction may be about, and ways to say that it holds no longer.
_LANGUAGE_CHINESE = "(?:中|英|法|德|日|韩|俄|汉|粤|西班牙|意大利)[文语]"
_SWITCHED = {
    "emoji": r"emojis?|emoticons?|smile?ys?|表情(?:符号)?|颜文字",
    "bullets": r"bullet(?:s|ed)?(?:[ -](?:points?|lists?))?|列表|分点|项目符号",
    "tables": r"tables?|表格",
    "markdown": r"markdown(?! (?:head|table|bullet|list))",
    "headings": r"headings?|headers?|小?标题",
    "exclamation marks": r"exclamation (?:marks?|points?)|感叹号",
    "slang": r"slang|俚语|网络用语",
    "jokes": r"jokes?|玩笑",
    "parts": r"summar(?:y|ies)|sources?|citations?|disclaimers?|greetings?|apolog(?:y|ies)"
    r"|总结|出处|客套话",
}
_VALUES = {
    "language": rf"{LANGUAGE}|{_LANGUAGE_CHINESE}",
    "length": r"short(?:er)?|brief(?:er)?|concise|terse"
    r"|(?:under|at most|more than) \w+ (?:words|sentences)|long(?:er)?|detailed|thorough"
    r"|简短|简洁|短|超过|详细|长",
    "tone": r"loosen up|(?:in)?formal(?:ly|it(?:y|ies))?|polite(?:ly)?|casual(?:ly)?|relaxed"
    r"|正式|敬语|客气|随意|口语化?",
    "script": "(?:traditional|simplified) (?:chinese|characters)|[繁简]体[字中]?文?",
    "spelling": r"(?:american|british|us|u\.s\.|uk) (?:spellings?|english)",
    "units": r"metric|imperial|celsius|fahrenheit|kilomet(?:er|re)s?|miles?|公制|英制"
    r"|摄氏度?|华氏度?|公里|英里",
}
_SAME = {  # values that mean the same, by how they begin
    "traditional": "traditional|繁体",
    "simplified": "simplified|简体",
    "american": r"american|us |u\.s\.",
    "british": "british|uk ",
    "short": "short|brief|concise|terse|under|at most|more than|简|短|超过",
    "long": "long|detailed|thorough|详细|长",
    "formal": "formal|polite|正式|敬语|客气",
    "informal": "loosen|informal|casual|relaxed|随意|口语",
    "metric": "metric|celsius|kilomet|公|摄氏",
    "imperial": "imperial|fahrenheit|mile|英[制里]|华氏",
    "chinese": "中|汉|mandarin",
    "english": "英[文语]",
    "french": "法",
    "german": "德",
    "japanese": "日",
    "korean": "韩",
    "russian": "俄",
    "spanish": "西班牙",
    "italian": "意大利",
}
# A sentence eases an instruction if it names a matter, says that something holds again or no more,
# and has no other word: what tells of a phone, a lesson or a dinner has one.
_CUE = re.compile(
    r"\b(?:again|any ?more|any longer|no longer|no more|enough|back to|return to|stop|drop|skip"
    r"|lose|leave out|cut|ditch|scrap|get rid of|instead|from now on|fine|ok|okay|allowed|welcome"
    r"|all right|alright|no problem|no need|(?:don['’]t|do not) (?:need|have) to|needn['’]t"
    r"|unnecessary"
    r"|(?:don['’]t|do not) mind|(?:wouldn|won|can)['’]t hurt|as you (?:like|want)|loosen up|relax"
    r"|after all|free to|too (?:much|many)|(?:can|could|may|is|are)\b.*\bnow)\b",
    re.IGNORECASE,
)
# Such as "now in French, please", which asks for one translation.
_ONE_TEXT = re.compile(
    r"^(?:\W*(?:and|now|again|once|more|please|in|then|also|the|same|to|say|write)\b)*\W*"
    rf"(?:{LANGUAGE})(?:\W*(?:again|now|please|instead|then|too|once|more|thanks)\b)*\W*$",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\bi(?:['’]m| am) (?:fine|ok|okay|good|happy|cool)\b|\bi (?:don['’]t|do not|no longer)"
    r" (?:need|want|mind)\b|\bi(?:['’]d| would)(?: \w+ly)? (?:like|rather|prefer|love|be)\b"
    r"|\bi (?:want|prefer|like)\b"
    r"|\b(?:keep|make) (?:it|things|everything)\b|\b(?:can|could) we\b|\bwe can\b|\bafter all\b"
    r"|\bit (?:is|would be) (?:ok|okay|fine|good|nice)\b",
    re.IGNORECASE,
)
_OF_ONESELF = re.compile(
    r"\bi(?:['’]d| would)? (?:want|like|prefer|love) to (?!(?:go|switch|get|come) back)"
    rf"|\bi (?:don['’]t|do not|no longer) (?:need|want|mind) (?:{LANGUAGE})\b(?! {ANSWERS})"
    rf"|\bhave (?:{LANGUAGE})\b(?! {ANSWERS})|^\W*the \w+(?: \w+)? (?:is|are)\b",
    re.IGNORECASE,
)
_EASING_ENGLISH = tuple(
    re.compile(LEAD + _NOT_NOW + form, re.IGNORECASE)
    for form in (
        r"(?:you (?:can|may)|feel free to) (?:suggest|recommend|mention|include) "
        r"(?!(?:it|him|her|them|this|that)\b).+\bagain\W*$",
        r"(?:you (?:can|may)|feel free to) (?:ask|remind|tell|show|warn|greet|send|give) me\b"
        r".+\bagain\W*$",
        rf"{_NEED_NOT} {_VERB}.*(?:(?:when|whenever|if) i (?:ask|say|write|send|mention|tell"
        r"|request|paste|share)\b|\b(?:when|whenever|if)\b)",
        r"(?:when|whenever|if) i (?:ask|say|write|send|mention|tell|request|paste|share)\b"
        r"[^,.!?]{0,80}, .*\b(?:is|are) (?:fine|ok|okay)(?: again| now| too)*\W*$",
    )
)
_CHINESE_CUE = re.compile(
    r"[了吧啦]\W*$|不用|不必|没必要|不需要|无需|也挺好|再|又|回|恢复|没关系|没问题|也行|也可以|就好|就行|一[点些]"
)


def _is_all_plain(sentence: str) -> bool:
    """Return whether a sentence eases a matter and has no word of anything else."""
    cue = _CHINESE_CUE if HAN.search(sentence) else _CUE
    return bool(cue.search(sentence)) and _is_plain(sentence)


def _is_plain(sentence: str) -> bool:
    """Return whether a sentence names a matter and has no word of anything else."""
    matters = _matters(sentence)
    if not matters:
        return False
    rest = sentence.lower()
    for name in matters:
        rest = (_ON_OFF.get(name) or _VALUED[name]).sub(" ", rest)
    if HAN.search(sentence):
        plain = PLAIN_CHINESE.sub("", re.sub(_LEAD_CHINESE, "", rest))
        return not re.search(r"[^\W_]", plain)
    if not re.match(LEAD + _NOT_NOW, sentence, re.IGNORECASE) or _ONE_TEXT.match(sentence):
        return False
    words = re.findall(r"[^\W_]+(?:['’]\w+)?", _FIRST.sub(" ", rest).replace("’", "'"))
    return not _OF_ONESELF.search(sentence) and PLAIN_WORDS.issuperset(words)


# Code to its end; a quotation or table to the end of its paragraph, as in Markdown; long quotes.
_QUOTED = re.compile(
    r"(```|~~~).*?(?:\1|\Z)|^[^\S\n]*[>|].*?(?=\n[^\S\n]*\n|\Z)|[\"“「『][^\"”」』]{12,}[\"”」』]",
    re.DOTALL | re.MULTILINE,
)
_JOINS = re.compile(r"[,;，；] ?(?:(?:and|but)\b)?|\s(?:and|but)\s", re.IGNORECASE)
_REQUEST = re.compile(
    rf"{LEAD}(?:use|give|write|add|include|keep|make|answer|reply|respond|be)\b"
    r"|^\W*请?(?:使用|用|给|写|加上?|回答|改用)",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？吗呢]\W*$")


def find_instructions(text: str, held: Sequence[str] = ()) -> tuple[str, ...]:
    """Read the standing instructions of a user's text, sentence by sentence; often none.

    Among them is what ends or eases an earlier one, such as "you can use emojis again". Those that
    a sentence joins, "answer in French and never use emojis", are given one by one.
    Quotations, code and texts of more than 1,000 characters may be somebody else's words, and are
    not read.

    Args:
        held: earlier instructions. A sentence that ends one of them may have any form.
    """
    found = []
    for sentence in _readable(text):
        if (
            _eases(sentence)
            or (_is_standing(sentence) and not needs_no_memory(sentence))
            or any(ends(sentence, one) or _asks_otherwise(sentence, one) for one in held)
        ):
            found += _parts(sentence)
    return tuple(dict.fromkeys(found))[:_MAX_COUNT]


def _asks_otherwise(sentence: str, older: str) -> bool:
    """Return whether a plain request gives another value to what an instruction is about.

    "Please use emojis" after "never use emojis"; no other word may stand in it.
    """
    if not _is_plain_request(sentence):
        return False
    one, other = _read(sentence), _read(older)
    of, by = other.matters, one.matters
    if not of or not of.keys() <= by.keys() or other.has_condition or other.has_object:
        return False
    is_contrary = one.is_negative != other.is_negative
    return is_contrary or all(by[name] != value for name, value in of.items())


def _is_plain_request(sentence: str) -> bool:
    return bool(_REQUEST.match(sentence)) and _is_plain(sentence)


def _parts(sentence: str) -> list[str]:
    """Divide "don't use emojis, and keep answers short", each part of which may end by itself."""
    parts = [one.strip() for one in _JOINS.split(sentence)]
    if len(parts) > 1 and not re.search(_FROM_NOW, parts[-1], re.IGNORECASE):
        parts = [one if _is_standing(one) else f"From now on {one}" for one in parts]
    return parts if all(map(_is_standing, parts)) else [sentence]


def may_end_instructions(text: str) -> bool:
    """Return whether a text should be compared with the instructions that are held."""
    return any(may_end(one) or _is_plain_request(one) for one in _readable(text))


def _readable(text: str) -> list[str]:
    """Split a text into the sentences that may instruct."""
    if len(text) > _MAX_MESSAGE:
        return []
    own = _QUOTED.sub(" \n ", text)
    return [
        sentence
        for sentence in (own[start:end].strip() for start, end, _ in sentence_spans(own))
        if len(sentence) <= _MAX_INSTRUCTION
        and (not _QUESTION.search(sentence) or POLITE.search(sentence))
        and not is_small_talk(sentence)
    ]


def _is_standing(sentence: str) -> bool:
    forms = _CHINESE if HAN.search(sentence) else _ENGLISH
    forms = (*forms, POLITE)
    return asks_for_a_manner(sentence) or any(form.search(sentence) for form in forms)


def _eases(sentence: str) -> bool:
    """Return whether a sentence ends or eases an instruction."""
    if _is_all_plain(sentence):
        return True
    return any(form.search(sentence) for form in _EASING_ENGLISH)


# What says only that an instruction holds, or holds no more: two that differ in it are contrary.
_ENGLISH_FORCE = re.compile(
    rf"{LEAD}(?:(?:{_FROM_NOW}|{_BACK_TO}|{_NEVER}|{_YOU}|{_NEED_NOT}|please|ever|only|just|stop|not"
    r"|don['’]t|do not|i (?:don['’]t|do not) (?:ever )?(?:want|like) you to)\b[,:]? *)*"
    rf"|(?:[,;]? *\b(?:{_FROM_NOW}|please|only|any ?more|any longer|again|instead"
    r"|all the time))*\W*$",
    re.IGNORECASE,
)
_CHINESE_FORCE = re.compile(
    _LEAD_CHINESE
    + r"|(?:就好|就行|就?可以|即可|[了吧啦])*\W*$"
    + "|(?:从现在(?:起|开始)|从今[以往]后|以后|今后|往后|将来)[，,]?|请|都|就|只"
    "|每次|一律|总是|老是|总|始终|永远|一直|务必|必须|应该|尽量|统一|千万|绝对|不要|不用|不必|不需要|无需|不|别|再|继续|要"
)
_POLARITY = re.compile("^(?:alway|never|ever|not|do|don|t|pleas)$")
_NEGATIVE = re.compile(
    rf"\b(?:not|never|stop|no|\w+n['’]t|cannot|(?<!is )(?<!are )enough|drop|skip|lose"
    r"|leave out|ditch|cut|scrap|get rid of"
    r"|less|instead of|too much|too many|without)\b"
    rf"|^{_NEED_NOT}|[不别]|无需|禁止|没必要|去掉|取消",
    re.IGNORECASE,
)
_LIFTED = re.compile(
    r"\b\w+(?:n['’]t| not) (?:mind|hurt|bother)\b|没关系|没问题|没事|不要超过"
)  # looks negative, and is not
_CONDITION = re.compile(
    r"\b(?:when|whenever|if (?!you)|unless|except|each time|every time)\b|时候?|如果|每当",
    re.IGNORECASE,
)
_CASE = re.compile(rf"{_CONDITION.pattern}|\bfor\b", re.IGNORECASE)

# What has one value at a time, which the group of each form is.
_ANSWER = (
    r"^(?:i (?:\w+ )?(?:want|prefer) |(?:give|keep|make|send|write) )?(?:me |your |the |all |of )*"
)
_LENGTH = "short|brief|concise|long|shorter|longer|detailed|thorough"
_SUBJECTS = {
    name: re.compile(form, re.IGNORECASE)
    for name, form in {
        "language": (
            rf"{_ANSWER}(?:(?:answer|reply|respond|write|speak|talk)(?:ing)?|use|{ANSWERS})"
            rf"(?: (?:to|with|me|all|everything|questions|only|back|in|be))* ({LANGUAGE})$"
            "|^(?:你|我|希望|[给跟对和]我)*(?:用|使用|说|讲)(中|英|法|德|日|韩|俄|汉|粤|西班牙|意大利)[文语]来?"
            "(?:回答|回复|答复|写|说话|说|交流)?(?:我(?:的问题)?)?$"
        ),
        "name": (
            r"^(?:call(?:ing)? me|address(?:ing)? me (?:as|by)) (?:by my |my |as )?"
            r"(?!(?:on|at|in|by|back|when|after|before|every|later|only|about|to)\b)"
            r"([^\s,;:]+(?: (?!and\b|but\b|or\b|in\b|on\b|at\b)[^\s,;:]+){0,2})$"
            r"|^你?(?:叫|称呼|喊)我(?:为|做)?"
            r"(?![爸妈爷奶哥姐弟妹来去先]|儿子|女儿|老婆|老公|起床|一声)([^，,、；。！？\s]{1,8})$"
        ),
        "length": (
            rf"{_ANSWER}(?:answer|reply|respond|be|{ANSWERS})? ?(?:to be |should be |be )?"
            rf"({_LENGTH})(?: (?:{ANSWERS}))?$"
            "|^(?:我(?:更|比较)?(?:喜欢|偏好)|你的?)?(?:回答|回复|答复)?得?(简短|简洁|详细|长|短)"
            "(?:的(?:回答|回复|答复))?(?:一点|一些|些)?$"
        ),
        "units": (
            r"^(?:i (?:\w+ )?prefer|us(?:e|ing)) (?:the )?(metric|imperial)(?: units?| system)?$"
            "|^(?:用|使用)(公制|英制)(?:单位)?$"
        ),
    }.items()
}


def without_replaced(records: Sequence[Record]) -> list[Record]:
    """Leave out standing instructions that a newer one replaces, and what only ends others.

    It says the opposite ("always", then "never" or "stop"), or gives another value to what has one
    at a time: the language and the length of answers, the user's name, and units. One that forbids
    a value replaces what was said about that value alone. One that ends or eases others ("you can
    use emojis again", "back to English") replaces those on its matter in other words.

    Args:
        records: newest first.
    """
    kept: list[Record] = []
    newer: list[_Instruction] = []
    said: set[str] = set()
    for record in records:
        one = _read(record.text)
        is_replaced = not said.isdisjoint(one.meanings) or any(
            _ends(by, one) or ends(by.text, one.text) or _asks_otherwise(by.text, one.text)
            for by in newer
        )
        if one.is_shown and not is_replaced:
            kept.append(record)
        said.update(one.meanings)  # of a replaced one too: what it had replaced does not come back
        newer.append(one)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instruction:
    """What an instruction says.

    Attributes:
        text: of it.
        meanings: that an older one with the same is replaced by.
        matters: see `_matters`.
        words: beside those that say only whether it holds.
        eases: it ends or eases another.
        is_shown: it says what to do, and not only that another one is over.
        is_negative: it forbids, or says that something is not needed.
        has_condition: it holds in some case.
        has_object: it is about one kind of text or one person alone.
    """

    text: str
    meanings: tuple[str, ...]
    matters: Mapping[str, str]
    words: frozenset[str]
    eases: bool
    is_shown: bool
    is_negative: bool
    has_condition: bool
    has_object: bool


@lru_cache(maxsize=_CACHED)
def _read(text: str) -> _Instruction:
    eases = _eases(text)
    gives = any(
        not _is_negative(clause)
        and (_GIVEN.search(clause) or not {"language", "units"}.isdisjoint(_matters(clause)))
        for clause in _clauses(text)
    )
    return _Instruction(
        text=text,
        meanings=tuple(_meanings(text)),
        matters=_matters(text),
        words=_words(text),
        eases=eases,
        is_shown=gives or _is_standing(text),
        is_negative=_is_negative(text),
        has_condition=bool(_CONDITION.search(text)),
        has_object=bool(_OBJECT.search(text)),
    )


def _ends(newer: _Instruction, older: _Instruction) -> bool:
    """Return whether an instruction ends an older one on the same matter, in other words."""
    if newer.has_condition != older.has_condition:
        return False
    of, by = older.matters, newer.matters
    if newer.has_condition or not by:
        alike = len(newer.words & older.words)
        least = 0.75 * min(len(newer.words), len(older.words))
        return newer.eases and alike >= max(2, least)
    if not of or not of.keys() <= by.keys() or older.has_object > newer.has_object:
        return False
    is_contrary = newer.is_negative != older.is_negative
    if not newer.eases:
        return is_contrary and of.keys() <= _SWITCHED.keys()
    is_other = not newer.is_negative and not older.is_negative
    return all(is_contrary if by[matter] == value else is_other for matter, value in of.items())


def _matters(text: str) -> Mapping[str, str]:
    """Read what an instruction is about, with the value that it gives to it or takes from it."""
    found = {name: "" for name, form in _ON_OFF.items() if form.search(text)}
    for name, form in _VALUED.items():
        if value := form.search(text):
            small = value[0].lower()
            known = (one for one, forms in _MEANS.items() if forms.match(small))
            found[name] = next(known, small)
    if "length" in found and not _OF_ANSWERS.search(text):
        del found["length"]
    return found


def _clauses(text: str) -> list[str]:
    return re.split("[,，;；]", text)


def _is_negative(text: str) -> bool:
    return bool(_NEGATIVE.search(_LIFTED.sub("", text)))


_GIVEN = re.compile(rf"\b(?:{CURRENCY}|{PROGRAMMING})\b", re.IGNORECASE)
_ON_OFF = {
    name: re.compile(rf"(?<![a-z])(?:{form})(?![a-z])", re.IGNORECASE)
    for name, form in _SWITCHED.items()
}
_VALUED = {
    name: re.compile(rf"(?<![a-z])(?:{form})(?![a-z])", re.IGNORECASE)
    for name, form in _VALUES.items()
}
_MEANS = {name: re.compile(form, re.IGNORECASE) for name, form in _SAME.items()}
_OF_ANSWERS = re.compile(
    rf"\b(?:{ANSWERS}|sentences|answer|reply|respond|be|keep (?:it|things))\b|[\u4e00-\u9fff]",
    re.IGNORECASE,
)
# Of one kind of text or one person alone.
_OBJECT = re.compile(
    r"\b(?:e-?mails?|letters?|reports?|code|comments?|subjects?|titles?|posts?|tweets?|documents?"
    r"|essays?|commits?|translat\w+|(?:to|with|for) (?:my|our|the))\b"
    r"|邮件|报告|信|代码|注释|作业|文章|翻译",
    re.IGNORECASE,
)


def _meanings(text: str) -> list[str]:
    """Name what an instruction is about, and what it gives a value, unless it forbids one."""
    force = _CHINESE_FORCE if HAN.search(text) else _ENGLISH_FORCE
    if _CASE.search(text):
        plain = force.sub("", text)
        # In order: "when I write in German, answer in English" is not "when in English, in German".
        return [" ".join(token for token in tokens(plain) if not _POLARITY.search(token)) or text]
    for clause, (name, form) in product([text, *_clauses(text)[:0:-1]], _SUBJECTS.items()):
        found = form.search(force.sub("", clause))
        if found and found.lastindex:
            value = f"{name}: {normalize(found[found.lastindex])}"
            return [value] if _NEGATIVE.search(clause) else [value, name]
    return [" ".join(sorted(_words(text))) or text]


def _words(text: str) -> frozenset[str]:
    """Read the words of an instruction, beside those that say only whether it holds."""
    force = _CHINESE_FORCE if HAN.search(text) else _ENGLISH_FORCE
    said = vocabulary(force.sub("", text))
    return frozenset(one for one in said if not _POLARITY.search(one))


def instruction_facts(messages: Sequence[Message], held: Sequence[str] = ()) -> list[Fact]:
    """Make a preference of each standing instruction in the turns that users said."""
    return [
        Fact(text=instruction, kind="preference", at=message.at, metadata={MARK: True})
        for message in messages
        if message.role == "user"
        for instruction in find_instructions(message.text, held)
    ]


def list_instructions(where: Scope, policy: Policy) -> Plan[list[Record]]:
    """List the 50 newest standing instructions, those told last first, also what ended some."""
    marked = {MARK: True} if policy.where is None else {"AND": [{MARK: True}, policy.where]}
    page: Page = yield call("list", where, kinds=("preference",), where=marked, limit=_MAX_RECORDS)
    return sorted(page.records, key=told_at, reverse=True)


def told_at(record: Record) -> datetime:
    """Return when a record was last told."""
    return max(record.occurred_at, record.last_told_at or record.occurred_at)
