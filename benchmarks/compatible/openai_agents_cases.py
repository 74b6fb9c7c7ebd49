"""Sessions of the OpenAI Agents SDK: its own beside ours."""

from agents import Session, SessionSettings, SQLiteSession

from commonplace import Memory
from commonplace_openai_agents import CommonplaceSession

from . import Awaited, Case, Section, public
from .mem0_cases import Ours


def stock(folder, stack):
    return lambda name="s", **more: Awaited(
        SQLiteSession(name, str(folder / "sessions.db"), **more), ""
    )


def ours(folder, stack):
    memory = stack.enter_context(Memory.open(str(folder), embedder=Ours()))
    return lambda name="s", **more: Awaited(
        CommonplaceSession(name, memory, user_id="alice", **more), ""
    )


def items(*texts):
    return [{"role": "user", "content": text} for text in texts]


def texts(found):
    return [one["content"] for one in found]


def filled(do, **more):
    """Run with a session of three items, added by two calls."""

    def run(make):
        session = make(**more)
        session.add_items(items("one", "two"))
        session.add_items(items("three"))
        return do(session, make)

    return run


def popped(session, make):
    last = session.pop_item()
    return last["content"], texts(session.get_items()), make("empty").pop_item()


def cleared(session, make):
    other = make("other")
    other.add_items(items("stays"))
    session.clear_session()
    return session.get_items(), texts(other.get_items()), session.pop_item()


SESSIONS = [
    Case("add_items(items) and get_items()", filled(lambda s, make: texts(s.get_items()))),
    Case("add_items([])", filled(lambda s, make: (s.add_items([]), texts(s.get_items())))),
    Case("get_items(limit)", filled(lambda s, make: [texts(s.get_items(n)) for n in (1, 2, 9)])),
    Case("get_items() with session_settings",
         filled(lambda s, make: texts(s.get_items()), session_settings=SessionSettings(limit=2))),
    Case("get_items() of another session", filled(lambda s, make: make("other").get_items())),
    Case("get_items() of one opened again", filled(lambda s, make: texts(make().get_items()))),
    Case("pop_item()", filled(popped)),
    Case("clear_session()", filled(cleared)),
    Case("session_id, session_settings", filled(lambda s, make: [s.session_id, s.session_settings.limit])),
]  # fmt: skip

SECTIONS = {
    "openai_agents_sessions": Section(
        name="openai_agents_sessions", title="OpenAI Agents SDK: sessions",
        packages=("openai-agents",), columns={"`SQLiteSession`": (stock, ours)}, cases=SESSIONS,
        interface=public(Session),
    )
}  # fmt: skip
