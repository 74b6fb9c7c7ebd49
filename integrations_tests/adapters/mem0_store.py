"""Run by a test in a process of its own: fill a folder with mem0, and write down what it answers.

With `odd` as the last argument, what is unusual and occurs: any keys and values of metadata, ids,
texts and dates. Its embedder and its clock are its own; no model is asked and nothing is sent.
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
    changed, gone = fill(m, number)
    for memory_id in changed:
        m.update(memory_id, text=f"changed {memory_id}")
        m.update(memory_id, metadata={"changed": True})
    for memory_id in gone:
        m.delete(memory_id)
    memories = []
    for user in USERS:
        found = m.get_all(filters={"user_id": user}, top_k=number, show_expired=True)
        memories += found["results"]
    history = {one["id"]: m.history(one["id"]) for one in memories}
    answers = {"users": USERS, "memories": memories, "history": history, "deleted": len(gone)}
    (FOLDER / "answers.json").write_text(json.dumps(answers), "utf-8")


def fill(m, number):
    """Add plain memories; return the ids to change and those to delete."""
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
    return ids[::20], ids[7::50]


def nested(depth):
    """Nest a value."""
    return {"in": nested(depth - 1)} if depth else 1


ODD_METADATA = (
    {f"key {n}": n for n in range(40)},
    {"message id": 2**63 - 1, "chat": -(2**62)},
    {"kind": "drink", "name": "x", "session_id": "s", "AND": "and", "text": "t", "id": 7},
    {"a.b": 1, "a": {"b": 2}, "…": None, " ": "", "🍵": "🍵", "e\u0301": "e\u0301"},
    {"mem0_role": "mine", "mem0_x": [1, "2", None, 3.5, True], "empty": {}, "list": []},
    {"role": "user", "attributed_to": "Al", "updated_at": "yesterday", "hash": "h", "data": "d"},
    {"created_at": "2024-05-01T10:00:00-07:00"},
    {"created_at": "2021-02-03T04:05:06.000007+00:00", "expires_at": "never"},
    {"x" * 300: "y" * 3000, "deep": nested(6), "number": 1e300, "zero": -0.0},
    {"deep": nested(12)},
    {"": "the empty key"},
    {"n": 2**64},
    {"user_id": "evil", "actor_id": "evil"},
    None,
)
ODD_TEXTS = (
    "plain", "line\nbreak\tand tab", "👩‍👩‍👧 family", "e\u0301 decomposed", "مرحبا",
    "'; DROP TABLE", "the same text", "long " * 2_000, "x" * 40_000, "  spaces around  ",
    "\u200b", "a\x00b",
    '{"json": [1]}', "```code```",
)  # fmt: skip
ODD_USERS = ("E\u0301lise", "42", "a+b@example.com", "王", "x" * 256, "x" * 300, "*", "UPPER", "__")
ODD_TURNS = ({"role": "assistant"}, {"name": "Al"}, {"role": "tool"}, {"name": "n" * 300})


def fill_odd(m, number):
    """Add unusual memories; return the ids to change and those to delete."""
    ids = []
    for n in range(number):
        where = [{}, {"agent_id": "Bot"}, {"run_id": 7}, {"agent_id": "b", "run_id": "r"}][n % 4]
        more = {"expiration_date": "2001-01-01"} if n % 7 == 0 else {}
        text = ODD_TEXTS[n // 3 % len(ODD_TEXTS)]
        turn = {"role": "user", "content": text, **ODD_TURNS[n % len(ODD_TURNS)]}
        answer = m.add(
            [turn], user_id=ODD_USERS[n % len(ODD_USERS)], infer=False, **where, **more,
            metadata=ODD_METADATA[n // 2 % len(ODD_METADATA)],
        )  # fmt: skip
        ids += [one["id"] for one in answer["results"]]
    return ids[::20], ids[7::50]


if sys.argv[3:] == ["odd"]:
    USERS, fill = ODD_USERS, fill_odd
if __name__ == "__main__":
    main(int(sys.argv[2]))
