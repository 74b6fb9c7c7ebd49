"""Standing instructions: sentences by which a user says how he wants things from now on.

Found by their form in the user's own turns, in English and Chinese, without a model. A sentence
that tells of somebody ("she always comes late") or asks for one thing now has another form. A
doubtful one is left out: what is found is shown to the model in every later turn.
"""

import re
from collections.abc import Sequence

from ..retrieval.lexical import tokens, vocabulary
from ..retrieval.utterance_kinds import needs_no_memory, normalize, sentences
from ..types import Fact, Message, Record

MARK = "standing_instruction"
"""Key of the metadata of the records that are made of them."""
_MAX_MESSAGE = 1_000  # characters: in a longer one the user has pasted what others wrote
_MAX_INSTRUCTION = 300
_MAX_COUNT = 5

# What an assistant is told to do; "use" and "call" are done to it as well as by it.
_VERB = (
    r"(?:answer|reply|respond|write|use|call|give|keep|make|add|include|mention|start|begin|end"
    r"|explain|show|tell|speak|talk|format|send|ask|check|remind|address|avoid|put|say|provide"
    r"|suggest|recommend|offer|cite|quote|translate|convert|round|list|summari[sz]e|assume|treat"
    r"|refer|book|order|schedule|propose|present|spell|sign|leave|skip|stick|wait|confirm|warn"
    r"|double-check|apologi[sz]e|repeat|share|store|name|greet|sort|be (?:brief|concise|polite"
    r"|direct|honest|formal|informal|careful)|let me know)\b"
)
_LEAD = r"^\W*(?:(?:and|also|but|so|ok|okay|oh|hey|please|kindly|just|one more thing)\b[,:]? *)*"
_NOT_NOW = (
    r"(?![^.!?]*\b(?:this time|for now|right now|today|tonight|tomorrow|this (?:one|once)"
    r"|(?:this|that|it|them|these|those)[.!]*$))"
)
_NEVER = r"(?:always|never|only ever|don['’]t ever|do not ever)"
_FROM_NOW = (
    r"(?:from now on|from here on|going forward|in (?:the )?future|henceforth|by default|as a rule)"
)
_NEED_NOT = (
    r"(?:you (?:don['’]t|do not|no longer) (?:need|have) to|(?:there is |there['’]s )?no need to)"
)
_YOU = (
    r"(?:you (?:should|must|can|may|have to|need to)|make sure (?:to|that you|you)|be sure to"
    r"|remember to|try to"
    r"|i(?:['’]d like| would like| want| need|['’]d prefer| would prefer) you to)"
)
_ENGLISH = tuple(
    re.compile(_LEAD + _NOT_NOW + form, re.IGNORECASE)
    for form in (
        rf"{_NEVER} (?:ever )?(?!give up|say never|tell a lie){_VERB}",
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
        r"stop (?:using|calling|adding|sending|suggesting|asking|including|apologi[sz]ing"
        r"|mentioning|recommending|repeating|addressing"
        r"|(?:answering|replying|responding|writing|speaking)(?: to me| me)? in"
        r" (?!(?:a|the|my|this|that)\b))\b",
        rf"{_NEED_NOT} (?:answer|reply|respond|write|speak|talk|use|add|include|mention|cite"
        r"|give me|address me|call me (?-i:[A-Z]))\b(?!.* (?:him|her|them|it|this|that|the|my)\b)"
        r".*\b(?:any ?more|any longer|from now on)\W*$",
        r"(?:call|address) me (?:by my|as |(?-i:[A-Z]))(?!.*\b(?:when|later|at|on|after|back)\b)",
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
    r"^\W*(?:(?:对了|还有|另外|那|麻烦|请|希望|拜托)[，,]?"
    "|(?:你(?:要|得|一定要)?|帮我)?(?:记住|记得)(?:[，,：:]|(?=以后|今后|从现在|从今|永远|不要|别|每次)))*"
)
_CHINESE = tuple(
    re.compile(_LEAD_CHINESE + _NOT_NOW_CHINESE + form)
    for form in (
        "(?:以后(?!再)|今后|从现在起|从现在开始|从今以后|从今往后|往后|将来)[，,]?(?:请|你|也|都|就|每次|一律|总是"
        "|始终|尽量|统一|只|不要|别|不用|不必|再|给我|跟我|对我|和我|的|回答|所有|任何|[，,])*"
        f"(?:{_DO}|我(?:问|说|提到|让你|发))",
        f"(?:你)?(?:要|得|应该|必须)?(?:总是|始终|一律|永远|务必|每次都?|一直)(?:要|请|都|只|用|以|不要|别)*{_DO}",
        "(?:你)?(?:永远|千万|绝对|再也|以后|都)*(?:不要|别|不准|不许|禁止|不可以)(?:再|总是?|老是?|给我|对我|跟我|在)*"
        r"(?:用|使用|叫我|称呼我|说|发|写|加|推荐|提|问我|重复|道歉|回复|建议)(?!这|那|它|他|她|笑|了)",
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
_CHINESE_LETTER = re.compile("[\u4e00-\u9fff]")
# Code to its end; a quotation or table to the end of its paragraph, as in Markdown; long quotes.
_QUOTED = re.compile(
    r"(```|~~~).*?(?:\1|\Z)|^[^\S\n]*[>|].*?(?=\n[^\S\n]*\n|\Z)|[\"“「『][^\"”」』]{12,}[\"”」』]",
    re.DOTALL | re.MULTILINE,
)
_QUESTION = re.compile(r"[?？吗呢]\W*$")


def find_instructions(text: str) -> tuple[str, ...]:
    """Read the standing instructions of a user's text, sentence by sentence; often none.

    Quotations, code and texts of more than 1,000 characters may be somebody else's words, and are
    not read.
    """
    if len(text) > _MAX_MESSAGE:
        return ()
    found = []
    for sentence in sentences(_QUOTED.sub(" \n ", text)):
        if (
            len(sentence) > _MAX_INSTRUCTION
            or _QUESTION.search(sentence)
            or needs_no_memory(sentence)
        ):
            continue
        forms = _CHINESE if _CHINESE_LETTER.search(sentence) else _ENGLISH
        if any(form.search(sentence) for form in forms):
            found.append(sentence)
    return tuple(dict.fromkeys(found))[:_MAX_COUNT]


# What says only that an instruction holds, or holds no more: two that differ in it are contrary.
_ENGLISH_FORCE = re.compile(
    rf"{_LEAD}(?:(?:{_FROM_NOW}|{_NEVER}|{_YOU}|{_NEED_NOT}|please|ever|only|just|stop|not"
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
    rf"\b(?:not|never|stop|no|don['’]t)\b|^{_NEED_NOT}|[不别]|无需|禁止", re.IGNORECASE
)
_CASE = re.compile(
    r"\b(?:when|whenever|if|for|unless|except|each time|every time)\b|时候?|如果|每当",
    re.IGNORECASE,
)

# What has one value at a time, which the group of each form is.
_LANGUAGE = (
    r"english|french|german|dutch|spanish|italian|portuguese|chinese|mandarin|cantonese|japanese"
    r"|korean|russian|ukrainian|arabic|hebrew|turkish|polish|czech|greek|hindi|swedish|norwegian"
    r"|danish|finnish|hungarian|romanian|thai|vietnamese|indonesian"
)
_ANSWER = (
    r"^(?:i (?:\w+ )?(?:want|prefer) |(?:give|keep|make|send|write) )?(?:me |your |the |all |of )*"
)
_ANSWERS = "answers|replies|responses|explanations|messages"
_LENGTH = "short|brief|concise|long|shorter|longer|detailed|thorough"
_SUBJECTS = {
    name: re.compile(form, re.IGNORECASE)
    for name, form in {
        "language": (
            rf"{_ANSWER}(?:(?:answer|reply|respond|write|speak|talk)(?:ing)?|use|{_ANSWERS})"
            rf"(?: (?:to|with|me|all|everything|questions|only|back|in|be))* ({_LANGUAGE})$"
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
            rf"{_ANSWER}(?:answer|reply|respond|be|{_ANSWERS})? ?(?:to be |should be |be )?"
            rf"({_LENGTH})(?: (?:{_ANSWERS}))?$"
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
    """Leave out standing instructions that a newer one replaces.

    It says the opposite ("always", then "never" or "stop"), or gives another value to what has one
    at a time: the language and the length of answers, the user's name, and units. One that forbids
    a value replaces what was said about that value alone.

    Args:
        records: newest first.
    """
    kept: list[Record] = []
    said: set[str] = set()
    for record in records:
        meanings = _meanings(record.text)
        if said.isdisjoint(meanings):
            kept.append(record)
        said.update(meanings)  # of a replaced one too: what it had replaced does not come back
    return kept


def _meanings(text: str) -> list[str]:
    """Name what an instruction is about, and what it gives a value, unless it forbids one."""
    force = _CHINESE_FORCE if _CHINESE_LETTER.search(text) else _ENGLISH_FORCE
    plain = force.sub("", text)
    if _CASE.search(text):
        # In order: "when I write in German, answer in English" is not "when in English, in German".
        return [" ".join(token for token in tokens(plain) if not _POLARITY.search(token)) or text]
    for name, form in _SUBJECTS.items():
        found = form.search(plain)
        if found and found.lastindex:
            value = f"{name}: {normalize(found[found.lastindex])}"
            return [value] if _NEGATIVE.search(text) else [value, name]
    words = (one for one in vocabulary(plain) if not _POLARITY.search(one))
    return [" ".join(sorted(words)) or text]


def instruction_facts(messages: Sequence[Message]) -> list[Fact]:
    """Make a preference of each standing instruction in the turns that users said."""
    return [
        Fact(text=instruction, kind="preference", at=message.at, metadata={MARK: True})
        for message in messages
        if message.role == "user"
        for instruction in find_instructions(message.text)
    ]
