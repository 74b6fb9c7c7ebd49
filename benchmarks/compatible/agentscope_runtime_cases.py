"""agentscope-runtime's `InMemoryMemoryService` beside `commonplace_agentscope.runtime_service`."""

import warnings

from commonplace import Memory
from commonplace.testing.fakes import HashEmbedder

from . import Awaited, Case, Section, public

with warnings.catch_warnings(action="ignore"):  # it is deprecated
    from agentscope_runtime.engine.schemas.agent_schemas import Message, TextContent
    from agentscope_runtime.engine.services.memory import InMemoryMemoryService
    from agentscope_runtime.engine.services.memory import MemoryService as Base

    from commonplace_agentscope.runtime_service import MemoryService


def theirs(folder, stack):
    return Awaited(InMemoryMemoryService(), "")


def ours(folder, stack):
    memory = stack.enter_context(Memory.open(str(folder), embedder=HashEmbedder()))
    return Awaited(MemoryService(memory), "")


def say(text, role="user", **more):
    return Message(role=role, content=[TextContent(text=text)], **more)


def texts(found):
    return [one.content[0].text for one in found]


def started(do):
    """Run on a started service with three messages of alice and one of bob."""

    def run(s):
        s.start()
        s.add_memory("alice", [say("My cat is called Miso.")], "b")
        s.add_memory("alice", [say("My dog is called Rex."), say("Good name.", "assistant")], "a")
        s.add_memory("alice", [say("I like tea.")])
        s.add_memory("bob", [say("My cat is called Momo.")])
        return do(s)

    return run


def looked(text, *given, who="alice"):
    return started(lambda s: texts(s.search_memory(who, [say(text)], *given)))


def deleted(*given):
    def do(s):
        s.delete_memory(*given)
        return texts(s.list_memory("alice")), texts(s.list_memory("bob"))

    return started(do)


def twice(s):
    message = say("I like tea.")
    s.add_memory("eve", [message])
    s.add_memory("eve", [message])
    return len(s.list_memory("eve"))


def restarted(s):
    s.stop()
    s.start()
    return len(s.list_memory("alice"))


def shown(s):
    one = s.search_memory("alice", [say("Miso")], {"top_k": 1})[0]
    return one.type, one.role, one.content[0].type


CASES = [
    Case("start(); health(); stop()", lambda s: [s.health(), s.start(), s.health(), s.stop(), s.health()]),
    Case("add_memory(...) before start()", lambda s: s.add_memory("alice", [say("tea")])),
    Case("stop(), start(): what was kept", started(restarted), "stays: call `delete_memory(user_id)` for an empty one"),
    Case("add_memory(user_id, messages, session_id); list_memory(user_id)", started(lambda s: texts(s.list_memory("alice")))),
    Case("add_memory(user_id, [])", started(lambda s: (s.add_memory("eve", []), s.list_memory("eve")))),
    Case("add_memory(...) of the same message", started(twice), "is stored once"),
    Case("list_memory(user_id) of a user who is unknown", started(lambda s: s.list_memory("nobody"))),
    Case('list_memory(..., filters={"page_num": 2, "page_size": 2})', started(lambda s: texts(s.list_memory("alice", {"page_num": 2, "page_size": 2})))),
    Case('list_memory(..., filters={"page_num": 0})', started(lambda s: texts(s.list_memory("alice", {"page_num": 0}))), "pages start at 1; there 0 is always empty"),
    Case("search_memory(user_id, messages)", looked("Miso"), "best first, by meaning, at most 10: pass `score` in the filters for a least score; there all that share a word"),
    Case("search_memory(...): a message of the answer", started(shown)),
    Case('search_memory(..., filters={"top_k": 1})', looked("My cat Miso", {"top_k": 1}), "the best; there the newest that shares a word"),
    Case('search_memory(..., filters={"top_k": 0})', looked("My cat Miso", {"top_k": 0}), "nothing, and a warning is logged; there all"),
    Case("search_memory(...) of nothing: [], a blank text, an unknown user", started(lambda s: [s.search_memory("alice", []), s.search_memory("alice", [say("")]), s.search_memory("nobody", [say("cat")])])),
    Case("search_memory(...): a message that is no text", started(lambda s: s.search_memory("alice", [say("cat", type="plugin_call")]))),
    Case("delete_memory(user_id, session_id)", deleted("alice", "b")),
    Case("delete_memory(user_id)", deleted("alice")),
    Case("delete_memory(...) of what is not there", deleted("alice", "no")),
]  # fmt: skip

RUNTIME = Section(
    name="agentscope_runtime",
    title="agentscope-runtime 1.0.x: memory service",
    packages=("agentscope-runtime",),
    columns={"`InMemoryMemoryService`": (theirs, ours)},
    cases=CASES,
    interface={
        name: one
        for name, one in public(InMemoryMemoryService).items()
        if name in (*vars(Base), "start", "stop", "health")
    },
)
SECTIONS = {RUNTIME.name: RUNTIME}
