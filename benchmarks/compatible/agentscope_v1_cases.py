"""AgentScope 1.x's `Mem0LongTermMemory`, on mem0, beside `commonplace_agentscope.v1`."""

import json
import tempfile
from pathlib import Path

from agentscope.agent import ReActAgent
from agentscope.embedding import EmbeddingModelBase, EmbeddingResponse
from agentscope.formatter import OpenAIChatFormatter
from agentscope.memory import LongTermMemoryBase, Mem0LongTermMemory
from agentscope.message import Msg, TextBlock, ToolUseBlock
from agentscope.model import ChatModelBase, ChatResponse
from mem0.vector_stores.configs import VectorStoreConfig

from commonplace import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace_agentscope.v1 import LongTermMemory

from . import Awaited, Case, Section, public

FACT = '{"facts": ["Likes tea"], "memory": [{"id": "0", "text": "Likes tea", "event": "ADD"}]}'


class Model(ChatModelBase):
    """Answers from its script, then always the same; what it was shown is in `seen`."""

    def __init__(self, script=(), always="All right."):
        super().__init__("scripted", False)
        self.script, self.always, self.seen = list(script), always, []

    async def __call__(self, messages, tools=None, tool_choice=None, **more):
        self.seen.append(json.dumps([messages, tools]))
        answer = self.script.pop(0) if self.script else [TextBlock(type="text", text=self.always)]
        return ChatResponse(content=answer)


class Embedding(EmbeddingModelBase):
    supported_modalities = ("text",)

    def __init__(self):
        super().__init__("fake", 64)

    async def __call__(self, text, **more):
        found = HashEmbedder(64).embed(text, purpose="document")
        return EmbeddingResponse(embeddings=[[abs(one) for one in vector] for vector in found])


def given(folder):
    place = {"path": str(folder), "embedding_model_dims": 64}
    return {
        "user_name": "alice",
        "model": Model(always=FACT),
        "embedding_model": Embedding(),
        "vector_store_config": VectorStoreConfig(provider="qdrant", config=place),
    }


def theirs(folder, stack):
    made = Mem0LongTermMemory(**given(folder / "q"))
    stack.callback(made.long_term_working_memory.vector_store.client.close)
    return Awaited(made, "")


def ours(folder, stack):
    memory = stack.enter_context(Memory.open(str(folder), embedder=HashEmbedder()))
    return Awaited(LongTermMemory(memory, user_id="alice"), "")


def said(text="Likes tea", name="alice", role="user"):
    return Msg(name, text, role)


def text(answer):
    return "".join(block["text"] for block in answer.content)


def recorded(do, *messages):
    def run(m):
        m.record([*messages] or [said()])
        return do(m)

    return run


def found(m, question="And what about tea?"):
    return "Likes tea" in m.retrieve(said(question))


def kept(m):
    answer = m.record_to_memory(thinking="so", content=["Likes tea"])
    return type(answer).__name__, "Success" in text(answer), found(m)


def searched(**more):
    def run(m):
        m.record_to_memory(thinking="so", content=["Likes tea"])
        answer = m.retrieve_from_memory(**{"keywords": ["Likes tea"], **more})
        return type(answer).__name__, "Likes tea" in text(answer)

    return run


def failing(method, *given):
    async def fail(*given, **more):
        raise RuntimeError("down")

    def run(m):
        target = getattr(m._of, "long_term_working_memory", None) or m._of._memory.lazy.get()
        for name in ("search", "add", "asearch", "aadd"):
            if hasattr(target, name):
                setattr(target, name, fail)
        answer = getattr(m, method)(*given)
        return type(answer).__name__, answer if isinstance(answer, str) else None

    return run


def agent_of(m, mode, script=()):
    agent = ReActAgent(
        name="bot", sys_prompt="sys", model=Model(script), formatter=OpenAIChatFormatter(),
        long_term_memory=m._of, long_term_memory_mode=mode,
    )  # fmt: skip
    agent.set_console_output_enabled(False)
    return agent


def answered(mode, script=()):
    def run(m):
        m.record([said()])
        agent = agent_of(m, mode, script)
        m.run(agent(said("And what about tea?")))
        seen = agent.model.seen[-1]
        return "<long_term_memory>" in seen, '"retrieve_from_memory"' in seen

    return run


def stored_by(mode):
    def run(m):
        m.run(agent_of(m, mode)(said("Likes tea")))
        return found(m)

    return run


def used(m):
    call = ToolUseBlock(
        type="tool_use",
        id="c",
        name="record_to_memory",
        input={"thinking": "so", "content": ["Likes tea"]},
    )
    agent = agent_of(m, "agent_control", [[call]])
    m.run(agent(said("Remember it.")))
    return found(m)


def registered(m):
    m._of.x = 1
    m.register_state("x")
    return m.state_dict()["x"]


def opened(m):
    with tempfile.TemporaryDirectory() as folder:
        return bool(type(m._of)(**given(Path(folder))))


CASES = [
    Case("Mem0LongTermMemory(agent_name=, user_name=, run_name=, model=, embedding_model=, vector_store_config=, mem0_config=)", opened, "`TypeError` for the last two: pass `memory=`, a path or `Memory.open(...)` with its settings; the others are taken"),
    Case("record(msgs); retrieve(msg)", recorded(found)),
    Case("record(...) returns", lambda m: [*m.record([said()])]),
    Case("record([])", lambda m: bool(m.record([]))),
    Case("record([None])", lambda m: (m.record([None, said()]), found(m))[1]),
    Case("retrieve(msg, limit)", recorded(lambda m: "Likes tea" in m.retrieve(said("And tea?"), limit=1))),
    Case("retrieve([several])", recorded(lambda m: "Likes tea" in m.retrieve([said("tea?"), said("And tea?")]))),
    Case("retrieve(None)", lambda m: m.retrieve(None), "an empty text; there a `TypeError`"),
    Case("retrieve(...) of an empty memory", lambda m: m.retrieve(said())),
    Case("retrieve(...): the text", recorded(lambda m: m.retrieve(said("And tea?")).splitlines()[0]), "opens with the header of a note, `Policy(header=...)`; there lines alone"),
    Case("record_to_memory(thinking, content)", kept),
    Case("record_to_memory(thinking, [])", lambda m: type(m.record_to_memory(thinking="so", content=[])).__name__),
    Case("retrieve_from_memory(keywords)", searched()),
    Case("retrieve_from_memory(keywords, limit)", searched(limit=1)),
    Case("retrieve_from_memory([])", searched(keywords=[])),
    Case("the memory fails in `retrieve`", failing("retrieve", said()), "an empty text, logged and counted, and the agent answers; there its reply fails"),
    Case("the memory fails in `record`", failing("record", [said()]), "is logged and counted, and written with the next reply; there the reply fails"),
    Case("the memory fails in `record_to_memory`", failing("record_to_memory", "so", ["Likes tea"])),
    Case("the memory fails in `retrieve_from_memory`", failing("retrieve_from_memory", ["tea"])),
    Case('ReActAgent(long_term_memory_mode="static_control")', answered("static_control")),
    Case('ReActAgent(long_term_memory_mode="agent_control")', answered("agent_control")),
    Case('ReActAgent(long_term_memory_mode="both")', answered("both")),
    Case("the reply is kept by a `ReActAgent`", stored_by("static_control")),
    Case("a `ReActAgent` calls record_to_memory", used),
    Case("state_dict(); load_state_dict(state_dict, strict=True)", lambda m: m.load_state_dict(m.state_dict(), strict=True)),
    Case("register_state(attr_name, custom_to_json, custom_from_json)", registered),
]  # fmt: skip

V1 = Section(
    name="agentscope_v1",
    title="AgentScope 1.x: long-term memory",
    packages=("agentscope", "mem0ai"),
    columns={"`Mem0LongTermMemory`": (theirs, ours)},
    cases=CASES,
    interface=public(LongTermMemoryBase),
)
SECTIONS = {V1.name: V1}
