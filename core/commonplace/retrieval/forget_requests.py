"""Requests to forget: which clauses of a user's text ask for it, and what the text states beside.

Found by their form, in English and Chinese and with the plainest words of German and Spanish: only
words of asking stand before a verb of forgetting, erasing or not keeping, and what it names is the
user's own or was told to the memory; or it may be anything, and the memory has it. What asks is not
stored, so whatever is doubtful asks nothing.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ..patterns import lazy_pattern
from .statement_words import CHINESE_PEOPLE, PEOPLE
from .utterance_kinds import is_small_talk, needs_no_memory, own_words, sentence_spans

_MAX_TEXT = 1_000  # characters: in a longer one the user has pasted what others wrote


def _pattern(*forms: str) -> re.Pattern[str]:
    return lazy_pattern("|".join(forms), re.IGNORECASE | re.DOTALL)


_BREAK = _pattern(
    r",(?=\s)(?!\s(?:dass|was|wo|wie|wer)\b)|(?<=[\u4e00-\u9fff]),|[;:?](?=\s)|(?<=\d)\.(?=\s)",
    r"[，；：？]|\s?—+|\s[–-]{1,2}(?=\s)|(?=（)|\s(?=\(|(?:and|but|because|cause|since|so(?! kind)"
    r"|then|though|&|as(?= i\b)|plus|und|aber|weil|y|pero)\s)",
    # Where nothing but its subject or verb parts a statement from the request before it.
    r"(?<!\bmy)(?<!\bthe)(?<!\bour)(?<!\ba)\s(?=(?:(?:the|my|our) )?(?:new|right|correct|current)"
    r" (?:[\w-]+ ){0,3}?(?:is\b|are\b|[\w+]*\d)|(?<!\bif\s)it['’]?s\s)"
    r"|\s(?=if (?:it|that|possible|you (?:have|know|still))\b)",
    r"(?<!\bi)(?<!\bwe)(?<!\byou)(?<!\bto)\s(?=(?:use|call me)\s)"
    r"|(?<=[\u4e00-\u9fff])(?<![的我把])\s+",
    r"(?<![忘删清]了)(?<=[了吧])(?=新|现在|改|换|以后|我)|(?=并且?|然后|因为|而我|但)",
    r"(?<=[^我的掉了记\W])(?=(?:我的)?新[^，]{0,6}?(?:[是为]|\d))",
)
_QUOTED = _pattern(r"^[^\"]*(?:\"[^\"]*\"[^\"]*)*\"[^\"]*$", "```(?!.*```)", "“[^”]*$|「[^」]*$")
_REPORTED = _pattern(
    r"\b(?:sa(?:id|ys)|told \w+|wrote|writes|asked|shouted|s[ia]ng\w*|goes|reads|sagte|dijo|lyrics"
    r"|song|title|line|chorus|quote)\W*$|[说讲道]\W*$|歌词|标题|翻译"
)

# Nothing but these words stands before the verb of a request.
_PLEASE = "p(?:lease|lese|ls|lz)|kindly|bitte|por favor"
_ASKING = (
    rf"{_PLEASE}|can|could|would|i['’]d|it['’]d|may|should(?:n['’]t)?|must|want|need|like|rather"
    "|prefer|mind|sure|free|better|best|have|possible|(?:kann|könnte|würde|darf)st|puedes|podrías"
)
_REFUSING = "not|never|dont|longer|stop|quit|(?:do|did|should|need)n['’]t"
_FILLING = (
    "and|so|but|also|then|now|oh|ok(?:ay)?|well|just|actually|hey|hi|yes|yeah|no|sorry|maybe|ever|me"
    "|will|might|do|be|is|has|you(?:['’]d)?|u|i|we|it(?:['’]s)?|to|for|if|that|a|as|appreciate|grateful|glad"
    "|happy|great|good|nice|kind|wish|hope|feel|go|ahead|try|make|see|get(?= rid)|on|from|time|uh"
    r"|favou?r|let['’]?s(?= (?:just )?(?:pretend|act|drop|forget what i\b))|und|dann|doch|du|y"
)
_VERB = _pattern(
    rf"(?:[\s,¿]*+(?:{_ASKING}|{_REFUSING}|{_FILLING})(?![\w'’]))*+[\s,]*"
    r"(?:(?:(?P<forget>fo?rg[eo]?t|unremember|unlearn|vergiss|olv[ií]da(?:te|r)?)"
    r"|(?P<erase>del(?:et|t)e?|eras|remov|wip|purg|scrub|expunge|discard|rid|lösche|streiche"
    r"|entferne|borra|elimina|quita)|(?P<recall>remember|memorize|know)"
    r"|(?P<drop>drop|clear|strik|scrap|scratch|throw|tak|get|ignor|disregard|pretend|act|clean)"
    r"|(?P<keep>keep|hold|stor|sav|retain|record|not|log|hang))(?:e|[tp]?ing|e?d)?"
    r"|(?P<named>\S.*?)(?: bitte| jetzt| be| is)* (?:(?P<forgotten>vergessen|forgotten)"
    r"|(?P<erased>gone|deleted|erased|removed|wiped|löschen|entfernen)))\b(?:,? (?:on ?to|track of"
    r"|out|up|away|bitte|doch|einfach|por favor)\b)*(?P<rest>.*?)(?P<end>\W*)$"
)
_CHINESE_LEAD = (
    "(?:请|麻烦|拜托|帮我|帮忙|可不可以|可以|能不能|能否|能|应该|我?(?:希望|想|要|需要)[让要请]?你|务必"
    "|彻底|一定|马上|你|您|那|所以|也|就|顺便|对了|另外|还有|以后|都|全部?|给|求求?你|再|继续|\\s"
    "|停止|取消|别|不要|不用|不必|不需要|没必要|无需|勿|我?不(?:想|希望|要)再?让?你)*+"
)
_CHINESE_VERB = _pattern(
    rf"(?!.*(?:怎么|如何|为什么|咋)){_CHINESE_LEAD}(?:(?P<held>[把将])?(?P<named>[^把将]{{1,60}}?))??"
    rf"{_CHINESE_LEAD}(?:(?P<erase>(?:删|清|抹|去|移|擦|消)[除掉去了光]|删|撤回)|(?P<drop>清[空理])"
    r"|(?P<forget>忘[掉记了]|当(?:作|做)?(?:不知道|我(?:从来?)?没有?(?:说|提|告诉|讲)过?你?))"
    r"|(?:(?<=[别要用必再续止消勿需你])|(?(held)|(?!)))(?:(?P<recall>(?:知道|记[得住着]?+)(?![账错仇忆录下的]))"
    r"|(?P<keep>(?:记(?:下|录(?![里中删清去抹移全]))|存|保[存留]|储存|留)[着下]?来?)))(?:一下|所有)?"
    r"(?P<rest>.*?)(?P<end>(?:[了吧呗啦哦啊呢呀掉]|(?:好|可以|行)?吗|好不好|谢谢|一下|求你|[\W_])*)$"
)
_CHINESE_TEXT = lazy_pattern("[\u4e00-\u9fff]")
# Which of what was told, the user's information and all that is his own each of them may mean.
_KINDS = {"forget": 3, "recall": 3, "forgotten": 3, "erase": 2, "keep": 2, "erased": 2, "drop": 1}
_WISH = _pattern(rf"\b(?:{_ASKING}|you|stop|longer|not|ok)\b|[\u4e00-\u9fff]")
_NOT = _pattern(rf"\b(?:{_REFUSING}|no need)\b|[别勿]|不[要用必想希需]|没必要|无需|停止|取消")
# Who tells what he does himself, or what somebody did or will do, asks nothing; nor does "if".
_TELLS = _pattern(
    r".*\b(?:i|it(?! be possible)|we|that)\b(?!.*\byou\b)|\W*(?:if|you w(?:ill|ould))\b",
    rf"(?!.*\b(?:{_ASKING})\b).*\byou\b|(?!.*\byou\b).*(?:[^e]ed|forgot)\W*$",
    r"(?!.*\b(?:you|mind|stop)\b).*ing\W*$",
    r"(?!把[^忘]*$|.*(?:[请帮能吧好别不停勿当]|麻烦|拜托|可以|希望|让|应该|[要需]你)).*[你您了]",
)

# What is a person's own.
_DATA = (
    r"(?:number|nr|address|birthday|birth|age|weight|height|credit card|shoe size|zip|password"
    r"|blood type|passcode|pin|iban|salary|income|diagnosis|allerg(?:y|ies)|medication|job title"
    r"|(?:nick|user|sur)?names?|employer|postcode|plate|passport|location|e-?mail|preferences?|info\w*"
    r"|details|(?:personal|private|medical|health|my) data|(?:medical|health) (?:record|histor)\w*)"
)
_CHINESE_DATA = (
    "(?:电话|手机|号码?|账[号户]|地址|住址|生日|[份签]证|密码|邮箱|[行用]卡|工资|收入|年龄|体重|身高|[鞋尺]码"
    "|病[历史]|过敏|名字?|昵称|车牌|邮编|护照|血型|信息|资料|数据|偏好|位置|联系方式)"
)
_WHO = r"(?:i|we|my|our|he|she|they)\b"
_OWN = _pattern(
    r"(?!.*\b(?:question|request|message|idea|manners|your own|i (?:asked|exist|know|said any))\b)"
    rf"(?:about |all of |any (?:mention )?of |all |any )*(?:(?:that )?{_WHO}|(?:mine|me)\W*$"
    r"|(?:what|where|who|when|which|why|how (?:much|many|old))\b(?: \S+){0,3}? (?:i|we|my|our)\b"
    rf"|(?:everything|anything|all|whatever)\b(?=(?: that)? (?:about|{_WHO})|\W*$)"
    rf"|the (?:old|previous|former|other|wrong) ones?\b|(?:the |this )?(?:\w+ ){{0,2}}{_DATA}"
    r"(?: (?:for|of|to) (?:the|my|our) \w+)?\W*$"
    r"|(?:the|that) (?:whole )?(?:thing|stuff|part|bit|note|fact|memory|memories)s? (?:about|with"
    r"|on|that|(?:where )?i|we)\b|(?-i:(?:[A-Z][\w.]+ ){0,2}[A-Z]\w+['’]s )"
    rf"(?:\w+ ){{0,3}}{_DATA}\b|(?:alles|was|wo|wie|wer|dass|mich|(?:meine?|unsere?)[mnrs]?"
    r"|(?:die|den|das) alte)\b"
    r"|(?:lo que|que|mis?|nuestr[oa]s?|todo|dónde|(?:el|la) (?:viej|antigu|anterior)\w*)\b)",
    r"(?!.*(?:指[示令]|消息|问题|规则|账$))(?:(?:所有|一切|全部)(?:$|.*[我你])|我.|关于|有关|[那这][件条]|刚"
    rf"|之前|以前|旧|[^里中上写错]{{1,6}}的新?{_CHINESE_DATA}$|(?:家里|[^里中上写错]){{2,8}}(?:{_CHINESE_DATA}$|的事情?$"
    r"|[那这][件条](?:事情?|记[录忆])?$))",
)
_INFORMATION = _pattern(
    r"(?:(?:all|any|of|the) )*(?:my|our)(?: (?!(?:that|which|to|for|with|and|the|in|on|last|draft"
    rf"|page|line|build|file|test)\b)[\w'’/-]+){{0,3}}? {_DATA}\W*$|my data$",
    rf"(?:the )?{_DATA} of (?:my|our)(?: [\w'’]+){{1,3}}\W*$",
    rf"[^里中上]{{0,4}}?(?:我|自己)[^里中上]{{0,12}}?{_CHINESE_DATA}[\d-]*$",
)
# What is named by where it stands in the text at hand, or by what comes next there.
_AT_HAND = _pattern(
    r"\b(?:in|on|from|out of|off) (?:the|this|that|my)\b|\bnicht\b|[里中上]的?|第.|指[示令]"
)
_GOES_ON = _pattern(r"\blet['’]?s\b|\band (?:go|just|start)\b")
_ENDS_IN_DATA = _pattern(rf"\b{_DATA}\W*$|{_CHINESE_DATA}$")
_CODE = _pattern(
    r"(?:the |our |my |d(?:ie|as|en) )?(?:[\w'’-]+ ){0,2}[\w-]*(?:code|token|combination|passwort"
    r"|nummer)$|[^里中上]{1,6}口令$"
)
# A thing that is named by more than one word; of one, it may be a plan that is dropped.
_THING = _pattern(r"(?:the|that|d(?:ie|as|en)) [\w-]+ [\w-]+", "[^\\W\\da-z]{4}")
# Who is sorry to have told it, or goes on with something else, does not say what to do instead.
_APART = _pattern(
    r"\W*(?:i )?should(?:n['’]?t| not| never) ?(?:have|['’]ve|of)\b|\W*(?:(?:it|that|i) )?wasn"
    r"['’]?t (?:meant|supposed|for)\b|\W*(?:我?本?来?不[该应]|说多了|发错|另外|还有|对了|顺便)",
    r"\W*(?:(?:and|also|plus|oh|btw|by the way|übrigens)\b\W*)+(?:i|we|my|our|ich|wir|meine?)\b",
)
_OF_THAT = _pattern(r"\b(?:it|that|this|there|them|instead|stattdessen)\b|[它那]|不[用想去]")
# Who asks for it, and does not only allow it or drop a plan.
_WISHED = _pattern(
    rf"\b(?:{_PLEASE}|(?:c(?:an|ould)|w(?:ould|ill|ant)|like|need|rather) (?:you|u)|mind"
    r"|you should)\b|[请吧你别帮]|麻烦|拜托|能不能|可以"
)
# What was told to the memory: no other place has it.
_OF_MINE = lazy_pattern("我.{0,6}的.{1,8}$")
_TOLD = _pattern(
    rf"that (?:{_WHO}|(?:\w+ )?about (?:me|my|our)\b)|(?:.* )?(?:everything|anything|all|info\w*"
    r"|details|(?:fact|record|mention|trace)s?) (?:about|that|of|on) (?:me|us|my|our|i)\b",
    r"(?!.*\b(?:from|out of) (?:the|this)\b).*\b(?:i|we)(?:['’]ve|['’]d| have| had)?(?: ever| just"
    r"| once| already| never| didn['’]?t)* (?:said|told|tell|mention\w*|disclosed|gave you)\b",
    r"(?:.* )?(?:all|everything|anything|whatever|what|that) (?:you|u)(?:['’]ve| have)? (?:know"
    r"|remember|(?:learned|have|got|stored?|saved?|noted?|kept)\b.*\b(?:about|on|of))\b",
    r"(?:(?:(?:all|any|every|your) )+memor(?:y|ies) of|.*memor(?:y|ies) (?:about|that|where)"
    r"|(?:the|that) (?:thing|stuff) about (?:me|my|our))\b",
    r".*(?:我|刚才|刚刚|之前|先前|以前).{0,4}?(?:说|告诉|提|讲)[过到起了你的]|.*(?:那条|我.*的)记录",
    r"[^里中上表第个]{2,8}那条(?:记[录忆])?$|.*你.{0,3}?(?:[记存]|知道|对我|了解)|.*(?:关于|有关).*(?:我|记忆|记录)",
)
_MEMORY = _pattern(
    r"\s(?:from|out of|off|in|on|aus|de) (?:(?:your|ur|tu|deine[mn]) (?:\w+ ){0,2}?(?:memor|notes"
    r"|record|mind|head|files|gedächt|speicher|notiz)|(?:the )?(?:memory|record|file|mind)$"
    r"|(?:what|all|anything|everything) you\b).*",
    r"从你那[里儿]|从(?:你的?)?(?:记忆|脑[子海]|记录)[里中]?",
)
_IT = _pattern(r"(?:about )?(?:it|that|this|them|those|all of it|它|那个?|这个?)?")
# What may state a value that holds now, where no break parts it from the request.
_RENEWS = _pattern(
    r"\b(?:instead|nowadays|these days|from now on|use|in favou?r of|now\b.*\w)\b|[→>=]",
    r"^\s*(?:(?:\S+\s+){5,}.*\bnow\b|what i .*\b(?:is|are|it|should)\b|(?:about )?(?:my|our|the)\b"
    r"(?!.*\b(?:that|what|who|which|where|when|why|how)\b).*\b(?:is|are|should|save|remember|it"
    r"|(?:i|we)(?! (?:\w+ )?(?:told|gave|said|mention\w*|sent|shared|used|had|have)))\b)",
    r"\bnew\b.*\b(?:is|are)\b|现在|改[用成为]|换[成了]|以后|新.{0,8}?(?:[是为：:]|\d)|.叫我|.记住",
    r"[搬换改到].*旧|[用打是]\w*\d|\d\w*[是才]|其实|应该|^我的.*(?:[^给被跟和对的]我(?!.{0,4}[说告提讲])|[很好太][^的]{1,3}$)",
)
# "Forget my PIN. It's 4711." tells what is to be forgotten, and not what holds instead.
_RESTATES = _pattern(
    r"\W*(?:my (?:password|passcode|pin)|我的密码)\W*\n\W*(?:(?:it|that|which)(?:['’]s| is| was)"
    r"|namely|就?是)(?!.*(?:\b(?:now|new|changed|instead|these days|wrong)\b|[新改换]|现在))"
)
# A request with the clause behind it, which is part of it.
_CONTINUES = _pattern(
    r"[^\n]*\n(?!\s?[;；:：—–-]|.*\bnow\b)\W*(?:(?:and |or )?(?:(?:that (?:i|we|my|our|he|she|they)"
    r"|dass|que)\b.*|(?:what|who|whose|which|where)(?: \S+){1,3})|(?:and|or) (?:\w+ ){0,3}"
    rf"{_DATA}(?: from .*)?|(?:and|or) (?:(?:the|my|our|his|her|their) )?[a-z-]+"
    r"|(?:以及|还有|和|与)[^了是在到新\d]{{1,5}})\W*$|[^\n]*\n[\s\d()+/,-]+,$"
    r"|(?!.*\b(?:old|former|previous|wrong)\b)[^\n]*\n,[\s\d()+/.-]+$",
    r"\W*(?:that )?(?:i|we)\b[^\n]*\n\W*(?!i\b|it\b)[a-z]+[\s,]$",
)
_POLITE = _pattern(
    r"\W*(?:also|and|so|oh|ah|well|(?:and |but )?(?:keep|leave) (?:the rest|everything else)"
    r"|if (?:it|that|possible|you (?:have|know|still))\b.*|one (?:(?:more|last) )?thing"
    r"|(?:a )?(?:quick|small) \w+|ps|btw|by the way|actually|anyway|on second thoughts?|übrigens"
    r"|por cierto|all of (?:it|them|that)|every bit of it"
    r"|[哦嗯哎啊]?(?:对了)?|另外|还有|那|顺便|拜托|求你了?"
    rf"|(?:(?:would|could|can|will) you ?)?(?:{_PLEASE})? ?(?:do me a favou?r)?)\W*"
)
_TAIL = _pattern(
    rf"(?:[,，\s]*(?<![a-z])(?:{_PLEASE}|thanks?|thank you|thx|now|again|any ?more|for good|okay"
    r"|ok|completely|的记忆))*[\W_]*$"
)
_HEAD = _pattern(
    r"^[\s,]*(?:(?:back|about|that|dass|que|de|of|(?:everything|anything|all) (?:you know )?about"
    r"|(?:(?:any|all|every|the|your) )*memor(?:y|ies) (?:of|about|that|where))\b[\s,]*)+"
)
# "The new one" is named by what it replaces: alone, no search for a number would find it.
_ONE = _pattern(r"(?<=\bnew )one\b", r"(?<=新的)(?=[是为：:\d])")
_NOUN = _pattern(
    r"(?:my|our|the)\s+(?:(?:old|former|previous|wrong)\s+)?([a-z-]+(?: [a-z-]+){0,2})",
    "(?:我们?的?|旧的?|老的?|之前的?|以前的?|原来的?|那个|这个)*([\u4e00-\u9fff]{1,6})",
)

# What can only be read behind a request: of "it" or of somebody that it names, or why it is made.
_BEHIND = _pattern(
    r"(?P<lead>\W*(?:(?:because|since|as|but|so|also|and|oh) )*(?:(?:sold|lost|gave|\w+ed) )?)"
    r"(?P<pronoun>(?:it|(?:that|this)(?=['’]s| is| was)|s?he|they)(?!(?!s \d)[a-z]| and i\b)"
    r"|[他她它]|那(?=是))(?P<is>['’]s|s(?= \d))?(?P<rest>.*)|(?:怕|免得|省得|不[该应小]|太|刚才?不)"
    r".*|[^\W我你\da-z]{1,4}了\W*$|\W*(?:(?:because|since|as|but|so|and) )*(?:(?:is|was|were|ha[sd]"
    r"|have|do|did|does|should|could|would|must|can)(?:n['’]?t)?|never|not|none|too|just|only|rather"
    r"|wrong|(?-i:[a-z])+\W*$)(?![\w'’]).*|.*\b(?:tell|say|share|mention|keep) (?:it|that)\b.*",
)
_PARTICIPLE = lazy_pattern(r" (?:got|\w+ed)\b")  # "'s" may be "is" or "has"
_KEEP = _pattern(r"^\s*(?:but |and )?keep that ")
_HOLDS = lazy_pattern(
    r"\d|@|(?<=\w )[A-Z]\w|\b(?:now|instead|these days|should be)\b|现在|[改新换搬]"
)
_VAGUE = _pattern(
    r"\b(?:s?he|it|them|him|her(?! \w)|embarrass\w*|private|secret|wrong|safer|personal|over"
    r"|sensitive|cold|hot|raining|late|time|important|w?c?ould|feels?|makes?|hurts?|matters?)\b|[错看怕]|尴尬|隐私"
)
_NAMED = _pattern(
    r"(?:.* (?:about|with) |the \w+ of )?(?P<noun>(?:(?P<owner>(?:my|our) [\w-]+|[a-z]+)['’]s "
    r"|(?:my|our|the) )(?!.*\b(?:and|or|that|who)\b)(?:[\w-]+ ){0,4}?[\w-]+)"
    r"(?: (?:i|we) (?:gave|told|said).*)?$"
    r"|(?:.* (?:about|with) )?(?P<name>(?-i:[A-Z])\w+)(?: and .*)?$"
)
_PERSON = _pattern(rf"\b(?:{'|'.join(PEOPLE)})\b|(?:ist|tor|yer|ex)$")
_CHINESE_NAMED = lazy_pattern(
    rf"(我?[^的]{{1,5}})的{_CHINESE_DATA}|((?:我们?[的家]?)?{CHINESE_PEOPLE}(?:[小老阿].)?).*"
    r"|(我们?的[^的]{1,5})"
)
_OLD = _pattern(r"\b(?:old|former|previous|wrong) |[旧老](?!师|板|公|婆)|以前的?|之前的?")


@dataclass(frozen=True, slots=True)
class ForgetSplit:
    """A text, divided into what asks to forget something and the rest.

    Attributes:
        stated: the text without the clauses that ask, where "the new one" says of what; the text
            itself if none asks, empty if nothing remains but a greeting or thanks.
        asked: what each of them names, such as "my old number"; empty if none asks.
    """

    stated: str
    asked: tuple[str, ...] = ()


def split_forget_requests(text: str, *, is_known: bool = False) -> ForgetSplit:
    """Divide a user's text into the clauses that ask to forget something, and what it states.

    Quotations, code and texts of more than 1,000 characters may be somebody else's words, and are
    not divided.

    Args:
        is_known: the memory has what is named, so that it need not be the user's own by its form.
    """
    return ForgetSplit(text) if len(text) > _MAX_TEXT else _split(text, is_known)


@lru_cache(maxsize=4_096)
def _split(text: str, is_known: bool) -> ForgetSplit:
    if needs_no_memory(text):
        return ForgetSplit(text)
    kept: list[str] = []
    asked: list[str] = []
    meant: list[str] = []
    is_introduced, previous, stated, own = False, "", "", own_words(text)
    for start, end, after in sentence_spans(text):
        body = text[start:end]
        if meant and _RESTATES.match(f"{meant[-1]}\n{body}"):
            continue
        is_other = is_introduced or own[start:end] != body or _QUOTED.search(text[:start])
        if meant and not stated and not is_other:
            body = readable(body, meant[-1])
        free = is_known * (
            3 if body.strip() == text.strip() else 2 if _is_apart(text[after:]) else 1
        )
        stated, meant = (body, []) if is_other else _split_sentence(body, previous, free)
        asked += meant
        kept += [stated, text[end:after]] if stated else []
        is_introduced, previous = body.rstrip().endswith((":", "：")), body
    stated = "".join(kept).strip()
    if asked and (noun := _NOUN.fullmatch(asked[-1])):
        stated = _ONE.sub(noun[1] or noun[2], stated)
    divided = ForgetSplit("" if is_small_talk(stated) else stated, tuple(dict.fromkeys(asked)))
    return divided if asked else ForgetSplit(text)


def _split_sentence(sentence: str, previous: str, free: int) -> tuple[str, list[str]]:
    """Return what a sentence states, and what its requests name, also by "it" in the previous.

    Args:
        free: 1 if they may name anything; 2 if they may be less polite, too, where a thing is
            named by more words than one, and 3 if the text says nothing else.
    """
    kept: list[str] = []
    asked: list[str] = []
    is_open = is_reported = False  # whether the last clause asks; whether others are quoted
    breaks = [(0, 0), *(one.span() for one in _BREAK.finditer(sentence)), (len(sentence),) * 2]
    free = 0 if _GOES_ON.search(sentence) else free if len(breaks) == 2 else min(free, 2)
    for (start, begin), (end, _) in pairwise(breaks):
        clause, before = sentence[begin:end], kept[-1] if kept else previous
        is_reported = is_reported or bool(kept and _REPORTED.search(before))
        is_introduced = sentence[start:begin] in {":", "："} and not _POLITE.fullmatch(before)
        is_other = is_reported or is_introduced or _QUOTED.search(sentence[:begin])
        is_alone = not kept and (len(breaks) == 2 or _APART.match(f"{sentence[end:]} "))
        named = None if is_other else _request(clause, free if is_alone else min(free, 1))
        joined = f"{asked[-1]}\n{sentence[start : end + 1]}" if is_open else ""
        if named == "" and _is_topic(before):
            named = kept.pop() if kept else before
        if named:
            asked.append(named)
        elif is_open and (named == "" or _is_polite(clause)):
            continue
        elif _CONTINUES.match(joined) and not _RENEWS.search(clause):
            asked[-1] += sentence[start:end]
            continue
        elif not _RESTATES.match(joined):
            told = readable(clause, asked[-1]) if is_open else clause
            kept += [sentence[start:begin] + told if kept else told.lstrip()] if told else []
            is_open = is_open and not told
            continue
        is_open = bool(named)
    end_mark = sentence.rstrip()[-1:]
    if not asked or (end_mark == "?" and not _WISH.search(sentence)):
        return sentence, []
    stated = "".join(one for one in kept if not _is_polite(one)).lstrip(" ,，")
    if is_open and stated:
        stop = "。" if _CHINESE_TEXT.search(stated) else "."
        stated = stated.rstrip(",;，； ") + (stop if end_mark in ".!?。！？" else "")
    return stated, [_TAIL.sub("", _HEAD.sub("", one)).strip() for one in asked]


def readable(clause: str, named: str) -> str:
    """Write a clause behind what is named so that it is read alone; empty if it cannot be."""
    clause = _KEEP.sub("", clause)
    found = _BEHIND.match(clause)
    if found is None:
        return clause
    rest, pronoun = found["rest"] or "", found["pronoun"] or ""
    is_held = bool(_HOLDS.search(rest) or (not pronoun and _HOLDS.search(clause)))
    is_chinese = _CHINESE_TEXT.search(named) is not None
    of = (_CHINESE_NAMED if is_chinese else _NAMED).fullmatch(named)
    if of is None or not pronoun or (_VAGUE.search(rest) and not is_held):
        return clause if is_held else ""
    if is_chinese:
        noun = of[1] or of[2] or of[3]
    elif pronoun.lower() in {"he", "she"}:
        noun = of["owner"] or of["name"] or (of["noun"] if _PERSON.search(of["noun"]) else "")
    else:
        noun = of["noun"] or ""
    if not noun:
        return clause if is_held else ""
    noun = _OLD.sub("", noun)
    noun = noun[0].upper() + noun[1:] if pronoun[0].isupper() else noun
    verb = " has" if rest.startswith(" been") else "'s" if _PARTICIPLE.match(rest) else " is"
    return found["lead"] + noun + (verb if found["is"] else "") + rest


def _is_polite(clause: str) -> bool:
    return bool(_POLITE.fullmatch(clause)) or is_small_talk(clause)


def _is_apart(text: str) -> bool:
    """Return whether what stands behind a request neither tells why nor what to do instead."""
    text = text[: sentence_spans(text)[0][1]] if text.strip() else ""
    is_reason = readable(text, "") != text or _OF_THAT.search(text)
    return not is_reason or bool(_APART.match(text)) or _is_polite(text)


def _is_topic(clause: str) -> bool:
    """Return whether a clause only names what "it" means: "My blood type? Please forget it."."""
    what = clause.strip(" ,，?？")
    is_stated = re.match(r"i\b|.*(?:\b(?:is|are|was)\b|[了是在有\d])", what, re.IGNORECASE)
    forms = (_TOLD, _INFORMATION, _OF_MINE)
    return not is_stated and any(form.match(what) for form in forms)


def _request(clause: str, free: int) -> str | None:
    """Return what a clause asks to forget, nothing if it is "it", or None if it asks nothing."""
    found = (_CHINESE_VERB if _CHINESE_TEXT.search(clause) else _VERB).match(clause)
    if not found or clause.istitle():
        return None
    kind = next(filter(found.groupdict().get, _KINDS))
    before, rest = found["named"] or "", found["rest"]
    manner = clause[: found.start("rest")].replace(before, "", 1) + found["end"]
    is_passive = kind in {"forgotten", "erased"}
    is_told = not is_passive and _TELLS.match(manner) and not _MEMORY.search(rest)
    # "Don't remember my PIN" may leave out "I".
    is_unasked = (kind == "recall" or is_passive) and not _WISH.search(manner)
    if is_told or is_unasked or bool(_NOT.search(manner)) != (kind in {"recall", "keep"}):
        return None
    named, rest = before + rest, _TAIL.sub("", rest)
    is_cut_off = before and rest and not any(map(_MEMORY.fullmatch, (before, rest)))
    if is_cut_off or _RENEWS.search(named):
        return None
    what, is_in_memory = _MEMORY.subn("", (before + rest).strip(" ,"))
    if _IT.fullmatch(what):
        return ""
    forms = (_TOLD, _INFORMATION, _OWN)[: 3 if is_in_memory else _KINDS[kind]]
    is_meant = any(form.match(what) for form in forms) or (is_in_memory and "从" in before)
    if free and not is_meant and not _AT_HAND.search(what):
        is_thing = free == 3 or (free == 2 and _THING.match(what))
        is_wished = is_thing or _WISHED.search(clause.replace(what, ""))
        is_data = _CODE.match(what) or (_OWN.match(what) and _ENDS_IN_DATA.search(what))
        is_meant = bool(is_wished if _KINDS[kind] > 2 else is_data and kind != "drop")
    return what.strip() if is_meant else None
