"""Types of answer that a question asks for, and whether a text has one.

A question for a time is answered by a text that names one, and never by one that names none. Read
by their form, in English and Chinese well, in German, Spanish, Japanese and Arabic the plainest.
"""

import re
from enum import StrEnum
from functools import lru_cache

from ..models.stop_words import COMMON_ENGLISH
from ..patterns import lazy_pattern

_READ = 1_200  # characters of a text; whether an answer stands further back is unknown
_LIKELY = 0.5  # the fit of a name that may be that of a person, of a place or of a thing


class AnswerType(StrEnum):
    """What a question wants to know."""

    WHEN = "when"
    WHERE = "where"
    WHO = "who"
    HOW_MANY = "how_many"
    HOW_MUCH = "how_much"
    HOW_LONG = "how_long"
    WHY = "why"
    YES_NO = "yes_no"
    NAME = "name"
    COLOUR = "colour"
    NUMBER = "number"


_Table = tuple[tuple[AnswerType | None, re.Pattern[str]], ...]


def _table(*rows: tuple[str, str], before: str = "") -> _Table:
    return tuple(
        (AnswerType(name) if name else None, lazy_pattern(f"{before}(?:{words})"))
        for name, words in rows
    )


_LEADING = (
    r"^\W{0,9}(?:(?:and|so|but|well|hey|hi|please|also|ok|okay|now|then|again|sorry|und|also|y|pero)"
    r"\W{1,3}){0,3}(?:(?:(?:can|could|would) you )?(?:please )?(?:remind me|tell me)(?: again)? "
    r"|(?:do|did) (?:you|i) (?:know|remember|recall|tell you|mention) |any idea "
    r"|i (?:forgot|forget|wonder) )?"
    r"(?:(?:since|until|till|from|by|at|in|on|for|with|to|of|about|seit|bis|ab|von|mit|bei|in|an"
    r"|aus|desde|hasta|de|con|en|a|para) )?"
)
_ENGLISH = _table(
    ("how_long", r"how long\b|how many (?:minutes|hours|days|nights|weeks|months|years)\b"),
    ("how_much", r"how (?:much|expensive)\b|what(?:['’]s| is| was| are) (?:the|my|our) (?:price"
     r"|cost|rent|salary|budget|fee|wage|income)\b|what (?:price|rent|salary|fee)\b"
     r"|what (?:does|did|do) [\w ]{1,40} cost\b"),
    ("how_many", r"how (?:many|old|often|tall|big|heavy|far|high|large)\b|what age\b"),
    ("why", r"why\b|how come\b|what for\b|what(?:['’]s| is| was| were| are) (?:the|my|our|his|her)"
     r" reasons?\b|what made\b|for what reason\b"),
    ("when", r"when(?:['’]s)?\b|(?:what|which) (?:time|day|date|year|month|week|weekday|season"
     r"|century|decade)\b|what(?:['’]s| is| was) (?:the|my|our|his|her) (?:\w+ ){0,2}"
     r"(?:date|birthday|deadline|anniversary)\b"),
    ("where", r"where(?:['’]s)?\b|(?:what|which) (?:city|town|village|country|place|street|state"
     r"|region|district|neighbou?rhood|part of (?:town|the)|airport|room|building|address)\b"
     r"|what(?:['’]s| is| was) (?:my|our|his|her|the|\w+['’]s) (?:\w+ ){0,2}(?:address|hometown"
     r"|location)\b"),
    ("number", r"(?:what|which)(?:['’]s| is| was)? (?:my|our|his|her|the|your|\w+['’]s)?"
     r" ?(?:\w+(?:['’]s)? ){0,3}"
     r"(?:number|pin|code|password|zip|postcode|extension)\b"),
    ("colour", r"(?:what|which) colou?rs?\b|what(?:['’]s| is| was) (?:my|our|his|her|the)"
     r" (?:\w+ ){0,2}colou?r\b"),
    ("name", r"what(?:['’]s| is| was| are) [^?]{1,60}\b(?:called|names?|nicknames?|surname)\b"
     r"|what (?:name|surname|nickname)\b|what (?:do|did|does) [^?]{1,30} (?:name|call)\b"
     r"|how is [^?]{1,40} called\b"),
    ("who", r"who(?:['’]s|m|se)?\b|which (?:person|friend|colleague|doctor|teacher|relative"
     r"|cousin)\b"),
    ("", r"(?:what|which|how)\b"),
    ("yes_no", r"(?:(?:do|does|did|is|are|was|were|am|can|could|would|will|should|have|has|had|may"
     r"|might|must)(?:n['’]t)?) \w"),
    before=_LEADING,
)  # fmt: skip
_GERMAN = _table(
    ("how_long", r"wie lange?\b"),
    ("how_much", r"wie ?viel\b(?! uhr)|was kostete?t?\b|wie teuer\b"),
    ("how_many", r"wie ?viele\b|wie (?:oft|alt|gro(?:ß|ss)|weit|hoch|schwer)\b"),
    ("when", r"wann\b|um wie ?viel uhr\b|welche[srnm]? (?:tag|jahr|monat|datum|woche|uhrzeit)\b"),
    ("where", r"(?:wo|wohin|woher)\b|welche[srnm]? (?:stadt|land|ort|dorf|stra(?:ß|ss)e)\b"),
    ("who", r"we[rmn]\b|wessen\b"),
    ("why", r"(?:warum|weshalb|wieso|weswegen)\b"),
    ("name", r"wie hei(?:ß|ss)(?:t|en|e)\b|wie nenn\w+\b|wie (?:ist|lautet|war) [^?]{1,40} name\b"),
    ("colour", r"welche farben?\b"),
    ("number", r"wie (?:ist|lautet) [^?]{1,40} ?(?:nummer|code|passwort|pin)\b"),
    ("", r"(?:was|welche[srnm]?|wie)\b"),
    before=_LEADING,
)
_SPANISH = _table(
    ("how_long", r"cu[aá]nto tiempo\b|cu[aá]nt[oa]s (?:a[nñ]os|meses|d[ií]as|horas|semanas)"
     r" (?:lleva|hace)"),
    ("how_much", r"cu[aá]nto (?:cuest|cost|vale|pag|gan)\w*|qu[eé] precio\b"),
    ("how_many", r"cu[aá]nt[oa]s\b"),
    ("when", r"cu[aá]ndo\b|(?:a )?qu[eé] (?:hora|d[ií]a|fecha|a[nñ]o|mes)\b"),
    ("where", r"(?:a|de)?d[oó]nde\b|qu[eé] (?:ciudad|pa[ií]s|pueblo|calle)\b"),
    ("who", r"qui[eé]n(?:es)?\b"),
    ("why", r"por qu[eé]\b"),
    ("name", r"c[oó]mo se (?:llama|llaman)\b|cu[aá]l es [^?]{0,30}nombre\b"),
    ("colour", r"(?:de )?qu[eé] color\b"),
    ("number", r"cu[aá]l es [^?]{1,30}(?:n[uú]mero|tel[eé]fono|contraseña|c[oó]digo)\b"),
    ("", r"(?:qu[eé]|cu[aá]l(?:es)?|c[oó]mo)\b"),
    before=_LEADING,
)  # fmt: skip
_CHINESE = _table(
    ("how_long", r"多久|多长时间|多少(?:年|天|个?月|个?小时|分钟)|几(?:年|天|个月|个?小时"
     r"|个?星期|周)"),
    ("when", r"什么时[候间]|何时|几[点月号时]|哪[一]?[年天月日]|哪个(?:月|星期|周|季节|时间)|星期几"
     r"|周几|礼拜几|啥时候|(?:生日|日期|时间)是(?:什么|哪|几|多少)"),
    ("how_much", r"多少钱|什么价|价格|多贵|房租多少|(?:工资|月薪|年薪|预算|收入)(?:是|有)?多少"
     r"|几块钱"),
    ("number", r"(?:电话|手机|号码|号|密码|验证码|门牌|车牌|编号|邮编|代码)[^，。？]{0,4}"
     r"(?:多少|什么|几)"),
    ("where", r"哪里|哪儿|什么地方|何处|在哪|去哪|哪(?:一)?[个座]?(?:城市|国家|地方|省|区|小区|街)"
     r"|啥地方|(?:地址|住址|老家)是(?:什么|哪)"),
    ("name", r"叫(?:做)?什么|叫啥|名字|姓什么|怎么称呼"),
    ("colour", r"什么颜色|什么色|啥颜色|哪种颜色"),
    ("who", r"谁|哪[一]?位|什么人|哪个(?:人|朋友|同事|医生|老师)"),
    ("why", r"为什么|为何|为啥|原因|怎么会|理由"),
    ("how_many", r"多[少大高重远]|几[只个次岁条位台辆本张口匹家件种遍瓶杯头]"),
    ("", r"什么|怎么|怎样|哪|啥|如何"),
    ("yes_no", r"[吗嘛]\W*$|是不是|有没有|是否|没有\W*$|会不会|能不能|喜不喜欢|要不要|对不对"),
)  # fmt: skip
_JAPANESE = _table(
    (
        "how_long",
        r"どのくらい|どれくらい|何(?:年|日|時間|週|か月|ヶ月)間?(?:ですか|いました|住|働)",
    ),
    ("when", r"いつ|何時|何[月日年]|何曜日"),
    ("where", r"どこ|どちら|どの(?:街|町|国|都市)"),
    ("name", r"名前|何という|なんという"),
    ("who", r"誰|だれ|どなた"),
    ("how_much", r"いくら|値段"),
    ("why", r"なぜ|どうして|なんで"),
    ("colour", r"何色|どんな色"),
    ("number", r"番号|パスワード"),
    ("how_many", r"いくつ|何(?:人|匹|個|回|本|枚|歳|台|冊)"),
    ("", r"何|なに|どんな|どう"),
    ("yes_no", r"か\W*$"),
)
_ARABIC = _table(
    ("how_long", r"كم (?:من )?(?:الوقت|المدة|سنة|يوما|شهرا)|منذ متى"),
    ("how_much", r"بكم|كم (?:سعر|ثمن|يكلف|كلف|تكلف)|ما (?:سعر|ثمن)"),
    ("how_many", r"\bكم\b"),
    ("when", r"متى|في أي (?:يوم|سنة|عام|شهر|ساعة)"),
    ("where", r"\bأين\b|من أين|في أي (?:مدينة|بلد)"),
    ("who", r"^\W*(?:من|مع من|لمن)\b"),
    ("why", r"لماذا|لِمَ"),
    ("name", r"ما اسم|ما هو اسم"),
    ("colour", r"ما لون|ما هو لون"),
    ("number", r"ما (?:هو )?رقم"),
    ("", r"\bما(?:ذا)?\b|كيف"),
    ("yes_no", r"^\W*هل\b"),
)
_KANA = lazy_pattern("[\u3040-\u30ff]")
_HAN = lazy_pattern("[\u3400-\u9fff]")
_ARABIC_SCRIPT = lazy_pattern("[\u0600-\u06ff]")

# What answers have.
_MONTHS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|januar|februar|märz|mai|juni|juli|oktober|dezember"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)
_DAYS = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|montags?|dienstags?|mittwochs?|donnerstags?"
    r"|freitags?|samstags?|sonntags?|lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|domingo"
)
_COUNTS = (
    r"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh"
    r"|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million"
    r"|dozens?|half|couple|several|few|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf"
    r"|zwanzig|hundert|tausend|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|veinte"
    r"|cien|mil"
)
_SPANS = (
    r"(?:second|minute|min|hour|hr|day|night|week|weekend|fortnight|month|year|decade)s?"
    r"|sekunden?|minuten?|stunden?|tage?n?|nächte|wochen?|monate?n?|jahre?n?"
    r"|minutos?|horas?|d[ií]as?|noches?|semanas?|mes(?:es)?|a[nñ]os?"
)
_CHINESE_NUMBER = r"[\d〇一二两三四五六七八九十百千万半几]"
_CHINESE_SPAN = (
    r"(?:分钟|个?小时|天|晚|夜|个?星期|个?礼拜|周|个?月|年|分|秒|時間|日間|週間|か月|ヶ月)"
)

_Answers = dict[AnswerType, re.Pattern[str]]


def _answers(**patterns: str) -> _Answers:
    return {AnswerType(name): lazy_pattern(words) for name, words in patterns.items()}


_LATIN_ANSWERS = _answers(
    when=rf"\b(?:(?:{_MONTHS}|{_DAYS}|(?:in|last|this|next|since|until|by|late|early|mid|of) may"
    r"|may \d|\d{1,2}(?:st|nd|rd|th)? may|(?:19|20)\d\d|\d{1,2}[:.]\d\d"
    r"|\d{1,2} ?(?:[ap]\.?m|o['’]clock|uhr)|half past|quarter (?:past|to)|noon|midnight|today"
    r"|tonight|tomorrow|yesterday|nowadays|heute|gestern|morgen|übermorgen|vorgestern|hoy|ayer"
    r"|mañana|anoche|pasad[oa]|pr[oó]xim[oa]"
    r"|(?:last|next|this|every|each|following|previous) (?:\w+ )?(?:night|morning|afternoon"
    r"|evening|week|weekend|month|year|spring|summer|autumn|fall|winter|time)"
    rf"|(?:in|within) (?:an?|\d+|{_COUNTS}) (?:{_SPANS})"
    r"|\w+ (?:minutes?|hours?|days?|weeks?|months?|years?|decades?) (?:ago|later|from now)"
    r"|(?:in|of|during) (?:the )?(?:spring|summer|autumn|fall|winter|morning|evening|afternoon"
    r"|\d\ds|eighties|nineties)|christmas|easter|new year['’]s|halloween|thanksgiving)\b"
    rf"|at (?:\d|(?:{_COUNTS})\b)|\d{{1,2}}[./-]\d{{1,2}}\b"
    r"|(?:when|since|until|before|after) (?:i|we|he|she|they|the|my|our) "
    r"|(?:letzte|nächste|diese|vorige)[nrsm]? \w|um \d|a las? \w"
    rf"|vor (?:einem|einer|\d+|{_COUNTS}) |hace (?:un|una|\d+|{_COUNTS}) )",
    where=r"\b(?i:in|at|from|near|around|outside|inside|behind|beside|towards?|across|into|to|via"
    r"|en|desde|cerca de|aus|nach|bei|nahe) "
    rf"(?!(?i:{_MONTHS}|{_DAYS}|may|christmas|easter|i|english|german|french|spanish|chinese"
    r"|japanese)\b)(?:the )?[A-ZÄÖÜÁÉÍÓÚÑ]\w"
    r"|\b(?i:in|at|near|outside|inside|behind|beside|next to|under|above|below|between|opposite"
    r"|across from|on top of|around) (?i:the|a|an|my|our|his|her|their)"
    r" (?!(?i:morning|evening|afternoon|night|past|future|end|moment|time|week|weekend|summer"
    r"|winter|spring|autumn|fall|year|least|same)\b)\w"
    r"|\b(?i:(?:live|reside|move|relocate|based|park|born|stay|wohn|leb|zieh|zog|viv|mud)(?:e?d|s|es"
    r"|ing|e|en|t|o|í|i|aron|é)? (?:in|at|to|near|on|with|by|here|there|abroad|behind|next|from"
    r"|nach|bei|en|a))\b|\b(?i:at (?:home|work|school|university|college)|abroad|upstairs"
    r"|downstairs|street|avenue|straße|calle)\b|\b(?i:on|an) (?i:the|der|my) \w+ (?i:shelf|floor"
    r"|table|street|coast|desk)\b",
    who=r"\b(?i:mum|mom|mother|dad|father|parents?|sister|brother|siblings?|twin|son|daughter|wife"
    r"|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|uncle|aunt|cousin|niece|nephew"
    r"|grand(?:ma|pa|mother|father|son|daughter)|friend|neighbou?r|colleague|boss|manager"
    r"|teacher|tutor|coach|doctor|dentist|therapist|roommate|flatmate|landlord|landlady|team"
    r"|dr|mr|mrs|ms|prof|professor|captain|mutter|vater|schwester|bruder|sohn|tochter|frau"
    r"|chefin|chef|freundin|freund|kollegin|kollege|madre|padre|hermana|hermano|hij[oa]|espos[oa]"
    r"|amig[oa]|jef[ea]|prim[oa]|t[ií][oa])\b|\b(?i:with|by|of|and|mit|von|con|y|und) "
    rf"(?!(?i:{_MONTHS}|{_DAYS}|i)\b)[A-ZÄÖÜÁÉ]\w|^\W*[A-Z][a-z]+ and I\b"
    r"|\b(?i:he|she|him|er|sie|ella)\b",
    how_many=rf"\d|\b(?:{_COUNTS}|once|twice|thrice|none|single|no|many|every (?:day|week|morning"
    r"|night|evening|month|year|other)|daily|weekly|monthly|ein(?:e|en|mal)?|täglich|un[oa]?"
    r"|only child|seldom|rarely|never|always|often|sometimes)\b"
    r"|\b(?<!this )(?<!that )(?<!the )one \w",
    how_much=rf"[$€£¥₹]|\b(?:\d[\d.,]{{0,12}} ?(?:k|m|bn|eur|usd|gbp|chf|cny|rmb|yen)?"
    rf"|(?:{_COUNTS}) (?:\w+ )?(?:dollars?|euros?|pounds?|bucks|quid|cents?|francs?|yen|yuan|grand"
    r"|pesos)|free|for nothing|dollars?|euros?|bucks|quid|gratis|kostenlos)\b",
    how_long=rf"\b(?:(?:\d[\d.,]{{0,12}}|an?|one|half an?|{_COUNTS}|whole|all"
    r"|ein(?:e[nmr]?)?|un[oa]?)"
    rf"[ -](?:\w+ )?(?:{_SPANS})\b|(?:since|seit|desde|from) (?:\w+ )?(?:\d|{_MONTHS}|{_DAYS}|may"
    r"|childhood|birth|last)|(?:forever|overnight|all (?:day|night|week|summer|winter))\b)",
    why=r"\b(?:because|due to|owing to|thanks to|so that|in order to|as a result|therefore"
    r"|that['’]s why|the reason|weil|wegen|damit|deshalb|darum|denn|porque|para que|por eso"
    r"|since (?:i|we|he|she|it|they|my|the|there))\b",
    name=r"(?i:\b(?:called|named?|names|nicknamed?|surname|hei(?:ß|ss)(?:t|e|en)|namens|llam\w+"
    r"|nombre|christened)\b)|(?<=[a-zäöüß,:] )(?!I\b)[A-ZÄÖÜÁÉÍÓÚÑ]\w+",
    colour=r"\b(?:(?:red|green|blue|yellow|orange|purple|violet|pink|brown|black|white|gr[ae]y"
    r"|beige|turquoise|teal|navy|gold(?:en)?|silver|maroon|burgundy|crimson|scarlet|cream|ivory"
    r"|lilac|lavender|mauve|magenta|cyan|indigo|olive|tan|bronze|khaki|colou?red)(?:ish)?"
    r"|(?:rot|grün|blau|gelb|lila|rosa|braun|schwarz|wei(?:ß|ss)|grau)(?:e[snrm]?)?"
    r"|(?:roj[oa]|verde|azul|amarill[oa]|negr[oa]|blanc[oa]|marrón|morad[oa])s?)\b",
    number=r"\d",
)
_CJK_ANSWERS = _answers(
    when=r"\d{4}年?|[\d一二三四五六七八九十][月号點点日]|[今明昨前后當当][天晚早日年]|早上|上午|中午|下午"
    r"|晚上|凌晨|傍晚|[上下这本每](?:个)?(?:周|星期|礼拜|月|年)|周[一二三四五六日天末]|星期[一二三四五六日天]"
    r"|(?:年|月|天|周|星期|小时|分钟|久)[以之]?[前后]|去年|前年|[春夏秋冬][天季节]|春节|中秋|国庆|元旦|圣诞"
    r"|的时候|小时候|刚才|最近|\d[:：]\d\d|昨日|来[週月年]|先[週月]|去年|毎[日週朝晩]|曜日|時に|[今昨明]日|おととい|あした|きのう|前に",
    where=r"[住在到去从来往](?:了)?[^，。！？]{0,12}?(?:[市省县区国村镇州乡街路港]|城|家|里|边|面|上|下|店|楼"
    r"|馆|园|校|院|站|店|公司|农村|学校)|[住搬迁寄]在?[去到]?[\u3400-\u9fff]{2}|老家|附近|北京|上海|广州|深圳|杭州"
    r"|成都|南京|武汉|重庆|西安|苏州|天津|香港|台北|东京|[在到去][\u3400-\u9fff]{2}(?:工作|上班|读书|上学"
    r"|出生|长大|生活|旅游|出差)|出生[在于]|家在|位于|に(?:住|引っ越|行|あり|い)|で(?:働|生ま|暮ら)|から来",
    who=r"[爸妈爷奶姐妹哥弟儿女婆公叔姨舅姑婶嫂]|父亲|母亲|丈夫|妻子|老公|老婆|女朋友|男朋友|朋友|同事|老板"
    r"|经理|老师|医生|教练|邻居|室友|房东|同学|[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗](?:医生|老师|先生"
    r"|女士|总|经理|阿姨|叔叔|哥|姐)|小[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗]|[他她]|叫|さん|ちゃん|くん|先生|母|父|友達|同僚|彼女?",
    how_many=r"[\d〇一二两三四五六七八九十百千万半]|每[天周月年]|几[只个次岁条]|没有|毎|從不|从不|经常",
    how_much=rf"{_CHINESE_NUMBER}{{1,8}}[多来余]?(?:块|元|万|美元|欧元|英镑|日元|港币|毛|円|ドル)|[¥￥$€£]|免费|無料"
    r"|\d\d",
    how_long=rf"{_CHINESE_NUMBER}{{1,8}}[多来]?{_CHINESE_SPAN}|从\S{{1,8}}(?:开始|起)|一直|整[天晚夜年]|から",
    why=r"因为|因此|所以|由于|为了|既然|以便|好让|是因|原因|理由|から|ので|ため",
    name=r"叫|名|姓|[「『《“\"]|という|です",
    colour=r"[红绿蓝黄橙紫粉棕黑白灰银金褐青米橘]色?|彩色|赤|緑|青い",
    number=r"\d|[〇零一二三四五六七八九]{3}",
)
_ARABIC_ANSWERS = _answers(
    when=r"اليوم|غدا|أمس|الأحد|الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الساعة|الماضي|القادم"
    r"|(?:19|20)\d\d|منذ|قبل|صباح|مساء|يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر"
    r"|نوفمبر|ديسمبر",
    where=r"\b(?:في|إلى|من|قرب|عند|بجانب) \w|(?:أعيش|يعيش|تعيش|أسكن|يسكن|تسكن|انتقل)",
    how_many=r"[\d٠-٩]|واحد|اثن|ثلاث|أربع|خمس|ست|سبع|ثماني|تسع|عشر|مئة|قطتان|مرتين",
    why=r"لأن|بسبب|لكي|كي ",
    name=r"اسم|يدعى|تدعى",
    number=r"[\d٠-٩]",
)
# Whose patterns tell capitals, with what ignores case in groups; the others read small letters.
_CASED = frozenset({AnswerType.WHERE, AnswerType.WHO, AnswerType.NAME})
# Words of the languages that the tables know: without one, what is not found is unknown.
_KNOWN = lazy_pattern(
    r"(?i:\b(?:i|i['’]m|i['’]ve|my|our|the|is|are|was|and|she|he|has|a|it|they|we|you|ich|mein|meine"
    r"|der|die|das|ist|und|hat|mi|el|los|las|tiene|soy|nuestr[oa])\b)"
)
# Whose absence tells nothing: a reason needs no "because".
_UNMARKED = frozenset({AnswerType.WHY})
_MAYBE_UNMARKED_CJK = _UNMARKED | {AnswerType.WHO, AnswerType.NAME}
_CAPITAL = lazy_pattern(
    rf"(?<=[a-zäöüß,:] )(?!(?i:i|{_MONTHS}|{_DAYS}|may)\b)[A-ZÄÖÜÁÉÍÓÚÑ]\w|^\W*[A-Z]\w+['’]s? "
)
_FIRST_WORD = lazy_pattern(r"^\W*([A-ZÄÖÜÁÉÍÓÚÑ]\w+)")


@lru_cache(maxsize=16)
def asked_type(question: str) -> AnswerType | None:
    """Return the type of answer that a question asks for, None if it names none."""
    read = question[:_READ]
    if _HAN.search(read) or _KANA.search(read):
        return _first((_JAPANESE if _KANA.search(read) else _CHINESE,), read)
    if _ARABIC_SCRIPT.search(read):
        return _first((_ARABIC,), read)
    return _first((_ENGLISH, _GERMAN, _SPANISH), read.lower())


def fits(text: str, asked: AnswerType) -> float:
    """Tell whether a text has an answer of a type.

    Returns:
        From 1 if it has, over 0 if that is unknown, to -1 if it clearly has none.
    """
    return _cached_fit(text, asked) if len(text) <= _READ else _fit(text, asked)


def _first(tables: tuple[_Table, ...], question: str) -> AnswerType | None:
    for table in tables:
        for asked, words in table:
            if words.search(question):
                return asked
    return None


def _fit(text: str, asked: AnswerType) -> float:
    if asked is AnswerType.YES_NO:
        return 0.0
    read = text[:_READ]
    answers, unmarked, is_known = _LATIN_ANSWERS, _UNMARKED, True
    if _HAN.search(read) or _KANA.search(read):
        answers, unmarked = _CJK_ANSWERS, _MAYBE_UNMARKED_CJK
    elif _ARABIC_SCRIPT.search(read):
        answers = _ARABIC_ANSWERS
    else:
        is_known = _KNOWN.search(read) is not None
    if asked not in answers:
        return 0.0
    if answers[asked].search(read if asked in _CASED else read.lower()):
        return 1.0
    if asked in (AnswerType.WHO, AnswerType.WHERE) and _CAPITAL.search(read):
        return _LIKELY
    if asked is AnswerType.WHO and _may_begin_with_name(read):
        return 0.0
    return 0.0 if asked in unmarked or len(text) > _READ or not is_known else -1.0


def _may_begin_with_name(text: str) -> bool:
    first = _FIRST_WORD.search(text)
    return first is not None and first[1].lower() not in COMMON_ENGLISH


_cached_fit = lru_cache(maxsize=16_384)(_fit)
