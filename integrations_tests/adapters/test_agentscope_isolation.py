"""Users of AgentScope's agents who are after others' memories: replies, and every tool."""

import json
from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.message import UserMsg
from agentscope.state import AgentState
from agentscope.tool import Toolkit

from commonplace import Memory, Policy, Scope
from commonplace.agents import ToolName
from commonplace_agentscope import CommonplaceMiddleware
from commonplace_agentscope.testing import ScriptedModel as ShownModel

from ..isolation.asking import Asker, Case, ask, check, scope_of, word_of
from ..isolation.poison import TEXTS, check_note, fill, owner_of
from .test_agentscope import ScriptedModel, say, use

TOOLS: tuple[ToolName, ...] = ("search_memory", "add_memory", "update_memory", "forget_memory")


def test_no_reply_or_tool_shows_what_is_of_another_user(memory: Memory) -> None:
    middleware = CommonplaceMiddleware(
        memory, user_id=lambda agent: agent.name, policy=Policy(tools=TOOLS)
    )

    async def reply(asker: Asker, script: Any, text: str) -> Any:
        model = ScriptedModel(script)
        toolkit = Toolkit(tools=await middleware.list_tools())
        agent = Agent(asker.user, "sys", model, toolkit=toolkit, middlewares=[middleware])
        answer = await agent.reply(UserMsg("somebody", text))
        return [json.dumps(model.seen), str(answer)]

    async def turn(asker: Asker) -> Any:
        return await reply(asker, [say(f"{asker.word} likes tea")], f"I say {asker.text}")

    async def question(asker: Asker) -> Any:
        return await reply(asker, [say("Tea.")], "Who drinks tea?")

    async def shared(asker: Asker) -> Any:
        """Go on in the conversation of another user, as a program by mistake might."""
        other = Asker(asker.other, asker.user, asker.number, asker.random)
        state = AgentState()
        toolkit = Toolkit(tools=await middleware.list_tools())
        for one in (other, asker):
            model = ScriptedModel([say("Tea.")])
            agent = Agent(
                one.user, "sys", model, toolkit=toolkit, middlewares=[middleware], state=state
            )
            await agent.reply(UserMsg("somebody", "Who drinks tea?"))
        return json.dumps(model.seen)

    def tool(name: str) -> Case:
        async def call(asker: Asker) -> Any:
            found = memory.search(asker.query, scope_of(asker.other), top_k=1)
            memory_id = found[0].record.id if found else "none"
            arguments: dict[str, dict[str, Any]] = {
                "search_memory": {"keywords": [asker.random.choice(("tea", asker.word))]},
                "add_memory": {"thinking": "", "content": [asker.text]},
                "update_memory": {"memory_id": memory_id, "text": f"{asker.text} now"},
                "forget_memory": {"memory_id": memory_id},
            }
            script = [use(name, **arguments[name]), say("Done.")]
            return await reply(asker, script, f"Please do it. {asker.word}")

        return call

    cases: dict[str, Case] = {"turn": turn, "question": question, "shared": shared}
    cases |= {name: tool(name) for name in TOOLS}

    seen = ask(cases, 350)

    check(seen)
    for user in ("a%", "Bob", "bob"):
        mine = memory.list(scope_of(user), limit=1000).records
        assert all(word_of(user) in one.text for one in mine if "number" in one.text)


class Failing(ShownModel):
    """A model that fails."""

    async def _call_api(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no model")


@pytest.mark.parametrize("first", ["alice", None])
@pytest.mark.parametrize("is_loaded", [False, True])
async def test_what_a_failed_reply_left_is_not_the_next_users(
    memory: Memory, first: str | None, is_loaded: bool
) -> None:
    user = first
    middleware = CommonplaceMiddleware(user_id=lambda _: user, client=memory)
    agent = Agent("Friday", "sys", Failing(), middlewares=[middleware])
    with pytest.raises(RuntimeError, match="no model"):
        await agent.reply(UserMsg("somebody", "My salary is 5000."))
    state = agent.state
    if is_loaded:
        state = AgentState.model_validate_json(state.model_dump_json())
    model = ShownModel("Noted.")
    agent = Agent("Friday", "sys", model, middlewares=[middleware], state=state)
    user = "bob"

    await agent.observe(UserMsg("somebody", "I like tea."))
    await agent.reply()

    memory.flush()
    said = [one.text for one in memory.list(Scope(user_id="bob")).records if one.role == "user"]
    assert said == ["I like tea."]
    assert list(state.middle_context) == []


async def test_what_a_failed_reply_left_stays_its_users(memory: Memory) -> None:
    middleware = CommonplaceMiddleware(user_id="alice", client=memory)
    agent = Agent("Friday", "sys", Failing(), middlewares=[middleware])
    with pytest.raises(RuntimeError, match="no model"):
        await agent.reply(UserMsg("somebody", "My salary is 5000."))
    agent.model = ShownModel("Noted.")

    await agent.reply()

    memory.flush()
    said = [(one.role, one.text) for one in memory.list(Scope(user_id="alice")).records]
    assert sorted(said) == [("assistant", "Noted."), ("user", "My salary is 5000.")]


async def test_a_note_of_hostile_memories_is_one_block(memory: Memory) -> None:
    fill(memory)
    middleware = CommonplaceMiddleware(user_id=lambda agent: agent.name, client=memory)
    for number in range(len(TEXTS)):
        model = ShownModel("Much.")
        user = str(owner_of(number).user_id)
        agent = Agent(user, "sys", model, middlewares=[middleware])

        await agent.reply(UserMsg("somebody", "What do you know about me?"))

        check_note(model.shown, middleware.policy, f"zebra{number}x")
