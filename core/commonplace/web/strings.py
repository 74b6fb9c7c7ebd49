"""Words of the pages, in English and Chinese."""

from collections.abc import Mapping

LANGUAGES = ("en", "zh")

# Each key: English, Chinese.
STRINGS: Mapping[str, tuple[str, str]] = {
    "about": ("Known", "已知"),
    "about_empty": ("Nothing is known yet.", "目前一无所知。"),
    "about_intro": (
        "What this person stated, one line for each matter; what holds now stands first. No model "
        "was asked.",
        "此人说过的事，每件事一行，现在仍有效的在前。未使用任何模型。",
    ),
    "agent": ("Agent", "智能体"),
    "agents": ("Agents", "智能体"),
    "all": ("All", "全部"),
    "always": ("comes with every turn", "每一轮都会附上"),
    "answer": ("Show", "查看"),
    "article": ("Article {n}", "第 {n} 条"),
    "as_of": ("As of", "截至"),
    "attempts": ("Attempts", "尝试次数"),
    "back": ("Back", "返回"),
    "changed": ("The change is stored.", "更改已保存。"),
    "changed_pending": (
        "The change is accepted and will be applied soon.",
        "更改已被接受，稍后生效。",
    ),
    "conflicts": ("Contradicts", "与之矛盾"),
    "consistent": ("The index holds exactly the live records.", "索引与现有记录完全一致。"),
    "conversation": ("Conversation", "对话"),
    "count": ("Number", "数量"),
    "created": ("Created", "创建于"),
    "dead": ("Writes that cannot be applied", "无法生效的写入"),
    "dead_none": ("There are none.", "没有。"),
    "delete": ("Delete", "删除"),
    "deleted": ("This record is deleted; it can be restored.", "此记录已删除，可以恢复。"),
    "differing": (
        "The index differs from the records: run `commonplace reindex`.",
        "索引与记录不一致：请运行 `commonplace reindex`。",
    ),
    "doctor": ("Check", "检查"),
    "doctor_run": ("Compare the stores now", "立即比对存储"),
    "earlier": ("Earlier", "从前"),
    "edit": ("Edit", "编辑"),
    "erased": ("Erasure receipt", "抹除回执"),
    "erased_complete": (
        "Nothing of this is left in any store: each was read again afterwards.",
        "所有存储中都已没有相关内容：抹除后逐一复查。",
    ),
    "erased_left": ("Something is left; run it again.", "仍有残留，请再次执行。"),
    "error": ("That did not work", "未能完成"),
    "embedder": ("Embedder", "嵌入模型"),
    "error_400": ("The request is not one that can be answered.", "无法处理此请求。"),
    "error_403": ("This is not allowed.", "没有权限。"),
    "error_404": ("There is nothing here.", "此处没有内容。"),
    "error_413": ("The form is too large.", "表单过大。"),
    "error_415": ("The form cannot be read.", "无法读取表单。"),
    "error_confirm": ("This is not the id; nothing is erased.", "标识不符；没有抹除任何内容。"),
    "error_csrf": (
        "This form was out of date; nothing is changed. Please send it again.",
        "此表单已过期；没有更改任何内容。请重新提交。",
    ),
    "error_session": ("The address does not say which conversation.", "地址没有指明是哪个对话。"),
    "error_500": ("The page failed; the log says why.", "页面出错，原因见日志。"),
    "error_text": (
        "Nothing is changed: a text needs a visible character, and has 32 kB at most.",
        "没有更改任何内容：内容须有可见字符，且不超过 32 kB。",
    ),
    "error_503": ("The memory is not to be had at the moment.", "记忆库暂时不可用。"),
    "event_ADD": ("stored", "写入"),
    "event_DELETE": ("deleted", "删除"),
    "event_NONE": ("told again", "再次提到"),
    "event_RESTORE": ("restored", "恢复"),
    "event_UPDATE": ("changed", "更改"),
    "expire": ("Hide from now on", "从现在起隐藏"),
    "expires": ("Expires", "到期"),
    "files": ("Files", "文件"),
    "find": ("Find", "查找"),
    "forget": ("Forget", "遗忘"),
    "forget_confirm": ("Type the id to confirm", "输入标识以确认"),
    "forget_do": ("Erase for good", "永久抹除"),
    "forget_intro": (
        "A dry run: this is what would be erased from every store. It cannot be undone.",
        "试运行：以下内容将从所有存储中抹除，无法撤销。",
    ),
    "gdpr": ("GDPR (European Union)", "欧盟《通用数据保护条例》"),
    "graph": ("Graph", "关系图"),
    "graph_empty": ("No relations are known.", "没有已知的关系。"),
    "graph_more": (
        "{n} names with fewer relations are not drawn.",
        "另有 {n} 个关系较少的名称未画出。",
    ),
    "held_since": ("Since", "自"),
    "history": ("History", "历史"),
    "hours": ("The last 24 hours", "最近 24 小时"),
    "hours_many": ("There are too many records to count them at once.", "记录过多，无法立即统计。"),
    "hours_no_notes": (
        "Recalls are counted where agents log their notes, by `Policy(note_log=...)`; other "
        "searches are not.",
        "仅统计智能体按 `Policy(note_log=...)` 记录的提示；其他搜索不计。",
    ),
    "hours_notes": (
        "Recalls for turns, by hour: of the last 200 logged notes, the first from {at}",
        "各小时为对话所做的回忆：取最近 200 条提示，最早一条在 {at}",
    ),
    "hours_writes": (
        "Records that are stored now, by the hour of their last write",
        "现存记录，按最后写入的小时统计",
    ),
    "id": ("Id", "标识"),
    "importance": ("Importance", "重要性"),
    "kind": ("Kind", "类型"),
    "kind_episode": ("turn", "发言"),
    "kind_fact": ("fact", "事实"),
    "kind_preference": ("preference", "偏好"),
    "kind_procedure": ("procedure", "做法"),
    "kind_profile": ("profile", "资料"),
    "kind_summary": ("summary", "摘要"),
    "last": ("Last", "最近"),
    "left_out": ("Found and left out", "找到但未采用"),
    "left_out_more": ("{n} more are in the JSON of this page.", "另有 {n} 条，见本页的 JSON。"),
    "left_out_none": ("Nothing else was found.", "没有找到其他内容。"),
    "live": ("now", "现在"),
    "logged": ("The last notes of agents", "智能体最近的提示"),
    "logged_intro": (
        "What agents were shown, as far as their policy logs it: of the last 200 notes of this "
        "memory.",
        "智能体实际得到的内容，以其策略所记录的为限：取自此记忆库最近的 200 条提示。",
    ),
    "logged_missing": (
        "{n} of its records are no longer stored, or have expired.",
        "其中 {n} 条记录已不存在或已过期。",
    ),
    "logged_no_question": ("question not logged", "未记录问题"),
    "logged_none": (
        "None are logged: an agent with `Policy(note_log=...)` logs its own.",
        "没有记录：使用 `Policy(note_log=...)` 的智能体才会记录。",
    ),
    "logged_opened": (
        "Logged on {at}; the texts are those of the records as they are now.",
        "记录于 {at}；内容为这些记录现在的文本。",
    ),
    "login": ("Log in", "登录"),
    "login_intro": (
        "Open the link that `commonplace serve` printed, or enter your token.",
        "请打开 `commonplace serve` 打印的链接，或输入令牌。",
    ),
    "login_kept": ("Your form is kept, and shown again then.", "表单已保留，登录后重新显示。"),
    "login_wrong": (
        "This token is not valid. That of a printed link works once; `commonplace serve` prints "
        "another when it starts.",
        "令牌无效。打印的链接只能使用一次；重新启动 `commonplace serve` 会打印新的链接。",
    ),
    "logout": ("Log out", "退出"),
    "more": ("More", "更多"),
    "name": ("Name", "名称"),
    "nobody": ("no user", "无用户"),
    "note": ("The note", "提示内容"),
    "note_intro": (
        "Exactly as a model would be shown it. Each bar says what speaks for a line and against.",
        "与模型所见完全一致。条形表示支持与反对每一行的因素。",
    ),
    "note_none": ("A model would be shown nothing.", "模型不会看到任何内容。"),
    "object": ("Object", "客体"),
    "operation": ("Operation", "运行"),
    "origin": ("Origin", "来源"),
    "parts": ("Parts of the score", "得分的组成"),
    "pending": ("Pending writes", "待处理写入"),
    "people": ("People", "用户"),
    "people_none": ("Nobody is found.", "没有找到用户。"),
    "person": ("Overview", "概览"),
    "pin": ("Pin", "固定"),
    "pinned": ("pinned", "已固定"),
    "pipl": ("PIPL (China)", "《个人信息保护法》"),
    "predicate": ("Relation", "关系"),
    "print": ("Printing this page keeps the receipt.", "打印此页即可保存回执。"),
    "question": ("Question", "问题"),
    "question_example": ("What should I know before I answer?", "想问什么？"),
    "reason": ("Reason", "原因"),
    "recalled": ("Shown to agents", "向智能体显示于"),
    "record": ("Record", "记录"),
    "records": ("Records", "记录"),
    "records_none": ("There are no records.", "没有记录。"),
    "relations": ("Relations", "关系"),
    "restore": ("Restore", "恢复"),
    "retry": ("Retry", "重试"),
    "retried": ("Writes that are tried again: {n}.", "正在重试 {n} 项写入。"),
    "right": ("What you may ask for", "您可以要求"),
    "right_correct": ("Correct it", "更正"),
    "right_correct_how": (
        "Have what is wrong corrected, and what is incomplete completed: open a record, and edit.",
        "更正错误，补充不完整的内容：打开一条记录并编辑。",
    ),
    "right_erase": ("Erase it", "删除"),
    "right_erase_how": (
        "Have it erased where the law gives a reason, such as consent that you withdraw, and no "
        "exception, such as a duty to keep it. You see what would go first, and get a receipt.",
        "符合法定情形时（例如撤回同意）要求删除，法律规定须保存等例外除外。先列出将删除的内容，删除后给出回执。",
    ),
    "right_see": ("See it", "查阅"),
    "right_see_how": (
        "Learn what is stored of you, and get a copy. Here stands what you stated; all records and "
        "conversations are beside it, and the export has them, too.",
        "了解存储了您的哪些信息，并获得副本。此处是您说过的内容；全部记录和对话在旁边的页面，导出文件中也有。",
    ),
    "right_take": ("Take it along", "转移"),
    "right_take_how": (
        "Get what you gave, in a common format, to use elsewhere. The file has one JSON object in "
        "each line, with its text as it stands; `commonplace import file` reads it.",
        "以通用格式取得您提供的信息，供其他地方使用；在中国，转移须符合国家网信部门规定的条件。"
        "文件每行一个 JSON 对象，文本保持原样；`commonplace import file` 可以读取。",
    ),
    "rights": ("Your rights", "您的权利"),
    "rights_else": (
        "This page is no legal advice. Whoever runs the service tells you the purposes, the "
        "recipients and how long data are kept, and answers for copies elsewhere: backups, logs, "
        "states of agents, and providers of models.",
        "本页不是法律意见。处理目的、接收方和保存期限由服务的运营者告知；别处的副本（备份、日志、智能体状态、"
        "模型提供方）也由运营者负责。",
    ),
    "rights_intro": (
        "This is about what this memory holds of you, and what the law lets you ask for.",
        "本页说明此记忆库中与您有关的内容，以及法律赋予您的权利。",
    ),
    "rights_read": (
        "These pages only read at the moment: to correct or erase, ask whoever runs the service.",
        "目前页面只读：如需更正或删除，请联系服务的运营者。",
    ),
    "rights_time": (
        "Time to answer: under the GDPR one month, which may be extended by two further months if "
        "you are told why (Article 12); under the PIPL, promptly (Articles 45 and 46).",
        "答复时限：《通用数据保护条例》为一个月，说明理由后可再延长两个月（第 12 条）；"
        "《个人信息保护法》要求及时处理（第 45、46 条）。",
    ),
    "role": ("Speaker", "说话者"),
    "role_assistant": ("assistant", "助手"),
    "role_system": ("system", "系统"),
    "role_tool": ("tool", "工具"),
    "role_user": ("user", "用户"),
    "rule_asks_only": ("it only asks, or tells nothing", "只是提问，没有陈述"),
    "rule_expired": ("it has expired", "已过期"),
    "rule_floor": ("its score is too low", "得分过低"),
    "rule_held": ("the question says it already", "问题中已经说明"),
    "rule_repeat": ("another line says it", "另一行已说明"),
    "rule_retracted": ("what it told is retracted", "所述内容已被撤回"),
    "rule_room": ("better lines take the room", "位置已被更好的内容占用"),
    "rule_small_talk": ("this needs no memory", "这不需要记忆"),
    "rule_superseded": ("a newer one replaces it", "已被更新的内容取代"),
    "rule_threshold": ("it is below the threshold", "低于阈值"),
    "save": ("Save", "保存"),
    "score": ("Score", "得分"),
    "session": ("Session", "会话"),
    "sessions": ("Sessions", "会话"),
    "sessions_none": ("No conversations are stored.", "没有已保存的对话。"),
    "skip": ("To the content", "跳到内容"),
    "sources": ("Drawn from", "提取自"),
    "store": ("Store", "存储"),
    "subject": ("Subject", "主体"),
    "sum": ("Sum, the logit of the score", "总和，即得分的对数几率"),
    "superseded": ("ended", "已结束"),
    "text": ("Text", "内容"),
    "text_alternative": ("The same as a table", "表格形式"),
    "token": ("Token", "令牌"),
    "told": ("Times told", "提及次数"),
    "top_k": ("Lines", "行数"),
    "turns": ("Turns", "发言数"),
    "unexpire": ("Do not hide", "取消隐藏"),
    "unpin": ("Unpin", "取消固定"),
    "until": ("Until", "至"),
    "updated": ("Updated", "更新于"),
    "user": ("User", "用户"),
    "well": ("All is well.", "一切正常。"),
    "when": ("When", "时间"),
    "why": ("Why this?", "为何想起？"),
    "why_intro": (
        "Ask as a user would, and see what a model is told, and why.",
        "像用户一样提问，看看模型会得到什么，以及原因。",
    ),
    "why_nobody": (
        "Whose memory is meant? Give a user or an agent.",
        "要查看谁的记忆？请填写用户或智能体。",
    ),
    # Groups of the parts of a score.
    "group_meaning": ("meaning", "语义"),
    "group_words": ("words", "词语"),
    "group_time": ("time and change", "时间与变化"),
    "group_subject": ("whom and what", "对象与类别"),
    "group_talk": ("conversation", "对话"),
    "group_graph": ("relations", "关系"),
    "group_base": ("baseline", "基准"),
}

# What an erasure counts, by the names of its receipt.
COUNTS: Mapping[str, tuple[str, str]] = {
    "graph.records": ("memories", "记忆"),
    "graph.versions": ("versions of memories", "记忆的版本"),
    "graph.relations": ("relations", "关系"),
    "graph.entities": ("names in relations", "关系中的名称"),
    "checkpoints.threads": ("threads of agents", "智能体线程"),
    "checkpoints.checkpoints": ("checkpoints of threads", "线程的检查点"),
    "checkpoints.values": ("values in checkpoints", "检查点中的值"),
    "checkpoints.writes": ("writes of unfinished steps", "未完成步骤的写入"),
    "index.points": ("vectors", "向量"),
    "journal.rows": ("pending writes", "待处理写入"),
}

# Parts of a score by group, each with English and Chinese words.
PARTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "meaning": {
        "cosine": ("near in meaning", "语义接近"),
        "cosine_squared": ("very near in meaning", "语义非常接近"),
        "standing_out": ("nearer than the others", "比其他更接近"),
        "late": ("near word by word", "逐词接近"),
        "late_around": ("turns around it are near", "前后发言接近"),
    },
    "words": {
        "lexical": ("rare words in common", "有共同的罕见词"),
        "coverage": ("has the question's words", "含有问题中的词"),
        "coverage_squared": ("has nearly all of the words", "几乎含有所有的词"),
        "codes": ("has its numbers and codes", "含有数字和代码"),
        "length_fact": ("length of the fact", "事实的长度"),
        "length_turn": ("length of the turn", "发言的长度"),
        "coverage_around": ("turns around it have the words", "前后发言含有这些词"),
    },
    "time": {
        "date": ("near the asked time", "接近所问时间"),
        "on_date": ("at the asked time", "正是所问时间"),
        "change": ("tells of a change", "说明有变化"),
        "newer_asked": ("new or old, as asked", "新旧符合所问"),
        "replaced": ("a newer one replaces it", "已被取代"),
        "replaced_asked": ("was replaced, as asked", "问的正是从前"),
        "replaces": ("replaces an older one", "取代了旧的"),
        "first": ("the first, as asked", "问的正是第一次"),
        "decay": ("age and use", "新旧与使用"),
    },
    "subject": {
        "about": ("about the one who is asked for", "关于所问之人"),
        "about_other": ("about somebody else", "关于别人"),
        "type": ("the kind of answer", "答案的类别"),
        "speaker": ("said by the one who is named", "由所提之人说"),
    },
    "talk": {
        "beside": ("beside a good turn", "紧邻相关发言"),
        "session": ("in a session that fits", "所在会话相关"),
        "answered": ("answers a question like this", "回答过类似问题"),
        "asks": ("asks", "在提问"),
        "echo": ("repeats the question", "重复了问题"),
        "echo_beside": ("asks, too, and is near to the question", "同时也在提问，且与问题相近"),
        "empty": ("tells nothing", "没有内容"),
        "addresses": ("speaks to somebody", "在对人说话"),
    },
    "graph": {
        "relation": ("a relation leads to it", "由关系引出"),
        "two_relations": ("two relations lead to it", "由两层关系引出"),
    },
    "base": {"offset": ("baseline of this memory", "此记忆库的基准")},
}
_PARTS = {name: (group, words) for group, parts in PARTS.items() for name, words in parts.items()}


def group_of(part: str) -> str:
    """Name the group of a part of a score; `subject` for one that is not known here."""
    return _PARTS[part][0] if part in _PARTS else "subject"


class Words:
    """The words of one language: `words("people")`, `words("retried", n=2)`."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._at = LANGUAGES.index(language)

    def __call__(self, key: str, **values: object) -> str:
        """Write what has this key; values stand in its braces."""
        text = STRINGS[key][self._at]
        return text.format(**values) if values else text

    def count(self, name: str) -> str:
        """Name what an erasure counts; what is not known here by its own name."""
        return COUNTS[name][self._at] if name in COUNTS else name

    def part(self, name: str) -> str:
        """Name a part of a score; one that is not known here by its own name."""
        return _PARTS[name][1][self._at] if name in _PARTS else name.replace("_", " ")


def language_of(accepted: str) -> str:
    """Choose the language that a browser prefers, by its `Accept-Language` header."""
    wanted: list[tuple[float, str]] = []
    for place, one in enumerate(accepted.split(",")[:20]):
        name, _, quality = one.strip().lower().partition(";q=")
        try:
            weight = float(quality or 1)
        except ValueError:
            weight = 0.0
        if (short := name.split("-")[0]) in LANGUAGES and weight > 0:
            wanted.append((weight - place / 1000, short))
    return max(wanted)[1] if wanted else LANGUAGES[0]
