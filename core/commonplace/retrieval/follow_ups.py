"""Phrases that go on with the text or the task at hand, in English and Chinese, as patterns.

Such as "make it shorter", "run it again" and 再短一点: what they are about stands in the
conversation. Also asking for a rhyme, a joke or a sum. In the form of `normalize`. Who names
himself, a habit or something of his ("like I prefer", "about my dog") wants more.
"""

_MANNER = (
    r"(?:short|long|simple?|brief|clear|casual|formal|friend|polite|technical|detail|concise|funn"
    r"|strong|soft|warm|light|dark|bright|loud|quiet|fast|slow|eas|smooth|neat|nic|big|small|crisp)"
    r"(?:e?r|i?er|lier|ly|ed|y)?"
)
_DEGREE = (
    r"(?:(?:a (?:bit|little|lot)|even|much|slightly|way|still|still more|more|less|the) ){0,2}"
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
ENGLISH_FOLLOW_UPS = (  # of two that begin alike the longer one first
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
CHINESE_FOLLOW_UPS = (
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
