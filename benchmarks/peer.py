"""The peer's side of `speed.py`; runs in an environment where mem0ai is, and commonplace is not.

Writes one by one, for its interface takes no batch of texts without a language model.
"""

import hashlib
import json
import statistics
import sys
import time

from mem0 import Memory

WORDS = "tea garden train doctor violin rabbit harbour letter winter kitchen bridge market".split()


def text(number: int) -> str:
    """Make up the same texts as `speed.py`."""
    return " ".join(WORDS[number // step % len(WORDS)] for step in (1, 7, 31)) + f" {number}"


class HashModel:
    """A stand-in for an embedding model that costs nothing."""

    def embed(self, text: str, *_: object) -> list[float]:
        """Embed a text into 64 numbers."""
        digest = hashlib.blake2b(text.encode(), digest_size=64).digest()
        return [byte / 128 - 1 for byte in digest]

    def embed_batch(self, texts: list[str], *_: object) -> list[list[float]]:
        """Embed texts, in their order."""
        return [self.embed(text) for text in texts]


def fill(memory: Memory, user: str, count: int) -> float:
    """Write that many texts; answers records per second."""
    start = time.perf_counter()
    for number in range(count):
        memory.add(text(number), user_id=user, infer=False)
    return count / (time.perf_counter() - start)


def main(folder: str, size: str) -> None:
    """Print one line of JSON: figures by the names that `speed.py` uses."""
    share = 10 if size == "small" else 1
    store = {"path": f"{folder}/qdrant", "embedding_model_dims": 64, "on_disk": True}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
            "embedder": {"provider": "openai", "config": {"api_key": "none"}},
            "history_db_path": f"{folder}/history.db",
        }
    )
    memory.embedding_model = HashModel()
    heavy = 20_000 // share
    gone = 5_000 // share
    figures = {"add, batches of 64": fill(memory, "alice", heavy)}
    fill(memory, "gone", gone)
    seconds = []
    for number in range(30):
        start = time.perf_counter()
        memory.search(text(number * 37), filters={"user_id": "alice"}, top_k=10)
        seconds.append(time.perf_counter() - start)
    figures[f"search, {heavy} in scope, p50"] = statistics.median(seconds) * 1e3
    figures[f"search, {heavy} in scope, p95"] = statistics.quantiles(seconds, n=20)[18] * 1e3
    start = time.perf_counter()
    memory.delete_all(user_id="gone")
    figures[f"forget {gone}"] = (time.perf_counter() - start) * 1e3
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
