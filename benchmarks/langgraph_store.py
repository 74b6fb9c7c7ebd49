"""How fast is the LangGraph store beside LangGraph's own, in one run?

    python benchmarks/langgraph_store.py [--pairs 10000] [--sizes 1000,10000] [--isolation 100000]

First a race in pairs: each call goes to both stores in turn, on the same disk, and the medians of
wall and CPU time are compared; both hold the same items in 500 namespaces, and both have embedded
as many texts after each call, which is checked. Then each store by itself: most items in one
namespace, a twentieth in another. The model is cached, 384 dimensions.
The last part is no race: it plays random operations on namespaces whose labels are made to be
mistaken for each other, against a dictionary, and counts wrong answers.

LangGraph's SqliteStore needs an SQLite that loads extensions: Python's, or `pysqlite3-binary`.
"""

import asyncio
import importlib
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import peers
import typer
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from rich.console import Console
from rich.table import Table
from tables import TablesFile, save

from commonplace_langgraph import CommonplaceStore

DIMENSIONS = 384
MANY, FEW = ("docs", "many"), ("docs", "few")
WORDS = "tea garden train doctor violin rabbit harbour letter winter kitchen bridge market".split()
LABELS = ["foo", "foobar", "fo", "FOO", "foo ", "föö", "fo\u0308o", "*", "foo%", "foo_", "foo/bar",
          "foo\x1fbar", '"', 'foo","bar', "a\\", "\u202efoo"]  # fmt: skip


class Cached(Embeddings):
    """Made-up directions of words, remembered by text."""

    def __init__(self, known: dict[str, list[float]] | None = None) -> None:
        self.known: dict[str, list[float]] = {} if known is None else known
        self.words = {}
        self.asked = 0  # texts

    def embed_query(self, text: str) -> list[float]:
        self.asked += 1
        found = self.known.get(text)
        if found is None:
            parts = text.split()
            for word in parts:
                if word not in self.words:
                    seed = np.random.default_rng(abs(hash(word)))
                    self.words[word] = seed.standard_normal(DIMENSIONS)
            vector = sum(self.words[word] for word in parts)
            found = self.known[text] = (vector / np.linalg.norm(vector)).tolist()
        return found

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


MODEL = Cached()
PEERS_MODEL = Cached(MODEL.known)


def index(model: Cached) -> Any:
    """Configure what is embedded; SqliteStore reads another key than the other stores."""
    return {"dims": DIMENSIONS, "embed": model, "fields": ["text"], "text_fields": ["text"]}


INDEX = index(MODEL)


def text(number: int) -> str:
    """Make up the text of a number; no two are equal."""
    return " ".join(WORDS[number // step % len(WORDS)] for step in (1, 7, 31)) + f" {number}"


def ops(size: int) -> list[PutOp]:
    """Make the puts that fill a store; every twentieth item more goes to the small namespace."""
    few = max(1, size // 20)
    many = [PutOp(MANY, f"k{n}", {"text": text(n)}) for n in range(size)]
    return many + [PutOp(FEW, f"k{n}", {"text": text(n)}) for n in range(few)]


def timed(call: Callable[[int], object], times: int) -> list[float]:
    """Call so many times; answers milliseconds, sorted."""
    found = []
    for number in range(times):
        start = time.perf_counter()
        call(number)
        found.append((time.perf_counter() - start) * 1000)
    return sorted(found)


def shown(found: list[float]) -> str:
    """Write the least, the middle and the 99th of a hundred."""
    return f"{found[0]:.2f} / {found[len(found) // 2]:.2f} / {found[int(len(found) * 0.99)]:.2f}"


def measure(store: BaseStore, size: int) -> list[str]:
    """Fill a store and measure it by its synchronous methods."""
    puts = ops(size)
    start = time.perf_counter()
    for at in range(0, len(puts), 500):
        store.batch(puts[at : at + 500])
    rate = len(puts) / (time.perf_counter() - start)
    asked = [text(n * 37 % size) for n in range(200)]
    rows = [f"{rate:,.0f}"]
    rows.append(shown(timed(lambda n: store.put(MANY, f"k{n}", {"text": text(n)}), 100)))
    rows.append(shown(timed(lambda n: store.get(MANY, f"k{n}"), 200)))
    for namespace in (MANY, FEW, ("docs",)):
        search = lambda n, place=namespace: store.search(place, query=asked[n % 200], limit=10)  # noqa: E731 -- one use
        rows.append(shown(timed(search, 100)))
    return rows


async def ameasure(store: BaseStore, size: int) -> list[str]:
    """Measure a store by its asynchronous methods."""
    puts = ops(size)
    start = time.perf_counter()
    for at in range(0, len(puts), 500):
        await store.abatch(puts[at : at + 500])
    rows = [f"{len(puts) / (time.perf_counter() - start):,.0f}"]
    asked = [text(n * 37 % size) for n in range(200)]

    async def each(call: Callable[[int], Any], times: int) -> str:
        found = []
        for number in range(times):
            begin = time.perf_counter()
            await call(number)
            found.append((time.perf_counter() - begin) * 1000)
        return shown(sorted(found))

    rows.append(await each(lambda n: store.aput(MANY, f"k{n}", {"text": text(n)}), 100))
    rows.append(await each(lambda n: store.aget(MANY, f"k{n}"), 200))
    for namespace in (MANY, FEW, ("docs",)):
        rows.append(
            await each(lambda n, p=namespace: store.asearch(p, query=asked[n], limit=10), 100)
        )
    return rows


def loading_sqlite() -> Any:
    """Find an SQLite module that loads extensions; None if there is none."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        return importlib.import_module("pysqlite3")
    except ImportError:
        return None


def peer(path: Path) -> BaseStore:
    """Open LangGraph's own store as its `from_conn_string` does."""
    from langgraph.store.sqlite import SqliteStore

    connection = loading_sqlite().connect(path, check_same_thread=False, isolation_level=None)
    store = SqliteStore(connection, index=index(PEERS_MODEL))
    store.setup()
    return store


def race_item(number: int) -> dict[str, Any]:
    """Make up the value of an item of the race."""
    return {"text": text(number), "topic": f"t{number % 50}", "serial": number}


def race_calls(
    size: int, turn: int = 0
) -> dict[str, tuple[int, Callable[[BaseStore, int], object]]]:
    """Name the calls of the race: how often each is made, and the call by its number.

    Args:
        turn: which race on the same stores; what is put as new was not put by another.
    """
    place = lambda n: ("docs", f"n{n % 500}")  # noqa: E731 -- one line

    first = 2 * size + turn * 2_000

    def put(store: BaseStore, n: int) -> None:
        store.put(place(n), f"new{turn} {n}", race_item(size + n))

    def replace(store: BaseStore, n: int) -> None:
        store.put(place(n), f"k{n}", race_item(n))

    def batch(store: BaseStore, n: int) -> None:
        numbers = range(first + n * 100, first + n * 100 + 100)
        store.batch([PutOp(place(one), f"k{one}", race_item(one)) for one in numbers])

    def read(store: BaseStore, n: int) -> None:
        numbers = range(n * 100, n * 100 + 100)
        store.batch([GetOp(place(one % size), f"k{one % size}") for one in numbers])

    return {
        "put": (200, put),
        "put over an item": (200, replace),
        "batched put, of 100": (20, batch),
        "get": (200, lambda store, n: store.get(place(n), f"k{n}")),
        "batched get, of 100": (20, read),
        "search, query, all": (50, lambda store, n: store.search(("docs",), query=text(n))),
        "search, query, 50 of all": (
            50,
            lambda store, n: store.search(("docs",), query=text(n), limit=50),
        ),
        "search, query, 1 namespace": (50, lambda store, n: store.search(place(n), query=text(n))),
        "list, 10": (50, lambda store, _: store.search(("docs",))),
        "list, filter, a 50th": (
            50,
            lambda store, n: store.search(("docs",), filter={"topic": f"t{n % 50}"}),
        ),
        "list, filter, 1 item": (
            50,
            lambda store, n: store.search(("docs",), filter={"serial": n * 97 % size}),
        ),
        "list_namespaces": (
            20,
            lambda store, _: store.list_namespaces(prefix=("docs",), limit=1000),
        ),
        "list_namespaces, first 100": (20, lambda store, _: store.list_namespaces()),
    }


def race(folder: Path, size: int) -> list[Table]:
    """Make each call on both stores in turn; tabulate the medians and their ratios."""
    with CommonplaceStore(folder / "race", index=INDEX) as ours:
        stores: dict[str, BaseStore] = {peers.OURS: ours, "SqliteStore": peer(folder / "race.db")}
        for start in range(0, size, 500):
            numbers = range(start, min(start + 500, size))
            puts = [PutOp(("docs", f"n{n % 500}"), f"k{n}", race_item(n)) for n in numbers]
            for store in stores.values():
                store.batch(puts)
        PEERS_MODEL.words = MODEL.words
        MODEL.embed_documents([text(n) for n in range(3 * size)])
        calls = [race_calls(size, turn) for turn in range(2)]
        for kind in calls:
            check_texts(stores, kind)
        title = f"LangGraph's store: {size:,} items in 500 namespaces"
        return [
            peers.laid_out(peers.in_turns(stores, calls[turn], clock), [*stores], named)
            for turn, (clock, named) in enumerate(
                ((time.perf_counter, title), (time.process_time, f"{title}, CPU"))
            )
        ]


def check_texts(stores: dict[str, BaseStore], calls: dict[str, Any]) -> None:
    """Check that every call embeds as many texts in each store."""
    models = dict(zip(stores, (MODEL, PEERS_MODEL), strict=True))
    for store in stores.values():
        store.search(("docs",), query=text(0))  # ours measures a model when it is first asked
    for name, (times, call) in calls.items():
        before = {side: model.asked for side, model in models.items()}
        for store in stores.values():
            call(store, times)  # a number that the race does not use
        counts = {side: model.asked - before[side] for side, model in models.items()}
        if len(set(counts.values())) > 1:
            raise AssertionError(f"{name} embeds {counts} texts")


def sync_stores(folder: Path) -> Iterator[tuple[str, Any]]:
    """Name the stores and how to open them."""
    yield (
        "commonplace",
        lambda stack: stack.enter_context(CommonplaceStore(folder / "ours", index=INDEX)),
    )
    yield "InMemoryStore", lambda _: InMemoryStore(index=INDEX)
    if loading_sqlite() is not None:
        yield "SqliteStore", lambda _: peer(folder / "peer.db")


async def async_row(kind: str, folder: Path, size: int) -> list[str]:
    """Measure an asynchronous store."""
    async with AsyncExitStack() as stack:
        if kind == "commonplace":
            store: Any = CommonplaceStore(folder / "ours", index=INDEX)
            await stack.enter_async_context(store)
        else:
            from langgraph.store.sqlite.aio import AsyncSqliteStore

            path = str(folder / "peer.db")
            store = await stack.enter_async_context(
                AsyncSqliteStore.from_conn_string(path, index=index(PEERS_MODEL))
            )
            await store.setup()
        return await ameasure(store, size)


def together(folder: Path) -> str:
    """Put 1,000 items from 16 threads and two event loops at once; tell whether all are there."""
    with CommonplaceStore(folder / "together", index=INDEX) as store:

        async def loop(me: int) -> None:
            await asyncio.gather(
                *(store.aput(("docs", f"l{me}"), f"k{n}", {"text": text(n)}) for n in range(100))
            )

        def thread(me: int) -> None:
            for n in range(50):
                store.put(("docs", f"t{me}"), f"k{n}", {"text": text(n)})

        work = [threading.Thread(target=thread, args=(me,)) for me in range(16)]
        work += [threading.Thread(target=lambda me=me: asyncio.run(loop(me))) for me in range(2)]
        start = time.perf_counter()
        for one in work:
            one.start()
        for one in work:
            one.join()
        seconds = time.perf_counter() - start
        names = {f"t{me}": 50 for me in range(16)} | {"l0": 100, "l1": 100}
        for name, count in names.items():
            held = store.search(("docs", name), limit=1000)
            good = all(one.value == {"text": text(int(one.key[1:]))} for one in held)
            if (
                not good
                or len(held) != count
                or {one.namespace for one in held} != {("docs", name)}
            ):
                return f"{name}: {len(held)} of {count}"
    return f"all there, unmixed, {1000 / seconds:,.0f} puts/s"


def isolate(folder: Path, times: int) -> int:
    """Play random operations against a dictionary; answer how many rows were not asked for."""
    chosen, wrong = random.Random(7), 0
    model: dict[tuple[tuple[str, ...], str], Any] = {}
    with CommonplaceStore(folder / "isolation", index=INDEX) as store:

        def namespace() -> tuple[str, ...]:
            return tuple(chosen.choice(LABELS) for _ in range(chosen.randint(1, 3)))

        done = 0
        while done < times:
            batch: list[Any] = []
            for _ in range(32):
                where, key = namespace(), f"k{chosen.randint(0, 2)}"
                kind = chosen.random()
                if kind < 0.45:
                    batch.append(PutOp(where, key, {"text": f"tea {done}", "at": list(where)}))
                elif kind < 0.55:
                    batch.append(PutOp(where, key, None))
                else:
                    query = "tea" if kind < 0.65 else None
                    batch.append(SearchOp(where, query=query, limit=300))
            answers = store.batch(batch)
            for op, answer in zip(batch, answers, strict=True):
                if isinstance(op, SearchOp):
                    prefix = op.namespace_prefix
                    expected = {
                        (place, key): value
                        for (place, key), value in model.items()
                        if place[: len(prefix)] == prefix
                    }
                    held = {(one.namespace, one.key): one.value for one in answer}
                    wrong += (
                        held != expected
                        if len(expected) <= 300
                        else not (held.items() <= expected.items())
                    )
            for op in batch:
                if isinstance(op, PutOp):
                    if op.value is None:
                        model.pop((op.namespace, op.key), None)
                    else:
                        model[op.namespace, op.key] = op.value
            done += len(batch)
    return wrong


def main(
    pairs: Annotated[int, typer.Option(help="items of the race in pairs; 0 for none")] = 10_000,
    sizes: Annotated[str, typer.Option(help="items, with commas between")] = "1000,10000",
    isolation: Annotated[int, typer.Option(help="random operations")] = 100_000,
    file: TablesFile = None,
) -> None:
    """Measure, and say whether anything was lost or mixed."""
    console = Console(width=160)
    tables = []
    if pairs and loading_sqlite() is not None:
        tables += race(Path(tempfile.mkdtemp()), pairs)
        console.print(*tables)
    for size in (int(one) for one in sizes.split(",") if one):
        table = Table(title=f"{size:,} items, ms: least / p50 / p99")
        for name in ("store", "batched puts/s", "put", "get", "top 10 of all but few",
                     "top 10 of a twentieth", "top 10 of both"):  # fmt: skip
            table.add_column(name)
        MODEL.embed_documents([text(n) for n in range(size)])
        for name, opened in sync_stores(Path(tempfile.mkdtemp())):
            with ExitStack() as stack:
                table.add_row(name, *measure(opened(stack), size))
        for kind in ("commonplace", "AsyncSqliteStore"):
            if kind == "commonplace" or hasattr(sqlite3.Connection, "enable_load_extension"):
                row = asyncio.run(async_row(kind, Path(tempfile.mkdtemp()), size))
                table.add_row(f"{kind}, async", *row)
        tables.append(table)
        console.print(table)
    folder = Path(tempfile.mkdtemp())
    save(file, tables)
    console.print("1,000 puts from 16 threads and 2 loops:", together(folder))
    if isolation:
        wrong = isolate(folder, isolation)
        console.print(f"{isolation:,} random operations: {wrong} wrong answers")
        sys.exit(bool(wrong))


if __name__ == "__main__":
    typer.run(main)
