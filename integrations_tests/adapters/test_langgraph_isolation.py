"""Users of LangGraph's parts who are after others': store, saver, middleware, tools and nodes."""

import inspect
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from commonplace import Memory
from commonplace.agents import Policy
from commonplace_langgraph import (
    CommonplaceSaver,
    CommonplaceStore,
    MemoryMiddleware,
    MemoryRetriever,
    memory_tools,
    recall_hook,
    remember_node,
)
from commonplace_langgraph.testing import ScriptedModel

from ..isolation.asking import Asker, ask, check, scope_of, word_of
from ..isolation.owners import make_filter
from ..isolation.poison import TEXTS, check_note, fill, owner_of

# Of a store and a saver, what opens, closes, counts, sweeps, or is of everybody.
OF_NOBODY = {
    "sweep_ttl", "start_ttl_sweeper", "stop_ttl_sweeper", "setup", "close", "open", "aclose",
    "supports_ttl", "ttl_config", "batch", "abatch", "asweep_ttl", "memory", "from_conn_string",
}  # fmt: skip
NOT_TOLD = ("delete", "adelete", "put", "aput")
POLICY = Policy(tools=("search_memory", "add_memory", "update_memory", "forget_memory"))


def config_of(asker: Asker, **more: Any) -> Any:
    return {"configurable": {"user_id": asker.user, **more}}


class StoreCalls:
    """The functions of a store, on namespaces of one user, of the template and of one's own."""

    def __init__(self, memory: Memory) -> None:
        self.store = CommonplaceStore(memory)
        self.keys: list[str] = ["none"]

    def namespace(self, asker: Asker) -> tuple[str, ...]:
        user = asker.user.replace(".", "_") if asker.random.random() < 0.1 else asker.user
        user = user if user == asker.user else f"{user} {asker.word}"
        return asker.random.choice((("memories", user), ("docs", user), ("docs", user, "a")))

    def put(self, asker: Asker) -> Any:
        self.keys.append(key := f"key {asker.number % 9}")
        given = {"text": asker.text, "n": asker.number % 3, "of": asker.word}
        return self.store.put(self.namespace(asker), key, given)

    async def aput(self, asker: Asker) -> Any:
        given = {"text": asker.text, "colour": "red"}
        return await self.store.aput(self.namespace(asker), "key", given)

    def key(self, asker: Asker) -> str:
        return asker.random.choice(self.keys[-9:])

    def get(self, asker: Asker) -> Any:
        return self.store.get(self.namespace(asker), self.key(asker))

    async def aget(self, asker: Asker) -> Any:
        return await self.store.aget(self.namespace(asker), "key")

    def search(self, asker: Asker) -> Any:
        where = asker.random.choice(
            (None, {"n": {"$gte": 0}}, {"of": word_of(asker.other)}, {"n": {"$ne": 7}},
             {"$or": [{"n": 1}, {"of": word_of(asker.other)}]})
        )  # fmt: skip
        query = asker.random.choice((None, asker.query))
        return self.store.search(self.namespace(asker), query=query, filter=where, limit=5)

    async def asearch(self, asker: Asker) -> Any:
        return await self.store.asearch(self.namespace(asker), query=asker.query)

    def delete(self, asker: Asker) -> Any:
        return self.store.delete(self.namespace(asker), self.key(asker))

    async def adelete(self, asker: Asker) -> Any:
        return await self.store.adelete(self.namespace(asker), "key")

    def list_namespaces(self, asker: Asker) -> Any:
        prefix = self.namespace(asker)
        found = self.store.list_namespaces(prefix=prefix)
        assert all(one[: len(prefix)] == prefix for one in found), (found, prefix)
        return [asker.word] * len(found)

    async def alist_namespaces(self, asker: Asker) -> Any:
        prefix = self.namespace(asker)
        found = await self.store.alist_namespaces(prefix=prefix, max_depth=2)
        assert all(one[:2] == prefix[:2] for one in found), (found, prefix)
        return [asker.word] * len(found)


def test_no_call_of_the_store_hands_out_what_is_of_another_user(memory: Memory) -> None:
    calls = StoreCalls(memory)
    cases = {
        name: case
        for name, case in inspect.getmembers(calls, inspect.ismethod)
        if name not in ("__init__", "namespace", "key")
    }
    public = {name for name, _ in inspect.getmembers(CommonplaceStore) if name[0] != "_"}

    seen = ask(cases, 2_500)

    assert public - OF_NOBODY == set(cases)
    check(seen, *NOT_TOLD)
    assert not any("AssertionError" in one for one in seen.errors), seen.errors


class SaverCalls:
    """The functions of a saver with owners, called with the threads of others."""

    def __init__(self, memory: Memory) -> None:
        self.saver = CommonplaceSaver(
            memory, owner=lambda thread, configurable: configurable["user_id"]
        )
        self.threads: dict[str, str] = {}  # their users

    def thread(self, asker: Asker) -> str:
        """Choose a thread, often one of another user; all are named alike."""
        user = asker.random.choice((asker.user, asker.user, asker.other))
        return f"{user} {word_of(user)[-4:]}"

    def config(self, asker: Asker) -> Any:
        return config_of(asker, thread_id=self.thread(asker), checkpoint_ns="")

    def state(self, asker: Asker) -> tuple[Any, ...]:
        state = empty_checkpoint()
        state["channel_values"] = {"said": asker.text}
        state["channel_versions"] = {"said": "1"}
        metadata: Any = {"source": "input", "step": 0, "of": asker.word}
        return state, metadata, {"said": "1"}

    def put(self, asker: Asker) -> Any:
        return self.saver.put(self.config(asker), *self.state(asker))

    async def aput(self, asker: Asker) -> Any:
        return await self.saver.aput(self.config(asker), *self.state(asker))

    def put_writes(self, asker: Asker) -> Any:
        config = self.saver.put(self.config(asker), *self.state(asker))
        config["configurable"]["user_id"] = asker.user
        return self.saver.put_writes(config, [("said", asker.text)], "task")

    async def aput_writes(self, asker: Asker) -> Any:
        config = await self.saver.aput(self.config(asker), *self.state(asker))
        config["configurable"]["user_id"] = asker.user
        return await self.saver.aput_writes(config, [("said", asker.text)], "task")

    def get_tuple(self, asker: Asker) -> Any:
        return self.saver.get_tuple(self.config(asker))

    async def aget_tuple(self, asker: Asker) -> Any:
        return await self.saver.aget_tuple(self.config(asker))

    def list(self, asker: Asker) -> Any:
        return list(self.saver.list(self.config(asker), limit=3))

    async def alist(self, asker: Asker) -> Any:
        return [one async for one in self.saver.alist(self.config(asker), limit=3)]

    def get_delta_channel_history(self, asker: Asker) -> Any:
        config = self.config(asker)
        return self.saver.get_delta_channel_history(config=config, channels=["said"])

    async def aget_delta_channel_history(self, asker: Asker) -> Any:
        config = self.config(asker)
        return await self.saver.aget_delta_channel_history(config=config, channels=["said"])


def test_no_call_of_the_saver_hands_out_what_is_of_another_user(memory: Memory) -> None:
    calls = SaverCalls(memory)
    cases = {
        name: case
        for name, case in inspect.getmembers(calls, inspect.ismethod)
        if name not in ("__init__", "thread", "config", "state")
    }

    seen = ask(cases, 1_000)

    check(seen, "put", "aput", "put_writes", "aput_writes", "get_delta_channel_history",
          "aget_delta_channel_history")  # fmt: skip
    assert seen.errors["get_tuple: InvalidRecordError"] > 10


def test_no_agent_tool_or_node_shows_what_is_of_another_user(memory: Memory) -> None:
    tools = {one.name: one for one in memory_tools(memory, policy=POLICY)}
    recall, remember = recall_hook(memory), remember_node(memory)
    retriever = MemoryRetriever(memory=memory)
    middleware = MemoryMiddleware(memory, policy=POLICY)

    def agent(asker: Asker) -> Any:
        model = ScriptedModel(f"{asker.word} likes tea")
        made = create_agent(model, middleware=[middleware])
        said = {"messages": [HumanMessage(f"What do I drink? {asker.text}")]}
        answer = made.invoke(said, config_of(asker))
        return [model.shown, str(answer)]

    async def aagent(asker: Asker) -> Any:
        model = ScriptedModel(f"{asker.word} likes tea")
        made = create_agent(model, middleware=[middleware])
        said = {"messages": [HumanMessage(f"What do I drink? {asker.text}")]}
        answer = await made.ainvoke(said, config_of(asker))
        return [model.shown, str(answer)]

    def search_memory(asker: Asker) -> Any:
        keywords = {"keywords": [word_of(asker.other), "tea"], "limit": 5}
        return tools["search_memory"].invoke(keywords, config_of(asker))

    def add_memory(asker: Asker) -> Any:
        given = {"thinking": "", "content": [asker.text]}
        return tools["add_memory"].invoke(given, config_of(asker))

    def change(asker: Asker) -> Any:
        # Perhaps shown to the other before, and never to this one.
        there = memory.search(asker.query, scope_of(asker.other), top_k=1)
        search_memory(Asker(asker.other, asker.user, asker.number, asker.random))
        memory_id = there[0].record.id if there else "none"
        given = {"memory_id": memory_id, "text": asker.text}
        before = [one.text for one in memory.get_many([memory_id], scope_of(asker.other))]
        answers = [
            tools["update_memory"].invoke(given, config_of(asker)),
            tools["forget_memory"].invoke({"memory_id": memory_id}, config_of(asker)),
        ]
        after = [one.text for one in memory.get_many([memory_id], scope_of(asker.other))]
        assert before == after or asker.user == asker.other
        return answers

    def recalled(asker: Asker) -> Any:
        messages = [HumanMessage("Who drinks tea?")]
        return recall.invoke(messages, config_of(asker))

    def remembered(asker: Asker) -> Any:
        return remember.invoke({"messages": [HumanMessage(asker.text)]}, config_of(asker))

    def retrieved(asker: Asker) -> Any:
        where = make_filter(asker.random) if asker.random.random() < 0.3 else None
        found = retriever.model_copy(update={"where": where})
        return found.invoke(asker.query, config_of(asker))

    cases = [agent, aagent, search_memory, add_memory, change, recalled, remembered, retrieved]
    seen = ask({one.__name__: one for one in cases}, 500)

    check(seen, "remembered", "change")
    assert not any("AssertionError" in one for one in seen.errors), seen.errors


def test_a_note_of_hostile_memories_is_one_block(memory: Memory) -> None:
    fill(memory)
    middleware, recall = MemoryMiddleware(memory), recall_hook(memory)
    for number in range(len(TEXTS)):
        config: Any = {"configurable": {"user_id": owner_of(number).user_id}}
        said = [HumanMessage("What do you know about me?")]
        model = ScriptedModel("Much.")

        create_agent(model, middleware=[middleware]).invoke({"messages": said}, config)
        recalled = recall.invoke(said, config)

        check_note(model.shown, middleware.policy, f"zebra{number}x")
        check_note("\n".join(one.text for one in recalled), Policy(), f"zebra{number}x")
