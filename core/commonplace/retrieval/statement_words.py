"""Words of statements: whom they are about, and that something changed, ended or goes on.

And of questions for what holds, held before or held at first. Patterns in English and Chinese, with
the plainest words of German, Spanish and Japanese. Text of statements is in small letters.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from ..patterns import lazy_pattern
from .lexical import has_cjk, kept_if_short, vocabulary

_LONGEST = 400  # characters of a text that are looked at


class WordPattern:
    """Pattern of words in several scripts; a text in ASCII is not searched for those of the others.

    Args:
        latin: alternatives. others: those that no text in ASCII can match.
    """

    def __init__(self, latin: str, others: str, flags: int = 0) -> None:
        self._latin = lazy_pattern(latin, flags)
        self._every = lazy_pattern(f"{latin}|{others}", flags)

    def search(self, text: str) -> re.Match[str] | None:
        """Find the first of the words."""
        return (self._latin if text.isascii() else self._every).search(text)

    def sub(self, by: str, text: str) -> str:
        """Put something else in the place of all of them."""
        return (self._latin if text.isascii() else self._every).sub(by, text)


CHANGE = WordPattern(
    r"\b(?:now|nowadays|these days|currently|anymore|any more|no longer|from now on|instead"
    r"|after all"
    r"|new|newly|correction|switch(?:ed|ing)|chang(?:ed|ing)|moved|relocated|replaced|swapped"
    r"|migrated|renamed|rewrote|started|joined|became|transferred|promoted|rescheduled|postponed"
    r"|pushed back|brought forward|cancell?ed|called off|put off|delayed|quit|gave up|given up"
    r"|stopped|left|retired|resigned|dropped|sold|traded|got rid of|divorced|separated|broke up"
    r"|as of|again|turned|upgraded|jetzt|gezogen|umgezogen|gewechselt|ahora|mud[eéó]|cambi[eéó]"
    r"|inzwischen|mittlerweile|neuerdings|neue[mnrs]?|ab (?:jetzt|sofort)|stattdessen|nicht mehr"
    r"|verkauft|gekündigt|aufgehört|angefangen|umgestiegen|verschoben|getrennt|geheiratet|befördert"
    r"|geändert|ersetzt|aufgegeben|ya no|dej[éóo]|dejado|en (?:vez|lugar) de|nuev[oa]s?|vend[ií]\w*"
    r"|empec[eé]|empezado|renunci\w+|actualmente|mudado|cambiado|aplazad\w+|separ(?:é|amos|ado))\b",
    r"现在|如今|目前|新|改|换|不再|更正|搬|从今|变成|变了|\w起，?|调到|推迟|延期|延[到至]|提前|取消|改签|涨|降"
    r"|升|转学|跳槽|离职|辞职|入职|退休|离婚|分手|戒|卖了|定居|変更|引っ越し|引越し|転職"
    r"|今は|今では|やめ[たまて]|辞め[たまて]|始め[たまて]|変え[たまて]|売っ[たて]|別れ[たまて]|結婚し[たま]|代わりに|になりました|になった|引退|延期"
    r"|\b(?:[وف]?(?:الآن|حاليا|أصبح|صار|صرت|انتقل|غير[تن]|بدل[تن]|استبدل|تركت|تركنا|استقل[تن]|بعت"
    r"|بعنا|توقف|بدأ|التحق|تأجل|انفصل|تزوج|تقاعد)\w*|لم (?:أ|ن|ي|ت)عد|بدلا من|جديدة?|الجديدة?)\b",
)
# That something holds no longer.
CLOSE = WordPattern(
    r"\b(?:sold|traded|died|stole|stolen|closed|got rid of|gave up|given up|gave (?:\w+ ){1,3}up"
    r"|nobody|no one|passed away|gave away|gave (?:back|my)|quit|stopped"
    r"|left (?!in\b|over\b|on\b|at\b|behind\b)"
    r"|cancell?ed|called off|no longer|any ?more|dropped|lost|replaced|instead of|retired|used to"
    r"|switched from|moved (?:away )?from|broke up|split up|separated|ended|resigned"
    r"|finished with)\b",
    r"卖了|卖掉|关了|戒了?|取消|不再|去世|死了|走丢|不在[^，。]{1,6}了|不(?!知道|起|行|住|对|好)[\u4e00-\u9fff]{1,2}了"
    r"|(?:别|不要)再|放弃|扔了|丢了|分手|离婚|退了|停了|把[^，。]{1,12}换",
)
# That something goes on in another way.
NOW = WordPattern(
    r"\b(?:now|nowadays|these days|currently|from now on|any ?more|no longer|instead|after all"
    r"|switched|changed|migrated|renamed|rewrote|as of|as from|jetzt|ahora"
    r"|starting (?:this|next|from|on|\w+day|tomorrow)|this (?:term|semester|season)"
    r"|since (?:the|last|this|\w+day|january|february|march|april|may|june|july|august|september"
    r"|october|november|december))\b",
    r"现在|如今|目前|变更|改[学喝吃坐骑练]|以后(?!再说)|今后|重写|改成|改为|改用|改到|改在|改|换[成到了用]|变成|涨价?|降价?|升|不再|调到|転[職校勤]"
    r"|[り買切]?替え|乗り換え|変わ|早ま",
)
TIME = lazy_pattern(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december)\b"
    r"|\b\d[\d.,:/-]*\w{0,3}\b|\b(?:noon|midnight|morning|evening|afternoon|night|today|tomorrow)\b"
)
VALUE = lazy_pattern(r"\b\d[\w.,:/-]*|[\w.+-]+@[\w.-]+|(?<!^)\b[A-ZÄÖÜÁÉÍÓÚÑ][\w-]*")
_FIRST_WORDS = frozenset(["I", "I'm", "I’m", "We", "My", "Our", "The", "It", "They"])

PAST = WordPattern(
    r"\b(?:used to|back then|when (?:i|he|she|we|they) (?:was|were)|years ago|as a (?:child|kid"
    r"|teen\w*)"
    r"|before that|previously|formerly|once (?:lived|worked|had)|in my (?:youth|childhood|twenties"
    r"|teens)|as an? (?:student|intern|trainee|boy|girl)|(?<!have )(?<!has )(?<!['’]ve )lived"
    r"|in the past|at the time|former|frühe?r|damals|antes|solía)\b",
    r"曾经?|小时候|当年|以前|之前|原来|从前|过去|那时|年轻时|以前は|昔",
)
HOPE = WordPattern(
    r"\b(?:want(?:s|ed)? to|would (?:like|love)|['’]d (?:like|love|rather)"
    r"|(?<!\d )(?<!in )(?<!since )may(?! \d)|might|could"
    r"|should(?!.*\b(?:instead|from now on)\b)|plan(?:s|ning)?|think(?:s|ing)? (?:of|about)"
    r"|hop(?:e|es|ing)|consider(?:s|ing)?|wish|wishes|dream"
    r"|maybe|perhaps|possibly|if|about to|going to|(?:i|we|he|she|they|user) will|i['’]ll|we['’]ll"
    r"|almost|nearly|(?<!always )wants?|möchte|vielleicht|quiero|quizás?)\b",
    r"(?<![理思联感猜梦])想(?![法象念到起])|打算|可能|要是|假如|万一|也许|计划|考虑|如果|要不要|希望|准备|或许|差点|たい",
)
_NEGATED = lazy_pattern(
    r"\b(?:not|no longer|never|cannot)\b|n['’]t\b|不|没|\b(?:nicht|kein\w*|no)\b|ない|ません"
)
# Something that was once done: no later one of its kind undoes it.
ONCE = lazy_pattern(
    r"^(?:(?:yesterday|today|last \w+|this \w+),? )?(?:i|we|he|she|they|my \w+|[a-z]+)"
    r"(?: (?:just|also|finally|recently|once))? (?:went|saw|had|bought|met|read|watched|visited"
    r"|flew|gave (?!up)|finished|ate|took|made|drank|wrote|ran|won|heard|spent|cooked|attended"
    r"|celebrated|played"
    r"|tried|ordered|booked|borrowed|lent|repaired|painted|planted|baked|called|told|talked|spoke"
    r"|hiked|swam|climbed|learned|fell|broke my|sent|received)\b"
    r"|^(?:[我咱他她]|用户)?们?(?:陪|帮|参加|不参加|送|带)"
    r"|^(?:[我咱他她]|用户)?们?[^，。住叫]{0,6}(?:去了|看了|买了|吃了|见了|读了|喝了|做了|参加了|写了|送了|玩了|听了)"
)
WEAK = frozenset(
    (
        "our your his her their type do run like love hate enjoy learn write read watch have "
        "has had go went get got eat want know speak see drink play wear listen cook ride buy "
        "bought own new now work live use start move moved morning evening day week month year "
        "time call my mine me people thing lot home as some any more much no not too also still "
        "just again about today can cannot from by up down since so last will would there out "
        "over if then than user nutzer nutzerin usuario usuaria don doesn didn isn aren wasn "
        "won haven hasn couldn half ask asked tell told say said think need never stop started "
        "stopped because left two three four five six seven eight nine ten both only other "
        "another first one thing way bit really whole me der die das ein eine einen einem mit "
        "und hat ist nicht kein keine keinen am im zu zum zur von fur für auf war ich mir mich "
        "mein meine er sie es bei jeden monat jahr jetzt el la los las un una de del en con por "
        "para que su mi se es al y no lo fue take took make made every each all these those am "
        "s m ve d ll re t i'm old good becaus befor onli everi realli peopl after"
    ).split()
)
WEAK_CHINESE = frozenset(
    "我的是在了们有个一不现每天上下早晚今明昨这那就也都还很去来到从把被给和跟吧啊家里想要会能可以喜"
    "欢新换改年月日周点时候最用户没叫当住用开做喊两三四五杯个次"
)

BEFORE = WordPattern(
    r"\b(?:previous(?:ly)?|former(?:ly)?|used? to|ex-\w+|in the past|back then|earlier|no longer"
    r"|any ?more|früher(?:e[nrs]?)?|vorher|davor|damals|ehemalige[nrs]?|antes"
    r"|anterior(?:es)?|(?<!más )antigu[oa]s?|auparavant|(?<!plus )ancien(?:ne)?s?|précédente?s?)\b"
    r"|\balte[nrs]? (?:adresse|nummer|code|passwort|wohnung|job|chef(?:in)?|auto)\b"
    r"|\bbefore(?:\W*$|,| (?:that|moving)\b)|(?<!how )\bold (?:job|address|number|place|boss"
    r"|flat|apartment|house|phone|school|password)\b",
    r"以前|之前|原来|原先|原本|原定|本来|从前|曾经|过去|上一[个份任家次部台]|前[女男]友|前夫|前妻"
    r"|(?<![名午手目時分日年月間直寸駅人の\d])前[はに]|(?<![^、。はがを\s])前の|昔"
    r"|قبل ذلك|من قبل|سابقا|في السابق|السابقة?\b|القديمة?\b",
    re.IGNORECASE,
)
# In a question for what was, and not for the hours or days before.
_BEFORE_IT = lazy_pattern(
    r"\b(?:before|vor|avant) (?!\d|an? |ein|zwei|drei|kurze|all|christmas|easter|weihnachten|ostern"
    r"|noon|midnight|midi|breakfast|lunch|dinner|supper|bed|sleep|school|work\b|the (?:meeting|exam"
    r"|flight|trip|game|match|race|show|party|weekend|holidays?)\b|(?:\w+day|yesterday|january"
    r"|february|march|april|may|june|july|august|september|october|november|december)\b)\w",
    re.IGNORECASE,
)
# Not the first of several: "When is my first appointment?"
FIRST_TIME = WordPattern(
    r"\b(?:(?<!from )originally|at first|initial(?:ly)?|to begin with|in the (?:very )?beginning"
    r"|start(?:ed)? out|did (?:\w+ ){1,9}first(?=\W*$)"
    r"|(?<!when )(?:was|were) (?:(?!when )\w+ ){0,3}(?:first|original) (?!thing\b|time\b)"
    r"|zuerst|ursprünglich|anfangs|al principio|originalmente|primero)\b",
    r"في البداية|في الأصل|أول الأمر|最初|一开始|最早|起初|当初|最开始|第一[份任]"
    r"|第一个(?!.*(?:什么时候|何时|几[号点]|哪[天年]))|初めは",
    re.IGNORECASE,
)
PAST_TENSE = WordPattern(
    r"\b(?:did|was|were|had|ago|earlier|once|war|waren|hatten?|haben)\b(?! i (?:tell|say|mention))",
    r"当时|那时|上[周个次]|去年|昨[天晚]|过"
    r"|\b(?:كان|كنت|كنا|كانت|أمس)\b|الماضي|\b(?:ماذا|من|أين|متى|كم) \w{2,}ت\b",
    re.IGNORECASE,
)
STATE_QUESTION = WordPattern(
    r"\b(?:is|are|am|['’]s|do|does|can|has|have|now|current(?:ly)?|these days|nowadays|still|latest"
    r"|newest|ist|bin|wohn[et]|arbeitet?|hei(?:ß|ss)[et]|fahre|derzeit|momentan|aktuell\w*|jetzt|es"
    r"|viv[eo]|trabaj[ao]|tengo|está|actual\w*|ahora)\b",
    r"现在|目前|如今|最新|[在是叫住用]|[\u0621-\u064a]",
    re.IGNORECASE,
)
_NEWEST = lazy_pattern(r"\b(?:latest|newest|most recent)\b|最新|最近一次", re.IGNORECASE)

_USERS = lazy_pattern(r"ユーザー|\b(?:user|nutzer(?:in)?s?|usuari[oa])\b")
_HIRAGANA = lazy_pattern("[\u3040-\u309f]")
WEAK_PAIRS = frozenset("开始 已经 正在 继续 决定 觉得 知道 一直 重新 自己 朋友".split())


def matter_words(small: str) -> frozenset[str]:
    """Read the words that tell what a text is about, in stems and in pairs of Chinese characters.

    Args:
        small: the text in small letters.
    """
    found = set()
    for word in vocabulary(TIME.sub(" ", CHANGE.sub(" ", _USERS.sub(" ", small)))):
        if has_cjk(word):
            is_telling = word not in WEAK_PAIRS and not (set(word) & WEAK_CHINESE)
            if len(word) == 2 and is_telling and not _HIRAGANA.search(word):
                found.add(word)
        elif word not in WEAK and not word.isdecimal() and len(word) > 1:
            found.add(word)
    return frozenset(found)


def values_in(text: str) -> frozenset[str]:
    """Read the names, numbers and addresses of a text, in small letters."""
    found = VALUE.findall(text[:_LONGEST])
    return frozenset(one.lower() for one in found if one not in _FIRST_WORDS)


def change_words(text: str) -> bool:
    """Return whether a text says itself that something changed."""
    return _says_change(text[:_LONGEST])


@lru_cache(maxsize=4_096)
def _says_change(text: str) -> bool:
    return CHANGE.search(text.lower()) is not None


@kept_if_short
def is_negated(text: str) -> bool:
    """Return whether a text denies something."""
    return _NEGATED.search(text.lower()) is not None


@kept_if_short
def asks_before(question: str) -> bool:
    """Return whether a question is for what held before what holds now."""
    asked = question[:_LONGEST]
    if BEFORE.search(asked):
        return True
    return _BEFORE_IT.search(asked) is not None and PAST_TENSE.search(asked) is not None


@kept_if_short
def asks_first(question: str) -> bool:
    """Return whether a question is for what held at first."""
    return FIRST_TIME.search(question[:_LONGEST]) is not None


@kept_if_short
def asks_now(question: str) -> bool:
    """Return whether a question is for what holds now, and not for what was or happened."""
    if asks_before(question) or asks_first(question):
        return False
    asked = question[:_LONGEST]
    if _NEWEST.search(asked):
        return True
    return PAST_TENSE.search(asked) is None and STATE_QUESTION.search(asked) is not None


# -- whom a sentence is about --------------------------------------------------------------------

PEOPLE = (
    "mother mom mum father dad parents sister brother siblings twin son daughter kid kids child "
    "children wife husband partner girlfriend boyfriend fiancé fiancée spouse uncle aunt cousin "
    "cousins niece nephew grandmother grandfather grandma grandpa granny grandparents "
    "grandson granddaughter friend friends neighbour neighbor neighbours colleague colleagues "
    "roommate flatmate boss manager landlord dog cat puppy kitten parrot horse rabbit hamster bird "
    "tutor teacher doctor company team schwester bruder mutter vater tochter sohn frau mann "
    "freundin "
    "freund hermana hermano madre padre hija hijo esposa marido amiga amigo"
).split()
_ROLES = frozenset("boss manager landlord tutor teacher doctor company team".split())
_ALIKE = (
    "mother mom mum mutter mama madre", "father dad vater papa padre", "sister schwester hermana",
    "brother bruder hermano", "daughter tochter hija", "son sohn hijo", "wife frau esposa mujer",
    "husband mann marido esposo", "girlfriend freundin novia partner", "dog puppy hund perro",
    "boyfriend freund novio partner", "fiancé fiancée", "cat kitten katze gato", "cousin cousins",
    "kid kids child children kinder hijos", "friend friends amigo amiga freund freundin",
    "grandmother grandma granny gran oma abuela", "grandfather grandpa granddad opa abuelo",
    "neighbour neighbor neighbours vecino nachbar", "colleague colleagues", "roommate flatmate",
)  # fmt: skip
KIN = {one: (one,) for one in sorted(frozenset(PEOPLE) - _ROLES)} | {
    one: tuple(alike.split()) for alike in _ALIKE for one in alike.split() if one in PEOPLE
}
"""Relatives, friends and pets, each with the words that may mean the same one."""
SELF = frozenset(["", "me", "user"])
CHINESE_PEOPLE = (
    r"(?:妈妈?|爸爸?|母亲|父亲|父母|爸妈|[表堂]?(?:姐姐?|妹妹?|哥哥?|弟弟?)|儿子|女儿|孩子|老公|老婆|丈夫|妻子"
    r"|爷爷|奶奶|外公|外婆|姥姥|姥爷|舅舅|姑姑|叔叔|阿姨|女朋友|男朋友|女友|男友|朋友|闺蜜|同事|室友|邻居|同学|房东|领导|公司|妹|弟|姉|兄|母|父|友達)"
)
_SUBJECT = lazy_pattern(
    rf"(?:\b(?:my|our|meine?|mi|user['’]s)|^the) (?:\w+ ){{0,2}}?({'|'.join(PEOPLE)})\b"
    r"(?! and (?:i|me)\b)"
    rf"|\b({'|'.join(PEOPLE)}) (?:of the user|des nutzers|del usuario)\b"
    r"|\b(i|we|my|our|me|us|ich|wir|meine?|vivo|trabajo|me|mi)\b"
    r"|\b(?:the |der |die |el |la )?(user|nutzer|nutzerin|usuario|usuaria)\b"
    rf"|(?:我|我们|咱|咱们|用户)(?:的|家)?({CHINESE_PEOPLE})|([我咱])|(用户|ユーザー)"
    rf"|^({CHINESE_PEOPLE})(?=[在住的是叫は])"
)
# One of these words is in each ASCII text in which the pattern finds something.
_SUBJECTS = frozenset(
    (
        "i we my our me us ich wir mein meine vivo trabajo mi user nutzer nutzerin usuario usuaria "
        + " ".join(PEOPLE)
    ).split()
)
_NAME = lazy_pattern(
    r"^(?!(?:The|We|It|They|This|That|These|There|When|If|Since|Now|After|He|She|You|As|In|On|At"
    r"|From"
    r"|Call|Yesterday|Today|Just|Actually|Correction|Our|My|Ich|Mein|Meine|Wir|Vivo|Trabajo|Me|Mi"
    r"|Ahora|Der|Die|Das|El|La|User|Users|Is|Has|Was|Had|Can|Will|Someone|Somebody|Nobody|Everyone"
    r"|Everybody|People|Finally"
    r"|Recently|Unfortunately|Luckily|Apparently|Currently|Lately|Suddenly|Thankfully|Sadly|Sorry"
    r"|Sold|Left|Moved|Changed|Switched|Started|Stopped|Got|Please|Heads|New|No|Not|Still|Also|So"
    r"|But|And|Well|Oh|By|For|To|With|Last|Next|Some|All|Every|Any|Most|One|Two|Good|Big|Small)\b"
    r"|(?!(?:Ahm|Alfr|Fr|Jar|Moham+|Muham+|N|R|Rash|T|Winifr)ed\b)\w{2,}ed\b"  # "Cancelled it"
    r"|\w+ is (?:my |our )?home\b|\w+ \w+ are\b|\w+ is what\b"
    r"|\w+ (?:the|an?|my|our|your|me|us|it|this|that|to|in|on|at|for|of|with|up|out|off|over)\b"
    r"|\w+ (?:is|are) (?:\w+ )?(?:for|to) me\b)"
    r"([A-Z]\w+)(?: [A-Z]\w+)?(?:['’]s\b| (?!and (?:I|me)\b|is (?:now )?my\b)[a-z])"
)
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏"
    "薛叶阎余潘杜戴"
    "夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
)
_CHINESE_NAME = lazy_pattern(
    rf"^(?!周[会末一二三四五六日]|马上|方案|金额|高[考铁中]|白天|黄金|钱包|江边|常常|老[家板师是]|小[猫狗时区学孩])"
    rf"([小老][^，。我]|[ァ-ヶー]{{2,}}|[^\W\d_a-z]{{1,3}}さん|[A-Z][a-zA-Z]+|[{_SURNAMES}](?:阿姨"
    rf"|叔叔|老师|先生|女士|医生|[^，。我们的在是]{{1,2}}?))"
    r"(?=[在是的住搬跳今有叫喜养每做会去把从对换闻主正刚现离辞怕はがの])"
)
_RELATION = lazy_pattern(rf"(?:['’]s (?:\w+ ){{0,2}}?({'|'.join(PEOPLE)})\b|的({CHINESE_PEOPLE}))")


def subject(sentence: str, small: str) -> str:
    """Read of whom a sentence tells, "" if it names nobody.

    "me" for its speaker, "user" for the user of a fact, else a relation such as "sister" or a name.

    Args:
        small: the sentence in small letters.
    """
    if name := _NAME.search(sentence) or _CHINESE_NAME.search(sentence):
        of = _RELATION.match(sentence, name.end(1))
        return f"{name[1]} {of[1] or of[2]}".lower() if of else name[1].lower()
    if small.isascii() and _SUBJECTS.isdisjoint(_WORDS.findall(small)):
        return ""  # known in a sixth of the time that a search takes
    found = _SUBJECT.search(small)
    if found is None:
        return ""
    person, other, self_, user, chinese, chinese_self, chinese_user, bare = found.groups()
    if self_ or chinese_self:
        return "me"
    return "user" if user or chinese_user else person or other or chinese or bare


_HEAD = 300  # characters of a text that tell of whom it is
_WORDS = lazy_pattern(r"[^\W_]+")
_NAMED = lazy_pattern(r"(?<![.!?¿¡\s])\s+(?:['\"“‘(])?([A-ZÀ-Þ][^\W\d_]+)")
_ASKING = lazy_pattern(
    r"^[\s¿]*(?:(?:in|at|on|with|for|to|from|by|of|under) )?(?:who|whom|whose|what|which|where|when"
    r"|why|how|wer|wen|wem|wessen|was|welche[rsnm]?|wo|wohin|wann|warum|wie|qui[ée]n|qué|cuál|dónde"
    r"|cuándo|cómo|do|does|did|is|are|was|were|has|have|had|can|could|will|would)\b"
    r"(?:['’]s| (?:is|are|was|were|does|do|did|has|have|had|can|will|would|ist|sind|hat|heißt|es))?"
    r"\s*",
    re.IGNORECASE,
)
_NO_NAMES = lazy_pattern(
    r"^(?:I|I['’]\w+|Mon|Tue|Wed|Thu|Fri|Sat|Sun|January|February|March|April|May|June|July|August"
    r"|September|October|November|December|PIN|ID|OK|TV|English|German|French|Spanish)"
)


def asked_subjects(question: str) -> frozenset[str]:
    """Read of whom a question asks, as `subject`; empty if it names nobody.

    Names come in small letters; somebody of another person only as that person's name.
    """
    text = question[:_HEAD]
    rest = _ASKING.sub("", text, count=1)
    names = {name.lower() for name in _NAMED.findall(f"x {rest}") if not _NO_NAMES.match(name)}
    found = subject(rest, rest.lower())
    if found in SELF or found in PEOPLE or not found or _CHINESE.search(found):
        return frozenset({*names} or ({found} if found else ()))
    return frozenset({*names, found.split()[0]})


_CHINESE = lazy_pattern("[\u3040-\u30ff\u4e00-\u9fff]")


def subject_fits(
    asked: frozenset[str], texts: Iterable[str], speakers: Iterable[str | None]
) -> list[float]:
    """Compute for each text 1 if it is about one of those asked for, -1 if about another, else 0.

    What names nobody is about the user. A speaker means himself, whether he is asked for by his
    name or asks for himself.
    """
    in_chinese = [one for one in asked if _CHINESE.search(one)]
    of_self = 1.0 if asked & SELF else -1.0
    fits = []
    for text, speaker in zip(texts, speakers, strict=True):
        found, words = _read_head(text[:_HEAD])
        if found == "me" and speaker and speaker.lower() in asked:
            found = speaker.lower()
        if not asked.isdisjoint(words) or (in_chinese and any(one in text for one in in_chinese)):
            fits.append(1.0)
        elif not found:
            fits.append(max(of_self, 0.0))
        elif found in SELF:
            fits.append(of_self)
        else:
            fits.append(1.0 if found in asked else -1.0)
    return fits


@lru_cache(maxsize=4_096)
def _read_head(head: str) -> tuple[str, frozenset[str]]:
    """Read whom a text is about, and its words but for those of people who speak of themselves."""
    small = head.lower()
    return subject(head, small), frozenset(_WORDS.findall(small)) - SELF
