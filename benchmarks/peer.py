"""One memory in a process of its own, measured by JSON lines from `peers.py`.

    python benchmarks/peer.py NAME FOLDER

Runs in an environment where that memory is, and the others are not. The first answer is a `Start`;
then each request is `{"call", "user", "first", "count", "size"}`: so many calls of one kind, each
with `size` texts from number `first` on, and its answer the seconds of each call, none when the
memory has no such call. `fill` adds however it can; `resident` answers the bytes of memory that the
process holds, none where the system does not tell. Every memory gets the same texts and the same
vectors, prepared before the clock starts.
"""

import importlib
import json
import os
import sqlite3
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypedDict

from sentences import DIMENSIONS, Sentences, Vectors

SENTENCES = Sentences()
VECTORS = Vectors()


class Start(TypedDict):
    """What a process says first.

    Keys:
        versions: of the packages of the memory.
        imported, opened: seconds to import its module, and then to open it.
        size: bytes of memory that the import took; 0 where the system does not tell.
    """

    versions: dict[str, str]
    imported: float
    opened: float
    size: int


class Side(Protocol):
    """What is asked of every memory; some can `forget` a user, too."""

    module: str  # where a program imports it from
    packages: tuple[str, ...]
    batches: bool

    def add(self, user: str, texts: list[str]) -> object: ...

    def search(self, user: str, text: str) -> object: ...


class Commonplace:
    """Ours, by its public methods."""

    module = "commonplace"
    packages = ("commonplace-memory", "numpy")
    batches = True

    def __init__(self, folder: str) -> None:
        from commonplace import Fact, Memory, Scope

        self._fact, self._scope = Fact, Scope
        self._memory = Memory.open(folder, embedder=VECTORS)

    def add(self, user: str, texts: list[str]) -> object:
        facts = [self._fact(text=text) for text in texts]
        return self._memory.add(facts, self._scope(user_id=user))

    def search(self, user: str, text: str) -> object:
        return self._memory.search(text, self._scope(user_id=user), top_k=10)

    def forget(self, user: str) -> object:
        return self._memory.forget(self._scope(user_id=user))


class Mem0:
    """mem0 on its local engine, without a language model; its interface takes one text a call."""

    module = "mem0"
    packages = ("mem0ai", "qdrant-client")
    batches = False

    def __init__(self, folder: str) -> None:
        from mem0 import Memory

        self._memory = Memory.from_config(self.config(folder))
        self._memory.embedding_model = self

    @staticmethod
    def config(folder: str) -> dict[str, Any]:
        """Configure the local engine in a folder; the models are replaced afterwards."""
        store = {"path": f"{folder}/qdrant", "embedding_model_dims": DIMENSIONS, "on_disk": True}
        return {
            "vector_store": {"provider": "qdrant", "config": store},
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
            "embedder": {"provider": "openai", "config": {"api_key": "none"}},
            "history_db_path": f"{folder}/history.db",
        }

    def embed(self, text: str, *_: object) -> list[float]:
        return VECTORS([text])[0]

    def embed_batch(self, texts: list[str], *_: object) -> list[list[float]]:
        return VECTORS(texts)

    def add(self, user: str, texts: list[str]) -> object:
        return [self._memory.add(text, user_id=user, infer=False) for text in texts]

    def search(self, user: str, text: str) -> object:
        return self._memory.search(text, filters={"user_id": user}, top_k=10)

    def forget(self, user: str) -> object:
        return self._memory.delete_all(user_id=user)


class SqliteStore:
    """LangGraph's store in one SQLite file; users are namespaces."""

    module = "langgraph.store.sqlite"
    packages = ("langgraph-checkpoint-sqlite", "sqlite-vec")
    batches = True

    def __init__(self, folder: str) -> None:
        from langgraph.store.base import PutOp
        from langgraph.store.sqlite import SqliteStore as Store

        self._put, self._count = PutOp, 0
        index: Any = {"dims": DIMENSIONS, "embed": VECTORS, "fields": ["text"]}
        self._context = Store.from_conn_string(f"{folder}/store.db", index=index)
        self._store = self._context.__enter__()
        self._store.setup()

    def add(self, user: str, texts: list[str]) -> object:
        first, self._count = self._count, self._count + len(texts)
        keys = range(first, self._count)
        return self._store.batch(
            [
                self._put((user,), str(key), {"text": text})
                for key, text in zip(keys, texts, strict=True)
            ]
        )

    def search(self, user: str, text: str) -> object:
        return self._store.search((user,), query=text, limit=10)


class Chroma:
    """chromadb in a folder; users are a field of the metadata."""

    module = "chromadb"
    packages = ("chromadb",)
    batches = True

    def __init__(self, folder: str) -> None:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(folder, settings)
        self._records = client.get_or_create_collection(
            "memories", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        self._count = 0

    def add(self, user: str, texts: list[str]) -> object:
        first, self._count = self._count, self._count + len(texts)
        return self._records.add(
            ids=[str(key) for key in range(first, self._count)],
            embeddings=VECTORS(texts),
            documents=texts,
            metadatas=[{"user": user}] * len(texts),
        )

    def search(self, user: str, text: str) -> object:
        return self._records.query(
            query_embeddings=VECTORS([text]), n_results=10, where={"user": user}
        )

    def forget(self, user: str) -> object:
        return self._records.delete(where={"user": user})


SIDES: dict[str, type[Any]] = {
    "commonplace": Commonplace,
    "mem0ai": Mem0,
    "SqliteStore": SqliteStore,
    "chromadb": Chroma,
}


def measure(side: Side, call: str, user: str, first: int, count: int, size: int) -> list[float]:
    """Make the calls; answers the seconds of each, none when the side has no such call."""
    if call == "resident":
        return [float(size)] if (size := resident()) else []
    calls = {"add": side.add, "fill": side.add, "search": side.search}
    method = calls.get(call) or getattr(side, call, None)
    if method is None or (call == "add" and size > 1 and not side.batches):
        return []
    make = SENTENCES.question if call == "search" else SENTENCES.sentence
    texts = [make(number) for number in range(first, first + count * size)]
    VECTORS.prepare(texts)
    seconds = []
    for at in range(0, count * size, size):
        given = {"search": (texts[at],), "forget": ()}.get(call, (texts[at : at + size],))
        start = time.perf_counter()
        method(user, *given)
        seconds.append(time.perf_counter() - start)
    return seconds


def main(name: str, folder: str) -> None:
    """Answer requests until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder}
    made = SIDES[name]
    if made is SqliteStore and not hasattr(sqlite3.Connection, "enable_load_extension"):
        sys.modules["sqlite3"] = importlib.import_module("pysqlite3")  # the same, with extensions
    began, before = time.perf_counter(), resident()
    importlib.import_module(made.module)
    imported, size = time.perf_counter() - began, resident() - before
    began = time.perf_counter()
    side = made(folder)
    opened = time.perf_counter() - began
    versions = {package: _version(package) for package in side.packages}
    start = Start(versions=versions, imported=imported, opened=opened, size=size)
    print(json.dumps(start), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(side, **json.loads(line))), file=answers, flush=True)


def resident() -> int:
    """Read the bytes of memory that this process holds; 0 where the system does not tell."""
    statistics = Path("/proc/self/statm")
    return int(statistics.read_text().split()[1]) * 4096 if statistics.exists() else 0


def _version(package: str) -> str:
    try:
        return version(package)
    except ImportError:  # a checkout that is not installed
        return "checkout"


if __name__ == "__main__":
    main(*sys.argv[1:])
