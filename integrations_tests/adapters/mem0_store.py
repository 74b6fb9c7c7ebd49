"""Run by a test in a process of its own: fill a folder with mem0, and write down what it answers.

Its embedder and its clock are its own; no model is asked and nothing is sent.
"""

import json
import os
import sys
import zlib
from pathlib import Path

FOLDER = Path(sys.argv[1])
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(FOLDER), "OPENAI_API_KEY": "unused"}

import mem0  # it reads the environment when it is imported
import numpy as np
from mem0.embeddings.base import EmbeddingBase
from mem0.utils.factory import EmbedderFactory

USERS = ("alice", "bob", "客户")


class Fake(EmbeddingBase):
    """Every text is a direction of its own; none is against another."""

    def embed(self, text, memory_action=None):
        """Give a direction."""
        found = abs(np.random.default_rng(zlib.crc32(text.encode())).standard_normal(16))
        return (found / np.linalg.norm(found)).tolist()


def main(number: int) -> None:
    """Add, update and delete; write `answers.json`."""
    EmbedderFactory.provider_to_class["fake"] = f"{__name__}.Fake"
    place = {"path": str(FOLDER / "qdrant"), "embedding_model_dims": 16}
    m = mem0.Memory.from_config(
        {
            "embedder": {"provider": "fake"},
            "history_db_path": str(FOLDER / "history.db"),
            "vector_store": {"provider": "qdrant", "config": place},
        }
    )
    ids = []
    for n in range(number):
        where = [{}, {"agent_id": "bot"}, {"run_id": f"r{n % 5}"}][n % 3]
        more = {"expiration_date": "2999-01-01"} if n % 10 == 0 else {}
        metadata = {"n": n, "tags": ["a", "b"], "城市": "里昂", "deep": {"x": [1, None]}}
        turn = {"role": "user" if n % 2 else "assistant", "content": f"note number {n} 咖啡"}
        if n % 4 == 0:
            turn["name"] = "Al"
        answer = m.add(
            [turn], user_id=USERS[n % 3], infer=False, **where, **more,
            metadata=metadata if n % 5 else None,
        )  # fmt: skip
        ids.append(answer["results"][0]["id"])
    changed = ids[::20]
    for memory_id in changed:
        m.update(memory_id, text=f"changed {memory_id}")
        m.update(memory_id, metadata={"changed": True})
    gone = ids[7::50]
    for memory_id in gone:
        m.delete(memory_id)
    memories = []
    for user in USERS:
        memories += m.get_all(filters={"user_id": user}, top_k=number)["results"]
    history = {one["id"]: m.history(one["id"]) for one in memories}
    answers = {"users": USERS, "memories": memories, "history": history, "deleted": len(gone)}
    (FOLDER / "answers.json").write_text(json.dumps(answers), "utf-8")


if __name__ == "__main__":
    main(int(sys.argv[2]))
