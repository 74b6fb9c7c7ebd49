"""Users of mem0's interface who are after others' memories, blocking and awaited."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from commonplace.testing.fakes import HashEmbedder
from commonplace_mem0 import AsyncMemory, Memory

from ..isolation.asking import Asker, Case, ask, check, word_of
from ..isolation.owners import make_filter

# What mem0 has no user for: it opens, counts, waits, or is of everybody.
OF_NOBODY = {"from_config", "counters", "core", "llm", "close", "reset", "chat"}


class Calls:
    """The cases; by mem0's rule a memory's id is all that its owner needs to give."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.ids: dict[str, list[str]] = {}
        self.cursors: list[str] = []

    async def do(self, name: str, *args: Any, **given: Any) -> Any:
        answer = getattr(self.memory, name)(*args, **given)
        return await answer if inspect.isawaitable(answer) else answer

    async def add(self, asker: Asker) -> Any:
        given: dict[str, Any] = {"user_id": asker.user, "infer": False}
        if asker.random.random() < 0.3:
            given |= {"agent_id": "a", "run_id": asker.other.strip()}
        given["metadata"] = {"of": asker.word, "n": asker.number % 3, "colour": "red"}
        answer = await self.do("add", asker.text, **given)
        self.ids.setdefault(asker.user, []).extend(one["id"] for one in answer["results"])
        return answer["results"]

    async def search(self, asker: Asker) -> Any:
        where = asker.random.choice(
            ({"user_id": asker.user}, {"AND": [{"user_id": asker.user}]},
             {"user_id": asker.user, "OR": [{"user_id": asker.other}, {"n": {"gte": 0}}]},
             {"user_id": asker.user, "NOT": [{"user_id": asker.user}]},
             {"user_id": asker.user, **make_filter(asker.random)},
             {"user_id": asker.user, "of": word_of(asker.other)}, None)
        )  # fmt: skip
        given = {"user_id": asker.user} if where is None else {"filters": where}
        return (await self.do("search", asker.query, threshold=0.0, **given))["results"]

    async def get_all(self, asker: Asker) -> Any:
        given: dict[str, Any] = {"filters": {"user_id": asker.user}, "top_k": 3}
        if self.cursors and asker.random.random() < 0.5:
            given["cursor"] = asker.random.choice(self.cursors)
        answer = await self.do("get_all", **given)
        self.cursors += [answer["cursor"]] if answer.get("cursor") else []
        return [*answer["results"], str(answer)]

    def own(self, asker: Asker) -> str:
        return asker.random.choice(self.ids.get(asker.user, ["none"]))

    async def get(self, asker: Asker) -> Any:
        return await self.do("get", self.own(asker))

    async def history(self, asker: Asker) -> Any:
        return await self.do("history", self.own(asker))

    async def update(self, asker: Asker) -> Any:
        return await self.do("update", self.own(asker), asker.text)

    async def delete(self, asker: Asker) -> Any:
        if asker.random.random() < 0.8:
            return None
        return await self.do("delete", self.own(asker))

    async def delete_all(self, asker: Asker) -> Any:
        if asker.random.random() < 0.8:
            return None
        self.ids.pop(asker.user, None)
        return await self.do("delete_all", user_id=asker.user)

    async def flush(self, asker: Asker) -> Any:
        return await self.do("flush")

    def cases(self) -> dict[str, Case]:
        apart = {"do", "own", "cases"}
        found = inspect.getmembers(self, inspect.ismethod)
        return {name: case for name, case in found if name not in apart and name[0] != "_"}


@pytest.mark.parametrize("face", [Memory, AsyncMemory])
def test_no_call_of_mem0_hands_out_what_is_of_another_user(face: type, tmp_path: Path) -> None:
    store = {"provider": "qdrant", "config": {"path": str(tmp_path / "memory")}}
    with Memory.from_config({"vector_store": store, "embedder": HashEmbedder()}) as opened:
        memory = opened if face is Memory else AsyncMemory(core=opened.core)
        calls = Calls(memory)
        public = {name for name in dir(face) if not name.startswith("_")}

        assert public - OF_NOBODY == set(calls.cases())
        seen = ask(calls.cases(), 1_500)
        check(seen, "delete", "delete_all", "flush", "update")

        for user, ids in calls.ids.items():
            left = opened.get_all(user_id=user)["results"]
            assert {one["id"] for one in left} <= set(ids)
            assert all(word_of(user) in one["memory"] for one in left)
