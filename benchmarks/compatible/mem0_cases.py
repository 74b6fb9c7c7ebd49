"""mem0's `Memory` and `AsyncMemory`, of the era that is installed, beside those of `commonplace_mem0`."""

import importlib.metadata
from dataclasses import replace
from datetime import date

import mem0
from mem0.embeddings.base import EmbeddingBase
from mem0.utils.factory import EmbedderFactory

import commonplace_mem0
from commonplace.testing.fakes import HashEmbedder

from . import Awaited, Case, Section, public, tried

V1 = importlib.metadata.version("mem0ai").startswith("1.")
SAID = [
    {"role": "user", "content": "I like tea", "name": "Alice"},
    {"role": "assistant", "content": "Noted."},
]
MODEL = '{"facts": ["Likes tea"], "memory": [{"id": "0", "text": "Likes tea", "event": "ADD"}]}'


class Fake(EmbeddingBase):
    def embed(self, text, memory_action=None):
        return [abs(one) for one in HashEmbedder(64).embed([text], purpose="document")[0]]


class Ours(HashEmbedder):
    def embed(self, texts, *, purpose):
        return [[abs(one) for one in vector] for vector in super().embed(texts, purpose=purpose)]


class Model:
    def __init__(self, answer=MODEL):
        self.answer = answer

    def generate_response(self, messages, **more):
        return self.answer


def theirs(name):
    def opened(folder, stack):
        EmbedderFactory.provider_to_class["fake"] = f"{__name__}.Fake"
        place = {"path": str(folder / "q"), "embedding_model_dims": 64}
        config = {
            "embedder": {"provider": "fake"},
            "history_db_path": str(folder / "h.db"),
            "vector_store": {"provider": "qdrant", "config": place},
        }
        memory = getattr(mem0, name).from_config(config)
        memory.llm = Model()
        stack.callback(memory.vector_store.client.close)
        return Awaited(memory, "") if name == "AsyncMemory" else memory

    return opened


def ours(name):
    def opened(folder, stack):
        place = {"provider": "qdrant", "config": {"path": str(folder / "q")}}
        given = {"vector_store": place, "embedder": Ours(), "llm": Model()}
        memory = getattr(commonplace_mem0, name).from_config(given)
        face = Awaited(memory, "") if name == "AsyncMemory" else memory
        stack.callback(face.close)
        return face

    return opened


def ids(**given):
    """Name the owner as this era's reads want it."""
    more = given.pop("filters", {})
    return {**given, "filters": more} if V1 and more else given if V1 else {"filters": given | more}


TOP = "limit" if V1 else "top_k"
ALICE = ids(user_id="alice")
OWNER = 'user_id="alice"' if V1 else 'filters={"user_id": "alice"}'


def where(**conditions):
    return ids(user_id="alice", filters=conditions)


def filled(do):
    """Run on a memory with three memories of alice, and one of bob; their ids, by text."""

    def run(m):
        found = {}
        for n, text in enumerate(("green tea", "black tea", "red boat")):
            more = {"metadata": {"n": n, "kind": "xyx"[n]}}
            added = m.add(text, user_id="alice", infer=False, **(more if n else {}))
            found[text] = added["results"][0]["id"]
        m.add("green tea of bob", user_id="bob", agent_id="a", run_id="r", infer=False)
        return do(m, found)

    return run


def rows(found):
    return sorted(found["results"], key=lambda one: one["memory"])


def texts(found):
    return sorted(one["memory"] for one in found["results"])


def added(*given, **more):
    def run(m):
        answer = m.add(*given, **{"user_id": "alice", "infer": False, **more})
        return answer, rows(m.get_all(**ALICE))

    return run


def twice(m):
    one = m.add("green tea", user_id="alice", infer=False)
    two = m.add("green tea", user_id="alice", infer=False)
    return [len(one["results"]), two["results"][0]["event"], texts(m.get_all(**ALICE))]


def with_model(answer, **more):
    def run(m):
        target = m._of if isinstance(m, Awaited) else m
        target.llm = Model(answer)
        return m.add(SAID, user_id="alice", **more), texts(m.get_all(**ALICE))

    return run


def updated(**change):
    def do(m, found):
        answer = m.update(found["black tea"], **change)
        return answer, m.get(found["black tea"])

    return filled(do)


def history(m, found):
    m.update(found["black tea"], data="white tea")
    m.delete(found["black tea"])
    return m.history(found["black tea"]), m.history("6f9619ff-8b86-4d01-b42d-00cf4fc964ff")


def deleted(m, found):
    return m.delete(found["black tea"]), m.get(found["black tea"]), texts(m.get_all(**ALICE))


def left(**owner):
    def do(m, _):
        return (
            m.delete_all(**owner),
            texts(m.get_all(**ALICE)),
            texts(m.get_all(**ids(user_id="bob"))),
        )

    return filled(do)


def find(*given, **more):
    return filled(lambda m, _: rows(m.search(*given, **more)))


def found_by(**conditions):
    return filled(lambda m, _: texts(m.get_all(**where(**conditions))))


def expired(do):
    def run(m):
        m.add("old", user_id="alice", infer=False, expiration_date="2001-01-01")
        m.add("new", user_id="alice", infer=False, expiration_date=date(2900, 1, 1))
        return do(m)

    return run


def quickstart(m):
    said = "Hi, I'm Alex. I love basketball and gaming."
    m.add([{"role": "user", "content": said}], user_id="alice", infer=False)
    return texts(m.search("What do you know about me?", **ALICE))


def changed(m):
    shown = m.get_all(**ALICE, show_expired=True)["results"]
    [old] = [one["id"] for one in shown if one["memory"] == "old"]
    return m.update(old, text="older"), m.update(old, metadata={"n": 1}), m.get(old)


def closed(m):
    m.close()
    return tried(m.get_all, **ALICE)


ALONE = (
    "get_all(agent_id=), search(query, run_id=): no user"
    if V1
    else 'get_all(filters={"agent_id": ...}), search(query, filters={"run_id": ...}): no user'
)
NOTHING = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
COMMON = [
    Case('add("text", user_id=, infer=False)', added("green tea")),
    Case("add(messages, user_id=, infer=False)", added(SAID)),
    Case("add(one message, user_id=, infer=False)", added(SAID[0])),
    Case("add(..., agent_id=, run_id=, metadata=)", added("tea", agent_id="a", run_id="r", metadata={"n": 1, "of": {"x": [1]}})),
    Case("add(...) of a known text, infer=False", twice),
    Case("add(..., infer=True)", with_model(MODEL)),
    Case("add(..., infer=True, prompt=)", with_model(MODEL, prompt="Only tea.")),
    Case("add(...): the model answers nothing", with_model('{"facts": [], "memory": []}')),
    Case("add(...): the model answers no JSON", with_model("I am sorry.")),
    Case('add(..., memory_type="procedural_memory", agent_id=)', lambda m: [one["event"] for one in m.add(SAID, agent_id="a", memory_type="procedural_memory")["results"]]),
    Case('add(..., memory_type="procedural_memory") without agent_id', with_model(MODEL, memory_type="procedural_memory")),
    Case("add(..., memory_type=anything else)", added("tea", memory_type="no")),
    Case("add(...) without an id", lambda m: m.add("tea")),
    Case("add(None, user_id=)", lambda m: m.add(None, user_id="alice")),
    Case('add("", user_id=, infer=False)', added("")),
    Case('add(..., user_id="", agent_id=)', lambda m: m.add("tea", user_id="", agent_id="a", infer=False)["results"][0]["event"]),
    Case('add(..., user_id="John Smith")', lambda m: m.add("tea", user_id="John Smith", infer=False)["results"][0]["event"]),
    Case("add(..., user_id=7)", lambda m: m.add("tea", user_id=7, infer=False)["results"][0]["event"]),
    Case("add(...) of 40 KiB, infer=False", lambda m: len(m.add("tea " * 10_000, user_id="alice", infer=False)["results"])),
    Case('add(..., metadata={"created_at": a date})', added("tea", metadata={"created_at": "2020-01-01T00:00:00+00:00"})),
    Case("get(memory_id)", filled(lambda m, found: [m.get(found["green tea"]), m.get(found["black tea"])])),
    Case("get(memory_id) of what is not there", lambda m: m.get(NOTHING)),
    Case(f"get_all({OWNER})", filled(lambda m, _: rows(m.get_all(**ALICE)))),
    Case(f"get_all({OWNER}, {TOP}=)", filled(lambda m, _: len(m.get_all(**ALICE, **{TOP: 2})["results"]))),
    Case("get_all() without an id", lambda m: m.get_all()),
    Case(ALONE, filled(lambda m, _: [texts(m.get_all(**ids(agent_id="a"))), texts(m.search("tea", **ids(run_id="r")))])),
    Case(f"search(query, {OWNER})", find("green tea", **ALICE)),
    Case(f"search(query, {OWNER}): the best", filled(lambda m, _: m.search("green tea", **ALICE)["results"][0]["memory"])),
    Case(f"search(query, {OWNER}, {TOP}=)", find("green tea", **ALICE, **{TOP: 1})),
    Case(f"search(query, ..., {TOP}=0)", find("green tea", **ALICE, **{TOP: 0})),
    Case("search(query, ..., threshold=)", find("green tea", **ALICE, threshold=0.9)),
    Case("search(query, ..., rerank=)", find("green tea", **ALICE, rerank=False)),
    Case("search(query) without an id", find("tea")),
    Case('search("", ...)', find("", **ALICE)),
    Case("search(..., filters={key: value})", filled(lambda m, _: texts(m.search("tea", **where(kind="x"), threshold=0.0)))),
    Case("get_all(..., filters={key: value})", found_by(kind="x")),
    Case("get_all(..., filters={key: [values]})", found_by(n={"in": [1, 2]})),
    Case('get_all(..., filters={key: {"gt": ..., "lte": ...}})', found_by(n={"gt": 1, "lte": 2})),
    Case('get_all(..., filters={key: {"gte": ..., "lt": ...}})', found_by(n={"gte": 1, "lt": 2})),
    Case('get_all(..., filters={key: {"eq": ...}})', found_by(n={"eq": 1})),
    Case('get_all(..., filters={key: {"ne": ...}})', found_by(n={"ne": 1})),
    Case('get_all(..., filters={key: {"nin": ...}})', found_by(n={"nin": [1]})),
    Case('get_all(..., filters={key: {"contains": a word}})', found_by(kind={"contains": "x"})),
    Case('get_all(..., filters={key: {"icontains": ...}})', found_by(kind={"icontains": "X"})),
    Case('get_all(..., filters={key: "*"})', found_by(n="*")),
    Case('get_all(..., filters={"AND": [...]})', found_by(AND=[{"n": {"gt": 0}}, {"kind": "x"}])),
    Case('get_all(..., filters={"OR": [...]})', found_by(OR=[{"n": 1}, {"n": 2}])),
    Case('get_all(..., filters={"NOT": [...]})', found_by(NOT=[{"n": 1}])),
    Case('get_all(..., filters={"AND": []})', found_by(AND=[])),
    Case('get_all(..., filters={"OR": []})', found_by(OR=[])),
    Case('get_all(..., filters={"$or": [...]})', found_by(**{"$or": [{"n": 1}, {"kind": "x"}]})),
    Case("get_all(..., filters={key: {unknown: ...}})", found_by(n={"unknown": 1})),
    Case("update(memory_id, data=)", updated(data="white tea")),
    Case("update(memory_id, ..., metadata=)", updated(data="white tea", metadata={"n": 9})),
    Case('update(memory_id, ..., metadata={"user_id": another})', updated(data="white tea", metadata={"user_id": "bob"})),
    Case("update(memory_id, ...) of what is not there", lambda m: m.update(NOTHING, data="tea")),
    Case("update(memory_id) with nothing", updated()),
    Case("delete(memory_id)", filled(deleted)),
    Case("delete(memory_id) of what is not there", lambda m: m.delete(NOTHING)),
    Case("delete_all(user_id=)", left(user_id="bob")),  # one memory: with more, mem0 1.x races
    Case("delete_all(user_id=, agent_id=, run_id=)", left(user_id="bob", agent_id="a", run_id="r")),
    Case("delete_all(run_id=) alone", left(run_id="r")),
    Case("delete_all() without an id", left()),
    Case("history(memory_id)", filled(history)),
    Case("reset()", filled(lambda m, _: (m.reset(), texts(m.get_all(**ALICE)), texts(m.get_all(**ids(user_id="bob")))))),
    Case("chat(query)", lambda m: m.chat("tea?")),
    Case("close(), then a call", closed),
    Case("from_config(config_dict) with an unknown key", lambda m: bool(kind(m).from_config({**CONFIG, "unknown": 1}))),
    Case("project.update()", lambda m: m.project.update(custom_instructions="x")),
    Case("vector_store, db", lambda m: bool(m.vector_store and m.db)),
]  # fmt: skip
ONLY_2 = [
    Case('search(query, user_id=)', find("tea", user_id="alice")),
    Case("search(..., explain=True)", filled(lambda m, _: [sorted(one["score_details"]) for one in m.search("green tea", **ALICE, explain=True)["results"]][:1])),
    Case("search(..., limit=)", filled(lambda m, _: len(m.search("tea", **ALICE, threshold=0.0, limit=1)["results"]))),
    Case("search(..., treshold=), misspelt", find("tea", **ALICE, treshold=0.5)),
    Case("search(a vague question, ...), no threshold=", quickstart),
    Case("search(..., threshold=2)", find("tea", **ALICE, threshold=2)),
    Case("search(..., reference_date=)", find("tea", **ALICE, reference_date="2026-01-01")),
    Case("add(..., timestamp=)", added("tea", timestamp=1_700_000_000)),
    Case("add(..., expiration_date=); get_all, search(..., show_expired=)", expired(lambda m: [texts(m.get_all(**ALICE)), texts(m.get_all(**ALICE, show_expired=True)), texts(m.search("old", **ALICE, threshold=0.0)), texts(m.search("old", **ALICE, threshold=0.0, show_expired=True))])),
    Case("add(..., expiration_date=no date)", added("tea", expiration_date="soon")),
    Case("update(memory_id, text=)", updated(text="white tea")),
    Case("update(memory_id, text=); update(memory_id, metadata=) of an expired memory", expired(changed)),
    Case("update(memory_id, expiration_date=)", updated(expiration_date="2900-01-01")),
]  # fmt: skip
ONLY_1 = [
    Case(
        "get_all(user_id=, agent_id=, run_id=)",
        filled(lambda m, _: texts(m.get_all(user_id="bob", agent_id="a", run_id="r"))),
    ),
    Case(
        "search(query, user_id=, agent_id=, run_id=)",
        filled(lambda m, _: texts(m.search("tea", user_id="bob", agent_id="a", run_id="r"))),
    ),
    Case("search(query, filters={ids}) alone", find("tea", filters={"user_id": "alice"})),
]
CONFIG = {"embedder": {"provider": "openai", "config": {"api_key": "unused"}}}


def kind(m):
    return type(m._of) if isinstance(m, Awaited) else type(m)


WHY = {
    "add(...) of a known text, infer=False": "is the same memory: the event is `NONE`, with its id",
    'add(..., memory_type="procedural_memory") without agent_id': "give an `agent_id`; there it silently becomes an ordinary memory",
    'add("", user_id=, infer=False)': "a blank text is no memory",
    "add(...) of 40 KiB, infer=False": "at most 32 KiB: split it, or let a model extract facts",
    ALONE: 'memories without a user only; all users\' as there with `compat="v1"` or `"v2"`',
    'get_all(..., filters={key: {"ne": ...}})': "is `NOT eq`, so memories without the key match",
    'get_all(..., filters={key: {"nin": ...}})': "is `NOT in`, so memories without the key match",
    'get_all(..., filters={key: "*"})': "memories that have the key; there all",
    "delete_all(run_id=) alone": 'memories without a user only, and the answer counts them; all users\' as there with `compat="v1"` or `"v2"`',
    "close(), then a call": "`ClosedError`: open another one",
    "vector_store, db": "`AttributeError` that names what there is instead, such as `core`",
}
WHY_2 = {
    'add(..., user_id="John Smith")': 'inner spaces are allowed, as in 1.x; not with `compat="v2"`',
    "project.update()": "`AttributeError`, in place of a `ValueError`: there too it is for the hosted product",
    "search(query, user_id=)": 'works as in 1.x; not with `compat="v2"`',
    "search(..., explain=True)": "mem0's keys, and `parts` of our ranking",
    "search(..., limit=)": "means `top_k`; there it is ignored",
    "search(..., treshold=), misspelt": "`TypeError` that names `threshold`; there it is ignored",
    "add(..., timestamp=)": "when it was said, and `created_at`; there a `ValueError`",
}
WHY_1 = {
    'add(..., user_id="", agent_id=)': "an id is not empty: leave the argument out",
    f"search(query, ..., {TOP}=0)": "an empty list; there a `ValueError`",
    'search("", ...)': "a question is not blank: use `get_all` for a list",
    "update(memory_id, data=)": "metadata stays; there it is dropped",
    "update(memory_id, ..., metadata=)": "metadata is merged; there it is replaced",
    'update(memory_id, ..., metadata={"user_id": another})': "never moves a memory to another user",
    "update(memory_id) with nothing": "`ValidationError`, in place of a `TypeError`",
    "search(query, filters={ids}) alone": "works as in 2.x; there a `ValidationError`",
}
REASONS = WHY | (WHY_1 if V1 else WHY_2)
SECTION = Section(
    name="mem0_v1" if V1 else "mem0",
    title="mem0 1.x" if V1 else "mem0 2.x",
    packages=("mem0ai",),
    columns={
        "`Memory`": (theirs("Memory"), ours("Memory")),
        "`AsyncMemory`": (theirs("AsyncMemory"), ours("AsyncMemory")),
    },
    cases=[
        replace(one, why=REASONS.get(one.call, ""))
        for one in [*COMMON, *(ONLY_1 if V1 else ONLY_2)]
    ],
    interface=public(mem0.Memory, but=("from_config",)),
)
SECTIONS = {SECTION.name: SECTION}
