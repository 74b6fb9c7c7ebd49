"""AgentScope 2's `Mem0Middleware`, on mem0, beside `CommonplaceMiddleware`."""

import asyncio
import json

from agentscope.agent import Agent
from agentscope.credential import CredentialBase
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import TextBlock, ToolCallBlock, UserMsg
from agentscope.middleware import Mem0Middleware, MiddlewareBase
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.tool import Toolkit

from commonplace import Memory
from commonplace_agentscope import CommonplaceMiddleware

from . import Case, Section, tried
from .mem0_cases import Ours
from .mem0_cases import theirs as mem0_of


class Model(ChatModelBase):
    """Answers from its script, then always the same; what it was shown is in `seen`."""

    def __init__(self, script=()):
        super().__init__(
            CredentialBase(), "scripted", self.Parameters(), stream=False, context_size=32768
        )
        self.formatter, self.script, self.seen = OpenAIChatFormatter(), list(script), []

    async def _call_api(self, model_name, messages, tools=None, tool_choice=None, **more):
        self.seen.append(json.dumps(await self.formatter.format(messages)))
        answer = self.script.pop(0) if self.script else [TextBlock(text="All right.")]
        return ChatResponse(content=answer, is_last=True)


class Kit:
    """Makes a middleware on one memory, as often as a case wants, and runs its loop."""

    def __init__(self, kind, client, stack):
        self.kind, self.client, self.loop = kind, client, asyncio.new_event_loop()
        stack.callback(self.loop.close)

    def make(self, **more):
        return self.kind(**{"user_id": "alice", "client": self.client, **more})

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)


def theirs(folder, stack):
    return Kit(Mem0Middleware, mem0_of("AsyncMemory")(folder, stack)._of, stack)


def ours(folder, stack):
    memory = stack.enter_context(Memory.open(str(folder), embedder=Ours()))
    return Kit(CommonplaceMiddleware, memory, stack)


def use(tool, **arguments):
    return [ToolCallBlock(id="c1", name=tool, input=json.dumps(arguments))]


async def reply(middleware, text, script=()):
    toolkit = Toolkit(tools=await middleware.list_tools())
    agent = Agent("bot", "sys", Model(script), toolkit=toolkit, middlewares=[middleware])
    await agent.reply(UserMsg("alice", text))
    return agent


def told(k, *texts, **more):
    """Remember texts of alice by the tool."""
    k.run(reply(k.make(**more), "Remember.", [use("add_memory", thinking="so", content=[*texts])]))


def shown(question="tea?", kept="Likes tea", **more):
    def run(k):
        told(k, kept)
        seen = k.run(reply(k.make(**more), question)).model.seen[-1]
        return kept in seen, "## Relevant memories" in seen, "search_memory" in seen

    return run


def written(**more):
    def run(k):
        k.run(reply(k.make(**more), "Likes tea"))
        k.run(asyncio.sleep(0.5))
        return (
            "Likes tea"
            in k.run(reply(k.make(mode="static_control"), "tea"))
            .model.seen[-1]
            .split("Relevant")[-1]
        )

    return run


def in_context(k):
    told(k, "Likes tea")
    agent = k.run(reply(k.make(mode="static_control"), "tea?"))
    return [one.name for one in agent.state.context if "Relevant" in one.model_dump_json()]


def headed(k):
    told(k, "Likes tea")
    given = {"memory_section_header": "# Known", "memory_section_intro": "Of alice:"}
    return "# Known\\nOf alice:\\n- " in k.run(reply(k.make(**given), "tea?")).model.seen[-1]


def best(k, **more):
    told(k, "Likes tea", "has a green boat")
    seen = k.run(reply(k.make(top_k=1, mode="static_control", **more), "green tea")).model.seen[-1]
    return seen.split("Relevant")[-1].count("\\n- ")


def of_agent(search):
    def run(k):
        told(k, "Likes tea", agent_id="a")
        made = k.make(agent_id="b", mode="static_control", scope_search_by_agent=search)
        return "Likes tea" in k.run(reply(made, "tea?")).model.seen[-1]

    return run


def tools(k, **more):
    found = k.run(k.make(**more).list_tools())
    return sorted(
        (one.name, one.is_read_only, sorted(one.input_schema["required"])) for one in found
    )


def searched(**arguments):
    def run(k):
        told(k, "Likes tea")
        seen = k.run(
            reply(k.make(mode="agent_control"), "Look.", [use("search_memory", **arguments)])
        ).model.seen[-1]
        return "Likes tea" in seen

    return run


def added(**arguments):
    def run(k):
        seen = k.run(
            reply(k.make(mode="agent_control"), "Keep.", [use("add_memory", **arguments)])
        ).model.seen[-1]
        return "Successfully recorded" in seen, "ERROR" in seen.upper()

    return run


def failing(k):
    async def fail(*given, **more):
        raise RuntimeError("down")

    middleware = k.make()
    for name in ("search", "asearch", "add", "aadd"):
        if hasattr(k.client, name):
            setattr(k.client, name, fail)
    return len(k.run(reply(middleware, "tea?")).model.seen)


CASES = [
    Case("Mem0Middleware(user_id=, client=)", lambda k: bool(k.make())),
    Case('Mem0Middleware(user_id="")', lambda k: k.make(user_id="")),
    Case("Mem0Middleware(user_id=None)", lambda k: k.make(user_id=None)),
    Case("Mem0Middleware(client=mem0's AsyncMemory)", lambda k: bool(k.make(client=CLIENT())), "`TypeError`: pass `client=Memory.open(...)`, of commonplace, or `path=`"),
    Case("Mem0Middleware(mem0_config=)", lambda k: bool(k.make(mem0_config={"version": "v1.1"})), "leave it out: `path=`, or the settings of `client=Memory.open(...)`"),
    Case("Mem0Middleware(chat_model=) alone", lambda k: bool(k.make(client=None, chat_model=Model())), "works: embeddings are made offline"),
    Case("Mem0Middleware(mode=unknown)", lambda k: k.make(mode="no")),
    Case('mode="static_control": on_reply(agent, input_kwargs, next_handler)', shown(mode="static_control")),
    Case('mode="agent_control": on_system_prompt(agent, current_prompt)', shown(mode="agent_control")),
    Case('mode="both"', shown(mode="both")),
    Case("the note in `agent.state.context`", in_context),
    Case("the reply is kept, await_write=True", written(await_write=True)),
    Case("the reply is kept, await_write=False", written(await_write=False)),
    Case("memory_section_header=, memory_section_intro=", headed, "a line with the day stands between them, and a date before each memory: `Policy(times=False)`"),
    Case("tool_instructions=", lambda k: "Use the tools." in k.run(reply(k.make(tool_instructions="Use the tools."), "hi")).model.seen[-1]),
    Case("top_k=", best),
    Case("threshold=", lambda k: best(k, threshold=1.0)),
    Case("agent_id=, scope_search_by_agent=True", of_agent(True)),
    Case("agent_id=, scope_search_by_agent=False", of_agent(False)),
    Case("list_tools()", tools),
    Case('list_tools(), mode="static_control"', lambda k: tools(k, mode="static_control")),
    Case("search_memory(keywords, limit)", searched(keywords=["tea"], limit=2)),
    Case("search_memory([])", searched(keywords=[])),
    Case("add_memory(thinking, content)", added(thinking="so", content=["likes tea"])),
    Case("add_memory(thinking, [])", added(thinking="so", content=[]), "`Error recording memory: content=[] must not be empty.`, there that it is empty"),
    Case("the memory fails in `reply`", failing),
    Case("user_id=a function of the agent", lambda k: tried(lambda: len(k.run(reply(k.make(user_id=lambda agent: "bob"), "hi")).model.seen))),
]  # fmt: skip


class CLIENT:
    async def search(self, *given, **more): ...

    async def add(self, *given, **more): ...


MIDDLEWARE = Section(
    name="agentscope_v2",
    title="AgentScope 2.x: middleware",
    packages=("agentscope", "mem0ai"),
    columns={"`Mem0Middleware`": (theirs, ours)},
    cases=CASES,
    interface={"Mem0Middleware": lambda user_id, client, chat_model, mem0_config, mode: None}
    | {name: vars(MiddlewareBase)[name] for name in ("on_reply", "on_system_prompt", "list_tools")},
)
SECTIONS = {MIDDLEWARE.name: MIDDLEWARE}
