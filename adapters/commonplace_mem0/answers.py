"""What models write, read in either shape that mem0's prompts ask for, fenced or chatty.

`{"facts": ["..."]}` and `{"memory": [{"text": "..."}]}` both become the core's `{"facts": [...]}`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_TEXTS = ("text", "fact", "memory", "data")
_DONE = ("NONE", "DELETE")


def text_of(answer: Any) -> str:
    """Read the text of an answer: itself, or its content, whole or in parts."""
    content = getattr(answer, "content", answer)
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [one.get("text") if isinstance(one, Mapping) else one for one in content]
        return "".join(one for one in parts if isinstance(one, str))
    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)


def as_facts(answer: str) -> str:
    """Write an answer in either of mem0's shapes as the core reads it; as it is when it is none."""
    bare = re.sub(r"<think>.*?</think>", "", answer, flags=re.DOTALL)
    found = _loads(bare)
    if isinstance(found, dict):
        named = [found[name] for name in ("facts", "memory", "memories") if name in found]
        rows = next((one for one in named if one), named[0] if named else None)
    else:
        rows = found
    if not isinstance(rows, list):
        return answer
    return json.dumps({"facts": [_row(one) for one in rows if _is_news(one)]}, ensure_ascii=False)


def _row(given: Any) -> Any:
    if isinstance(given, str):
        return {"text": given}
    if isinstance(given, Mapping) and "text" not in given:
        text = next((given[name] for name in _TEXTS if isinstance(given.get(name), str)), None)
        return {**given, "text": text}
    return given


def _is_news(given: Any) -> bool:
    event = given.get("event") if isinstance(given, Mapping) else None
    return not (isinstance(event, str) and event.upper() in _DONE)


def _loads(text: str) -> Any:
    for part in (text, text[text.find("{") : text.rfind("}") + 1]):
        try:
            return json.loads(re.sub(r"^\s*```(?:json)?|```\s*$", "", part).strip())
        except (ValueError, RecursionError):
            continue
    return None
