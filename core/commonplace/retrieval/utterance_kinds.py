"""Kinds of utterance, in English and Chinese: small talk, questions, statements.

Found by their form, without a model, so that they cost microseconds. What is not recognised counts
as a statement.
"""

import re
import unicodedata
from collections.abc import Sequence

from ..patterns import lazy_pattern
from .lexical import CJK, has_cjk, kept_if_short, vocabulary

_SHORT = 200  # characters of small talk at most
_CLAUSE_WORDS, _CLAUSE_SIGNS = 4, 6  # of a clause that states something beside a question

_SIGNS = lazy_pattern(r"[\W_]+")
_READ = lazy_pattern(rf"[{CJK}]|[^\W{CJK}]+")  # a character, or a word of other scripts
# A dot within a word ends none: "nginx.service", "./run".
_END = lazy_pattern(
    rf"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s|$)|[。！？]+|(?<![!?…])[!?…]++(?=[{CJK}])|(?=\n)|$"
)
# Behind these a dot is no end before a word that tells something, or before a small letter.
_ABBREVIATED = lazy_pattern(
    rf"(?<![^\W{CJK}])(?:(?i:[b-df-hj-np-tv-xz]{{2,4}}|prof|no|sra|e\.g|i\.e|z\.b)"
    r"|(?:[A-Z]\.)*[A-Z]|\d)$"
)
_MAY_END = lazy_pattern(r"\b(?:inc|ltd|co|corp|etc|jr|approx|(?:[a-z]\.)+[a-z])$", re.IGNORECASE)
_CLAUSES = lazy_pattern(r"[,，;；:：]")
# A short one that states something of its speaker: "I'm vegan, what can I order?"
_OF_SPEAKER = lazy_pattern(
    r"^\W*(?!i (?:wonder|see|mean|think|know|guess|suppose|bet|say|ask|hope|forgot|need|want|was"
    r"|am)\b|i['’]m (?:sorry|wondering|curious|confused|lost|back|here|asking|not sure)\b"
    r"|i (?:don|can|do|did|have|haven)\b|i['’](?:d|ll|ve)\b)"
    r"(?:(?:i['’]m|i|we['’]re|we) \w|(?:my|our) \w+ \w)"
    r"|^\W*(?!我(?:们|家)?(?:想|要|问|请|好奇|不|觉得|知道|猜|看|说|在想|忘|该|能|可以|又|再|回来|有个?(?:问题|疑问|事)))"
    r"我(?:们|家)?\w{2,}",
    re.IGNORECASE,
)
_ENDING = lazy_pattern(r"(?<!\W)\W*+$")  # the signs at the end
_ASKING_SIGNS, _STOPS = frozenset("?？؟"), frozenset(".。!！…")
_CHINESE_QUESTION = lazy_pattern(
    r"[吗呢么]\W*$|什么|哪[里儿个些天年位家]|谁|几[点号月岁个时]|多[少大久]|怎么|为何|啥|咋"
    r"|(?!动不动)([\u4e00-\u9fff])[不没]\1(?!都)"  # "能不能", "有没有"
)
_NOT_ASKING = lazy_pattern(r"没有?什么|不管|无论|任何|谁都|什么都|怎么都")
_ASKING = lazy_pattern(
    r"^\W*(?:and |so |but |hey |please |also )*(?:"
    r"(?:who|whom|whose|what|where|when|which|why|how)(?:['’]s|\b"
    r"(?! (?:i|you|we|he|she|it|they|my|your|our|his|her|their)\b))"
    r"|(?:do|does|did|is|are|was|were|am|can|could|would|will|should|have|has|had|may|might)"
    r" (?:i|you|we|he|she|it|they|there|my|your|our|his|her|their|this|that|these|those|the|any)\b"
    r"|any idea\b)",
    re.IGNORECASE,
)
# A request for what was told, or for a text to be made: it tells nothing that lasts.
_POLITE = (
    r"(?:(?:and|so|but|hey|hi|hello|please|also|now|then|ok|okay|thanks|can you|could you|would you"
    r"|i (?:need|want) you to|i['’]d like you to|por favor|puedes|podrías),? ){0,9}+"
)
_REQUEST = lazy_pattern(
    rf"^\W*{_POLITE}" + r"(?:(?:remind me|tell me|do you remember|show me|explain|compare)"
    r" (?!that\b|to\b|when i\b)|translate|summari[sz]e|proofread|paraphrase|rewrite|calculate"
    r"|compute|convert (?=.?\d)|generate|suggest|recommend|define|brainstorm|come up with"
    r"|(?:help|find) (?:me|us)\b|(?:write|draft|compose|outline|design|think of|give (?:me|us)"
    r"|list) (?:an?|some|the|all|my|our|me|us|\d+|one|two|three|four|five|ten)\b(?! of\b))"
    r"|^\W*(?:请|帮我|给我|麻烦你?|再)*(?:把[^。？！]{0,80})?"
    r"(?:翻译|写一|写个|总结|改写|改成|改一下|解释|.{0,20}换算|计算|生成|列出|推荐|讲一?个|说个|数一|(?:起草|草拟|设计)一|想[一两三几]?[个些条])",
    re.IGNORECASE,
)
# A request to work on a text, up to its colon or line break, and the text behind: a quotation where
# something else follows, otherwise all.
_MATERIAL = lazy_pattern(
    r"(?:\A|(?<=[.!?;,:…，。！？；：])|(?<=\n)[^\S\n]*\n)[\s¿¡]{0,9}"
    r"(?:(?:here(?:['’]s| is)|this is|hier ist|aquí (?:está|va)|这是)[^.,，:：;\n]{0,80}[,，;] ?)?"
    rf"(?:{_POLITE}"
    r"(?:(?:help me |(?:(?:bitte|k[aö]\w+st du)\b(?:(?!immer)[^.:\n]){0,60}?)?\b)(?:translate"
    r"|shorten|summari[sz]e|proofread|paraphrase|rewrite|rephrase|reword|simplify|übersetz\w*"
    r"|formulier\w*|fasse|traduc\w+|resúme\w*|reescrib\w*|how (?:do|can|would) (?:i|you) say)\b"
    r"|(?:repeat|spell|count|convert|fix|correct|say|make|polish|tighten|improve|check|edit|sort"
    r"|(?:bitte )?(?:korrigier|verbesser)\w*|corrige|mejora|resume)(?: the [\w ]{1,20} (?:in|of))?"
    r" (?:(?:this|these|it|the following|after me|die|das|den|diese[nrs]?|folgende\w*|est[aeo]|el"
    r"|la)\b(?! out\b)|the (?:spelling|grammar|typos?|punctuation)\b))"
    r"|(?:你好|请|帮我|麻烦你?|再|能不能|能|可以|\s){0,9}+(?!我)(?:(?!以后|每次)[^：:\n。！？]){0,20}(?:翻译|改写|改[成为](?![：:])"
    r"|润色|缩写|总结|错别字|语法|标点|念一遍|重复|几个字|多少个字|读一遍|怎么说)(?!是))"
    r"(?![^:：\n]{0,80}\b(?:from now|always|never|every|when|rules?|ab jetzt|immer|siempre)\b)"
    r"[^:：\n.!?。！？]{0,80}(?:[:：]|[^\S\n]*\n|[.!?。！？][^\S\n]*\n[^\S\n]*\n)\s*+"
    r"(?>(?:\"[^\"]+\"|“[^”]+”|„[^“”]+[“”]|«[^»]+»|「[^」]+」|```.+?```)[.!?。！？\s]*"
    r"(?=\Z|(?<=\n)|(?-i:[^\W\da-z_]))|.+)",
    re.IGNORECASE | re.DOTALL,
)
# What an assistant says that knows nothing.
_IGNORANCE = lazy_pattern(
    r"\bdo(?:n['’]t| not) (?:know|remember|recall)\b"
    r"|\bdo(?:n['’]t| not) have (?:\w+ ){0,2}(?:information|info|records?|details?|memory|access)\b"
    r"|\bnot sure\b|\bno (?:idea|record|information)\b"
    r"|\bhave(?:n['’]t| not) (?:told|mentioned|shared|talked about|discussed|come across)\b"
    r"|\b(?:can['’]?t|cannot|could(?:n['’]t| not)) (?:find|say|recall|remember|answer|tell you)\b"
    r"|\b(?:never|not) (?:told|mentioned|shared|came up|come up)\b|\bno answer\b"
    r"|\bnothing (?:comes to mind|in my (?:notes|memory)|about (?:that|this|it)|on record)\b"
    r"|\bno clue\b|\bunsure\b|\b(?:weiß|erinnere mich) (?:ich )?(?:leider |das |es |mich )*nicht\b"
    r"|\bkeine (?:ahnung|antwort|information\w*|angaben?|notiz\w*|erinnerung\w*)\b|\bunsicher\b"
    r"|\b(?:finde|weiß) ich (?:leider )?nichts\b|\bnicht erinnern\b|\b(?:nie|noch nicht) (?:erwähnt"
    r"|erzählt|gesagt|gesprochen|genannt)\b|\bmeiner kenntnis\b|\bfehlt mir\b"
    r"|\bhabe (?:ich )?(?:dazu |darüber |leider )*nichts\b|\bnicht (?:sicher|bekannt)\b"
    r"|\bno (?:lo |me |te )*(?:sé|recuerdo|consta|acuerdo|has (?:dicho|contado|mencionado))\b"
    r"|\bno (?:tengo|dispongo de|encuentro|figura) (?:\w+ ){0,3}(?:información|datos?|registros?"
    r"|nada|idea|constancia|apuntado)\b|\bno estoy segur[oa]\b|\bni idea\b|\bdesconozco\b"
    r"|\bno sabría\b|\bcarezco de\b|\bno (?:guardo|aparece|encuentro)\b|\bnunca (?:hemos|me has)\b"
    r"|\bje ne (?:sais|me souviens) pas\b|\baucune (?:idée|information)\b"
    r"|わからない|分からない|お答えでき|見当たり(?:ません|ませんでした|ない)|持ち合わせて(?:い)?ない|聞いた覚えが"
    r"|記録がございません|教えてもらっていない|思い当たる|存じ上げません|わかりません|分かりません|存じません|覚えていません|知りません|情報(?:が|は)(?:ありません|ない)"
    r"|記録(?:が|は)(?:ありません|ない|見当たりません|残っていません)|聞いていません|伺っていません"
    r"|لا أعرف|لا أعلم|لا أدري|لا أتذكر|لست متأكد|ليس لدي|لا (?:توجد|تتوفر|أملك)(?: لدي)? معلومات"
    r"|ليست? عندي|لم أجد|لا أذكر|لا أملك|لم يمر|غير متوفرة? لدي|لم نتحدث|لا علم لي"
    r"|لم (?:تخبرني|تذكر|يسبق)|ما عندي"
    r"|答不上|找不到|没有?查到|没有这项|不敢乱猜|还没(?:跟我)?(?:说|聊|讲|提)|没有?(?:聊|讲)(?:到|过)"
    r"|不知道|不清楚|不记得|不太?(?:确定|了解)|没(?:听你)?(?:提|说)过|没有(?:相关|任何|您的|你的)?(?:的)?(?:信息|记录|记忆)"
    r"|还没(?:有)?(?:告诉|提到|说过)",
    re.IGNORECASE,
)
# Phrases of small talk, in the form of `normalize`.
_ENGLISH_SMALL_TALK = (
    "a lot", "a ton", "again", "all", "all right", "all set", "alright", "amazing", "any time",
    "anytime", "appreciate it", "assistant", "awesome", "brilliant", "bye", "bye bye",
    "bye for now", "catch you", "cheers", "cool", "done", "evening", "everyone", "excellent",
    "fantastic", "fine", "for (?:that|this|(?:all )?(?:the|your) help|everything|now)", "for now",
    "glad to help", "good", "good (?:job|work)",
    "good (?:morning|afternoon|evening|night|day)", "good to know", "goodbye", "got it",
    "great", "haha+", "happy to help",
    "have a (?:nice|good|great|lovely) (?:day|evening|night|one)",
    "have a (?:nice|good|great|lovely) weekend", "hello", "hey", "hi", "hiya", "hm+",
    "hold on", "how are you", "how are you doing", "how can i help(?: you)?", "how do you do",
    "how s it going", "i (?:ve|have) noted (?:that|it)", "i appreciate it",
    "i ll remember(?: that)?", "i see", "i ve saved (?:that|it)", "i will look into it",
    "i will remember(?: that)?", "i(?: am| m) back", "is there anything else",
    "just a (?:moment|second|sec|minute)", "k", "later",
    "let me (?:think|check|see|look)(?: that| it)?", "lol", "lovely", "makes sense", "many",
    "me again", "morning", "much appreciated", "my friend", "never mind", "nice",
    "nice to (?:meet|see) you", "nice to hear from you", "no", "no (?:problem|worries)",
    "no need", "nope", "noted", "oh", "ok", "okay", "one moment", "perfect", "please",
    "see (?:you|ya)", "so much", "soon", "sounds (?:good|great)", "sure", "take care",
    "talk to you", "thank you", "thanks for (?:telling me|the update|letting me know)",
    "thanks?", "that (?:helps|helped)", "that (?:s|was) helpful", "that is all", "that s",
    "that s all", "there", "thx", "today", "tomorrow", "ty", "understood", "very helpful",
    "very much", "well done", "what can i do for you", "what s up", "wonderful", "wow", "yeah",
    "yep", "yes", "yo", "you", "you too", "you(?: re| are) welcome",
)  # fmt: skip
_CHINESE_SMALL_TALK = (
    " ", "上午好", "下午好", "下次聊", "下次见", "不客气", "不用", "不用谢", "不要紧", "不错",
    "中午好", "了", "了解", "你", "你好", "你好吗", "先这样", "再聊", "再见", "十分", "午安",
    "厉害", "原来如此", "可以", "吧", "呀", "呢", "哈", "哈啰", "哈喽", "哦", "啊", "啦", "嗨",
    "嗯", "回头聊", "回头见", "在吗", "多谢", "大家好", "太", "好", "好的", "就这样",
    "已经?记住", "帮助", "帮忙", "很", "很高兴见到", "您", "您好", "您好吗", "感谢", "懂",
    "我?会?记住", "我?先?走了", "我?又来了", "我?已经?记下", "我?来?确认一下", "我?查一下",
    "我?看看", "我?记下来?", "拜", "拜拜", "搞定", "收到", "早", "早上好", "早安", "明天见",
    "明白", "晚上好", "晚安", "最近怎么样", "最近还好吗", "有什么可以帮", "棒", "没事",
    "没关系", "没问题", "的", "真棒", "知道", "稍等", "稍等一下", "等一下", "行",
    "让我(?:想想|看看)", "记下", "记住", "请等一会儿", "谢", "谢谢", "辛苦", "随时找我",
    "需要帮忙吗", "非常",
)  # fmt: skip
# Phrases that go on with the text or the task at hand: "make it shorter", "run it again", 再短一点.
# What they are about stands in the conversation. Also asking for a rhyme, a joke or a sum. Who
# names himself, a habit or something of his ("like I prefer", "about my dog") wants more.
_MANNER = (
    r"(?:short|long|simple?|brief|clear|casual|formal|friend|polite|technical|detail|concise|funn"
    r"|strong|soft|warm|light|dark|bright|loud|quiet|fast|slow|eas|smooth|neat|nic|big|small|crisp)"
    r"(?:e?r|i?er|lier|ly|ed|y)?"
)
_DEGREE = (
    r"(?:(?:(?:a )?(?:bit|little|lot)|even|much|slightly|way|still|still more|more|less|the) ){0,2}"
)
_LANGUAGE = (
    r"(?:english|french|german|spanish|italian|portuguese|chinese|mandarin|japanese|korean|russian"
    r"|arabic|dutch|polish|hindi|turkish|latin|greek|swedish|plain (?:english|text)|python|java"
    r"|javascript|typescript|rust|go|json|yaml|markdown|html|latex|csv|sql)"
)
_SHAPE = (
    rf"(?:{_LANGUAGE}|(?:one|two|three|four|five|ten|a|a few|fewer|\d+) (?:word|sentence|line"
    r"|paragraph|bullet|bullet point|point)s?|bullets|bullet points"
    r"|(?:a |an )?(?:numbered |bulleted |short )?"
    r"(?:table|list|outline|summary|poem|tweet|e mail|email|letter|paragraph)"
    rf"|(?:a |an )?(?:(?:more|less) )?{_MANNER} (?:tone|voice|style|way|words))"
)
_PART = (
    r"(?:paragraph|sentence|line|section|title|heading|intro|introduction|conclusion|ending|function"
    r"|class|method|code|table|text|word|comment|docstring|example|step|bullet|bullet point|import"
    r"|variable|typo|emoji|quote|summary|tone|spelling|grammar|punctuation|formatting|indentation"
    r"|test|error|bug|build|script|linter|type hint|unit test|answer|draft|version)s?"
)
_THING = (
    rf"(?:it|this|that|them|these|those|all of it|everything|(?:the|a|an|some|more|all the|another)"
    rf" (?:first |second |third |last |final |next |previous |whole |other |failing )?{_PART})"
)
_DO = (
    r"(?:run|do|try|say|explain|repeat|show|check|test|build|rerun|redo|restart|deploy|fix|correct"
    r"|add|remove|delete|drop|cut|shorten|expand|rewrite|rephrase|reword|merge|reformat|format"
    r"|indent|rename|refactor|translate|summari[sz]e|simplify|polish|proofread|capitali[sz]e|undo"
    r"|revert|commit|push|ship|send|save|apply|accept|approve|turn|convert|put|move|keep|change"
    r"|number|sort|continue|finish|start)"
)
_TAIL = (
    rf"(?: (?:again|once more|one more time|now|over|{_DEGREE}{_MANNER}"
    rf"|(?:to|into|in|as|using|with) {_SHAPE}))?"
)
_ENGLISH_FOLLOW_UPS = (  # of two that begin alike the longer one first
    rf"rename {_THING} to \w+(?: (?:py|js|ts|md|txt|json|rs|go))?",
    rf"{_DO} {_THING}{_TAIL}",
    rf"(?:make|keep|write|say) (?:it|this|that|them) {_DEGREE}(?:{_MANNER}|better|worse|rhyme)",
    rf"{_DEGREE}{_MANNER}(?: (?:one|version|words))?",
    r"one more time|one more|now",
    r"(?:(?:some |a (?:bit|little) )?(?:more|less|fewer) )"
    r"(?:details?|examples?|words?|emojis?|lines?)",
    rf"(?:in|into|as|use|using|with) {_SHAPE}",
    r"(?:continue|go on|go ahead|keep going|carry on|proceed|next|next (?:one|step)|more"
    r"|once more|another one|try again|again|retry|undo|redo|start over|from the top"
    r"|ship it|merge it|lgtm|looks good(?: to me)?|approved|do it|do that|go for it|the other one"
    r"|try another one|wrong|that s wrong|not quite|almost|better|much better|stop|and|then|but|so"
    r"|can you|could you|would you|kindly)",
    r"(?:write|tell|give|make)(?: me)? (?:a|an|another|one more) (?:short |funny |little |new )?"
    r"(?:haiku|poem|limerick|joke|riddle|pun|sonnet|story|rhyme|palindrome|tongue twister|fun fact)"
    r"(?: (?:about|on) (?:the|a|an) \w+)?",
    r"(?:flip|toss) a coin|roll (?:a|the|two) (?:die|dice)",
)
_CHINESE_LANGUAGE = (
    "(?:英[文语]|中文|法[文语]|德[文语]|日[文语]|韩[文语]|俄[文语]|西班牙[文语]|意大利[文语]|葡萄牙[文语]"
    "|阿拉伯[文语]|粤语|文言文|白话文?|python|java|json|markdown|sql)"
)
_CHINESE_SHAPE = (
    f"(?:{_CHINESE_LANGUAGE}|[一两三几]句话|列表|表格|要点|提纲|大纲|诗|段落|一段话|口语|书面语)"
)
_CHINESE_MANNER = (
    "(?:短|长|简单|简短|简洁|详细|正式|口语化?|通俗|活泼|礼貌|客气|温柔|具体|专业|幽默|清楚|快|慢|友好"
    "|精炼|生动|随意|易懂)"
)
_CHINESE_FOLLOW_UPS = (
    "继续|接着[说写讲做来]?|往下[写说讲做]?|下一[个步条段页题]|再来一?[个遍次首段]?|重来一?[遍次]?"
    "|重新(?:来|写|做|说|试)(?:一?[遍次下])?|重[写做试]一?[遍次下]?|再[试跑做写说讲念]一?[遍次下]"
    "|运行|跑一?[下遍]|提交|发布|撤销|回退|换一?个(?:说法|写法|例子|版本|词)?|更多|多[举写]?[几一]个例子?"
    "|不对|不是这个|另一个|停",
    f"(?:[说写改讲弄做][得的]?)?(?:再|更|稍微|还要)*{_CHINESE_MANNER}(?:一?[点些])?[的儿]?",
    f"(?:翻译?|改写?|换|写|转|说|变)(?:成|为){_CHINESE_SHAPE}",
    f"用{_CHINESE_SHAPE}(?:再?(?:说|写|讲|回答|概括|总结|表达|列出来?|整理)(?:一?[遍次下])?)?",
    "(?:改|修|修改|修正|修复|检查)(?:一下|下)?(?:错别字|语法|标点|格式|错误|拼写|bug)",
    "(?:写|作|来|讲|说|编)(?:一?[首个段则篇])?(?:短|小|冷)?(?:俳句|诗|笑话|绕口令|谜语|故事|段子)",
    "请|麻烦|帮我|给我|那|就|一下|吗|然后",
)


def _any_of(phrases: Sequence[str]) -> str:
    """Write a pattern that tries the longer of two phrases first that begin alike."""
    return "|".join(sorted(phrases, key=len, reverse=True))


# Atomic: a long text must not be tried in every way of splitting it.
_SMALL_TALK = lazy_pattern(
    rf"(?>(?:(?:{_any_of(_ENGLISH_SMALL_TALK)})(?: |$))+)|(?>(?:{_any_of(_CHINESE_SMALL_TALK)})+)"
)
_FOLLOW_UP = lazy_pattern(
    rf"(?>(?:(?:{'|'.join(_ENGLISH_FOLLOW_UPS)}|{_any_of(_ENGLISH_SMALL_TALK)})(?: |$))+)"
    rf"|(?>(?:{'|'.join(_CHINESE_FOLLOW_UPS)}|{_any_of(_CHINESE_SMALL_TALK)})+)"
)
_SUM = lazy_pattern(
    r"\W*(?:(?:what is|what['’]s|calculate|compute|计算|算一?下)[\d\s+*/x×÷().,^%-]*\d[\s=()]*"
    r"|\d[\d\s.,()]*[+*×÷^][\d\s+*/x×÷().,^%-]*\d[\s=()]*)(?:等于多少|是多少)?\W*",
    re.IGNORECASE,
)
_GREETING = lazy_pattern(r"(?:hi|hello|hey|good (?:morning|afternoon|evening|night)|morning) \w+")


def is_small_talk(text: str) -> bool:
    """Return whether a text only greets, thanks or agrees, or has no word."""
    plain = normalize(text)
    is_said = len(plain) <= _SHORT and (_SMALL_TALK.fullmatch(plain) or _GREETING.fullmatch(plain))
    return not plain or bool(is_said)


def needs_no_memory(text: str) -> bool:
    """Return whether a text is small talk, or is about the text or the task at hand alone.

    It asks to transform what comes with it, goes on with what was just done, or asks for a sum.
    """
    if is_small_talk(text) or _MATERIAL.fullmatch(text):
        return True
    plain = normalize(text)
    return len(plain) <= _SHORT and bool(_FOLLOW_UP.fullmatch(plain) or _SUM.fullmatch(text))


@kept_if_short
def own_words(text: str) -> str:
    """Blank out each text that comes with a request to work on it, and that request."""
    return _MATERIAL.sub(lambda found: "\n".ljust(len(found[0])), text)


def sentences(text: str) -> list[str]:
    """Split a text into sentences with their marks, in order; those without a word are left out."""
    return [text[start:end] for start, end, _ in sentence_spans(text) if normalize(text[start:end])]


def sentence_spans(text: str) -> list[tuple[int, int, int]]:
    """Find the start and the end of each sentence, and where the space behind it ends.

    A dot behind "Dr", "J" or a number ends none unless a stop word in capitals follows, which is no
    name; nor does one behind "Inc" before a small letter.
    """
    found = []
    start = 0
    for mark in _END.finditer(text):
        end = mark.end()
        if end <= start or (mark[0] == "." and not _ends_there(text, start, end)):
            continue
        after = end
        while after < len(text) and text[after].isspace():
            after += 1
        found.append((start, end, after))
        start = after
    return found


def _ends_there(text: str, start: int, end: int) -> bool:
    following, said = text[end : end + _SHORT].lstrip(), (text, max(start, end - 8), end - 1)
    if following[:1].islower():
        return not (_ABBREVIATED.search(*said) or _MAY_END.search(*said))
    found, word = _ABBREVIATED.search(*said), normalize(following).partition(" ")[0]
    return not found or bool(text[start : found.start()].strip() and not vocabulary(word))


@kept_if_short
def statements(text: str) -> tuple[str, ...]:
    """Read the sentences of a text that tell something, in order; often none.

    Of a sentence that asks, the clauses before the question count.
    """
    found: list[str] = []
    for sentence in sentences(text):
        if needs_no_memory(sentence) or _REQUEST.search(sentence):
            continue
        if _asks(sentence):
            clauses = _CLAUSES.split(sentence)[:-1]
            found += [clause for clause in clauses if _is_telling(clause) and not _asks(clause)]
        else:
            found.append(sentence)
    return tuple(found)


def knows_nothing(text: str) -> bool:
    """Return whether an assistant's answer says that it does not know, and nothing else."""
    if not _IGNORANCE.search(text):
        return False
    told = statements(text)
    return bool(told) and all(map(_IGNORANCE.search, told))


@kept_if_short
def states_nothing(text: str, is_doubtful: bool, is_answer: bool) -> bool:
    """Return whether a turn tells nothing, or says that it knows nothing.

    Args:
        is_doubtful: False for a turn that is too long to state nothing unless it knows nothing.
        is_answer: it is an assistant's, which alone is expected to know.
    """
    return (is_doubtful and not statements(text)) or (is_answer and knows_nothing(text))


@kept_if_short
def normalize(text: str) -> str:
    """Write a text as it is compared: Unicode form NFKC, case folded, signs as single spaces."""
    return _SIGNS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def contains(text: str, part: str) -> bool:
    """Return whether a normalised text has another one in it, as whole words."""
    if has_cjk(part):
        return part in text  # there are no spaces between words
    return f" {part} " in f" {text} "


def _asks(sentence: str) -> bool:
    ending = _ENDING.findall(sentence)[0]
    if not _ASKING_SIGNS.isdisjoint(ending):
        return True
    if not _STOPS.isdisjoint(ending):
        return False
    is_asked = _CHINESE_QUESTION.search(sentence) and not _NOT_ASKING.search(sentence)
    return bool(is_asked or _ASKING.search(sentence))


def _is_telling(clause: str) -> bool:
    return (
        len(clause.split()) >= _CLAUSE_WORDS
        or len(_READ.findall(clause)) >= _CLAUSE_SIGNS
        or _OF_SPEAKER.search(clause) is not None
    )
