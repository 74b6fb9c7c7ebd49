"""Forms of a request for how an assistant is to answer, in English and Chinese.

Each joins a verb of answering, or a part of an answer, to a manner, a language, a format, a unit or
a case. A request for one text has an object of its own ("the", "a", "this") and no such form.
"""

import re

ANSWERS = "answers|replies|responses|explanations|messages"
LANGUAGE = (
    r"english|french|german|dutch|spanish|italian|portuguese|chinese|mandarin|cantonese|japanese"
    r"|korean|russian|ukrainian|arabic|hebrew|turkish|polish|czech|greek|hindi|swedish|norwegian"
    r"|danish|finnish|hungarian|romanian|thai|vietnamese|indonesian"
)
CURRENCY = (
    r"(?:swiss )?francs?|euros?|(?:us )?dollars?|yen|(?:british )?pounds|yuan|rupees?|kron(?:er|or)"
    r"|pesos?|zlotys?|人民币|日元|欧元|美元|英镑|港币|韩元|瑞郎"
)
UNITS = (
    r"metric|imperial|celsius|fahrenheit|kelvin|kilomet(?:er|re)s?|miles?|grams?|kilos?|ounces?"
    r"|公制|英制|摄氏度?|华氏度?|公里|英里"
)
PROGRAMMING = r"python|typescript|javascript|java|rust|golang|kotlin|swift|c\+\+|ruby|php"
PARTS = (
    r"(?:emojis?|emoticons?|smileys?|exclamation (?:marks?|points?)|bullet points?|bullets|tables?"
    r"|headings?|headers?|markdown|jokes?|puns?|slang|jargon|swear(?:ing| words?)|small talk"
    r"|disclaimers?|greetings?|apolog(?:y|ies)|intros?|summar(?:y|ies)|sources?|citations?|links?"
    r"|footnotes?|metaphors?|filler|caveats?|follow-up questions?)"
)
_TONE = (
    r"(?:honest|blunt|direct|formal|informal|casual|polite|strict|gentle|kind|sarcastic|playful"
    r"|serious|funny|cheerful|rude|harsh|brief|concise|patient|critical|friendly|normal)"
)
LEAD = r"^\W*(?:(?:and|also|but|so|ok|okay|oh|hey|please|kindly|just|one more thing)\b[,:]? *)*"
_NOT_NOW = (
    r"(?![^.!?]*\b(?:this time|for now|right now|(?<!from )today|tonight|tomorrow|this (?:one|once)"
    r"|(?:this|that|it|them|these|those)[.!]*$))(?![^:]*:\s)"
)
_ONE = r"(?:the|a|an|this|that|these|those|my|your|his|her|their|our|it|one|two|three|some)\b(?!-)"
_VALUE = rf"(?:{UNITS}|{CURRENCY}|{LANGUAGE}|{PROGRAMMING}|(?:the )?[\w-]+ (?:format|notation))\b"
_QUANTITY = (
    r"(?:prices|dates|times|weights|distances|temperatures?|numbers|amounts|measurements|quantities"
    r"|units|costs|(?:code|coding) (?:examples?|samples?|snippets)|examples|code|names|lists)"
)
_SPEAK = r"(?:answer|reply|respond|write|speak|talk|explain)"
_DO = (
    r"(?:answer|reply|respond|write|use|give|make|add|include|mention|start|begin|end|close|open"
    r"|finish|explain|show|tell|format|put|ask|remind|say|suggest|recommend|list|sign off|sign|turn"
    r"|shorten|warn|correct|point out|translate|convert|summari[sz]e|quote|cite|spell|note|offer"
    r"|append|greet|state|check|attach|switch|rate|skip|avoid|leave out|(?:don['’]t|do not) \w+)\b"
)
_ENGLISH = tuple(
    re.compile(LEAD + _NOT_NOW + form, re.IGNORECASE)
    for form in (
        # a verb of speaking and its manner
        rf"{_SPEAK}(?: to me| me)? in (?!{_ONE}|detail\b|pen\b|person\b|time\b)\w+",
        rf"{_SPEAK}(?: (?:to )?me| things| everything| stuff)* "
        rf"(?:like (?:a|an|my|i)\b|as if\b|as though\b|only (?:with|in)\b|with (?!{_ONE})\w+ only\b"
        rf"|with [\w-]+ (?:metaphors|analogies|comparisons|examples)\b)",
        rf"be (?:\w+ly )?{_TONE} (?:with|to|towards) me\b",
        rf"(?:stay|remain|sound|act|be) (?:more )?{_TONE}(?: with me)?"
        r" (?:at all times|all the time|with me)",
        r"(?:act|behave|treat me|talk|speak) (?:to me )?(?:as|like) (?:a|an|my|if|someone)\b",
        # a value for a kind of quantity
        rf"(?:(?:write|show|give|quote|display|express|state|put|list|format|use)(?: me)? )"
        rf"(?:all )?(?:{_QUANTITY})(?: and {_QUANTITY})? (?:in {_VALUE}|as (?!{_ONE})\w)",
        rf"(?:all )?(?:{_QUANTITY})(?: and {_QUANTITY})? (?:in|as) (?!{_ONE})"
        rf"[\w+#-]+(?: (?:and |or )?[\w+#-]+)?,? (?:please|only)\W*$",
        rf"use (?!{_ONE})[\w' -]{{2,40}} (?:for|with) me\b",
        rf"use (?:only )?(?:{UNITS})\b(?: and (?:{UNITS})| units?| system)*(?: please)?\W*$",
        r"use (?:\w+ )?(?:(?:british|american|simple|plain|easy|short|formal|informal) )"
        r"(?:spelling|words|language|sentences|english)\b",
        # a part of every answer
        rf"(?:{_DO}) .*\b(?:each|every|all your) (?:answer|reply|response|message|{ANSWERS})\b"
        r"(?! (?:in|from|of|to|on) (?:the|my|your)\b)",
        rf"(?:{_DO}) .*\b(?:every|each) time(?:\W*$|,? (?:i|you)\b)",
        rf"(?:{_DO}) (?!{_ONE})[^,.]*\bwhen you\b",
        rf"(?:{_DO}) [^,.]*\b(?:whenever|every time|each time) you\b",
        rf"i (?:want|need|expect|would like) {PARTS} \w+ (?:every|each|all)\b",
        rf"no (?:\w+ )?{PARTS}(?:,? please| in (?:your )?(?:{ANSWERS})| for me)\b",
        rf"(?:skip|avoid|leave out|omit) (?:the |all |any )*{PARTS}\b"
        r"(?! (?:in|from|of|on) (?:the|my|this|slide|chapter)\b)",
        rf"keep [\w ]{{2,30}} out of your (?:{ANSWERS})\b",
        rf"(?:format|structure|phrase|write|make) (?:all )?(?:of )?your (?:{ANSWERS})\b",
        rf"give me (?!{_ONE})[\w-]+(?: [\w-]+)? (?:{ANSWERS})(?: only)?(?: please)?\W*$",
        rf"(?:recommend|suggest|show|use|give me|cite|write) only (?!{_ONE})\w",
        r"write in [\w ]{2,20} only\b",
        r"(?:don['’]t|do not|never) (?:round|swear|joke|lecture|sugar-?coat|dumb)\b"
        r"(?!.*\b(?:at|with) (?:him|her|them)\b)",
        r"(?:always|never) (?:correct|praise|point out|number|break down|attach|fix)"
        r" (?!it\b|that\b)",
        r"refer to (?:me|my \w+) as (?-i:[A-Z])",
        r"spell out (?:all )?\w+(?: for me)?\W*$",
        # in a case
        rf"(?:whenever|every time|each time) i [^,.!?]{{2,80}}, *(?:then |please |also )*{_DO}",
        rf"(?:if|when) i (?:ask|say|write|type|send|mention|paste|share|use)\b[^,.!?]{{0,80}},"
        rf" *(?:then |please |also )*{_DO}",
    )
)
_LEAD_CHINESE = r"^\W*(?:请|麻烦|拜托|希望|你|以后|都|也|还有|另外|对了|要|[，,])*"
_NOT_NOW_CHINESE = (
    "(?!.*(?:这次|今晚|明天|暂时|这一次|刚才))(?!.*(?<!第)一[封首篇句段]|.*这[个段篇句])"
)
_MANNER = "(?:一点|一些|点儿?|些)"
_ANSWER_CHINESE = "(?:回答|回复|答复|答案|解释|说话|讲话|语气|口气|措辞)"
_DO_CHINESE = (
    "(?:加|附|标|写|列|带|用|问我|说|跟我|给我|帮我|提醒|告诉|总结|翻译|改|纠正|解释|推荐|注明)"
)
_QUANTITY_CHINESE = "(?:价格|温度|气温|距离|日期|时间|重量|金额|货币|单位|数字|代码(?:示例|例子)?)"
_CHINESE = tuple(
    re.compile(_LEAD_CHINESE + _NOT_NOW_CHINESE + form)
    for form in (
        r"(?:只|就)?(?:用|以|拿)[^，。]{1,8}?(?:跟我|给我|对我|和我)?(?:来)?"
        r"(?:回答|回复|答复|聊天?|说话?|交流|对话|沟通)(?:我(?:的问题)?)?\W*$",
        rf"(?:给我的|你的)?{_ANSWER_CHINESE}(?:里|中|时)?(?:要|得|请|都|尽量|全|可以)*"
        rf"(?:像[^，。]+|(?!.*声)[^，。了]{{1,6}}{_MANNER}|简短|简洁|详细)(?:$|\W)",
        rf"(?:给我的|你的)?{_ANSWER_CHINESE}(?:里|中|时)?(?:请|都|全|一律|尽量)*"
        r"(?:别|不要|用|以|按|写成|改成)(?!了)[^，。]{2,}",
        rf"{_QUANTITY_CHINESE}(?:请|都|全|一律|统一)*(?:用|按|以|写成|换算成)[^，。了]{{1,12}}\W*$",
        r"每(?:次|段话?|条|一?个|天|句)(?!都)(?:给我)?(?:推荐|回答|回复|答案|消息|话|第一句|最后|后面"
        rf"|结尾|开头|解释|写|发|聊)[^，。]*{_DO_CHINESE}",
        rf"每段话[^，。]*{_DO_CHINESE}|每(?:次|条)(?:回答|回复)[^，。]*{_DO_CHINESE}",
        r"(?:叫|称呼|喊)我(?!起|吃|来|去|一|回|接|上|下|看|买|做|过|出|帮|开|走|别|什么|的)"
        r"[^，。！？\s的了吗]{1,5}\W*$",
        r"(?:如果|只要|每当|当)?我(?:说|写|发|打|输入)[“\"「『'‘][^”\"」』'’]{1,20}[”\"」』'’]"
        rf"(?:的时候|时|后)?[，,]?(?:你|就|都|请)*{_DO_CHINESE}",
        r"(?:多|少)(?:用|说|加)(?!力|心|功)[^，。了点些]{2,8}\W*$",
        r"(?:先|直接)(?:讲|说|给|写)(?:出|我)?(?:结论|重点|答案|结果|要点)",
        rf"(?:见到|看到|遇到|碰到|发现)[^，。]{{1,12}}就(?:请|都)*{_DO_CHINESE}",
    )
)
CHINESE_LETTER = re.compile("[\u4e00-\u9fff]")


def asks_for_a_manner(sentence: str) -> bool:
    """Return whether a sentence tells an assistant how to answer, beyond one text."""
    forms = _CHINESE if CHINESE_LETTER.search(sentence) else _ENGLISH
    return any(form.search(sentence) for form in forms)
