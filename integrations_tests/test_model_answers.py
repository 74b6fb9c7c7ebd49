"""Answers of chat models that are not the JSON that was asked for, on the real embedded engine."""

import json
from pathlib import Path
from typing import Any

import pytest

from commonplace import Backlog, Memory, Message, Scope, Settings
from commonplace.testing.fakes import HashEmbedder, ScriptedChat

ALICE = Scope(user_id="alice")
QUICK = Settings(retry_after=0.01)
TEA, CAT = "Alice likes tea.", "Alice has a cat named Miso."
RED, DOG = "小林喜欢喝红茶。", "小林养了一只狗。"
SAID = Message(text="Tea for me, and Miso wants milk.")
ROW = '{"text": "Alice likes tea.", "kind": "preference"}'

# What each answer holds, as a person reads it.
READABLE: dict[str, tuple[str, list[str]]] = {
    "trailing commas": (
        '{"facts": [{"text": "Alice likes tea.", "relations": [],}, {"text": "Alice has a cat '
        'named Miso.",},],}',
        [TEA, CAT],
    ),
    "single quotes": (
        "{'facts': [{'text': 'Alice likes tea.'}, {'text': 'Alice has a cat named Miso.'}]}",
        [TEA, CAT],
    ),
    "an apostrophe in single quotes": (
        "{'facts': [{'text': 'Alice's cat is Miso, isn't it.', 'kind': 'fact'}]}",
        ["Alice's cat is Miso, isn't it."],
    ),
    "python literals": (
        "{'facts': [{'text': 'Alice\\'s tea is green.', 'since': None, 'sure': True, 'same_as': "
        "None}]}",
        ["Alice's tea is green."],
    ),
    "JSON lines": (
        '{"text": "Alice likes tea."}\n{"text": "Alice has a cat named Miso."}\n',
        [TEA, CAT],
    ),
    "JSON lines, one of them broken": (
        '{"text": "Alice likes tea."}\n{"text": "Alice rows.",}\n{"text": "Alice has a cat named '
        'Miso."}',
        [TEA, "Alice rows.", CAT],
    ),
    "memories": (
        f'{{"memories": [{ROW}, {{"memory": "Alice has a cat named Miso."}}]}}',
        [TEA, CAT],
    ),
    "data": (f'{{"status": "ok", "data": [{ROW}]}}', [TEA]),
    "a result around it": (f'{{"result": {{"facts": [{ROW}], "count": 1}}}}', [TEA]),
    "arguments of a call": (
        f'{{"name": "save", "arguments": {{"facts": [{ROW}]}}}}',
        [TEA],
    ),
    "a bare list": (f'[{ROW}, {{"fact": "Alice has a cat named Miso."}}]', [TEA, CAT]),
    "a list of strings": ('["Alice likes tea.", "Alice has a cat named Miso."]', [TEA, CAT]),
    "one fact without a list": (f'{{"facts": {ROW}}}', [TEA]),
    "a fence": (f'```json\n{{"facts": [{ROW}]}}\n```', [TEA]),
    "a fence and text with brackets": (
        f"Sure [see {{below}}]! Here's what I'd keep:\n~~~\n{{'facts': [{ROW}]}}\n~~~\nMore [y/n]?",
        [TEA],
    ),
    "two fences": (
        f'First:\n```json\n{{"facts": [{ROW}]}}\n```\nSecond:\n```json\n{{"facts": '
        '["Alice has a cat named Miso."]}\n```',
        [TEA, CAT],
    ),
    "bullets": (
        "Here is what is worth knowing:\n\n* Alice likes tea.\n* **Alice has a cat named Miso.**\n",
        [TEA, CAT],
    ),
    "numbered lines": ("1. Alice likes tea.\n2) Alice has a cat named Miso.", [TEA, CAT]),
    "numbered lines in chinese": (
        "事实如下：\n1、小林喜欢喝红茶。\n２．小林养了一只狗。",
        [RED, DOG],
    ),
    "lines in chinese brackets": ("（1）小林喜欢喝红茶。\n（2）小林养了一只狗。", [RED, DOG]),
    "yaml": (
        "facts:\n  - text: Alice likes tea.\n    kind: preference\n  - text: \"Alice has a cat "
        'named Miso."\n    kind: fact\n',
        [TEA, CAT],
    ),
    "chinese quotes and punctuation": (
        "{“facts”：[{“text”：“小林喜欢喝红茶。”，“kind”：“preference”}，{“text”：“小林养了一只狗。”}]}",
        [RED, DOG],
    ),
    "full-width brackets": ("｛“facts”：［“小林喜欢喝红茶。”，“小林养了一只狗。”］｝", [RED, DOG]),
    "quotes in chinese quotes": ("{“facts”：[“小林说：“红茶”好喝。”]}", ["小林说：“红茶”好喝。"]),
    "comments": (
        '{\n  // what she drinks, "tea"\n  "facts": [ /* one\n of two */ {"text": "Alice likes '
        'tea."}, # and\n {"text": "Alice has a cat named Miso."}]\n}',
        [TEA, CAT],
    ),
    "an address in a comma too many": (
        '{"facts": [{"text": "Alice reads https://tea.example/a,b // daily.",},]}',
        ["Alice reads https://tea.example/a,b // daily."],
    ),
    "cut in a text": (
        '{"facts": [{"text": "Alice likes tea."}, {"text": "Alice has a cat named Miso.", "kind": '
        '"fact"}, {"text": "Alice ro',
        [TEA, CAT],
    ),
    "cut after a comma": (f'```json\n{{"facts": [{ROW}, ', [TEA]),
    "cut in a list of strings": ('["Alice likes tea.", "Alice has', [TEA]),
    "cut in a number": (
        '{"facts": [{"text": "Alice likes tea.", "same_as": 1',
        [TEA],
    ),
    "brackets left open": (f'{{"facts": [{ROW}', [TEA]),
    "the wrong bracket": (f'{{"facts": [{ROW}}}]', [TEA]),
    "quotes in a text": (
        '{"facts": [{"text": "Alice calls him "Miso", her cat.", "kind": "fact"}, {"text": "Alice '
        'likes tea."}]}',
        ['Alice calls him "Miso", her cat.', TEA],
    ),
    "line breaks in a text": (
        '{"facts": [{"text": "Alice likes\n\ttea.",}]}',
        ["Alice likes\n\ttea."],
    ),
    "thoughts before it": (
        f'<think>Maybe {{"facts": ["Alice likes rum."]}}? - No.</think>\n{{"facts": [{ROW}]}}',
        [TEA],
    ),
    "the end of thoughts": (f'- Rum? No.\n["no"]</think>{{"facts": [{ROW}]}}', [TEA]),
    "keys without quotes": ("{facts: [{text: 'Alice likes tea.', kind: preference}]}", [TEA]),
    "JSON in a string": (json.dumps(f'{{"facts": [{ROW}]}}'), [TEA]),
    "no commas": (f'{{"facts": [{ROW} {{"text": "Alice has a cat named Miso."}}]}}', [TEA, CAT]),
    "a mark of the byte order": (f'\ufeff\u00a0{{"facts":\u00a0[{ROW}]}}\x00', [TEA]),
    "a half of an emoji": ('{"facts": ["Alice likes tea \\ud83c"]}', ["Alice likes tea \ufffd"]),
    "a line of a program": ("const out = {facts: [{text: 'Alice likes tea.',},],};", [TEA]),
    "tuples in a program": (
        "facts = [{'text': 'Alice likes tea.', 'relations': [('Alice', 'likes', 'tea')]}, "
        "{'text': 'Alice has a cat named Miso.'}]\nprint(facts)",
        [TEA, CAT],
    ),
    "dots for more": (f'{{"facts": [{ROW}, ...]}}', [TEA]),
    "a tag of a call": (f'<tool_call>{{"arguments": {{"facts": [{ROW}]}}}}</tool_call>', [TEA]),
    "cut in a relation": (
        '{"facts": [{"text": "Alice likes tea.", "relations": [{"subject": "Alice", "pred',
        [TEA],
    ),
    "thoughts beside it": (
        f'{{"reasoning": ["She said so.", "It is about tea."], "facts": [{ROW}]}}',
        [TEA],
    ),
    "a title beside it": (f'{{"text": "What I know", "facts": [{ROW}]}}', [TEA]),
    "facts in parts": (
        f'[{{"facts": [{ROW}]}}, {{"facts": ["Alice rows."]}}]',
        [TEA, "Alice rows."],
    ),
    "facts under a name of its own": (f'{{"new_knowledge": [{ROW}]}}', [TEA]),
    "a list in a list": (f'{{"facts": [[{ROW}], ["Alice has a cat named Miso."]]}}', [TEA, CAT]),
}  # fmt: skip
UNREADABLE = {
    "nothing": "",
    "a refusal": "I'm sorry, but I can't help with that.",
    "a sentence with dashes": "I noted - as you said - that she likes tea, 2 cups.",
    "a remark in brackets": "[as discussed] There is {little} to say [1].",
    "a refusal in chinese": "抱歉，我无法完成这个请求（1）。",
    "a page of a proxy": "<html><body><h1>502 Bad Gateway</h1></body></html>",
    "reasons in a list": "I can't do this because:\n- it is private\n- Nobody has consented",
    "offers in a list": "Shall I:\n1. Look it up?\n2. You could also ask a doctor.",
    "reasons in chinese": "无法完成：\n1、我没有权限。\n2、小林没有同意。",
    "a year": "2026. A good year for tea.",
    "an error": '{"error": {"code": 429, "message": "slow down", "details": []}}',
    "a deep list": "[" * 100_000,
    "deep objects": '{"a":' * 50_000 + "x",
    "quotes": "{" + "\"'" * 20_000,
    "another list": '{"found": []}',
    "thoughts alone": '{"reasoning": ["She said so.", "It is about tea."]}',
    "the schema": '{"type": "object", "properties": {"facts": {"type": "array", "items": '
    '{"properties": {"text": {"type": "string"}}}}}}',
    "numbers": '{"facts": [7, null, 3.5]}',
    "a number for a list": '{"facts": 7}',
}
NOTHING = {
    "an empty list": '{"facts": []}',
    "an empty object": "Nothing to keep: {}",
    "null": '{"facts": null}',
    "thoughts and an empty list": '{"reasoning": ["She said nothing."], "facts": []}',
    "none": "- None.",
    "none in chinese": "1. 无",
    "a comment alone": '{"facts": [ // nothing\n]}',
}


def open_memory(folder: Path, chat: Any, **given: Any) -> Memory:
    return Memory.open(
        str(folder), embedder=HashEmbedder(), chat=chat, **{"settings": QUICK, **given}
    )


def facts_of(memory: Memory, scope: Scope = ALICE) -> list[str]:
    kinds = ("fact", "preference", "profile", "procedure")
    return sorted(one.text for one in memory.list(scope, kinds=kinds, limit=1000).records)


@pytest.mark.parametrize("name", READABLE)
def test_what_an_answer_holds_is_read_at_once(tmp_path: Path, name: str) -> None:
    answer, wanted = READABLE[name]
    chat = ScriptedChat([answer])
    with open_memory(tmp_path, chat) as memory:
        written = memory.add(SAID, ALICE)

        assert facts_of(memory) == sorted(wanted)
        assert written.extraction_error is None
        assert {one.text for one in written.changes} == {SAID.text, *wanted}
        has_kind = "preference" in answer and name != "yaml"
        assert len(memory.list(ALICE, kinds=["preference"]).records) == has_kind


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_costs_only_the_facts_and_is_told(tmp_path: Path, name: str) -> None:
    chat = ScriptedChat([UNREADABLE[name]] * 2)
    with open_memory(tmp_path, chat) as memory:
        written = memory.add(SAID, ALICE)

        assert len(chat.calls) == 2
        assert [one.text for one in written.changes] == [SAID.text]
        assert "scripted" in (written.extraction_error or "")
        assert [one.text for one in memory.search("Miso wants milk", ALICE)] == [SAID.text]


@pytest.mark.parametrize("name", NOTHING)
def test_an_answer_that_says_that_there_is_nothing_is_no_failure(tmp_path: Path, name: str) -> None:
    chat = ScriptedChat([NOTHING[name]])
    with open_memory(tmp_path, chat) as memory:
        written = memory.add(SAID, ALICE)

        assert (facts_of(memory), written.extraction_error) == ([], None)
        assert memory.flush() == Backlog(pending=0, dead=0)
