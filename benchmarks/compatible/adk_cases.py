"""ADK's memory and session services: stock ones beside ours."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.tools import load_memory, preload_memory
from google.genai.types import Content, FunctionCall, Part
from pydantic import Field

from commonplace import Memory
from commonplace_adk import CommonplaceMemoryService, CommonplaceSessionService

from . import Awaited, Case, Section, public, tried
from .mem0_cases import Ours

ALICE = {"app_name": "app", "user_id": "alice"}
BOB = {"app_name": "app", "user_id": "bob"}
OTHER = {"app_name": "other", "user_id": "alice"}


def memory_in(folder, stack):
    return stack.enter_context(Memory.open(str(folder), embedder=Ours()))


def said(text, author="user", **more):
    role = "user" if author == "user" else "model"
    content = Content(role=role, parts=[Part(text=text)])
    return Event(author=author, content=content, invocation_id="i", **more)


def texts(events):
    return [one.content.parts[0].text for one in events]


class Scripted(BaseLlm):
    """Answers what it was told to, and keeps what it was shown."""

    model: str = "scripted"
    script: list = Field(default_factory=list)
    shown: list = Field(default_factory=list)

    async def generate_content_async(self, llm_request, stream=False):
        parts = [part for one in llm_request.contents for part in one.parts]
        self.shown.append("\n".join(f"{part.text or part.function_response}" for part in parts))
        part = self.script.pop(0) if self.script else Part(text="I see.")
        yield LlmResponse(content=Content(role="model", parts=[part]))


def talk(services, text, script=(), tools=(), session="s", **more):
    """Take a turn of an agent on a memory service and a session service."""
    memories, sessions = services
    model = Scripted(script=[*script], shown=[])
    agent = LlmAgent(name="cook", model=model, tools=[*tools], **more)
    runner = Runner(
        agent=agent, app_name="app", session_service=sessions, memory_service=memories,
        auto_create_session=True,
    )  # fmt: skip

    async def turn():
        message = Content(role="user", parts=[Part(text=text)])
        answers = runner.run_async(user_id="alice", session_id=session, new_message=message)
        return [one async for one in answers]

    return turn(), model


# -- memory ----------------------------------------------------------------------------------------


def stock_memory(folder, stack):
    return Awaited(InMemoryMemoryService(), "")


def our_memory(folder, stack):
    return Awaited(CommonplaceMemoryService(memory_in(folder, stack)), "")


def told(do, **more):
    """Run with a session of alice of two turns."""

    def run(m):
        events = [said("My cat is called Miso."), said("Good name.", "cook")]
        session = Session(id="s", **ALICE, events=events)
        m.add_session_to_memory(session)
        return do(m, session)

    return run


def find(m, query="cat", **whose):
    found = m.search_memory(query=query, **(whose or ALICE)).memories
    return [one.content.parts[0].text for one in found]


def grown(m, session):
    session.events.append(said("My cat is five years old."))
    m.add_session_to_memory(session)
    m.add_session_to_memory(session)
    return sorted(find(m))


def added(m, session):
    events = [session.events[0], said("My cat is five years old.")]
    m.add_events_to_memory(**ALICE, events=events, session_id="s", custom_metadata={"ttl": "1d"})
    return sorted(find(m))


def an_entry(m, session):
    [one] = m.search_memory(**ALICE, query="cat").memories
    return [one.author, one.content.role, one.content.parts[0].text, bool(one.timestamp)]


def deleted(m, session):
    [one] = m.search_memory(**ALICE, query="cat").memories
    m.delete_memory(**BOB, memory_id=one.id)
    left = find(m)
    m.delete_memory(**ALICE, memory_id=one.id)
    m.delete_memory(**ALICE, memory_id=None)
    m.add_session_to_memory(session)
    return left, "My cat is called Miso." in find(m)


def facts(m):
    content = Content(role="user", parts=[Part(text="Alice has a cat.")])
    m.add_memory(**ALICE, memories=[MemoryEntry(content=content)], custom_metadata={"a": 1})
    return find(m)


def on_agents(tool, script=()):
    def run(m):
        services = m._of, InMemorySessionService()
        m.run(talk(services, "My cat is called Miso.")[0])
        session = m.run(services[1].get_session(**ALICE, session_id="s"))
        m.add_session_to_memory(session)
        turn, model = talk(services, "And my cat?", script, [tool], session="t")
        m.run(turn)
        return "My cat is called Miso." in model.shown[-1]

    return run


MEMORY = [
    Case("add_session_to_memory(session); search_memory(app_name, user_id, query)", told(lambda m, s: find(m))),
    Case("add_session_to_memory(session) of one that grew, twice", told(grown)),
    Case("add_events_to_memory(app_name, user_id, events, session_id, custom_metadata)", told(added)),
    Case("add_memory(app_name, user_id, memories, custom_metadata)", facts,
         "facts are added; there `NotImplementedError`"),
    Case("search_memory(...): author, role and text of an entry", told(an_entry)),
    Case("search_memory(...) of another user, of another app", told(lambda m, s: [find(m, **BOB), find(m, **OTHER)])),
    Case("search_memory(...) of nothing", told(lambda m, s: find(m, ""))),
    Case("delete_memory(app_name, user_id, memory_id), then the session again", told(deleted)),
    Case("Agent(tools=[preload_memory])", on_agents(preload_memory)),
    Case("Agent(tools=[load_memory])", on_agents(
        load_memory, [Part(function_call=FunctionCall(name="load_memory", args={"query": "cat"}))])),
    Case('search_memory(user_id=" alice")', lambda m: find(m, app_name="app", user_id=" alice"),
         "`InvalidScopeError`, a `ValueError`: an id has no spaces around it"),
]  # fmt: skip


# -- sessions --------------------------------------------------------------------------------------


def stock_sessions(folder, stack):
    return Awaited(InMemorySessionService(), "")


def sql_sessions(folder, stack):
    made = Awaited(DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/sessions.db"), "")
    stack.callback(made.close)
    return made


def our_sessions(folder, stack):
    return Awaited(CommonplaceSessionService(memory_in(folder, stack)), "")


STATE = {"a": 1, "user:b": [2], "app:c": {"d": None}, "temp:e": 3}


def created(do, state=STATE):
    def run(s):
        return do(s, s.create_session(**ALICE, state=state, session_id="s"))

    return run


def read(s, whose=ALICE, **config):
    asked = GetSessionConfig(**config) if config else None
    return s.get_session(**whose, session_id="s", config=asked)


def changed(s, one):
    delta = {"a": None, "user:x": 1, "app:c": 2, "temp:y": 3}
    event = said("x", actions=EventActions(state_delta=delta))
    given = s.append_event(one, event)
    again = read(s)
    return [
        one.state, given.actions.state_delta, again.state, texts(again.events),
        s.create_session(**ALICE).state, s.create_session(**BOB).state,
        s.create_session(**OTHER).state, s.get_user_state(**ALICE), s.get_user_state(**BOB),
    ]  # fmt: skip


def six(do):
    def run(s, one):
        for number in range(6):
            s.append_event(one, said(str(number), timestamp=2e9 + number))
        return do(s)

    return created(run)


def listed(s, one):
    s.create_session(**ALICE, session_id="t")
    s.create_session(**BOB, session_id="s")
    s.create_session(**OTHER, session_id="s")
    s.append_event(one, said("x", timestamp=2e9))
    mine, all_ = (s.list_sessions(**who).sessions for who in (ALICE, {"app_name": "app"}))
    return [[(o.user_id, o.id, o.state, o.events) for o in found] for found in (mine, all_)]


def removed(s, one):
    s.append_event(one, said("x"))
    s.delete_session(**ALICE, session_id="s")
    s.delete_session(**ALICE, session_id="s")
    gone = read(s), tried(s.append_event, one, said("y"))
    return gone, s.create_session(**ALICE, session_id="s").events, s.get_user_state(**ALICE)


def stale(s, one):
    first, second = read(s), read(s)
    s.append_event(first, said("one", timestamp=2e9))
    return tried(s.append_event, second, said("two", timestamp=2e9 + 1)), texts(read(s).events)


def partial(s, one):
    given = s.append_event(one, said("half", partial=True))
    return given.partial, one.events, read(s).events


def twice(s, one):
    event = said("x")
    return [s.append_event(one, event).id == event.id, tried(s.append_event, one, event).id == event.id,
            len(read(s).events)]  # fmt: skip


def rich(s, one):
    s.append_event(one, said("x", actions=EventActions(state_delta={"when": len, "raw": {1}})))
    state = read(s).state
    return [isinstance(state["when"], str), isinstance(state["raw"], list)]


def restarted(s):
    services = InMemoryMemoryService(), s._of
    for text in ("one", "two"):
        turn, model = talk(services, text, output_key="last")
        s.run(turn)
    one = read(s)
    return model.shown, [(o.author, o.content.parts[0].text) for o in one.events], one.state


def begun_at_once(s):
    """Begin a session with two turns at once; tell how many fail, and what is left."""
    turns = [talk((InMemoryMemoryService(), s._of), text)[0] for text in ("one", "two")]

    async def take():
        return await asyncio.gather(*turns, return_exceptions=True)

    failed = [one for one in s.run(take()) if isinstance(one, Exception)]
    s.run(talk((InMemoryMemoryService(), s._of), "again")[0])
    return len(failed), len(read(s).events)


SESSIONS = [
    Case("create_session(app_name, user_id, state, session_id)", created(lambda s, one: [one.id, one.state, one.events])),
    Case("create_session(...) without an id", lambda s: s.create_session(**ALICE).id),
    Case("create_session(...) again", created(lambda s, one: s.create_session(**ALICE, session_id="s"))),
    Case("get_session(app_name, user_id, session_id)", created(lambda s, one: [read(s).state, read(s, BOB), read(s, OTHER)])),
    Case("append_event(session, event): state of the session, the user and the app; get_user_state(app_name, user_id)",
         created(changed)),
    Case("append_event(...) of a partial event", created(partial)),
    Case("append_event(...) to a stale session", created(stale),
         "`StaleSessionError`, as `DatabaseSessionService`, which loses nothing"),
    Case("append_event(...) of an event again", created(twice), "stored once; a database refuses it"),
    Case("append_event(...) with what is no JSON in the state", created(rich),
         "stored as text and lists; in memory the object itself"),
    Case("get_session(..., config=GetSessionConfig(num_recent_events=, after_timestamp=))", six(lambda s: [
        texts(read(s, num_recent_events=2).events), read(s, num_recent_events=0).events,
        texts(read(s, after_timestamp=2e9 + 3).events),
        texts(read(s, num_recent_events=1, after_timestamp=2e9 + 3).events)])),
    Case("list_sessions(app_name, user_id)", created(listed)),
    Case("delete_session(app_name, user_id, session_id)", created(removed)),
    Case("flush()", created(lambda s, one: s.flush())),
    Case("Runner(session_service=...): two turns, output_key", restarted),
    Case("Runner(auto_create_session=True): two first turns at once", begun_at_once,
         "one raises, mostly `AlreadyExistsError`, as with `DatabaseSessionService`; run it again"),
    Case('create_session(user_id="*")', lambda s: s.create_session(app_name="app", user_id="*").user_id,
         "`InvalidScopeError`, a `ValueError`: `*` is no user"),
]  # fmt: skip

SECTIONS = {
    one.name: one
    for one in (
        Section(
            name="adk_memory", title="ADK: memory service", packages=("google-adk",),
            columns={"`InMemoryMemoryService`": (stock_memory, our_memory)}, cases=MEMORY,
            interface=public(BaseMemoryService),
        ),
        Section(
            name="adk_sessions", title="ADK: session service", packages=("google-adk",),
            columns={
                "`InMemorySessionService`": (stock_sessions, our_sessions),
                "`DatabaseSessionService`": (sql_sessions, our_sessions),
            },
            cases=SESSIONS, interface=public(BaseSessionService),
        ),
    )
}  # fmt: skip
