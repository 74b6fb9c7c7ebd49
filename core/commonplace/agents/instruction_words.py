"""Wordings of standing instructions in English and Chinese: how they are given, and how they end.

A request for how to answer joins a verb of answering, or a part of an answer, to a manner, a
language, a format, a unit or a case. A request for one text has an object of its own ("the", "a",
"this") and no such form.

A sentence ends an older instruction if it says in a clause of its own that something is over,
allowed or better now, and names what the older one is about: a word of it, or another value of its
matter. What others do ("she no longer answers") ends nothing.
"""

import re

from ..retrieval.lexical import vocabulary

HAN = re.compile("[\u4e00-\u9fff]+")
ANSWERS = "answers|replies|responses|explanations|messages"
LANGUAGE = (
    r"english|french|german|dutch|spanish|italian|portuguese|chinese|mandarin|cantonese|japanese"
    r"|korean|russian|ukrainian|arabic|hebrew|turkish|polish|czech|greek|hindi|swedish|norwegian"
    r"|danish|finnish|hungarian|romanian|thai|vietnamese|indonesian|welsh|irish|catalan|persian"
    r"|urdu"
)
CURRENCY = (
    r"(?:swiss )?francs?|euros?|(?:us )?dollars?|yen|(?:british )?pounds|yuan|rupees?|kron(?:er|or)"
    r"|pesos?|zlotys?|人民币|日元|欧元|美元|英镑|港币|韩元|瑞郎"
)
_UNITS = (
    r"metric|imperial|celsius|fahrenheit|kelvin|kilomet(?:er|re)s?|miles?|grams?|kilo(?:gram)?s?|ounces?"
    r"|公制|英制|摄氏度?|华氏度?|公里|英里"
)
PROGRAMMING = r"python|typescript|javascript|java|rust|golang|kotlin|swift|c\+\+|ruby|php"
_FORMAL = (
    r"formal(?:ly|it(?:y|ies))?|polite(?:ly)?|(?<!it['’]s )serious(?:ly)?|sober|businesslike"
    r"|matter[- ]of[- ]fact|正式|敬语|客气|客套|正经|严肃|书面语?化?|文绉绉"
)
_INFORMAL = (
    r"loosen up|informal(?:ly|ity)?|casual(?:ly)?|relaxed|chatty|playful(?:ly)?|humorous|cheeky"
    r"|随意|口语化?|幽默|俏皮|活泼"
)
# What a sentence says beside its matter: politeness, an aside, a reason.
POLITENESS = re.compile(
    r"\([^)]*\)|（[^）]*）|,? *\b(?:please|pls|plz|kindly|thanks(?: a lot)?|thank you|thx)\b"
    r"|,? *\b(?:ok(?:ay)?|yeah|right)\?+$"
    r"|[，,]?(?:麻烦|拜托)(?:你|您)?|[，,]?(?:多谢|谢谢)[你您啦了哈]*",
    re.IGNORECASE,
)
REASON = re.compile(
    r"(?:,| [-–—])\s*(?:(?:because|since|as|so) )*(?:i|my|we|it|our|they"
    r"|nobody)\b.*|\b(?:because|since|so that) .*"
    r"|[,，;；](?!.*(?:[别不要请都每用写说加给]|[a-z])).*",
    re.IGNORECASE,
)
_LEAD = (
    r"^\W*(?:(?:before (?:we|i|any)\w*\b[^,:.]{0,25}|just so you know|for (?:the )?(?:record"
    r"|future ref\w*)|by the way"
    r"|(?:(?:one|another|a|my|our|first|quick|small|general|more|last) )+(?:thing|one|note|request"
    r"|wish|preference|reminder)(?: (?:for|with) \w+)?)(?:[,:]| [-–—]) *"
    r"|(?:and|also|but|so|ok|okay|oh|hey|hi|just)\b[,:]? *)*"
)
LEAD = re.compile(_LEAD, re.IGNORECASE)


# -- what holds for all answers --------------------------------------------------------------------

_TONE = (
    r"(?:honest|blunt|direct|formal|informal|casual|polite|strict|gentle|kind|sarcastic|playful"
    r"|serious|funny|cheerful|rude|harsh|brief|concise|patient|critical|friendly|normal)"
)
# What an assistant is told to do; "use" and "call" are done to it as well as by it.
_VERB = (
    rf"(?:be (?:more |less |a bit )*(?:{_TONE}|thorough|detailed|careful)"
    r"|(?:don['’]t|do not|try not to) \w+|add|address|answer|apologi[sz]e|append|ask|assume|attach"
    r"|avoid|begin|book|bring up|break down|call|check|cite|close|comment|confirm|convert|correct"
    r"|describe|double-check|end|explain|finish|fix|format|give|greet|include|keep|leave|lecture"
    r"|let me know|list|make|mention|name|note|number|offer|open|order|point out|praise|present"
    r"|propose|provide|put|quote|rate|recommend|refer|remind|repeat|reply|respond|review|round|say"
    r"|schedule|send|share|shorten|show|sign|skip|sort|speak|spell|start|state|stick|store|suggest"
    r"|summari[sz]e|switch|talk|tell|translate|treat|turn|use|wait|warn|write)\b"
)
_NOT_NOW = (
    r"(?![^.!?]*\b(?:this time|for now|right now|(?<!from )today|tonight|tomorrow"
    r"|this (?:one|once)|(?:this|that|it|them|these|those)[.!]*$))"
)
_NEVER = r"(?:always|never(?: ever)?|only ever|(?<=don['’]t )ever|(?<=do not )ever)"
FROM_NOW = (
    r"(?:from (?:now|here) on|going forward|(?:in|for) (?:the )?future|henceforth|by default"
    r"|as a rule)"
)
NEED_NOT = (
    r"(?:you (?:(?:don['’]t|do not|no longer) (?:need|have) to|needn['’]t)"
    r"|(?:there is |there['’]s )?no need to)"
)
_BACK_TO = r"(?:(?:you can|let['’]s) )?(?:(?:go|switch|get|come) back|return) to"
_YOU_SHOULD = (
    r"(?:you (?:should|must|can|may|have to|need to)|make sure (?:to|that you|you)|be sure to"
    r"|remember to|try to"
    r"|i(?:['’]d like| would like| want| need|['’]d prefer| would prefer) you to)"
)
_PARTS = (
    r"(?:emojis?|emoticons?|smileys?|exclamation (?:marks?|points?)|bullet points?|bullets|tables?"
    r"|headings?|headers?|markdown|jokes?|puns?|slang|jargon|swear(?:ing| words?)|small talk"
    r"|disclaimers?|greetings?|apolog(?:y|ies)|intros?|summar(?:y|ies)|sources?|citations?|links?"
    r"|footnotes?|metaphors?|filler|caveats?|follow-up questions?)"
)
_QUANTITY = (
    r"(?:prices|dates|times|weights|distances|temperatures?|numbers|amounts|measurements|quantities"
    r"|units|costs|(?:code|coding) (?:examples?|samples?|snippets)|examples|code|names|lists)"
)
_COUNT = (
    r"\w+[ -](?:lines?|words?|sentences?|paragraphs?|bullets?|bullet points?|options?|points?"
    r"|items?|steps?|characters?|questions?|examples?|ideas?|choices?)\b"
)
_LIMIT = (
    r"(?:(?:max(?:imum)?\.?(?: of)?|at most|(?:no |not )?more than|(?:fewer|less) than|under|below"
    rf"|over|within|up to) {_COUNT}|{_COUNT} (?:at most|max(?:imum)?|tops|or (?:less|fewer))\b)"
)
_ALWAYS = (
    r"(?:always|ever|every time|each time|at all times|from now on|in general)\b"
    r"(?:,? (?:i mean|that is))*\W*$"
)
# Said of the sentence before it.
ALWAYS_ALONE = re.compile(
    rf"^{_ALWAYS}"
    r"|^\W*(?:[以今之]后|一直|永远|每次)[都也]*(?:这样|如此|这么[做办来])吧?\W*$",
    re.IGNORECASE,
)
# In which cases of the user's or the assistant's something holds.
_YOU_ANSWER = (
    r"you (?:write|cite|quote|recommend|suggest|give|show|send|answer|reply|explain|list|name"
    r"|mention|use|translate|summari[sz]e)\b(?! (?:the|this|that|my|our|it|to|him|her|them)\b)"
)
_CASES = (
    r"(?:(?:whenever|every time|each time) i [^,.!?]{2,80}|(?:when|any time|if) i (?:ask|say|write"
    r"|send|mention|type|tell|give|request|paste|share|use|want)\b[^,.!?]{0,80}"
    rf"|(?:when|whenever|every time|each time) {_YOU_ANSWER}[^,.!?]{{0,80}}"
    r"|(?:if|when) you(?:['’]re| are)? (?:not sure"
    r"|unsure|not certain|do not know|don['’]t know)\b[^,.!?]{0,40}),"
)
_LASTING = (
    rf"(?:(?:{_NEVER}|{FROM_NOW}|every time|each time|in general|generally|in (?:all |your |every "
    rf"|each )+"
    rf"(?:{ANSWERS}|answer|reply|response|message))\b|{_CASES}|(?:(?:my|our|one|a|quick|house|new|simple|small|first|basic|only)"
    r" )*rules?(?: (?:for|with) (?:us|me|you))?(?:[,:]| [-–—]))"
)
_EACH = (
    r"(?:(?:each|every|per|all(?: of)? your) (?:answer|reply|response|message|explanation"
    rf"|{ANSWERS})\b(?! (?:in|from|of|to|on) (?:the|my|your)\b))"
)
_HELPS = rf"(?:(?:{_YOU_SHOULD}|don['’]t|do not|only|just|first|also|then)\b[,:]? *)"
_DONE = (  # what may be told to hold
    rf"(?:(?!give up|say never|tell a lie){_VERB}"
    r"(?! (?:\w+ )?(?:with|at|from|in|on) (?:this|that|these|those)\b)"
    rf"|(?:your |all )*(?:{ANSWERS})(?! (?:are|were|is|have|always|never)\b)|{_LIMIT}"
    r"|(?:short|long|brief|detailed|formal|one[- ]\w+) \w+|no (?!worries|problem|luck|one)\w+"
    rf"|{_QUANTITY}(?: and {_QUANTITY})? (?:in|as) (?!.* (?:is|are|was|were)\b)"
    rf"|i(?:['’]d like| would like| want| need| prefer) (?:\w+ )?(?:{ANSWERS}|{_QUANTITY})\b)"
)
_RULES = tuple(
    re.compile("^" + _NOT_NOW + form, re.IGNORECASE)
    for form in (
        # a word of time or a case in front, ...
        rf"{_HELPS}*{_LASTING}[,:]? *(?:{_HELPS}|{_LASTING}[,:]? *)*"
        rf"(?:{_DONE}|you (?:should|must|can)\b"
        r"|(?<=, )i (?:mean|want|expect|need|prefer) (?!to\b|it\b)"
        r"|(?:only|just) (?:the )?(?!i\b|we\b|my\b|me\b|us\b)\w+(?:,|\W*$))",
        # ... or behind
        rf"(?:(?:for|in|on) (?![^.!?]* (?:i|he|she|we|they|is|are)\b)[\w -]{{2,30}}?,? )?{_HELPS}*"
        rf"(?:{_DONE}|be\b|for\b(?!.* (?:i|he|she|we|they|is|are)\b)).*"
        rf"(?:[,.] (?:and )?{_ALWAYS}|\b(?:{FROM_NOW}|in general|generally|at all times"
        rf"|(?:every|each) time)\W*$)",
        rf"{_HELPS}*(?:{_DONE}).*\b{_EACH}|{_EACH} (?:should|must)\b|no (?:answer|reply) {_LIMIT}",
        rf"i(?:['’]d| would) (?:prefer|like|rather have) (?:\w+ )?(?:{ANSWERS})\b(?! (?:from"
        rf"|to)\b)",
        r"i (?:(?:really|generally|usually|always|much|strongly|definitely|do|would always) )?"
        r"prefer (?!not\b|it\b(?! when| if))\w+",
        r"i(?:['’]d| would| should)(?: much| really)? (?:(?:prefer|like|love|appreciate)(?: it)?"
        r" (?:if|that|when)|be (?:\w+ )?(?:grateful|glad|obliged|happy) if|rather)"
        r" you (?:(?:would |could )?(?:always|never)|used|wrote|called|answered|kept"
        r"|did not|didn['’]t)\b",
        r"my preference is\b",
        r"(?:only|exclusively) (?:answer|reply|respond|write|use|speak|suggest|recommend|show|give"
        r"|call)\b",
        r"(?:don['’]t|do not) (?:ever )?(?:call me|use|add|include|suggest|recommend"
        r"|address|send me|give me|show me|ask me|start|apologi[sz]e|mention|repeat"
        r"|(?:write|answer|reply|respond|speak|talk)(?: to me| me)? in)\b"
        r"(?! (?:this|that|it|the|them|these|those|[\w ]+ mine|a cab|an ambulance|back|later)\b)",
        r"(?:you (?:can|may|should) )?stop (?:using|calling|adding|sending|suggesting|asking"
        r"|including|apologi[sz]ing|mentioning|recommending|repeating|addressing|(?:answering"
        r"|replying|responding|writing|speaking)(?: to me| me)? in (?!(?:a|the|my|this|that)\b))\b",
        rf"{NEED_NOT} (?!(?:answer|use|write) the\b)"
        r"(?:answer|reply|respond|write|speak|talk|use|add|include|mention|cite|suggest"
        r"|recommend|remind me|ask me|apologi[sz]e|repeat|explain|(?:give|address) me"
        r"|call me (?-i:[A-Z])\w*)\b(?!.* (?:him|her|them|it|this|that|my)\b)"
        r".*\b(?:any ?more|any longer|from now on)\W*$",
        rf"(?:{_BACK_TO} calling|(?:(?:you (?:can|may)|do) (?:just |also )?)?(?:call|address)) me"
        r" (?:by my|as |(?!\w+day\b)(?-i:[A-Z]))(?!.*\b(?:when|later|at|on|after(?! all)|back)\b)",
        rf"keep (?:(?:all |of |your )+(?:{ANSWERS}|summaries|emails)\b"
        rf"|(?:the |all )*(?:{ANSWERS}) (?:{_LIMIT}|{_TONE}|short|simple|to )\b)",
        r"i (?:always|never) want (?:you\b|to (?:see|get|receive|read)\b|\w+ (?:answers|replies)"
        r"|the \w+ (?:version|format|source|link|unit)s?\b)",
        r"(?:in general|generally|as a rule),? i(?:['’]d| would) (?:like|prefer|rather) (?:get|have"
        r"|see|read|you)\b",
        rf"(?:units?|currency|language|spelling|tone|style|format|length|{_QUANTITY})"
        r"(?!.* (?:is|are|was|were|has|have)\b)(?:: \w.*|,? (?:in|as) .*(?:always|(?:with|for) me))"
        r"\W*$",
        rf"i(?:['’]d like| want| need| would like) (?:all|every|each)"
        rf" (?:answers?|repl(?:y|ies)|{_QUANTITY}) (?:as|in|to) ",
        rf"no (?!problem|worries|luck)\w+(?: \w+)? (?:with me\W*$|in your (?:{ANSWERS})\b)",
        r"i (?:(?:don['’]t|do not) (?:ever )?(?:want|like)|hate|dislike) (?:you to|it when you)\b",
    )
)
_DO = (
    "(?:回答|回复|答复|使用|用|叫我|称呼|给我|写|说|提醒|加上?|附上?|带上?|列|发|推荐|解释|标注|按"
    "|先|直接|提供|告诉我|保持|讲|翻译|总结|建议|提及?|提到|问我|重复|道歉|安排|预订|订|注明|默认"
    "|简短|控制|编号|精确|保留|换算|举)"
)
_FROM_NOW_CHINESE = (
    "(?:以后(?!再)|今后|之后(?=[^，。]*(?:都|请|一律|别|不要)(?!没))"
    "|从(?:现在起|现在开始|今[以往]后)|往后|将来)"
)
FROM_NOW_LATIN = re.compile(rf"^\W*{_FROM_NOW_CHINESE}[，,\s]*(?=[a-z]{{2}})", re.IGNORECASE)
_OF_TEXTS = (
    "(?:代码|注释|[例示]子?|清单|列表|菜谱|价格|日期"
    "|时间|单位|数字|邮件|信|报告|总结|标题|推荐|翻译|温度|距离)"
)
_NOT_NOW_CHINESE = "(?!.*(?:这次|今天|今晚|明天|暂时|这一次|刚才|[我他她们]都))"
LEAD_CHINESE = (
    r"^\W*(?:(?:对了|还有|另外|那|还是|麻烦|请|希望|拜托)[，,]?"
    "|(?:你(?:要|得|一定要)?|帮我)?(?:记住|记得)(?:[，,：:]|(?=以后|今后|从现在|从今|永远|不要|别|每次)))*"
)
_RULES_CHINESE = tuple(
    re.compile(LEAD_CHINESE + _NOT_NOW_CHINESE + form)
    for form in (
        f"{_FROM_NOW_CHINESE}[，,]?(?:请|你|也|都|就|每次|一律|总是"
        "|始终|尽量|最多|统一|要|只|不要|别|不用|不必|再|给我|跟我|对我|和我|的|回答|所有|任何|[，,])*"
        f"(?:{_DO}|我(?:问|说|提到|让你|发))",
        f"{_FROM_NOW_CHINESE}(?:(?:请|都|要|得|[对跟和]我|说话)*(?:{_FORMAL}|{_INFORMAL}|简洁|简短"
        f"|详细)(?:一?[点些]|$|[，。])|(?:别|不要)[那这]么(?:{_FORMAL}|{_INFORMAL})的?[，,])",
        f"{_FROM_NOW_CHINESE}(?:给我|你)?{_OF_TEXTS}[^，。了我他她们]{{0,4}}(?:都|一律|统一|全部?|请)(?:给我|帮我)?{_DO}",
        f"(?:你)?(?:给我|帮我|跟我)?(?:推荐|写|列|讲|解释|回答|翻译|总结|介绍"
        f"|算)[^，。他她们]{{0,10}}(?:时候?)[，,]?(?:请|都|要|每次|一律|别|不要|先|记得)+{_DO}",
        f"凡是[^，。我他她们]{{1,12}}[，,]?(?:你|都|请|要|一律)*{_DO}",
        "[跟对和]我(?:说话|聊天|讲话|交流|讲解)(?:的时候|时)?(?:请|都|要|尽量)*(?:[别像用]|不要|随意|简单|直接|慢)",
        "(?![^，。]*[我他她它们]).*[，,。]\\W*(?:[以今之]后|一直|永远|每次)[都也]*(?:这样|如此|这么[做办来])吧?\\W*$",
        f"(?:你)?(?:要|得|应该|必须)?(?:总是|始终|一律|永远|务必|每次都?|一直)(?:要|请|都|只|用|以|不要|别)*"
        f"(?![^，。都]{{1,6}}都(?!要?{_DO})){_DO}",
        "(?:你)?(?:永远|千万|绝对|再也|以后|都)*(?:不要|别|不准|不许|禁止|不可以)(?:再|总是?|老是?|给我|对我|跟我|在)*"
        r"(?:用|使用|叫我|称呼我|说|发|推荐|问我|道歉|回复|建议|开玩笑|(?<=[再总老我是远万也后])(?:写|加|提|重复))(?!这|那|它|他|她|笑|了|力|心|功)",
        "(?:你)?(?:不用|不必|不需要|无需|别)叫我(?!起|吃|来|去|一|回|接|上|下|看|买|做|过)[^，。！？]{1,8}了\\W*$",
        "(?:你)?(?:不用|不必|不需要|无需)(?:再|继续)(?:叫我|称呼我|用[^，。]{1,8}(?:回答|回复|答复))",
        "我(?:个人)?(?:还是|一直|总是|通常|就)?(?:更|比较|更加|最)?(?:偏好|偏爱|倾向于)",
        "我(?:个人|还是|一直|总是|通常)*(?:更喜欢|比较喜欢|更愿意|更习惯)(?!过)",
        "(?:当|每当|每次|如果|只要|凡是)?我(?:每次)?(?:问|说|提到|发给?你?|让你|要求|叫你"
        "|请你)(?![他她它])[^。！？]{0,30}(?:的?时候?|[，,]|就)[，,]?(?:请|你|都|就|要|先|直接|不要"
        "|别|务必|必须|一律|总是|只)*"
        f"(?:给我|[^，。]{{0,4}}{_DO})",
        "(?:你的?)?(?:所有|每次)?(?:的)?(?:回答|回复|答复|答案|解释)(?:请|都|要|得|应该|尽量|必须|务必|一律|不要|别)+",
        r"(?:叫|称呼|喊)我(?:为|做)?[^，。！？\s]{1,8}(?:就好|就行|就可以了?|吧|即可)\W*$|请(?:叫|称呼)我",
        "(?:我)?(?:希望|想让|要求|想要)?你(?:能)?(?:总是|每次|以后|一直|始终|永远|都)+(?:能|要|用|不要|别)*"
        + _DO,
        "(?:我)?(?:不喜欢|讨厌|不希望|不想让)你(?:总|老|一直|再|每次)*" + _DO,
    )
)


# -- how to answer ---------------------------------------------------------------------------------

_ONE = r"(?:the|a|an|this|that|these|those|my|your|his|her|their|our|it|one|two|three|some)\b(?!-)"
_VALUE = rf"(?:{_UNITS}|{CURRENCY}|{LANGUAGE}|{PROGRAMMING}|(?:the )?[\w-]+ (?:format|notation))\b"
_SPEAK = r"(?:answer|reply|respond|write|speak|talk|explain)"
_MANNERS = tuple(
    re.compile("^" + _NOT_NOW + r"(?![^:]*:\s)" + form, re.IGNORECASE)
    for form in (
        # a verb of speaking and its manner
        rf"{_SPEAK}(?: to me| me)? in (?!{_ONE}|detail\b|pen\b|person\b|time\b)\w+",
        rf"{_SPEAK}(?: (?:to )?me| things| everything| stuff)* "
        rf"(?:like (?:a|an|my|i)\b|as if\b|as though\b|only (?:with|in)\b|with (?!{_ONE})\w+ only\b"
        rf"|with [\w-]+ (?:metaphors|analogies|comparisons|examples)\b)",
        rf"(?:stay|remain|sound|act|be) (?:more |\w+ly )?{_TONE} (?:(?:with|to|towards) me\b"
        r"|at all times|all the time)",
        r"(?:act|behave|treat me|talk|speak) (?:to me )?(?:as|like) (?:a|an|my|if|someone)\b",
        # a value for a kind of quantity
        rf"(?:(?:write|show|give|quote|display|express|state|put|list|format|use)(?: me)? )"
        rf"(?:all )?(?:{_QUANTITY})(?: and {_QUANTITY})? (?:in {_VALUE}|as (?!{_ONE})\w)",
        rf"(?:all )?(?:{_QUANTITY})(?: and {_QUANTITY})? (?:in|as) (?!{_ONE})"
        rf"[\w+#-]+(?: (?:and |or )?[\w+#-]+)?(?: only)?\W*$",
        rf"(?:use|stick (?:to|with)) (?!{_ONE})[\w' -]{{2,40}} (?:for|with) me\b",
        rf"use (?:only )?(?:{_UNITS})\b(?: and (?:{_UNITS})| units?| system)*\W*$",
        r"use (?:\w+ )?(?:(?:british|american|simple|plain|easy|short|formal|informal) )"
        r"(?:spelling|words|language|sentences|english)\b",
        # a part of every answer
        rf"(?!call\b|be\b|let\b){_VERB} (?!{_ONE})[^,.]*\bwhen {_YOU_ANSWER}",
        rf"{_VERB} [^,.]*\b(?:whenever|every time|each time) you\b",
        rf"i (?:want|need|expect|would like) {_PARTS} \w+ (?:every|each|all)\b",
        rf"(?:no|never any) (?:\w+ )?{_PARTS}(?:\W*$| in (?:your )?(?:{ANSWERS})| for me)",
        rf"(?:skip|avoid|leave out|omit) (?:the |all |any )*{_PARTS}\b"
        r"(?! (?:in|from|of|on) (?:the|my|this|slide|chapter)\b)",
        rf"keep [\w ]{{2,30}} out of your (?:{ANSWERS})\b",
        rf"(?:format|structure|phrase|write|make) (?:all )?(?:of )?your (?:{ANSWERS})\b",
        rf"give me (?!{_ONE})[\w-]+(?: [\w-]+)? (?:{ANSWERS})(?: only)?\W*$",
        rf"(?:recommend|suggest|show|use|give me|cite|write) only (?!{_ONE})\w",
        r"(?:don['’]t|do not|never) (?:round|swear|joke|lecture|sugar-?coat|dumb)\b"
        r"(?!.*\b(?:at|with) (?:him|her|them)\b)",
        r"refer to (?:me|my \w+) as (?-i:[A-Z])",
        r"spell out (?:all )?\w+(?: for me)?\W*$",
    )
)
# A question that asks the assistant for what is to hold from now on.
POLITE = re.compile(
    r"^(?:could|can|would|will) (?:you|u) (?:(?:always|never) (?:"
    r"(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)? in (?!(?:a|the|my|this|that|these"
    r"|those)\b)|(?<=always )(?:give|show|tell|send|remind|ask|warn|address) me\b"
    r"|call me (?-i:[A-Z]))"
    rf"|{_VERB}(?! (?:the|an?|my|our|his|her|this|that|it|me a)\b(?! (?:{ANSWERS})\b))"
    rf".*\b{FROM_NOW}\W*$)|^\W*(?:(?:以后|今后|请|请问|你)[，,]?)*(?:能不能|可不可以"
    r"|可以|能否|可否|能)(?:以后|今后|一直|总是|每次|始终|请|你|都)+(?!再).*(?:回答|回复|答复|给我"
    r"|叫我|称呼我|提醒我)",
    re.IGNORECASE,
)
_LEAD_OF_MANNER = r"^\W*(?:请|麻烦|拜托|希望|你|以后|都|也|还有|另外|对了|要|[，,])*"
_NOT_ONCE_CHINESE = (
    "(?!.*(?:这次|今晚|明天|暂时|这一次|刚才))(?!.*(?<!第)一[封首篇句段]|.*这[个段篇句])"
)
_MANNER = "(?:一点|一些|点儿?|些)"
_ANSWER_CHINESE = "(?:回答|回复|答复|答案|解释|说话|讲话|语气|口气|措辞)"
_DO_CHINESE = (
    "(?:加|附|标|写|列|带|用|问我|说|跟我|给我|帮我|提醒|告诉|总结|翻译|改|纠正|解释|推荐|注明)"
)
_QUANTITY_CHINESE = "(?:价格|温度|气温|距离|日期|时间|重量|金额|货币|单位|数字|代码(?:示例|例子)?)"
_MANNERS_CHINESE = tuple(
    re.compile(_LEAD_OF_MANNER + _NOT_ONCE_CHINESE + form)
    for form in (
        r"(?:只|就)?(?:用|以|拿)[^，。]{1,8}?(?:跟我|给我|对我|和我)?(?:来)?"
        r"(?:回答|回复|答复|聊天?|说话?|交流|对话|沟通)(?:我(?:的问题)?)?\W*$",
        rf"(?:给我的|你的)?{_ANSWER_CHINESE}(?:里|中|时)?(?:要|得|请|都|尽量|全|可以)*"
        rf"(?:像[^，。]+|(?!.*声)[^，。了]{{1,6}}{_MANNER}|简短|简洁|详细)(?:$|\W)",
        rf"(?:给我的|你的)?{_ANSWER_CHINESE}(?:里|中|时)?(?:请|都|全|一律|尽量)*"
        r"(?:别|不要|用|以|按|写成|改成|最多|不超过|控制在)(?!了)[^，。]{2,}",
        rf"{_QUANTITY_CHINESE}(?:请|都|全|一律|统一)*(?:用|按|以|写成|换算成)[^，。了]{{1,12}}\W*$",
        r"每(?:次|段话?|条|一?个|天|句)(?!都)(?:给我)?(?:推荐|回答|回复|答案|消息|话|第一句|最后|后面"
        rf"|结尾|开头|解释|写|发|聊)[^，。]*{_DO_CHINESE}",
        r"(?:叫|称呼|喊)我(?!起|吃|来|去|一|回|接|上|下|看|买|做|过|出|帮|开|走|别|什么|的)"
        r"[^，。！？\s的了吗]{1,5}\W*$",
        r"(?:如果|只要|每当|当)?我(?:说|写|发|打|输入)[“\"「『'‘][^”\"」』'’]{1,20}[”\"」』'’]"
        rf"(?:的时候|时|后)?[，,]?(?:你|就|都|请)*{_DO_CHINESE}",
        r"(?:多|少)(?:用|说|加)(?!力|心|功)[^，。了点些]{2,8}\W*$",
        r"(?:先|直接)(?:讲|说|给|写)(?:出|我)?(?:结论|重点|答案|结果|要点)",
        rf"(?:见到|看到|遇到|碰到|发现)[^，。]{{1,12}}就(?:请|都)*{_DO_CHINESE}",
    )
)
FORMS = (*_RULES, *_MANNERS, POLITE)
FORMS_CHINESE = (*_RULES_CHINESE, *_MANNERS_CHINESE, POLITE)
# Code to its end; a quotation or table to the end of its paragraph, as in Markdown; long quotes.
QUOTED = re.compile(
    r"(```|~~~).*?(?:\1|\Z)|^[^\S\n]*[>|].*?(?=\n[^\S\n]*\n|\Z)|[\"“「『][^\"”」』]{12,}[\"”」』]",
    re.DOTALL | re.MULTILINE,
)
ONE_ONLY = re.compile(
    r"\bonly(?: \w+)?\W+(?:and )?no (?:expla|prose|comment|text|words|talk)", re.IGNORECASE
)
JOINS = re.compile(r"[,;，；] ?(?:(?:and|but)\b)?|\s(?:and|but)\s", re.IGNORECASE)
QUESTION = re.compile(r"[?？吗呢]\W*$")
# A request for a text, ...
_ONE_TEXT = (
    r"(?:letter|e-?mail|mail|message|note|text|poem|haiku|song|story|essay|speech|toast|invitation"
    r"|card|caption|headline|slogan|post|tweet|ad|advert|blurb|bio|review|recipe|report|paragraph"
    r"|article|summary|description|joke|script|function|query|reply|answer|wish|greeting|verse"
    r"|limerick|menu|flyer|translation|apology|introduction|statement|agenda|plan|list)s?"
)
TEXT = re.compile(
    r"(?<!\bi )(?<!\bwe )(?<!\bthey )(?<!\bshe )(?<!\bhe )\b"
    r"(?:(?:write|draft|compose|rewrite|rephrase|reword|translate|summari[sz]e|proofread|polish"
    r"|shorten|edit|phrase)(?: (?:me|us|up|out))* (?:a|an|the|this|that|these|it|my|our|some"
    r"|another|\w+ (?:lines?|sentences?|words?))\b"
    r"|(?:make|create|prepare|give|do|i need|i want|like|need|want)(?: me| us)?"
    rf" (?:a|an|some|another) (?:[\w'’-]+ ){{0,3}}{_ONE_TEXT}\b)"
    r"|(?:^|[，。；！,;!\s])(?:(?:请|麻烦|拜托|[帮替为给把将你再能]|可以|我[想要])[^，。；！？]{0,20})?"
    r"(?:(?:写|拟|起草|翻译|改写|润色|总结|概括|编|生成)(?![了过得的])|[想做来作列][一两几三个句首份张段])",
    re.IGNORECASE,
)
# ... words by which a wish is for more than that text, ...
LASTING = re.compile(
    rf"\b(?:{FROM_NOW}|from here|always|never|ever|every|each|all|again|any ?more|any longer"
    r"|no longer|no more|back to|after all|when|whenever|if|unless|at all times|(?:with|to|for|call"
    r"|calling|address|remind|ask|warn) me|prefer|recommend\w*|suggest\w*|throughout|in general"
    rf"|(?:your|the) (?:{ANSWERS})|stop \w+ing|rules?|you (?:don['’]t"
    r"|do not|needn['’]t|no longer)|(?:is|are) (?:\w+ )?(?:fine|ok|okay|allowed|welcome))\b|以后"
    r"|之后|今后|往后|将来|从(?:现在|今)|[每总]|一直|始终|永远|一律|再也|[改换说]回|恢复|又|无所谓"
    r"|随便|[跟对和叫喊]我|称呼|推荐|提醒|记住|回答|回复|说话|聊天|[^太]了\W*$|[^太]了[，,]|别再"
    r"|老是|凡是|时候",
    re.IGNORECASE,
)
# ... and a wish for the text at hand by its form.
_MORE = (
    r"(?:(?:more|less) (?!\w+s\b)\w+"
    r"|(?:short|brief|clear|simpl|warm|soft|light|strong|kind|nic|funni|tight|crisp|cool)e?r)"
)
OF_ONE_TEXT = re.compile(
    r"^\W*(?:(?:and|but|now|ok|okay|please|kindly|just|make (?:it|this|that)|a (?:bit|little)"
    rf"|slightly|much|even|still)\b,? *)*{_MORE}(?:,? (?:and |but )?{_MORE})*(?:,? (?:please|tone"
    r"|thanks))*\W*$|^\W*(?:(?:and|but|please|ok|okay|just)\b,? *)*(?:(?:skip|drop|leave out|cut"
    r"|omit|lose|remove) (?:the|that|this)|(?:don['’]t|do not) (?:add|use|include|mention"
    r"|write) (?:an?|the|that|this)) \w+(?<!s)(?:,? please)?\W*$|^\W*(?:请|语气|口气"
    r"|[写说改]得?)*(?:(?:再|更|稍微)[^，。了吧]{1,5}?一?[点些]儿?|别[那这]么[^，。了吧]{1,4})\W*$"
    r"|^\W*请?(?:翻译|改写?|换|转|变)成[^，。了吧]{1,6}\W*$",
    re.IGNORECASE,
)


# -- what they are about ---------------------------------------------------------------------------

# What an instruction may be about, and ways to say that it holds no longer.
_LANGUAGE_CHINESE = "(?:中|英|法|德|日|韩|俄|汉|粤|西班牙|意大利)[文语]"
ON_OFF = {
    name: re.compile(rf"(?<![a-z])(?:{form})(?![a-z])", re.IGNORECASE)
    for name, form in {
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
    }.items()
}
_SHORT = (
    r"short(?:er)?|brief(?:er|ly)?|brevity|concise|terse|one-lin\w+|(?:one|two|three) sentences?"
    rf"|(?=[^,.]*\b(?:line|word|sentence|paragraph|character)s?\b){_LIMIT}|简短|简洁|[^，。]短"
    r"|(?:(?:不要?|别)超过|最多|控制在)[^，。]{0,5}?[字句行段]话?(?:以?内)?"
)
_LONG = (
    r"(?<!any )(?<!no )longer|long|elaborat\w+|in (?:more )?detail|detailed|thorough"
    r"|as much as you (?:like|want)|(?<!no )(?<!not )(?<!never )(?<!never use )more than|详细|展开"
    r"|长[一些点]"
    r"|多[^，。]{0,2}[几点些两]"
)
VALUED = {
    name: re.compile(rf"(?<![a-z])(?:{form})(?![a-z])", re.IGNORECASE)
    for name, form in {
        "language": rf"{LANGUAGE}|{_LANGUAGE_CHINESE}",
        "programming": rf"{PROGRAMMING}|go(?= is)",
        "currency": CURRENCY,
        "length": f"{_LONG}|{_SHORT}",
        "level": r"simpl[ey]\w*|as if i were|beginner|dumb(?:ed)?(?: \w+)? down|basics|小孩|外行",
        "tone": rf"{_FORMAL}|{_INFORMAL}|(?<!to )normal(?:ly)?|gentl\w+"
        r"|(?:brutal\w* )?honest\w*|blunt\w*|harsh\w*|strict\w*|sarcas\w+|easier on"
        r"|(?<!['’]d )(?<!would )like an? [\w ]+?(?=[,.!?]|$)|正常|温柔|毒舌|严厉|像[^，。]+",
        "script": "(?:traditional|simplified) (?:chinese|characters)|[繁简]体[字中]?文?",
        "spelling": r"(?:american|british|us|u\.s\.|uk) (?:spellings?|english)|[英美]式拼写",
        "units": f"{_UNITS}|pounds?|inch(?:es)?|feet|英[寸尺]|磅",
        "format": "bullet points?|tables?|paragraphs?|plain text|prose|列表|表格|段落",
    }.items()
}
MEANS = {
    name: re.compile(form, re.IGNORECASE)
    for name, form in {  # values that mean the same, by how they begin
        "traditional": "traditional|繁体",
        "simplified": "simplified|简体",
        "american": r"american|us |u\.s\.|美式",
        "british": "british|uk |英式",
        "short": _SHORT,
        "long": _LONG,
        "simple": "simpl|as if|beginner|dumb|basics|小孩|外行",
        "formal": _FORMAL,
        "informal": _INFORMAL,
        "metric": "metric|celsius|kilo|gram|公|摄氏",
        "imperial": "imperial|fahrenheit|mile|ounce|pound|inch|feet|英[制里寸尺]|磅|华氏",
        "chinese": "中|汉|mandarin",
        "english": "英[文语]",
        "french": "法",
        "german": "德",
        "japanese": "日",
        "korean": "韩",
        "russian": "俄",
        "spanish": "西班牙",
        "italian": "意大利",
    }.items()
}
# What says only that an instruction holds, or holds no more: two that differ in it are contrary.
FORCE = re.compile(
    rf"{_LEAD}(?:(?:{FROM_NOW}|{_BACK_TO}|{_NEVER}|{_YOU_SHOULD}|{NEED_NOT}|please|ever|only|just"
    r"|do(?= (?:call|address)\b)"
    r"|stop|not|don['’]t|do not|i (?:don['’]t|do not) (?:ever )?(?:want|like) you to)\b[,:]? *)*"
    rf"|(?:[,;]? *\b(?:{FROM_NOW}|please|only|after all|any ?more|any longer|again|instead"
    r"|all the time))*\W*$",
    re.IGNORECASE,
)
FORCE_CHINESE = re.compile(
    LEAD_CHINESE
    + r"|(?:就好|就行|就?可以|即可|[了吧啦])*\W*$"
    + "|(?:从现在(?:起|开始)|从今[以往]后|以后|今后|往后|将来)[，,]?|请|都|就|只"
    "|每次|一律|总是|老是|总|始终|永远|一直|务必|必须|应该|尽量|统一|千万|绝对|不要|不用|不必|不需要|无需|不|别|再|继续|要"
)
POLARITY = re.compile("^(?:alway|never|ever|not|do|don|t|pleas)$")
NEGATIVE = re.compile(
    rf"\b(?:not|never|stop|no|\w+n['’]t|cannot|(?<!is )(?<!are )enough|drop|skip|lose"
    r"|leave out|ditch|cut|scrap|get rid of|less|instead of|too much|too many|without)\b"
    rf"|^{NEED_NOT}|[不别]|无需|禁止|没必要|去掉|取消",
    re.IGNORECASE,
)
LIFTED = re.compile(
    r"(?i)\b\w+(?:n['’]t| not) (?:mind|hurt|bother)\b|(?:no|not|never) more than|没关系|没问题|没事"
    "|(?:不要?|别)超过"
)  # looks negative, and is not
_WHILE = "时候|(?<!小)时(?![间区刻候])"
CONDITION = re.compile(
    r"\b(?:when|whenever|if (?!you)|unless|except|each time|every time)\b|如果|每当|除非"
    rf"|{_WHILE}",
    re.IGNORECASE,
)
CASE = re.compile(rf"{CONDITION.pattern}|\bfor\b", re.IGNORECASE)
# When the assistant gives anything of a kind, which is no case beside others.
OF_ANY = re.compile(r",? *\b(?i:when(?:ever)?|if|(?:each|every) time) you (?:give|show|tell) me\b")
# What has one value at a time.
EXCLUSIVE = frozenset("language programming currency length level script spelling units".split())
ADDS = re.compile(r"\b(?:also|too|as well|both|and)\b|也|还", re.IGNORECASE)
# A sentence without what it is about, if nothing but that it lasts is left.
BARE = re.compile(
    rf"^(?!{FROM_NOW})\W*(?:(?:use|write|give me|make it|all|any|no|always|never|just|only"
    rf"|units?|system|and|in|{ANSWERS})\b\W*)*\b(?:only|ever|always|throughout|{FROM_NOW})"
    r"(?: with me)?\W*$",
    re.IGNORECASE,
)
CALLED = re.compile(
    r"^(?:call(?:ing)? me|address(?:ing)? me (?:as|by)) (?:by my |my |as )?"
    r"(?!(?:on|at|in|by|back|when|after|before|every|later|only|about|to)\b)"
    r"([^\s,;:]+(?: (?!and\b|but\b|or\b|in\b|on\b|at\b)[^\s,;:]+){0,2})$"
    r"|^你?(?:叫|称呼|喊)我(?:为|做)?"
    r"(?![爸妈爷奶哥姐弟妹来去先]|儿子|女儿|老婆|老公|起床|一声)([^，,、；。！？\s]{1,8})$",
    re.IGNORECASE,
)


# -- what ends one that it names -------------------------------------------------------------------

# That something is needed no more, ...
_OVER = re.compile(
    r"\b(?:no longer|no more|any ?more|any longer|no need|need(?:n['’]t| not)|(?:don['’]t|do not"
    r"|doesn['’]t|won['’]t) (?:have|need|bother|help|want|care (?:how|which|what|if|whether))|(?:is"
    r"|are|has|have|does|do)(?:n['’]t| not) (?:needed|necessary|have to|need to)|unnecessary"
    r"|pointless|stop|quit|drop|skip|scrap|ditch|lose|cancel|forget|ignore|end|cut|leave|get rid of"
    r"|enough|done with|over with|(?:is|are) over|fed up|gave up|given up"
    r"|(?:tired|sick|bored) of|(?:getting|got|gets) (?:old|boring|annoying|on my nerves)"
    r"|too (?:much|many)|confus\w+|can(?: all)? go\b|trouble|wrong about|silly|never (?:read|use)"
    r"|hard to read|broken|less|fewer|instead of"
    r"|not just|without|any [\w ]+ (?:goes|will do))\b",
    re.IGNORECASE,
)
# ... is allowed, ...
_ALLOWED = re.compile(
    r"\b(?:again|fine|okay|ok|alright|all right|welcome|allowed|you (?:can|may)|(?:feel )?free to"
    r"|(?:don['’]t|do not|doesn['’]t|wouldn['’]t|won['’]t|never) (?:mind|hurt|bother)"
    r"|bring|after all|(?:would|could) (?:actually |really )?help|no problem)\b",
    re.IGNORECASE,
)
# ... or is otherwise now.
_OTHER = re.compile(
    r"\b(?:back|again|now|instead|from (?:now|here) on|please|fine|okay|ok|(?:will|['’]ll) do"
    r"|(?:is|are|makes?|be) (?:\w+ )?(?:easier|better|more sense|clearer|simpler)|it is|than"
    r"|switch(?:ed)?|return to|just be|what i need|rather|after all|you can)\b",
    re.IGNORECASE,
)
_OVER_CHINESE = re.compile(
    r"不用|不必|不需要|没必要|无需|[别不]再|别(?!忘)[^，。]{1,12}了|不要[^，。]{1,12}了"
    r"|不[^，。]{1,6}了|免了|算了|取消|无所谓|随便|少[用说写加点]|不一定|太多|看腻|听累|看不清|烦"
)
_ALLOWED_CHINESE = re.compile(
    r"可以|没关系|没问题|也行|挺好|无妨|不介意|还是要|[^，。]能[^，。]+了|恢复"
)
_OTHER_CHINESE = re.compile(
    r"就行|就好|好了|还是|换|改|恢复|正常|[吧啦]\W*$|更方便|更习惯|为好|可以[^，。]*了"
)
_ASKED = re.compile(
    r"^\W*(?:(?:and|but|please|just|now|could you|can you)\b,? *)*"
    r"(?:use|give|write|add|include|keep|make|answer|reply|respond|be)\b",
    re.IGNORECASE,
)
_ASKED_CHINESE = re.compile(r"^\W*请?(?:使用|用|给|写|加上?|回答|改用)")
# An instruction itself is withdrawn, whatever it says.
ENDED = re.compile(
    r"\b(?:take (?:it )?back(?: what i said)?|(?:is|was) a mistake|lift(?:ed)?|nix|revoked?|undo"
    r"|void|(?:cancel|scrap|drop|ditch|forget|ignore|kill|bin|scratch|lose|end) (?:[\w-]+ ){1,4}"
    r"(?:rule|ban|limit|cap|restriction|thing))\b",
    re.IGNORECASE,
)
ENDED_CHINESE = re.compile(
    "作废|撤销|收回|解除|不算数|(?:限制|规[矩定])[^，。]{0,2}取消|取消[^，。]{0,8}(?:限制|规[矩定])"
)
CUES = (
    ("ended", ENDED, ENDED_CHINESE),
    ("asked", _ASKED, _ASKED_CHINESE),
    ("over", _OVER, _OVER_CHINESE),
    ("allowed", _ALLOWED, _ALLOWED_CHINESE),
    ("other", _OTHER, _OTHER_CHINESE),
)
_JOINED = r"^\W*(?:(?:and|but|so|because|since|as|now|okay|ok)\b,? *)*"  # to what stands before
# Whose doing a clause tells of, if not the user's or the assistant's.
OF_OTHERS = re.compile(
    rf"{_JOINED}(?:(?:he|she|they|we(?! can\b| don['’]t need)|his|her|their)\b"
    r"|(?:my|our|his|her|their|the|this) (?!(?:answers|replies)\b)[\w'’-]+(?: \w+)? (?:can(?! go)"
    r"|may"
    r"|no longer|doesn['’]t|don['’]t|has|have|wants?|stopped|speaks?|switched|went)\b|(?:the|these"
    r"|those|my) \w+ (?:in|on|of|from|at) (?:the|my) )|\b(?:i|he|she|they) (?:can"
    r"|could) (?!read)|\b(?:was|were) (?:\w+ )?(?:fine|ok|okay|good|great|nice)\b"
    r"|(?<!what i )\b(?:says|said|told)\b|^\W*(?:[他她它]|(?:我)?(?:妈|爸|妹|弟|哥|姐|儿子|女儿"
    r"|老师|医生|朋友|们|同事|老板[^，]*[都说]))|我们|说好|老师|医生",
    re.IGNORECASE,
)
# What an assistant is asked to do with one text.
TASK = re.compile(
    r"^\W*(?:please |now |then )*(?:translate|convert|show|send|give|write|say|answer|explain|list"
    r"|find|tell|put|use|make|read)\b(?: me)? (?:the|this|that|it|a|an|my|these|those)\b"
    rf"|^\W*(?:(?:and|now|then|also|again) )*in (?:{LANGUAGE})\b"
    r"|^\W*(?:请|帮我|给我)*(?:把|写一|讲个|列(?!表)|翻译)|一[封首篇句]",
    re.IGNORECASE,
)
CLAUSES = re.compile(
    r"[,，；!！.。—]\s*|;\s|\s(?=(?:and|but|because|since|so(?! \w+(?: with .*)?\W*$))\s)",
    re.IGNORECASE,
)
FORBIDS = re.compile(
    r"\b(?:not|never|stop|no|\w+n['’]t|cannot|skip|avoid|leave out"
    r"|omit|out of|without)\b|不|别(?!字|人)",
    re.IGNORECASE,
)
ONLY = re.compile(rf"\b(?:only|{_LIMIT})\b|只|最多|超过", re.IGNORECASE)
# Words that say how an assistant works, or how much something holds, and not what about.
GENERAL = vocabulary(
    "a about again all allowed always an and answer any anymore are as ask at back be better but "
    "by call can care do don each else end ever every everything fine for free from get give go "
    "good had has have how i if in is it just keep kindly know last like list longer make me "
    "mention message more much my need never no not now of off okay on only or out over please "
    "prefer put really recommend reply respond say send shall should show so some something speak "
    "start stay still stop suggest talk tell than that the them then there thing things this time "
    "to too up us use very want way we what when whenever which will with word would write you "
    "your yours answers replies messages response mine me's re s t ll ve m d"
)
GENERAL_CHINESE = re.compile(
    r"回答|回复|答复|直接|给|别(?!字|人)|每段话|后面|最后|开头|结尾|加|每次|每条|每天|以后|今后"
    r"|从现在[起开始]*|可以|不用|不必|不需要|别再|不要|给我|跟我|对我|帮我|我|你|请|都|用|叫|称呼"
    r"|说话|说|写|一点|一些|更?喜欢|希望|尽量|就|了|吧|的|地|得|再|也|还是|很|太|这|那|个|时候|没关系|表示|标上"
    r"|总是|始终|永远|推荐|提醒|什么|怎么|现在|偶尔|里|中|上|像|一样|要|能|好|行"
)
# The same, or plain words about them, beside which an ending tells of nothing else.
_PLAIN = (
    "able actually add after alright also am anything anyway applies aren't around ban basics "
    "become before being best bit bother bring broken cancel cap changed clearer come confuse "
    "continue could cut definitely didn't different ditch doesn't done drop dumb easier "
    "either enough explain explanations feel few first forget format generally goes gone got "
    "great happy hard hear heart help here hm honestly hurt idea ignore include instead isn't "
    "language lately leave less let level limit little long loosen lose lot may maybe might "
    "mind most must myself name necessary needn't nerves nice normal ok old once one ordinary "
    "others paragraphs perfectly perhaps pick plain pointless probably problem prose quit "
    "rather read readable regular relax required return rid right rule save scrap see sense "
    "sentences sick silly simple simpler since skip sometimes sound spelling stick style such "
    "suits switch system text thank these those though tired tone totally trouble under unit "
    "unless unnecessary until useless usual wasn't welcome well weren't without won't works "
    "wouldn't wrong yes yet yourself"
)
PLAIN = GENERAL.union(*map(vocabulary, _PLAIN.split()))
PLAIN_CHINESE = re.compile(
    "限制|禁令|字数|稍微|一下|有点|方便|习惯|一定|规矩|规则|这个|那个|看不[懂清]|什么|免了|无所谓|随便|帮我|推荐|提醒|为好|继续|称呼|顺序|关系|和|"
    r"可以|没关系|没问题|没事|不介意|以后|现在|从现在起|不用|不必|不需要|没必要|无需|不要|那么|这么|还是|偶尔"
    r"|回答|回复|答复|恢复|切换|谢谢|麻烦|语气|格式|单位|符号|[对跟和给]我|你的?|一[点些]|[点些]|就好|就行"
    r"|其实|真的|有点|说话|聊天|交流|时候|之前|原来|这样|那样"
    r"|我(?=不介意|希望|想让你|更?喜欢)|希望|想让|喜欢"
    r"|[太都免当套先烦算必么不只叫我腻累听看好也里上中夹点些可以能就没需须说用讲写加带发得地的了吧啦再又行别改换转回成到变来请要能正常平时重新去掉取消把省随挺多少更开]"
)
OWN = re.compile(
    rf"{_JOINED}(?:(?:my|our) |i (?!(?:\w+ )?(?:no longer|need|care|mind|want|prefer|never|gave"
    r"|take|was wrong|don['’]t|do not|would)\b)"
    r"|i(?:['’]d| would) like to\b|the \w+(?: \w+)? (?:is|are)\b"
    rf"|i (?:don['’]t|do not|no longer) (?:need|want|mind) (?:{LANGUAGE})\b(?! (?:{ANSWERS}|rule))"
    rf"|.*\bhave (?:{LANGUAGE})\b"
    r"|you are welcome to|translate|polish (?:the|that|this|my)\b)"
    r"|^\W*我(?:的|们|现在|以后|又|也|已经)*(?:可以|不用|能|会|开始)",
    re.IGNORECASE,
)
# How an assistant calls the user, and another way that is fine as well.
NAME = re.compile(
    r"\b(?:call|address) me (?:as |by )?(?:\w+\. )?((?-i:[A-Z])[\w'’-]+)", re.IGNORECASE
)
OTHER_NAME = re.compile(
    r"^(?:(just|plain) )?((?-i:[A-Z])[\w'’-]+) (?:is|will do)(?: fine| okay| ok| enough)?"
    r"(?: again| now)*\W*$",
    re.IGNORECASE,
)
IT = re.compile(r"\b(?:it|them|those|these|that)\b", re.IGNORECASE)
YOU = re.compile(r"\b(?:you|your|you['’]\w+|okay to|fine to)\b", re.IGNORECASE)
CASE_CLAUSE = re.compile(
    r"(?:\b(?:when|whenever|(?<!as )if|unless|(?:each|every) time)\b|如果|每当|除非)[^,，]*"
    rf"|.*(?:{_WHILE})",
    re.IGNORECASE,
)
EXPLAIN = re.compile(r"\bexplain(?:ing|ed|s)?\b", re.IGNORECASE)  # has another stem
QUOTED_WORDS = re.compile(r"(?:[“「『]|(?<!\w)[\"'‘])([^\"”」』'’]{2,30})[\"”」』'’]")
# Of one kind of text or one person alone.
KIND_OF_TEXT = re.compile(
    r"\b(?:e-?mails?|letters?|reports?|subjects?|titles?|posts?|tweets?|essays?|commits?)\b|邮件|报告|信|作业|文章",
    re.IGNORECASE,
)
