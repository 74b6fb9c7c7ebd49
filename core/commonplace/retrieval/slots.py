"""Slots of which a person has one at a time, such as a home, and the words that fill or change one.

Tables of what vectors alone do not tell, in English and Chinese, with the plainest words of German,
Spanish, Japanese and Arabic. Text is in small letters.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ..patterns import lazy_pattern
from .lexical import has_cjk
from .statement_words import HOPE, KIN, NOW, ONCE, PAST

_LONGEST = 400  # characters of a text that is read


class Slot(NamedTuple):
    """A matter of which one thing holds at a time.

    Attributes:
        name: slots of one name are one matter.
        states: what says that something fills it; its group, if any, tells of which thing.
        changes: what says that something else fills it from now on; as above.
    """

    name: str
    states: re.Pattern[str]
    changes: re.Pattern[str]


def _slot(name: str, states: str, changes: str = "(?!)") -> Slot:
    return Slot(name, lazy_pattern(states), lazy_pattern(changes))


_OCCUPATION = (
    r"(?:(?!vegeta)\w{3,}(?:ologist|ician|[ai]rian|keeper|smith|ographer|mechanic)|accountant|actor"
    r"|actress|architect|analyst|artist|assistant|baker|banker|barber|barista|bartender|builder|butcher"
    r"|carpenter|cashier|chef|chemist|cleaner|clerk|coach|consultant|cook|dentist|designer"
    r"|detective|developer|director|doctor|driver|editor|electrician|engineer|farmer|firefighter"
    r"|florist|freelancer|gardener|hairdresser|inspector|instructor|intern|interpreter|journalist"
    r"|judge|lawyer|lecturer|librarian|manager|mechanic|midwife|model|musician|nurse|painter"
    r"|paramedic|pharmacist|photographer|physicist|physiotherapist|pilot|plumber|police officer"
    r"|postman|professor|programmer|psychologist|receptionist|reporter|researcher|sales\w*|scientist"
    r"|secretary|soldier|solicitor|supervisor|surgeon|tailor|teacher|technician|therapist"
    r"|translator|tutor|vet|waiter|waitress|web developer|writer)"
)
# What somebody calls his own, so that "my new one" replaces the one before; two sisters may be his.
_THING = rf"(?!(?:{'|'.join(KIN)})\b)[a-z-]+"
_NAMED = f"{_THING}(?: [a-z-]+)?"
# A new bike lock is no new bike.
_GOES_ON = (
    r"[\w-]| (?!(?:is|was|are|called|named|who|which|that|in|at|on|of|for|from|with|and|but|to|by"
    r"|as|because|since|now|today|yesterday|this|last|next|here|again|too|instead|started|starts)\b)\w"
)
_NOT_A_HOME = (
    r"(?! (?:an? |the |my |our )?(?:new |different )?(?:team|department|role|job|position|group"
    r"|project|school|class|company|desk|seat|next|mon|tues|wednes|thurs|fri|satur|sun|\d))"
)
_EDITORS = r"(?:vim|neovim|emacs|vs ?code|sublime|intellij|pycharm|zed)"
_DATABASES = r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|sqlite|oracle|dynamodb)"
_SWITCHES = r"\b(?:switched|migrated|moved|changed|converted) (?:[\w-]+ ){0,4}?to\b"

ENGLISH = (
    _slot(
        "home",
        r"\b(?:live|lives|lived|living|reside|resides|based|settled) (?:\w+ )?(?:in|at|on|with)\b"
        r"|\bstay(?:s|ing) (?:with|at)\b|\bstays? in (?!bed\b|touch\b|an?\b|the\b|my\b)"
        r"|\brents? an? (?:\w+ )?(?:room|flat|house|apartment) in\b"
        r"|\b(?:home|apartment|flat|house|place)(?: is|['’]s) (?:an? [\w-]+ )?(?:in|on|at)\b"
        r"|\b(?:have|own|rent|got|share) (?:an?|our|my) (?:[\w-]+ ){0,2}?(?:[\w-]*bedroom|studio"
        r"|flat|apartment|house|condo|cottage) (?:in|on|near|by)\b"
        r"|\brents? (?:\w+ )?in\b|\b(?:an?|the) (?:[\w-]+ )?resident\b|\bis (?:my |our )?home\b",
        r"\brelocated for good\b|\b(?:moved|relocated|settled)"
        r"(?: (?:back|over|down|house|out|in|away|again|together|here))?"
        rf"(?: with \w+)? (?:to|into|in)\b{_NOT_A_HOME}"
        r"|\bmoved (?:in|house|out)\b|\bmoved out of\b|\b(?:new|own) (?:home|flat|apartment|house"
        r"|place)\b"
        r"|\b(?:live|lives|living) \w+ now\b",
    ),
    _slot(
        "employer",
        r"\b(?:works?|working|employed|interning) (?:[\w-]+ ){0,4}?(?:at|for|by)\b(?! me\b)"
        r"|\b(?:i['’]?m|i am|is) an? (?:[\w-]+ ){1,4}(?:at|for)\b|\bjob (?:is )?(?:at|with)\b",
        r"\b(?:started|began|begun) (?:working |work |a job |a new job |my job )?(?:at|with|for)"
        r"(?! (?:\d|noon|half|the gym|one|two|six|seven|eight|nine|ten))"
        r"|\bjoined (?!an? (?:gym|club|choir|band|team|class|group)|the (?:gym|club|choir|band))"
        r"|\b(?:got|landed|accepted|found|took) (?:an?|the|another) (?:[\w-]+ ){0,2}(?:job|offer"
        r"|position)\b|\bhired (?:at|by)\b|\bnew job\b|\b(?:changed|switched) (?:jobs?"
        r"|employers?)\b"
        r"|\b(?:quit|left|lost|resigned from) (?:my|his|her|the|their) (?:job|position)\b"
        r"|\b(?:retired|resigned|unemployed|laid off|made redundant|got fired|(?:was|been"
        r"|got) sacked)\b"
        r"|\bhanded in (?:my|his|her) notice\b|\b(?:let|laid) me (?:go|off)\b|\bfired me\b",
    ),
    _slot(
        "occupation",
        r"\bworks? as (?:an?|the)\b"
        rf"|\b(?:i['’]?m|i am|is|am) (?:now )?an? (?:[\w-]+ ){{0,3}}?{_OCCUPATION}\b",
        r"\bpromoted\b|\b(?:made|appointed|named) me (?!an? (?:cup|coffee|tea|cake|meal|sandwich))"
        r"|\bhired me as\b|\bretrained\b|\b(?:became|become|am now|retrained as) an? "
        r"|\bchanged (?:career|profession)s?\b|\b(?:retired|resigned)\b"
        r"|\b(?:quit|left|lost) (?:my|his|her|the) job\b"
        r"|\bhanded in (?:my|his|her) notice\b|\b(?:now teach|teach now)",
    ),
    _slot(
        "which",
        rf"\b(?:my|our|the|user['’]s) (?:new |current )?({_NAMED}) is\b"
        rf"(?! (?:at|in|next|on|today|tomorrow)\b)|\bis my ({_NAMED})\b"
        rf"|\b(?:use|uses|using|chose|picked) [\w ]{{1,20}} as (?:my|our) ({_NAMED})\b"
        r"|\b(?:we|i) (?:named|called) (?:the|our|my) (\w+)\b"
        r"|\b(\w+)(?:['’]s name is| (?:is|was) (?:called|named)| goes by| answers to)\b",
        rf"\b(?:new|another|different) ({_THING})(?!{_GOES_ON})\b"
        rf"|\b(?:my|our) ({_NAMED}) is (?:[\w-]+ ){{1,3}}now\b"
        r"|\b(\w+) (?:is )?now (?:called|named)\b|\b(\w+) (?:is|was) (?:called|named) \w+ now\b"
        r"|\brenamed (?:the |my |our )?(\w+)"
        rf"|\b(?:replaced|changed|swapped|upgraded) (?:my|our) ({_NAMED})\b",
    ),
    _slot(
        "partner",
        r"\b(?:i['’]?m|i am|is|am) (?:still |happily |currently )?(?:single|dating|seeing|engaged"
        r"|married|widowed|divorced)\b"
        r"|\b(?:wife|husband|girlfriend|boyfriend|partner|fiancée?)(?: is called| is named"
        r"|['’]s name is)|\bmy (?:wife|husband|girlfriend|boyfriend|fiancée?) is\b"
        r"|\bis (?:now )?my (?:wife|husband|girlfriend|boyfriend|fiancée?)\b",
        r"\b(?:broke|broken|split) up\b|\bseparated\b|\b(?:and i|we) divorced\b"
        r"|\b(?:got|getting|been|are) (?:divorced|married|engaged)\b"
        r"|\bengaged\b.{0,30}\bnow\b|\bcalled off the (?:engagement|wedding)\b"
        r"|\bsingle (?:again|now)\b|\b(?:girlfriend|boyfriend|wife|husband) left me\b",
    ),
    _slot(
        "phone",
        r"(?:\b(?:phone|mobile|cell|telephone)[ -]|\b(?:my|our|his|her|their|new) |['’]s )number"
        r" (?:is|was)\b.{0,6}\d"
        r"|\b(?:call|text|phone|ring|reach) (?:me|him|her|us) (?:on|at)\b.{0,6}\d",
        r"\b(?:new|changed|different|another) (?:phone |mobile |cell )?number\b"
        r"|(?:\b(?:phone|mobile|cell|telephone)[ -]|\b(?:my|our|his|her) |['’]s )number"
        r" (?:has )?changed\b|\bchanged my (?:phone |mobile )?number\b",
    ),
    _slot(
        "diet",
        r"\b(?:vegetarian|vegan|pescatarian|meat|keto)\b",
        r"\b(?:eat|eats|eating|ate) (?:\w+ )?(?:meat|fish|chicken|beef|pork|ham|bacon|seafood|eggs)"
        r" (?:again|now)\b|\bbecame (?:a )?veg"
        r"|\b(?:not|no longer) (?:a )?(?:vegan|vegetarian)\b"
        r"|\b(?:stopped|quit|gave up) (?:eating )?meat\b|\b(?:went|turned|gone) (?:\w+ )?veg",
    ),
    _slot("delivery", r"\b(parcels?|packages?|deliveries|letters|post|invoices)\b.{0,24}\bto\b"),
    _slot("address", r"(?<!mail )\baddress is\b", r"\bnew (?:\w+ )?address\b"),
    _slot(
        "drinking",
        r"\bdrinks? (?:\w+ )?(?:alcohol|beer|wine)\b|\b(?:teetotal|sober)\b",
        r"\b(?:alcohol|beer|wine)\b.{0,12}\b(?:again|now)\b"
        r"|\b(?:stopped|quit|gave up) (?:drinking|alcohol|beer|wine)\b",
    ),
    _slot(
        "subject",
        r"\b(?:study|studies|studying|majoring in|major is) \w+",
        r"\b(?:changed|switched) (?:my |his |her )?(?:major|course|degree|subject)\b"
        r"|\bdropped out\b|\bgraduated\b",
    ),
    _slot(
        "editor",
        rf"\b(?:uses?|using|cod(?:es?|ing)|writes?|editor|works? (?:with|in))\b.*\b{_EDITORS}\b",
        rf"{_SWITCHES} {_EDITORS}\b",
    ),
    _slot(
        "database",
        rf"\b(?:uses?|using|database|stores?|runs? on|works? with)\b.*\b{_DATABASES}\b",
        rf"{_SWITCHES} {_DATABASES}\b",
    ),
)  # fmt: skip

_KEEPS = (
    r"女朋友|男朋友|老板|经理|领导|房东|室友|老师|医生|教练|班主任|导师|主管|手机|电脑|车|房子"
    r"|工作|银行|理发师|牙医"
)
_CHINESE_OCCUPATION = (
    r"(?:老师|教师|医生|护士|律师|会计|厨师|司机|记者|警察|程序员|工程师|设计师|经理|主管|销售|秘书"
    r"|教授|编辑|法官|演员|歌手|画家|作家|导游|翻译|店长|店员|服务员|管理员|保安|消防员|研究员|公务员|农民"
    r"|工人|军人|学生)"
)
CHINESE = (
    _slot(
        "home",
        r"住在|住[^院宿着过]|(?<!现)在[^，。]{1,6}(?:漂|生活|定居|长住)|家(?:住)?在|人也?在",
        r"搬(?:到|去|进|家|来|回|走|出)|住在[^，。]{1,8}了\W*$|离开[^，。]{1,6}[回去到]|定居|现在住|安家|迁居|换了?(?:房子|住处)",
    ),
    _slot(
        "employer",
        r"(?<!现)在[^，。]{1,12}(?:工作|上班|任职|当|做|实习)|(?:自己)?开(?:了)?[^，。去来]{0,6}(?:店|公司|工作室|餐馆|饭店)",
        r"去[^，。]{1,10}(?:上班|工作)了|跳槽|离职|辞职|辞了|入职|换了?工作|退休|被裁|失业|加入了?[^，。]{1,10}公司|创业|开了一家"
        r"|去了一家",
    ),
    _slot(
        "occupation",
        rf"(?:是|当|做)(?:一?[名个位])?[^，。的]{{0,6}}{_CHINESE_OCCUPATION}",
        r"辞职|辞了|转行|退休|升(?:职|为|成|任)|改行|不[当做]\w{1,6}了|转去?做|开了一家|离职",
    ),
    _slot(
        "which",
        rf"(?:我|我们)的?({_KEEPS})(?:现在)?(?:是|叫)|(狗|猫|鸟|兔子|仓鼠|(?<!行)车|船|公司|店|宝宝"
        rf"|项目)(?:的名字)?(?:是|叫)",
        rf"新({_KEEPS})|换了(?:一?[个位部台辆])?({_KEEPS})|({_KEEPS})(?:现在)是"
        rf"|({_KEEPS})换(?:人|成|了)|(狗|猫|鸟|兔子|仓鼠|车|船|公司|店|宝宝|项目)\w{{0,3}}(?:改名"
        rf"|改叫|换名)"
        r"|给(狗|猫|鸟|公司|店|宝宝|项目)改名",
    ),
    _slot(
        "partner",
        r"单身|谈恋爱|在一起|未婚(?!夫|妻)|已婚|订婚|结婚(?!纪念)|(?:和|跟)(?:老公|老婆|男朋友"
        r"|女朋友|男友|女友|丈夫|妻子)|(?:老公|老婆|[男女]朋友|[男女]友|丈夫|妻子|未婚[夫妻])(?:的名字)?[是叫]",
        r"分手|结婚了|(?<!办)离婚(?!律师|官司|案)|离了|订婚了|复婚|分居|结了婚|脱单|领证",
    ),
    _slot("phone", r"(?:电话|手机号|号码|手机)(?:号码)?[是：:]?\d|打我?\d{5}", r"换了?(?:手机)?号"
        r"|新号码?|(?<!分机)号码?(?:改|换|变)"),
    _slot("diet", r"吃素|素食|纯素|不吃肉|吃肉", r"(?:开始|又|改|恢复)(?:开始)?吃[肉素]"
        r"|不(?:再)?吃[肉素]了|不吃素"),
    _slot("favourite", r"最(?:喜欢|爱)([喝吃看听玩穿])",
        r"现在[^，。]{0,3}更(?:喜欢|爱)([喝吃看听玩穿])"),
    _slot("subject", r"学的是|专业是|读的是", r"转专业|改学|换了?专业|退学|毕业了"),
)  # fmt: skip

OTHERS = (
    _slot("home", r"\bwohn(?:e|t|en)\b", r"\bgezogen\b|\bumgezogen\b|\bziehe? \w+ um\b"),
    _slot("employer", r"\barbeite[tn]?\b.{0,20}\bbei\b",
        r"\bgekündigt\b|\bneue[nr]? (?:stelle|job)\b"),
    _slot("phone", r"\bnummer ist\b.{0,6}\d", r"\bneue (?:telefon|handy)?nummer\b"),
    _slot("which", r"\b(\w+) hei(?:ß|ss)t\b", r"\b(\w+) hei(?:ß|ss)t jetzt\b"),
    _slot("home", r"\bviv(?:o|e|imos|en) en\b", r"\bmud(?:é|ó|o|ada|amos|ado|aron)\b"),
    _slot("employer", r"\btrabaj(?:o|a|amos|an) (?:en|para)\b", r"\brenunci\w+|\bnuevo trabajo\b"),
    _slot("phone", r"\b(?:teléfono|número) es\b.{0,6}\d", r"\bnuevo número\b"),
    _slot("home", r"に住んで", r"引っ越し(?:まし)?た|引越し(?:まし)?た"),
    _slot("employer", r"で働いて|に勤めて", r"転職|退職|入社"),
    _slot("home", r"\b[أن]?سكن(?:ت|ا)? في\b|\b[أن]عيش في\b", r"\bانتقل(?:ت|نا)\b"),
    _slot("employer", r"\b[أن]عمل (?:في|لدى)\b", r"\bاستقل(?:ت|نا)\b|\bوظيفة جديدة\b"),
    _slot("phone", r"\bرقم(?:ي)?\b.{0,20}\d", r"\bرقم(?:ي)? الجديد\b"),
)  # fmt: skip

_SAME = {"boss": "manager", "line manager": "manager", "physician": "doctor", "gp": "doctor",
         "flatmate": "roommate", "flat": "home", "house": "home", "apartment": "home",
         "老板": "领导", "经理": "领导", "主管": "领导"}  # fmt: skip


@lru_cache(maxsize=8_192)
def slots_in(sentence: str) -> Mapping[tuple[str, str], bool]:
    """Read what a sentence fills, as slot and thing, and whether it says that it changed.

    Args:
        sentence: in small letters.
    """
    found: dict[tuple[str, str], bool] = {}
    for name, *patterns in (*(CHINESE if has_cjk(sentence) else ENGLISH), *OTHERS):
        for is_changed, pattern in enumerate(patterns):
            if match := pattern.search(sentence):
                of = next(filter(None, match.groups()), "")
                key = name, _SAME.get(of, of)
                is_new = is_changed or NOW.search(sentence) is not None
                found[key] = found.get(key, False) or bool(is_new)
    return found


def tells_state(text: str) -> bool:
    """Return whether a text tells what holds for somebody, such as a home, and not what happened.

    False for a text of more than 400 characters.
    """
    if len(text) > _LONGEST:
        return False
    small = text.lower()
    is_other = PAST.search(small) or HOPE.search(small) or ONCE.search(small)
    return not is_other and bool(slots_in(small))
