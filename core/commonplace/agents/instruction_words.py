"""Wordings of standing instructions in English and Chinese: how they are given, and how they end.

A request for how to answer joins a verb of answering, or a part of an answer, to a manner, a
language, a format, a unit or a case. A request for one text has an object of its own ("the", "a",
"this") and no such form.

A sentence ends an older instruction if it says in a clause of its own that something is over,
allowed or better now, and names what the older one is about: a word of it, or another value of its
matter. What others do ("she no longer answers") ends nothing.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from ..retrieval.lexical import vocabulary
from ..retrieval.utterance_kinds import normalize

_CACHED = 1_024  # sentences
_CACHED_PAIRS = 8_192  # those of 50 instructions are compared in every turn
_LEAST_SHARED = 0.25  # of the words that an instruction is about
_OF_CASE = 2  # words that name an instruction by its case

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
_UNITS = (
    r"metric|imperial|celsius|fahrenheit|kelvin|kilomet(?:er|re)s?|miles?|grams?|kilos?|ounces?"
    r"|公制|英制|摄氏度?|华氏度?|公里|英里"
)
PROGRAMMING = r"python|typescript|javascript|java|rust|golang|kotlin|swift|c\+\+|ruby|php"
_PARTS = (
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
_VALUE = rf"(?:{_UNITS}|{CURRENCY}|{LANGUAGE}|{PROGRAMMING}|(?:the )?[\w-]+ (?:format|notation))\b"
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
        rf"use (?:only )?(?:{_UNITS})\b(?: and (?:{_UNITS})| units?| system)*(?: please)?\W*$",
        r"use (?:\w+ )?(?:(?:british|american|simple|plain|easy|short|formal|informal) )"
        r"(?:spelling|words|language|sentences|english)\b",
        # a part of every answer
        rf"(?:{_DO}) .*\b(?:each|every|all your) (?:answer|reply|response|message|{ANSWERS})\b"
        r"(?! (?:in|from|of|to|on) (?:the|my|your)\b)",
        rf"(?:{_DO}) .*\b(?:every|each) time(?:\W*$|,? (?:i|you)\b)",
        rf"(?:{_DO}) (?!{_ONE})[^,.]*\bwhen you\b",
        rf"(?:{_DO}) [^,.]*\b(?:whenever|every time|each time) you\b",
        rf"i (?:want|need|expect|would like) {_PARTS} \w+ (?:every|each|all)\b",
        rf"no (?:\w+ )?{_PARTS}(?:,? please| in (?:your )?(?:{ANSWERS})| for me)\b",
        rf"(?:skip|avoid|leave out|omit) (?:the |all |any )*{_PARTS}\b"
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
# A question that asks the assistant for what is to hold from now on.
POLITE = re.compile(
    rf"{LEAD}(?:could|can|would|will) you (?:(?:(?:please |kindly )?always|please never) (?:"
    r"(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)? in"
    r" (?!(?:a|the|my|this|that|these|those)\b)"
    r"|(?:give|show|tell|send|remind|ask|warn|address) me\b"
    r"|call me (?-i:[A-Z]))"
    r"|(?:please )?(?:answer|reply|respond|write|speak|talk|(?:give|show|tell|send|call) me)\b"
    r".*\bfrom now on\W*$)"
    r"|^\W*(?:(?:以后|今后|请|请问|你)[，,]?)*(?:能不能|可不可以|可以|能否|可否|能)"
    r"(?:以后|今后|一直|总是|每次|始终|请|你|都)+(?!再).*(?:回答|回复|答复|给我|叫我|称呼我|提醒我)",
    re.IGNORECASE,
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
HAN = re.compile("[\u4e00-\u9fff]+")


def asks_for_a_manner(sentence: str) -> bool:
    """Return whether a sentence tells an assistant how to answer, beyond one text."""
    forms = _CHINESE if HAN.search(sentence) else _ENGLISH
    return any(form.search(sentence) for form in forms)


# -- endings ---------------------------------------------------------------------------------------

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
        "units": _UNITS,
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
    if HAN.search(clause):
        known = set("".join(HAN.findall(older)))
        plain = _MORE_CHINESE.sub("", rest)
        return sum(one not in known for one in plain if one.isalnum()) > 0
    said = vocabulary(older)
    words = re.findall(r"[^\W_]+(?:'\w+)?", rest.lower().replace("’", "'"))
    more = {one for one in words if one not in _MORE_PLAIN}
    more = {one for one in more if not vocabulary(one) <= said}
    return len(more) > bool(_YOU.search(clause))


def _is_named(older: str, main: str, newer: str) -> bool:
    """Return whether a sentence has words of what an older instruction is about."""
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
    place = 1 if HAN.search(clause) else 0
    return frozenset(name for name, *forms in _CUES if forms[place].search(clause))


@lru_cache(maxsize=_CACHED)
def _about(sentence: str) -> frozenset[str]:
    """Read the words that a sentence is about; of Chinese, each two characters side by side."""
    if not HAN.search(sentence):
        return vocabulary(sentence) - _GENERAL
    plain = _GENERAL_CHINESE.sub(" ", sentence)
    runs = HAN.findall(plain)
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    return frozenset(pairs | {one for one in vocabulary(plain) if one.isascii()})
