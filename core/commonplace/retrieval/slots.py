"""Slots of which a person has one at a time, such as a home, and the words that fill or change one.

Tables in English and Chinese, with the plainest words of German, Spanish and Japanese. Text is in
small letters.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from .lexical import has_cjk
from .statement_words import HOPE, NOW, ONCE, PAST

_LONGEST = 400  # characters of a text that is read


@dataclass(frozen=True, slots=True)
class Slot:
    """A matter of which one thing holds at a time.

    Attributes:
        name: slots of one name are one matter.
        states: what says that something fills it; its group, if any, tells of which thing.
        changes: what says that something else fills it from now on; as above.
    """

    name: str
    states: re.Pattern[str] | None = None
    changes: re.Pattern[str] | None = None


def _slot(name: str, states: str = "", changes: str = "") -> Slot:
    return Slot(
        name,
        re.compile(states) if states else None,
        re.compile(changes) if changes else None,
    )


_OCCUPATION = (
    r"(?:(?!vegeta)\w{3,}(?:ologist|ician|[ai]rian|keeper|smith|ographer|mechanic)|accountant|actor"
    r"|actress|architect|analyst|artist|assistant|baker|banker|barber|barista|bartender|builder|butcher"
    r"|carpenter|cashier|chef|chemist|cleaner|clerk|coach|consultant|cook|dentist|designer"
    r"|detective"
    r"|developer|director|doctor|driver|editor|electrician|engineer|farmer|firefighter|florist"
    r"|freelancer|gardener|hairdresser|inspector|instructor|intern|interpreter|journalist|judge"
    r"|lawyer|lecturer|librarian|manager|mechanic|midwife|model|musician|nurse|painter|paramedic"
    r"|pharmacist|photographer|physicist|physiotherapist|pilot|plumber|police officer|postman"
    r"|professor|programmer|psychologist|receptionist|reporter|researcher|sales\w*|scientist"
    r"|secretary|soldier|solicitor|supervisor|surgeon|tailor|teacher|technician|therapist"
    r"|translator|tutor|vet|waiter|waitress|web developer|writer)"
)
# Of whom or of which there is one at a time, so that "my new one" replaces the one before.
_SINGLE = (
    r"account|accountant|advisor|adviser|agent|apartment|babysitter|bank|bike|boss|boyfriend|camera"
    r"|car|carrier|cleaner|coach|commute|computer|dentist|department|doctor|editor|employer|fiancée?"
    r"|flat|flatmate|gardener|girlfriend|gp|gym|hairdresser|home|house|husband|insurer|job|landlady"
    r"|landlord|laptop|lawyer|line manager|manager|nanny|neighbou?rhood|nickname|office|optician"
    r"|partner|phone|physician|physio|plan|position|president|provider|roommate|salary|school"
    r"|secretary|solicitor|supervisor|surgeon|surname|tablet|teacher|team lead|tenant|therapist"
    r"|title|trainer|tutor|username|vet|wife|yoga teacher"
)
_NUMBER = (
    r"(?:\d{1,2}(?:st|nd|rd|th)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth)"
)
_NOT_A_HOME = (
    r"(?! (?:an? |the |my |our )?(?:new |another |different |other )?(?:team|department|role|job"
    r"|position|group|project|school|class|company|firm|desk|seat|online|vim|emacs|linux|mac|vs"
    r"|python|\w+\W*$(?<=script)|(?:next|following)|mon|tues|wednes|thurs|fri|satur|sun|\d))"
)
_WHICH_MAIL = r"work|private|personal|business|school|office|company|second|other"
_TASKS = (
    r"notes|code|photos|calendar|to-?dos|tasks|budget|passwords|files|drawings|documents|bookmarks"
    r"|contacts|recipes|invoices"
)
_EDITORS = (
    r"vim|neovim|emacs|vs ?code|visual studio|sublime|intellij|pycharm|webstorm|zed|atom|nano"
)
_LANGUAGES = (
    r"python|java|kotlin|javascript|typescript|rust|golang|c\+\+|c#|ruby|php|scala|swift|haskell"
)
_DATABASES = r"postgres(?:ql)?|mysql|mariadb|mongodb|sqlite|oracle|dynamodb"
_SYSTEMS = r"windows|linux|ubuntu|macos|debian|fedora"
_USES = (
    r"\b(?:uses?|using|cod(?:e|es|ing)|program|programs|writes?|editor|language|works? (?:with"
    r"|in))\b"
)
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
    _slot("town_of_work", r"\bworks? in (?!the\b|an?\b|my\b)"),
    _slot(
        "employer",
        r"\b(?:works?|working|employed|interning) (?:[\w-]+ ){0,4}?(?:at|for|by)\b(?! me\b)"
        r"|\b(?:do|does|doing) (?:payroll|marketing|accounting|bookkeeping|sales|support|design"
        r"|consulting|research|admin|security|logistics|hr|pr|it) (?:for|at)\b"
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
        r"|\bchanged (?:career"
        r"|profession)s?\b"
        r"|\b(?:retired|resigned)\b|\b(?:quit|left|lost) (?:my|his|her|the) job\b"
        r"|\bhanded in (?:my|his|her) notice\b|\b(?:now teach|teach now)",
    ),
    _slot(
        "job_search",
        r"\b(?:unemployed|out of work|between jobs)\b"
        r"|\b(?:looking|searching|hunting) for (?:an?|the|another|new|some)? ?(?:\w+ )?(?:job"
        r"|work)\b",
        r"\b(?:got|landed|found|accepted|started) (?:an?|the|my) (?:[\w-]+ ){0,2}(?:job|position)\b"
        r"|\bgot hired\b|\bhired (?:at|by)\b",
    ),
    _slot(
        "which",
        rf"\b(?:my|our|the|user['’]s) ({_SINGLE}) is\b|\b({_SINGLE})['’]s name is\b"
        rf"|\bis my ({_SINGLE})\b"
        rf"|\b(?:use|uses|using|chose|picked) [\w ]{{1,20}} as (?:my|our) ({_SINGLE})\b"
        r"|\b(?:we|i) (?:named|called) (?:the|our|my) (\w+)\b"
        r"|\b(\w+)(?:['’]s name is| (?:is|was) (?:called|named)| goes by| answers to)\b",
        rf"\b(?:new|another|different) ({_SINGLE})\b"
        rf"|\b(?:my|our) ({_SINGLE}) is (?:[\w-]+ ){{1,3}}now\b"
        r"|\b(\w+) (?:is )?now (?:called|named)\b|\b(\w+) (?:is|was) (?:called|named) \w+ now\b"
        r"|\brenamed (?:the |my |our )?(\w+)"
        rf"|\b(?:replaced|changed|swapped|upgraded) (?:my|our) ({_SINGLE})\b",
    ),
    _slot(
        "partner",
        r"\b(?:i['’]?m|i am|is|am) (?:still |happily |currently )?(?:single|dating|seeing|engaged"
        r"|married|widowed|divorced)\b"
        r"|\b(?:wife|husband|girlfriend|boyfriend|partner|fiancée?)(?: is called| is named"
        r"|['’]s name is)|\bmy (?:wife|husband|girlfriend|boyfriend|fiancée?) is\b"
        r"|\bis (?:now )?my (?:wife|husband|girlfriend|boyfriend|fiancée?)\b",
        r"\b(?:broke|broken|split) up\b|\bseparated\b|\b(?:and i|we) divorced\b"
        r"|\b(?:got|getting|been|are) (?:divorced"
        r"|married"
        r"|engaged)\b|\bengaged\b.{0,30}\bnow\b|\bcalled off the (?:engagement|wedding)\b"
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
        "extension",
        r"\bextension (?:is|was)\b.{0,6}\d",
        r"\bextension (?:has |is )?(?:changed|now)\b|\bnew extension\b",
    ),
    _slot(
        "nickname",
        r"\b(?:call|calls|called|calling) me (?!on\b|at\b|back|later|when|if\b|tomorrow|an?\b|the\b"
        r"|any|every|again|to\b|up\b)|\bi (?:go by|answer to)\b|\bi['’]?m known as\b",
    ),
    _slot(
        "delivery",
        r"\b(parcels?|packages?|deliveries|letters|post|invoices)\b.{0,24}\bto\b"
        r"|\b(?:deliver|ship|send) (?:my |our |the )?(parcels?|packages?|letters|post|invoices)"
        r" to\b",
    ),
    _slot(
        "seat",
        r"\b(?:window|aisle|middle) seats?\b",
        r"\b(?:switched|changed) to (?:the )?(?:window|aisle|middle) seats?\b",
    ),
    _slot(
        "taken",
        r"\b(?:take|takes|drink|drinks|like|likes) (?:my|his|her) (coffee|tea)\b"
        r"|\bin (?:my|his|her) (coffee|tea)\b",
    ),
    _slot(
        "kept_in",
        r"\b(?:do|does|keep|keeps|take|takes|write|store|track|manage|have) (?:all )?(?:of )?"
        rf"(?:my|our|his|her) ({_TASKS}) (?:in|on|with)\b",
        r"\b(?:moved|migrated|switched|transferred|imported) (?:all )?(?:of )?"
        rf"(?:my|our|his|her) ({_TASKS}) (?:over )?(?:to|into)\b",
    ),
    _slot(
        "mail",
        rf"(?:\b({_WHICH_MAIL}) )?\be-?mail (?:address )?is\b"
        r"|\b(?:reach|write to|mail|e-?mail) (?:me|us) (?:at|on"
        r"|to)\b.{0,40}@",
        r"\bnew e-?mail\b"
        rf"|(?:\b({_WHICH_MAIL}) )?\be-?mail (?:address )?(?:has )?(?:changed|is now)\b"
        r"|\bchanged (?:my )?e-?mail\b",
    ),
    _slot(
        "address",
        r"(?<!mail )\baddress is\b",
        r"\bnew (?:\w+ )?address\b|(?<!mail )\baddress (?:has )?(?:changed|is now)\b",
    ),
    _slot(
        "secret",
        r"\b([\w-]+) (?:password|pin|code|passphrase) (?:is|was)\b"
        r"|\b(?:password|pin|code|passphrase) (?:of|for|to) (?:the |my |our )?([\w-]+) is\b",
        r"\b(?:changed|reset|updated) (?:the |my |our )?([\w-]+) (?:password|pin|code)\b"
        r"|\b([\w-]+) (?:password|pin|code) (?:has |was |is )?(?:changed|now|reset)\b",
    ),
    _slot("favourite", r"(?<!of )\b(?:my|our|'s|’s) favou?rite (\w+) (?:is|are)\b"),
    _slot(
        "commute",
        r"\b(?:take|takes|cycle|cycles|walk|walks|drive|drives|ride|rides|bike|bikes|commute"
        r"|commutes"
        r"|go|goes|get|run|runs) (?:[\w-]+ ){0,3}?to (?:the |my )?(?:work|office|campus)\b"
        r"|\bcommutes? (?:on|by|with)\b|\blift to (?:work|the office)\b",
    ),
    _slot("vehicle", r"\b(?:drives?) an? "),
    _slot(
        "diet",
        r"\b(?:vegetarian|vegan|pescatarian|meat|keto)\b",
        r"\b(?:eat|eats|eating|ate) (?:\w+ )?(?:meat|fish|chicken|beef|pork|ham|bacon|seafood|eggs)"
        r" (?:again|now)\b|\bbecame (?:a )?veg"
        r"|\b(?:not|no longer) (?:a )?(?:vegan|vegetarian)\b"
        r"|\b(?:stopped|quit|gave up) (?:eating )?meat\b|\b(?:went|turned|gone) (?:\w+ )?veg",
    ),
    _slot(
        "drinking",
        r"\bdrinks? (?:\w+ )?(?:alcohol|beer|wine)\b|\b(?:teetotal|sober)\b",
        r"\b(?:alcohol|beer|wine)\b.{0,12}\b(?:again|now)\b"
        r"|\b(?:stopped|quit|gave up) (?:drinking|alcohol|beer|wine)\b",
    ),
    _slot(
        "smoking",
        r"\bsmokes?\b",
        r"\b(?:stopped|quit|gave up|started) (?:smoking|cigarettes)\b|\bsmok\w+ (?:again|now)\b",
    ),
    _slot("bedtime", r"\b(?:bedtime|go(?:es)? to (?:bed|sleep))\b"),
    _slot("waking", r"\b(?:wake|wakes|get|gets) up\b.{0,8}\b(?:at|around)\b"),
    _slot(
        "rent",
        r"\b(?:my|our|the) rent is\b",
        r"\brent (?:went|rose|has|was|increased|dropped|is now|goes)\b",
    ),
    _slot("salary", r"\b(?:earns?|makes?) (?:[$€£])?\d|\bsalary is\b", r"\bsalary (?:went|rose"
        r"|is now)\b"),
    _slot(
        "weight",
        r"\bweighs? \d",
        r"\b(?:down|up) to \d+(?:\.\d)? ?(?:kilos?|kg|pounds|lbs|stone)\b",
    ),
    _slot("age", r"(?:\bi['’]?m|\bi am|\b(?:he|she|user) is|^\w+ is) \d{1,3}(?: years old)?\W*$",
        r"\bturned \d+\b"),
    _slot(
        "school",
        r"\b(?:goes|go) to [\w ]{0,30}(?:school|college|academy|primary|kindergarten|nursery)\b"
        r"|\battends?\b",
        r"\b(?:changed|transferred|switched|moved|goes now) (?:schools? )?to [\w ]{0,30}(?:school"
        r"|college|academy)\b|\bchanged schools?\b",
    ),
    _slot(
        "grade",
        rf"\bin (?:year|grade|class) {_NUMBER}\b|\bin (?:the )?{_NUMBER} (?:year|grade|class)\b",
        rf"\b(?:started|entered|moved up to|goes into|is now in) (?:the )?(?:(?:year|grade|class)"
        rf" {_NUMBER}|{_NUMBER} (?:year|grade|class))\b",
    ),
    _slot(
        "subject",
        r"\b(?:study|studies|studying|majoring in|major is) \w+",
        r"\b(?:changed|switched) (?:my |his |her )?(?:major|course|degree|subject)\b"
        r"|\bdropped out\b"
        r"|\bgraduated\b",
    ),
    _slot(
        "provider",
        r"\bwe['’]?re with \w+\W*$|\b(?:my|our) (?:provider|carrier|supplier) is\b",
        r"\b(?:switched|changed) (?:our |my )?(?:\w+ )?(?:provider|carrier|supplier)s?\b",
    ),
    _slot(
        "bank",
        r"\b(?:my|our) bank is\b|\bbank with\b",
        r"\b(?:moved|transferred|switched) (?:my|our) (?:\w+ )?accounts? to\b"
        r"|\b(?:changed|switched) banks?\b|\bnew bank\b",
    ),
    _slot("editor", rf"{_USES}.*\b(?:{_EDITORS})\b", rf"{_SWITCHES} (?:{_EDITORS})\b"),
    _slot(
        "language",
        rf"{_USES}.*\b(?:{_LANGUAGES})(?!\w)",
        rf"{_SWITCHES} (?:{_LANGUAGES})(?!\w)",
    ),
    _slot(
        "database",
        rf"(?:{_USES}|\bstores?\b|\bruns? on\b).*\b(?:{_DATABASES})\b",
        rf"{_SWITCHES} (?:{_DATABASES})\b",
    ),
    _slot(
        "system",
        rf"{_USES}.*\b(?:{_SYSTEMS})\b",
        rf"{_SWITCHES} (?:{_SYSTEMS})\b",
    ),
)  # fmt: skip

_KEEPS = (
    r"女朋友|男朋友|老板|经理|领导|房东|室友|老师|医生|教练|班主任|导师|主管|手机|电脑|车|房子"
    r"|工作|银行|理发师|牙医"
)
_CHINESE_TASKS = r"笔记|日记|代码|日程|记账|账本|照片|文档|待办|密码|书签"
_CHINESE_OCCUPATION = (
    r"(?:老师|教师|医生|护士|律师|会计|厨师|司机|记者|警察|程序员|工程师|设计师|经理|主管|销售|秘书"
    r"|教授|编辑"
    r"|法官|演员|歌手|画家|作家|导游|翻译|店长|店员|服务员|管理员|保安|消防员|研究员|公务员|农民"
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
    _slot("job_search", r"找工作|失业|待业|没工作", r"入职|找到(?:了)?(?:\w{0,3})工作|上班了|被录用"
        r"|录取"),
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
    _slot("nickname", r"[叫喊]我[^，。]{1,6}",
        r"(?:别|不要)再?[叫喊]我|(?:改|以后)[叫喊]我|叫我[^，。]{1,6}(?:吧|就[好行])"),
    _slot("extension", r"分机号?(?:码)?[是：:]?\d", r"分机号?(?:码)?(?:改|换|变)"),
    _slot("delivery", r"(?:快递|包裹|文件|发票|信件)[^，。]{0,4}(?:寄|送|发)[到去给]",
        r"(?:快递|包裹|文件|发票|信件)?(?:别|不要)再?(?:寄|送)|改寄"),
    _slot("kept_in", rf"({_CHINESE_TASKS})[^，。]{{0,3}}用"
        rf"|用[^，。]{{1,8}}[记写画存管做]({_CHINESE_TASKS})"
        rf"|[记写画存管做]({_CHINESE_TASKS})[^，。]{{0,3}}用",
        rf"({_CHINESE_TASKS})[^，。]{{0,6}}(?:迁|搬|换|转|挪|改)(?:到|成|用|为)"),
    _slot("mail", r"(工作|公司|私人|学校)?(?:邮箱|邮件地址)(?:地址)?是",
        r"新邮箱|邮箱(?:改|换|变)|换了?邮箱"),
    _slot("address", r"(?<!邮件)(?:地址|住址)是", r"新(?:地址|住址)|(?:地址|住址)(?:改|换|变)"),
    _slot(
        "secret",
        r"([^，。的把我]{1,4})的?密码是",
        r"([^，。的把我]{1,4})的?密码(?:改|换|变|现在)|改了([^，。的把我]{1,4})的?密码",
    ),
    _slot("favourite", r"最(?:喜欢|爱)的(\w{1,6}?)是"),
    _slot("favourite", r"最(?:喜欢|爱)([喝吃看听玩穿])",
        r"现在[^，。]{0,3}更(?:喜欢|爱)([喝吃看听玩穿])"),
    _slot("commute", r"(?:坐|骑|开|走|搭|步行|打)\S{0,5}(?:上班|去公司)"),
    _slot("vehicle", r"开(?:的是)?(?:一)?(?:辆|台)|开的是"),
    _slot("diet", r"吃素|素食|纯素|不吃肉|吃肉", r"(?:开始|又|改|恢复)(?:开始)?吃[肉素]"
        r"|不(?:再)?吃[肉素]了|不吃素"),
    _slot("smoking", r"抽\S{0,4}烟|吸烟", r"戒烟|不抽烟|戒了烟"),
    _slot("drinking", r"喝酒", r"戒酒|不喝酒"),
    _slot("rent", r"房租(?:每月|一个月)?(?:是|要)?\w*[\d一二三四五六七八九十百千]",
        r"房租\w{0,3}(?:涨|降|变|改)"),
    _slot("salary", r"(?:工资|月薪|年薪|薪水)(?:是|有)?\w*[\d一二三四五六七八九十百千]", r"(?:工资"
        r"|月薪|年薪|薪水)\w{0,3}(?:涨|降)|加薪"),
    _slot("weight", r"体重(?:是)?\w*\d|重\d+", r"[瘦胖减]到|体重(?:降|升|涨|变)"),
    _slot("age", r"(?:^|我|用户)(?:今年)?[\d一二三四五六七八九十]{1,3}岁\W*$",
        r"(?:^|我|用户)(?:今年|刚)?满?[\d一二三四五六七八九十]{1,3}岁了"),
    _slot("school", r"上[^，。]{1,8}(?:小学|中学|大学|学校|幼儿园)|在\S{1,10}(?:小学|中学|大学|学校"
        r"|幼儿园)(?:上学|读书|念书)?", r"转学|换了?学校|考上|(?:进了?|转到|转去"
        r"|升入)[^，。]{1,8}(?:小学|中学|大学|学校|幼儿园)"),
    _slot("grade", r"[上读念在][一二三四五六七八九十]年级|[上读]?(?:初|高|大)[一二三四]", r"升(?:入"
        r"|上|到)?(?:[一二三四五六七八九十]年级|(?:初|高|大)[一二三四])"),
    _slot("subject", r"学的是|专业是|读的是", r"转专业|改学|换了?专业|退学|毕业了"),
)  # fmt: skip

OTHERS = (
    _slot("home", r"\bwohn(?:e|t|en)\b", r"\bgezogen\b|\bumgezogen\b|\bziehe? \w+ um\b"),
    _slot("employer", r"\barbeite[tn]?\b.{0,20}\bbei\b", r"\bgekündigt\b|\bneue stelle\b"
        r"|\bneuen job\b"),
    _slot("phone", r"\bnummer ist\b.{0,6}\d", r"\bneue (?:telefon|handy)?nummer\b"),
    _slot("which", r"\b(\w+) hei(?:ß|ss)t\b", r"\b(\w+) hei(?:ß|ss)t jetzt\b"),
    _slot("vehicle", r"\bf(?:ä|ae)hrt? eine?n? |\bconduc(?:e|o) un")
    ,_slot("partner", r"\b(?:ist|bin) mit \w+ zusammen\b|\bs(?:ale|algo) con \w+")
    ,_slot("home", r"\bviv(?:o|e|imos|en) en\b", r"\bmud(?:é|ó|o|ada|amos|ado|aron)\b"),
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
         "color": "colour", "老板": "领导", "经理": "领导", "主管": "领导"}  # fmt: skip


_IN_SPACED, _IN_CJK = (
    {name: tuple(one for one in table if one.name == name) for name in {one.name for one in table}}
    for table in ((*ENGLISH, *OTHERS), (*CHINESE, *OTHERS))
)


@lru_cache(maxsize=8_192)
def slots_in(sentence: str, name: str | None = None) -> Mapping[tuple[str, str], bool]:
    """Read what a sentence fills, as slot and thing, and whether it says that it changed.

    Args:
        sentence: in small letters.
        name: of the only slots that are wanted; None for all, which takes as long as fifty.
    """
    slots = _IN_CJK if has_cjk(sentence) else _IN_SPACED
    wanted = chain.from_iterable(slots.values()) if name is None else slots.get(name, ())
    found: dict[tuple[str, str], bool] = {}
    for slot in wanted:
        stated = slot.states.search(sentence) if slot.states else None
        changed = slot.changes.search(sentence) if slot.changes else None
        for match in (stated, changed):
            if match:
                of = next((group for group in match.groups() if group), "")
                key = slot.name, _SAME.get(of, of)
                is_new = match is changed or NOW.search(sentence) is not None
                found[key] = found.get(key, False) or is_new
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
