"""A scripted model and what the tests of the Strands adapter share."""

import asyncio
import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from strands import Agent
from strands.models import Model

from commonplace import Memory, Scope
from commonplace.testing.fakes import HashEmbedder


class Use:
    """A call of a tool, in a model's script; its `id` is made up when missing."""

    def __init__(self, name: str, /, **arguments: Any) -> None:
        self.name, self.arguments, self.id = name, arguments, ""

    def named(self, use_id: str) -> "Use":
        self.id = use_id
        return self


class ScriptedModel(Model):
    """Answers from its script, then always the same; keeps what was on the wire.

    A script holds texts, `Use`s, lists of those, exceptions, and functions of the messages.
    """

    def __init__(self, script: Any = ()) -> None:
        self.script, self.seen, self.prompts, self.kept = list(script), [], [], []

    def update_config(self, **_config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {"model_id": "scripted"}

    async def structured_output(self, *_args: Any, **_options: Any) -> Any:
        raise NotImplementedError
        yield {}

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **kept: Any
    ) -> Any:
        self.seen.append(copy.deepcopy(messages))
        self.prompts.append(system_prompt)
        self.kept.append(kept)
        answer = self.script.pop(0) if self.script else "All right."
        if callable(answer):
            answer = answer(messages)
        if isinstance(answer, BaseException):
            raise answer
        yield {"messageStart": {"role": "assistant"}}
        await asyncio.sleep(0)  # other turns go on meanwhile, as with a real model
        parts = answer if isinstance(answer, list) else [answer]
        for number, part in enumerate(parts):
            for event in self._block(part, f"{len(self.seen)}-{number}"):
                yield event
                await asyncio.sleep(0)
        uses = any(isinstance(part, Use) for part in parts)
        yield {"messageStop": {"stopReason": "tool_use" if uses else "end_turn"}}

    def _block(self, part: Any, number: str) -> Iterator[dict[str, Any]]:
        if isinstance(part, Use):
            use_id = part.id or f"use-{id(self)}-{number}"
            use = {"toolUse": {"name": part.name, "toolUseId": use_id}}
            yield {"contentBlockStart": {"start": use}}
            given = {"toolUse": {"input": json.dumps(part.arguments)}}
            yield {"contentBlockDelta": {"delta": given}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": part}}}
        yield {"contentBlockStop": {}}

    def shown(self, call: int = -1) -> str:
        """Read all text that the model was shown in a call, and in its tools' results."""
        found = []
        for block in (block for one in self.seen[call] for block in one["content"]):
            found += [block["text"]] if "text" in block else []
            results = block.get("toolResult", {}).get("content", [])
            found += [part.get("text") or json.dumps(part.get("json")) for part in results]
        return "\n".join(found)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The tools' results that the last call was shown."""
        blocks = (block for one in self.seen[-1] for block in one["content"])
        return [block["toolResult"] for block in blocks if "toolResult" in block]


@pytest.fixture
def use() -> type[Use]:
    return Use


@pytest.fixture
def model() -> type[ScriptedModel]:
    return ScriptedModel


@pytest.fixture
def make() -> Callable[..., Agent]:
    """Make an agent from plugins, a script and what else an agent takes."""

    def build(*plugins: Any, script: Any = (), **more: Any) -> Agent:
        model = ScriptedModel(script)
        return Agent(model=model, plugins=list(plugins), callback_handler=None, **more)

    return build


@pytest.fixture
def told(memory: Memory) -> Callable[[str], list[str]]:
    """Read what is stored of a user, oldest first."""

    def read(user: str) -> list[str]:
        records = memory.list(Scope(user_id=user), limit=1000).records
        return [
            one.text for one in sorted(records, key=lambda one: (one.created_at, one.position or 0))
        ]

    return read


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()
