"""Users of Strands' parts who are after others': agents, tools, a store, sessions, a storage."""

import json
from typing import Any, get_args

from strands import Agent
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from commonplace import Memory, Policy, Scope
from commonplace.agents.policy import TOOL_NAMES
from commonplace_strands import (
    CommonplaceMemoryStore,
    CommonplaceSessionRepository,
    CommonplaceStorage,
    ExtraTool,
    MemoryPlugin,
    memory_tools,
)
from commonplace_strands.mem0_memory import TOOL_SPEC, Mem0MemoryTool
from commonplace_strands.testing import ScriptedModel

from ..isolation.asking import Asker, Case, ask, check, scope_of, word_of
from ..isolation.poison import TEXTS, check_note, fill, owner_of

ALL = Policy(tools=TOOL_NAMES)
EXTRA = get_args(ExtraTool)


def id_of_other(memory: Memory, asker: Asker) -> str:
    """Find a record of whom the asker is after."""
    found = memory.search(asker.query, scope_of(asker.other), top_k=1)
    return found[0].record.id if found else "none"


def tool_cases(memory: Memory) -> dict[str, Case]:
    """Make a case of each tool, called by an agent's program for a user."""
    agent = Agent(
        model=ScriptedModel(),
        tools=memory_tools(memory, policy=ALL, extra_tools=EXTRA, consent=False),
        callback_handler=None,
    )
    cursors = [None]

    def case(name: str) -> Case:
        def call(asker: Asker) -> Any:
            memory_id = id_of_other(memory, asker)
            given: dict[str, dict[str, Any]] = {
                "search_memory": {"keywords": [word_of(asker.other), "tea"]},
                "add_memory": {"thinking": "", "content": [asker.text]},
                "update_memory": {"memory_id": memory_id, "text": asker.text},
                "forget_memory": {"memory_id": memory_id},
                "drop_instruction": {"memory_id": memory_id},
                "list_memories": {"cursor": asker.random.choice(cursors[-9:])},
                "get_memory": {"memory_id": memory_id},
                "memory_history": {"memory_id": memory_id},
                "memory_relations": {},
            }
            answer = getattr(agent.tool, name)(**given[name], user_id=asker.user)
            for content in answer["content"]:
                cursors.append(content.get("json", {}).get("cursor"))
            return [str(one) for one in answer["content"]]

        return call

    return {name: case(name) for name in (*ALL.tools, *EXTRA)}


def test_no_agent_or_tool_shows_what_is_of_another_user(memory: Memory) -> None:
    plugin = MemoryPlugin(memory, policy=ALL, extra_tools=EXTRA)
    for number, user in enumerate(("a%", "a_b", "Bob", "bob")):
        memory.add(f"{word_of(user)} drinks tea, first {number}", scope_of(user))

    def agent(asker: Asker) -> Any:
        model = ScriptedModel(f"{asker.word} likes tea")
        made = Agent(model=model, plugins=[plugin], callback_handler=None)
        made(f"What do I drink? {asker.text}", invocation_state={"user_id": asker.user})
        return [model.shown, str(made.messages)]

    async def aagent(asker: Asker) -> Any:
        model = ScriptedModel("I see.")
        made = Agent(model=model, plugins=[plugin], callback_handler=None)
        await made.invoke_async("Who drinks tea?", invocation_state={"user_id": asker.user})
        return [model.shown, str(made.messages)]

    cases: dict[str, Case] = {"agent": agent, "aagent": aagent, **tool_cases(memory)}

    seen = ask(cases, 500)

    check(seen, "memory_relations", "update_memory", "forget_memory", "drop_instruction")


def test_no_store_session_or_storage_hands_out_what_is_of_another_user(memory: Memory) -> None:
    def store(asker: Asker) -> CommonplaceMemoryStore:
        return CommonplaceMemoryStore(memory, user_id=asker.user)

    async def store_add(asker: Asker) -> Any:
        return await store(asker).add(asker.text, {"of": asker.word})

    async def store_add_messages(asker: Asker) -> Any:
        return await store(asker).add_messages(
            [{"role": "user", "content": [{"text": asker.text}]}]
        )

    async def store_search(asker: Asker) -> Any:
        return await store(asker).search(asker.query)

    def storage(asker: Asker) -> CommonplaceStorage:
        return CommonplaceStorage(memory, user_id=asker.user)

    def key(asker: Asker) -> str:
        session = asker.random.choice(("s", "s1", f"of {word_of(asker.user)}"))
        return asker.random.choice((f"{session}/scopes/agent/a/x", session, "a"))

    async def storage_write(asker: Asker) -> Any:
        return await storage(asker).write(key(asker), asker.text.encode())

    async def storage_read(asker: Asker) -> Any:
        return str(await storage(asker).read(key(asker)))

    async def storage_list(asker: Asker) -> Any:
        return await storage(asker).list(asker.random.choice(("", "of", "s")))

    async def storage_search(asker: Asker) -> Any:
        return await storage(asker).search("drinks tea")

    async def storage_delete(asker: Asker) -> Any:
        return await storage(asker).delete(key(asker)) if asker.number % 5 == 0 else None

    def sessions(asker: Asker) -> tuple[CommonplaceSessionRepository, str]:
        name = asker.random.choice(("s", "s1", asker.other))
        repository = CommonplaceSessionRepository(memory, user_id=asker.user)
        if repository.read_session(name) is None:
            repository.create_session(Session(session_id=name, session_type=SessionType.AGENT))
            state = SessionAgent(
                agent_id="a", state={"of": asker.word}, conversation_manager_state={}
            )
            repository.create_agent(name, state)
        return repository, name

    def session_write(asker: Asker) -> Any:
        repository, name = sessions(asker)
        said: Any = {"role": "user", "content": [{"text": asker.text}]}
        return repository.create_message(name, "a", SessionMessage.from_message(said, asker.number))

    def session_messages(asker: Asker) -> Any:
        repository, name = sessions(asker)
        return repository.list_messages(name, "a")

    def session_agent(asker: Asker) -> Any:
        repository, name = sessions(asker)
        return repr(repository.read_agent(name, "a"))

    def session_delete(asker: Asker) -> Any:
        repository, name = sessions(asker)
        return repository.delete_session(name) if asker.number % 5 == 0 else None

    made = [
        store_add, store_add_messages, store_search, storage_write, storage_read, storage_list,
        storage_search, storage_delete, session_write, session_messages, session_agent,
        session_delete,
    ]  # fmt: skip
    seen = ask({one.__name__: one for one in made}, 1_500)

    check(seen, "store_add_messages", "storage_write", "storage_delete", "session_write",
          "session_delete")  # fmt: skip
    assert not any(SessionException.__name__ in one for one in seen.errors), seen.errors


def test_no_action_of_mem0_memory_shows_what_is_of_another_user(memory: Memory) -> None:
    actions = TOOL_SPEC["inputSchema"]["json"]["properties"]["action"]["enum"]

    def case(action: str) -> Case:
        def call(asker: Asker) -> Any:
            tool: Any = Mem0MemoryTool(user_id=asker.user, memory=memory).mem0_memory
            given = {
                "action": action,
                "content": asker.text,
                "query": asker.query,
                "memory_id": id_of_other(memory, asker),
                "user_id": asker.other,  # as a model may try
            }
            asked = {"toolUseId": "t", "name": "mem0_memory", "input": given}
            return [json.dumps(one) for one in tool(asked)["content"]]

        return call

    seen = ask({action: case(action) for action in actions}, 500)

    check(seen, "delete")
    for user in ("a%", "Bob", "bob"):
        mine = memory.list(Scope(user_id=user)).records
        assert all(word_of(user) in one.text for one in mine)


def test_a_note_of_hostile_memories_is_one_block(memory: Memory) -> None:
    fill(memory)
    plugin = MemoryPlugin(memory)
    for number in range(len(TEXTS)):
        model = ScriptedModel("Much.")
        agent = Agent(model=model, plugins=[plugin], callback_handler=None)
        agent("What do you know about me?", invocation_state={"user_id": owner_of(number).user_id})

        check_note(model.shown, plugin.policy, f"zebra{number}x")
