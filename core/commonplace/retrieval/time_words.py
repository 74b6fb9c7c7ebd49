"""The words with which seven languages tell times, as tables for `times`.

Each word has a sign, which patterns are made of, and a value: `D` a day counted from today, `N` a
number, `A` an article that counts as one, `Y` a year, `d w n y k` the units day, week, month, year
and weekend, `W` a weekday, `M` a month, `m` a month that is also another word or a name, `S` a
season, `L T X` last, this and next, `p` "past", `G` "ago" after a number and `V` before one, `I`
"in", `P` other prepositions before a month, `F` words that mean nothing there, `E` the beginning,
middle or end of something, `t` a part of the day, `H` half, `B` before, `R` after,
`Z` every, `O` the end of an ordinal number.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from ..patterns import lazy_pattern

Words = Mapping[str, tuple[str, Any]]


def _words(
    groups: Mapping[str, str],
    values: Mapping[str, Mapping[str, int]],
    lists: Mapping[str, Iterable[str]],
) -> Words:
    """Put a language's words together, each also without its accents, as people type them.

    Args:
        groups: words without a value, by their sign.
        values: words with their values, by their sign.
        lists: words by their sign; what stands for the same number is joined by a slash.
    """
    found: dict[str, tuple[str, Any]] = {}
    for sign, words in groups.items():
        found |= dict.fromkeys(words.split(), (sign, 1))
    for sign, numbered in values.items():
        found |= {word: (sign, value) for word, value in numbered.items()}
    for sign, rows in lists.items():
        first = 0 if sign == "W" else 1
        for number, row in enumerate(rows, first):
            found |= {word: (sign, number) for word in row.split("/") if word != "-"}
    plain = {_without_accents(word): entry for word, entry in found.items()}
    umlauts = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
    return {**plain, **{word.translate(umlauts): entry for word, entry in found.items()}, **found}


def _without_accents(word: str) -> str:
    parts = unicodedata.normalize("NFD", word)
    return "".join(part for part in parts if not unicodedata.combining(part))


def _with_endings(words: Mapping[str, int]) -> dict[str, int]:
    """Add the German endings of each word."""
    return {word + end: value for word, value in words.items() for end in ("", *"nrsm")}


ENGLISH = _words(
    {
        "A": "a an", "G": "ago", "I": "in", "P": "since by until till during of on for",
        "F": "the of", "B": "before", "R": "after", "Z": "every each", "O": "st nd rd th",
        "p": "past", "d": "day days", "w": "week weeks", "n": "month months", "y": "year years",
        "k": "weekend weekends", "t": "night morning afternoon evening", "H": "half",
    },
    {
        "D": {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1, "yday": -1, "tmrw": 1},
        "L": {"last": -1, "previous": -1}, "T": {"this": 0, "current": 0},
        "X": {"next": 1, "coming": 1, "following": 1},
        "E": {
            "early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2,
        },
        "S": {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12},
        "m": {
            "jan": 1, "mar": 3, "march": 3, "apr": 4, "april": 4, "may": 5, "june": 6, "jun": 6,
            "jul": 7, "august": 8, "aug": 8, "dec": 12,
        },
        "N": {"couple": 2, "few": 3},
    },
    {
        "M": (
            "january february/feb - - - - july - september/sept/sep october/oct november/nov "
            "december"
        ).split(),
        "W": "monday tuesday/tue/tues wednesday thursday/thu/thurs friday/fri saturday sunday"
        .split(),
        "N": "one two three four five six seven eight nine ten eleven twelve".split(),
    },
)  # fmt: skip
GERMAN = _words(
    {
        "A": "ein eine einem einen einer", "V": "vor", "I": "in",
        "P": "im am seit bis vom zum gegen ab", "F": "der die das den dem des von",
        "Z": "jeden jede jedes",
        "d": "tag tage tagen tages", "w": "woche wochen", "n": "monat monate monaten monats",
        "y": "jahr jahre jahren jahres", "t": "nacht", "k": "wochenende wochenenden wochenendes",
    },
    {
        "D": {"gestern": -1, "vorgestern": -2, "vorvorgestern": -3, "heute": 0, "übermorgen": 2},
        "g": {"morgen": 1},
        "L": _with_endings({"letzte": -1, "vergangene": -1, "vorige": -1, "vorletzte": -2}),
        "T": _with_endings({"diese": 0}),
        "X": _with_endings({"nächste": 1, "kommende": 1, "übernächste": 2}),
        "E": {"anfang": 0, "mitte": 1, "ende": 2},
        "S": {"frühling": 3, "frühjahr": 3, "sommer": 6, "herbst": 9, "winter": 12},
        "m": {"mai": 5, "august": 8, "juni": 6, "april": 4},
        "N": {"paar": 3},
    },
    {
        "M": "januar/jänner februar/feber märz - - - juli - september oktober november dezember"
        .split(),
        "W": [
            "/".join(
                name + part
                for name in names.split("/")
                for part in ("", "morgen", "früh", "vormittag", "mittag", "nachmittag", "abend")
            )
            for names in "montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag"
            .split()
        ],
        "N": "- zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split(),
    },
)  # fmt: skip
SPANISH = _words(
    {
        "A": "un una", "V": "hace", "I": "dentro", "P": "en desde hasta para durante",
        "F": "el la las lo de del", "B": "antes", "Z": "cada todos todas los", "q": "que",
        "d": "día días", "w": "semana semanas", "n": "mes meses", "y": "año años",
        "t": "noche tarde madrugada", "H": "medio",
    },
    {
        "D": {"ayer": -1, "anteayer": -2, "antier": -2, "anoche": -1, "hoy": 0},
        "g": {"mañana": 1},
        "L": {
            **dict.fromkeys("pasado pasada pasados pasadas último última".split(), -1),
            **dict.fromkeys("últimos últimas".split(), -1), "antepasado": -2, "antepasada": -2,
        },
        "T": {"este": 0, "esta": 0, "estos": 0, "estas": 0},
        "X": {"próximo": 1, "próxima": 1, "siguiente": 1, "viene": 1},
        "E": {
            "principios": 0, "principio": 0, "inicios": 0, "comienzos": 0, "mediados": 1,
            "finales": 2, "fines": 2, "final": 2,
        },
        "S": {"primavera": 3, "verano": 6, "otoño": 9, "invierno": 12},
        "m": {"enero": 1, "abril": 4, "marzo": 3, "mayo": 5, "julio": 7, "junio": 6, "agosto": 8},
    },
    {
        "M": "- febrero - - - - - - septiembre/setiembre octubre noviembre diciembre".split(),
        "W": "lunes martes miércoles jueves viernes sábado domingo".split(),
        "N": "- dos tres cuatro cinco seis siete ocho nueve diez once doce".split(),
    },
)  # fmt: skip
FRENCH = _words(
    {
        "A": "a un une", "j": "y", "I": "dans", "P": "en depuis pour jusqu durant pendant",
        "F": "le la l de du d au", "B": "avant", "R": "après", "Z": "chaque tous toutes",
        "d": "jour jours", "w": "semaine semaines", "n": "mois", "y": "an ans année années",
        "t": "nuit matin soir soirée matinée",
        "O": "er",
    },
    {
        "D": {"hier": -1, "aujourd'hui": 0, "demain": 1},
        "L": dict.fromkeys("dernier dernière derniers dernières passé passée".split(), -1),
        "T": {"ce": 0, "cet": 0, "cette": 0, "ces": 0},
        "X": dict.fromkeys("prochain prochaine prochains prochaines".split(), 1),
        "E": {"début": 0, "mi": 1, "milieu": 1, "fin": 2},
        "S": {"printemps": 3, "été": 6, "automne": 9, "hiver": 12},
        "m": {"mars": 3, "avril": 4, "mai": 5, "juin": 6, "août": 8},
    },
    {
        "M": "janvier février - - - - juillet - septembre octobre novembre décembre".split(),
        "W": "lundi mardi mercredi jeudi vendredi samedi dimanche".split(),
        "N": "- deux trois quatre cinq six sept huit neuf dix onze douze".split(),
    },
)  # fmt: skip
ARABIC = _words(
    {
        "V": "قبل منذ", "I": "بعد خلال", "P": "في حتى بحلول", "F": "من",
        "B": "أول", "Z": "كل", "d": "يوم أيام الأيام", "w": "أسبوع الأسبوع أسابيع الأسابيع",
        "n": "شهر الشهر أشهر شهور الأشهر الشهور",
        "y": "سنة السنة عام العام سنوات أعوام السنوات الأعوام",
        "t": "صباح الصباح مساء المساء ليلة الليلة ظهر الظهر عصر العصر",
    },
    {
        "D": {"أمس": -1, "البارحة": -1, "بالأمس": -1, "اليوم": 0, "غدا": 1, "غدًا": 1},
        # Two of a unit are one word.
        "d": {"يومين": 2}, "w": {"أسبوعين": 2}, "n": {"شهرين": 2}, "y": {"سنتين": 2, "عامين": 2},
        "L": dict.fromkeys(
            "الماضي الماضية الفائت الفائتة المنصرم المنصرمة السابق السابقة".split(), -1
        ),
        "T": {"هذا": 0, "هذه": 0, "الحالي": 0, "الحالية": 0},
        "X": dict.fromkeys("القادم القادمة المقبل المقبلة التالي التالية".split(), 1),
        "m": {"مارس": 3, "آذار": 3, "آب": 8},
        "E": {"بداية": 0, "أوائل": 0, "منتصف": 1, "نهاية": 2, "أواخر": 2},
        "S": {
            "ربيع": 3, "الربيع": 3, "صيف": 6, "الصيف": 6, "خريف": 9, "الخريف": 9, "شتاء": 12,
            "الشتاء": 12,
        },
    },
    {
        "M": (
            "يناير فبراير - أبريل/إبريل/نيسان مايو/أيار يونيو/حزيران يوليو/تموز أغسطس "
            "سبتمبر/أيلول أكتوبر نوفمبر ديسمبر"
        ).split(),
        "W": "الاثنين/الإثنين الثلاثاء الأربعاء الخميس الجمعة السبت الأحد".split(),
        "N": (
            "- - ثلاثة/ثلاث أربعة/أربع خمسة/خمس ستة/ست سبعة/سبع ثمانية/ثماني تسعة/تسع عشرة/عشر"
        ).split(),
    },
)  # fmt: skip
# A word of these tells that a text is French, so that its "hier" is not the German one.
FRENCH_CUES = frozenset(
    "ai est que qu où je j nous le les la quoi qui fait avec as tu vous".split()
)
# With one of these a year alone tells when: "Wo habe ich 2019 gewohnt?"
GERMAN_CUES = frozenset("ich wir habe haben war waren wurde hatte bin hat er sie".split())
EASTERN = _words(
    {
        "w": "周 星期 礼拜 个星期 个礼拜 周间", "n": "月 月份", "c": "个月 ヶ月 か月 カ月 ケ月",
        "y": "年 年间", "d": "天 日间", "h": "日 号", "k": "周末 个周末",
        "p": "最近 过去 近 近来 ここ",
        "F": "的 の 时 那 刚", "G": "前 以前 之前", "R": "后 以后 之后",
        "Z": "每 毎 每个",
        "H": "半",
        # Longer words that begin with one of the others.
        "x": "前往 前面 前台 前端 前任 前妻 前夫 前男友 前女友 今日子 明日香 明日葉",
    },
    {
        "D": {
            "昨天": -1, "昨日": -1, "昨晚": -1, "昨夜": -1, "昨晩": -1, "ゆうべ": -1,
            "きのう": -1, "前天": -2, "前晚": -2,
            "一昨日": -2, "おととい": -2, "前日": -2, "大前天": -3, "今天": 0, "今日": 0, "今晚": 0,
            "今早": 0, "今朝": 0, "今夜": 0, "きょう": 0, "明天": 1, "明日": 1, "明晚": 1,
            "明早": 1, "あした": 1, "后天": 2, "明后日": 2, "あさって": 2, "大后天": 3,
            "しあさって": 3,
        },
        "L": {
            "上": -1, "上个": -1, "先": -1, "上上": -2, "上上个": -2, "先々": -2, "上一个": -1,
            "上一": -1,
        },
        "T": {"这": 0, "这个": 0, "本": 0, "今": 0, "この": 0},
        "X": {"下": 1, "下个": 1, "来": 1, "下一个": 1, "下下": 2, "下下个": 2, "再来": 2},
        "r": {
            "去年": -1, "昨年": -1, "今年": 0, "明年": 1, "来年": 1, "前年": -2, "一昨年": -2,
            "大前年": -3, "后年": 2,
        },
        "E": {"初": 0, "上旬": 0, "中旬": 1, "底": 2, "末": 2, "下旬": 2, "初め": 0},
        "S": {
            "春": 3, "春天": 3, "夏": 6, "夏天": 6, "秋": 9, "秋天": 9, "冬": 12, "冬天": 12,
            "春季": 3, "夏季": 6, "秋季": 9, "冬季": 12,
        },
    },
    {
        "W": "月曜日/月曜 火曜日/火曜 水曜日/水曜 木曜日/木曜 金曜日/金曜 土曜日/土曜 日曜日/日曜"
        .split(),
    },
)  # fmt: skip
# Traditional and Japanese characters, and wide digits, as the ones that the table has.
FOLDED = str.maketrans(
    "週個後號來這兩間時過裡０１２３４５６７８９", "周个后号来这两间时过里0123456789"
)
# What tells a time without naming one. "Before" and its like count where nothing comes after
# them that they are before of, "first" where it is no adjective.
_CLAUSE_END = r"(?=\s*(?:$|[?!.,;:…]|now\b|that\b|this\b))"
TIME_WORD = lazy_pattern(
    r"\b(?:now|currently|previously|formerly|recently|today|nowadays|earlier|vorher|früher|jetzt"
    r"|derzeit|zuerst|aktuell|momentan|damals|ahora|actualmente|anteriormente|recientemente"
    r"|maintenant|actuellement|auparavant|récemment)\b"
    rf"|\b(?:before|first|antes|primero|avant|d'abord){_CLAUSE_END}"
    r"|(?<=\bI )first\b|(?<=\b(?:we|he) )first\b|(?<=\b(?:you|she) )first\b"
    r"|(?<=\bthey )first\b|(?:(?<=[我你您他她们們])|^|(?<=[，。,]))(?:以前|之前)"
    r"|现在|現在|目前|当前|當前|最初|曾经|曾經|从前|從前|刚才|剛才|今は|最近"
    r"|(?:^|(?<=[はも、]))(?:以前|前に)",
    re.IGNORECASE,
)
NUMERALS = "〇零一二三四五六七八九十两"
_DIGITS = {**{one: number for number, one in enumerate("〇一二三四五六七八九十")}, "零": 0, "两": 2}


def eastern_number(text: str) -> int:
    """Read a number in digits or Chinese characters: below 100, or a year digit by digit."""
    if text.isdecimal():
        return int(text) if len(text) <= 4 else 0
    digits = [_DIGITS[one] for one in text]
    if 10 not in digits:
        return int("".join(map(str, digits))) if len(digits) in (1, 2, 4) else 0
    if len(text) > 3:
        return 0
    tens, _, ones = text.partition("十")
    return 10 * (_DIGITS[tens[-1]] if tens else 1) + (_DIGITS[ones[0]] if ones else 0)
