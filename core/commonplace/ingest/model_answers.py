"""Lenient reading of a chat model's answer: the rows of its list of facts, as a model may write it.

Three readers, in this order; the first that finds rows, or that there are none, is believed. None
of them runs anything, and each looks at every character a few times at most.

1. JSON, whole or with text around it, also as a string of JSON.
2. What is nearly JSON, anywhere in the text, in any number of parts (JSON lines, several fences):
   commas too many or missing; single, curly and full-width quotes, brackets and punctuation; quotes
   inside a text; keys without quotes; words of Python and JavaScript; comments; wrong brackets; an
   answer that is cut off, of which what is complete is kept.
3. Lines with a bullet or a number, each of which is one fact; but not if one of them begins with a
   small letter or a pronoun, as the reasons of a refusal do.

Before them, all up to the end of a model's thoughts (`</think>`) is left out. The list is one under
`facts` or another usual name, at any of a few depths, a bare list, or single objects with a text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LIST_KEYS = ("facts", "memories", "memory", "data", "result", "results", "items")
_TEXT_KEYS = ("text", "fact", "memory", "statement")
_TEXT_KEYS_IN_LIST = (*_TEXT_KEYS, "content", "data")
_MAX_DEPTH = 5  # of the list in what stands around it
_LITERALS: Mapping[str, bool | None] = {
    "true": True, "false": False, "null": None, "none": None, "undefined": None, "nan": None,
}  # fmt: skip
# A line that says that there is nothing, without its final punctuation.
_NOTHING = {"none", "null", "n/a", "nothing", "no facts", "无", "没有", "暂无", "无事实"}
_THOUGHTS_END = "</think>"
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*\w*[ \t\r]*$", re.MULTILINE)
_OPEN, _CLOSE = "{[｛［【", "}]｝］】"
_QUOTES = {  # with what may end a text that one of them begins
    **dict.fromkeys('"“”„‟＂', '"“”„‟＂'),
    **dict.fromkeys("'‘’＇", "'‘’＇"),
    "「": "」",
    "『": "』",
}
_TOKEN = re.compile(
    rf"""(?P<skip>[\s\ufeff\x00]+ | //[^\n]* | \#[^\n]* | /\*.*?(?:\*/|\Z))
    | (?P<open>[{re.escape(_OPEN)}]) | (?P<close>[{re.escape(_CLOSE)}])
    | (?P<comma>[,，、;；]) | (?P<colon>[:：])
    | (?P<quote>[{"".join(_QUOTES)}])
    | (?P<word>[^\s,，:：{re.escape(_OPEN + _CLOSE)}"“”]+)""",
    re.VERBOSE | re.DOTALL,
)
_BARE = re.compile(rf"[^,，\n{re.escape(_OPEN + _CLOSE)}]*")  # a value without quotes
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_BRACKET = re.compile(f"[{re.escape(_OPEN)}]")
# What stands behind a quote that ends a text; one inside it is followed by something else.
_BEHIND = re.compile(
    r"""\s{0,99}(?: [:：}\]｝］】] | \Z | // | /\* | \#
    | [,，、]\s{0,99}(?: ["'“‘＂＇「『{\[｛［}\]｝］#] | // | /\* | \Z | [A-Za-z_]\w{0,40}\s?[:：] )
    | [)）]\s{0,99}[,，)）}\]｝］] | \n\s{0,99}["'“{\[] )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_LINE = re.compile(
    r"""^[^\S\n]*(?: [-*+][^\S\n] | [•·●○▪‣◦–—] | [(（]?\d{1,3}[^\S\n]?(?: [.．](?!\d) | [)）、] ) )
    [^\S\n]*(\S.*)$""",
    re.VERBOSE | re.MULTILINE,
)
# A line in which the model talks, of itself or to somebody; a fact has names instead.
_TALK = re.compile(r"(?:I|We|My|Our|You|Your)\b|[我你您]")
_LABEL = re.compile(rf"(?:{'|'.join(_TEXT_KEYS)})\s?[:：]\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What a model has answered.

    Attributes:
        rows: elements of its list, in their order; most are objects with a text, or texts. Empty if
            it says that there is nothing.
        is_cut: it ends in the middle of an element, or where another one had to come.
    """

    rows: list[Any]
    is_cut: bool = False


def read_answer(answer: str) -> ModelAnswer | None:
    """Read an answer; None if no list can be found in it."""
    text = answer.rpartition(_THOUGHTS_END)[2]
    rows = _json_rows(text)
    if rows is not None:
        return ModelAnswer(rows=rows)
    text = _FENCE.sub("", text)
    found = _NearlyJson(text).answer()
    if found is None and (lines := _LINE.findall(text)):
        items = [_item(line) for line in lines]
        rows = [one for one in items if one.rstrip(".。").lower() not in _NOTHING]
        is_talk = any(one[:1].islower() or _TALK.match(one) for one in rows)
        return None if is_talk else ModelAnswer(rows=rows)
    return found


def text_of(row: object, keys: Sequence[str] = _TEXT_KEYS_IN_LIST) -> str | None:
    """Read the text of a row; None if it has none."""
    if isinstance(row, str):
        return row
    if not isinstance(row, dict):
        return None
    return next((row[name] for name in keys if isinstance(row.get(name), str)), None)


# -- where the list is -----------------------------------------------------------------------------


def _rows_in(value: object, depth: int = _MAX_DEPTH) -> list[Any] | None:
    """Find the rows in a value; None if it has no list of them."""
    if isinstance(value, list):
        rows = list(_flat(value, depth))
        return rows if not rows or any(text_of(one) is not None for one in rows) else None
    if not isinstance(value, dict) or not depth:
        return None
    named = [_named_rows(value[name], depth) for name in _LIST_KEYS if name in value]
    if found := next(filter(None, named), None):
        return found
    if text_of(value, _TEXT_KEYS) is not None:
        return [value]
    if not value or [] in named:
        return []
    others = (_rows_in(held, depth - 1) for held in value.values())
    # Texts under a name that is not usual may be anything, such as the steps of a thought.
    return next((rows for rows in others if rows and isinstance(rows[0], dict)), None)


def _named_rows(held: object, depth: int) -> list[Any] | None:
    """Read what stands under a name for lists of facts, where any list is one."""
    if held is None or isinstance(held, list):
        return list(_flat(held or [], depth))
    return _rows_in(held, depth - 1)


def _flat(rows: Sequence[Any], depth: int) -> Iterator[Any]:
    """Give the rows of lists in a list, and of objects that are around lists."""
    for one in rows:
        is_around = depth and text_of(one) is None
        inner = _rows_in(one, depth - 1) if is_around else None
        if inner:
            yield from inner
        else:
            yield one


# -- the readers -----------------------------------------------------------------------------------


def _json_rows(text: str) -> list[Any] | None:
    starts = [n for n in (text.find("{"), text.find("[")) if n >= 0]
    inner = text[min(starts) : max(text.rfind("}"), text.rfind("]")) + 1] if starts else ""
    for part in (text, inner):
        try:
            value = json.loads(part, strict=False)  # raw line breaks and tabs are read
        except (ValueError, RecursionError):
            continue
        if isinstance(value, str):
            found = read_answer(value)
            return None if found is None else found.rows
        if (rows := _rows_in(value)) is not None:
            return rows
    return None


def _item(line: str) -> str:
    """Take off a line what is marked up around its fact."""
    bare = line.strip().strip("*_`")
    return _LABEL.sub("", bare, count=1).strip("\"'“”*_` ") if bare else ""


class _NearlyJson:
    """Reader of the objects and lists in a text, which takes what is no JSON as it was meant.

    It goes over the text once, never back.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: list[Any] = []  # outermost objects and lists
        self._stack: list[dict[str, Any] | list[Any]] = []  # open ones, innermost last
        self._keys: list[str | None] = []  # for each open one, the key whose value comes next
        self._has_junk = False
        self._is_cut = False

    def answer(self) -> ModelAnswer | None:
        """Read all; None if there are no rows, unless that is what the text says."""
        self._read()
        unfinished = {id(one) for one in self._stack}
        lists = [_rows_in(one) for one in self._found]
        rows = [
            row
            for one in lists
            for row in one or ()
            if id(row) not in unfinished or text_of(row) is not None
        ]
        says_nothing = not (self._is_cut or self._has_junk) and [] in lists
        return ModelAnswer(rows=rows, is_cut=self._is_cut) if rows or says_nothing else None

    def _read(self) -> None:
        text, at, last = self._text, 0, ""
        while at < len(text):
            if not self._stack:
                bracket = _BRACKET.search(text, at)
                if bracket is None:
                    return
                at = bracket.start()
            token = _TOKEN.match(text, at)
            kind = token.lastgroup if token else "junk"
            at = token.end() if token else at + 1
            if kind == "skip":
                continue
            last = kind or ""
            given = text[at - 1]
            if kind == "open":
                self._open({} if given in "{｛" else [])
            elif kind == "close":
                self._close(dict if given in "}｝" else list)
            elif kind == "comma":
                self._keys[-1] = None
            elif kind == "quote":
                at = self._take_text(at)
            elif kind == "word" and token is not None:
                at = self._take_word(token.group(), at)
        self._is_cut = bool(self._stack) and last != "close"

    def _open(self, one: dict[str, Any] | list[Any]) -> None:
        if self._stack:
            self._put(one)
        else:
            self._found.append(one)
        self._stack.append(one)
        self._keys.append(None)

    def _close(self, kind: type) -> None:
        """Close the innermost of a kind, and what is open in it; a bracket without one is left."""
        if not any(isinstance(one, kind) for one in self._stack[-_MAX_DEPTH:]):
            return
        is_closed = False
        while not is_closed:
            is_closed = isinstance(self._stack.pop(), kind)
            self._has_junk |= self._keys.pop() is not None

    def _put(self, value: Any) -> None:
        inner, key = self._stack[-1], self._keys[-1]
        if isinstance(inner, list):
            inner.append(value)
        elif key is not None:
            inner[key], self._keys[-1] = value, None
        elif isinstance(value, str):
            self._keys[-1] = value
        else:
            self._has_junk = True

    def _take_text(self, start: int) -> int:
        """Read a text whose first character is at `start`; return where it ends."""
        ends = _QUOTES[self._text[start - 1]]
        for one in re.compile(rf"\\.|[{ends}]", re.DOTALL).finditer(self._text, start):
            if one.group()[0] != "\\" and _BEHIND.match(self._text, one.end()):
                self._put(_ESCAPE.sub(_unescaped, self._text[start : one.start()]))
                return one.end()
        return len(self._text)

    def _take_word(self, word: str, end: int) -> int:
        """Read what has no quotes: a key, a literal, a number or one word; return where it ends."""
        if isinstance(self._stack[-1], dict) and self._keys[-1] is None:
            self._put(word)
            return end
        bare = _BARE.match(self._text, end - len(word))
        whole = bare.group().strip() if bare else word
        end = max(end, bare.end() if bare else end)
        if end == len(self._text):
            return end  # more of it may have been cut off
        if whole.lower() in _LITERALS:
            self._put(_LITERALS[whole.lower()])
        elif _NUMBER.fullmatch(whole):
            self._put(float(whole) if set(whole) & set(".eE") else _integer(whole))
        elif isinstance(self._stack[-1], dict) and not re.search(r"\s", whole):
            self._put(whole)
        else:
            self._has_junk = True
        return end


def _integer(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # of thousands of digits
        return None


def _unescaped(escape: re.Match[str]) -> str:
    code, character = escape.groups()
    return chr(int(code, 16)) if code else _ESCAPED.get(character, character)
