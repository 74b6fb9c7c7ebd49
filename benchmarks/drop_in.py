"""The same calls on mem0 2.2.1 and on `commonplace_mem0`, side by side, in one run.

    python benchmarks/drop_in.py [--peer PYTHON] [--rows 5000]

Each library runs in processes of its own, with the same embedder that costs nothing, its local
engine and no telemetry. PYTHON has mem0ai installed; the one that runs this is asked when none is
given.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from tables import TablesFile, save

SIZE = 384
# What is measured, its unit, and the most it may be; of rates and of those found the least.
BUDGETS: dict[str, tuple[str, float]] = {
    "1 added at 64 at once, found after reopening": ("of 1000", 1000),
    "4 search, one user of many rows, p50": ("ms", 2),
    "4 search, one user of many rows, p95": ("ms", 5),
    "4 search, a user with 50 rows, p50": ("ms", 2),
    "4 search, a user with 50 rows, p95": ("ms", 5),
    "5 64 searches at once": ("s", 0.3),
    "5 longest the loop was held": ("ms", 20),
    "6 48 additions with a model of 1 s": ("s", 1.5),
    "6 a search meanwhile": ("ms", 20),
    "7 acknowledged without waiting, p95": ("ms", 2),
    "8 the same text ten times": ("rows", 1),
    "11 delete_all of many rows": ("s", 0.2),
    "13 of 10 live rows behind 90 expired": ("rows", 10),
    "15 import": ("s", 0.2),
    "15 memory of the import": ("MB", 30),
    "16 added in batches": ("rows/s", 2000),
    "16 a single addition, p50": ("ms", 4.3),
    "17 extraction prompt": ("characters", 6000),
}
NO_CALL = "no such call"
TITLE = "Calls of mem0"


class CheapEmbedder:
    """A direction for every text, all in one quadrant; for both libraries."""

    id, dimensions = "cheap", SIZE

    def embed(self, texts: Any, action: Any = None, *, purpose: Any = None) -> Any:
        one = [self.vector(text) for text in ([texts] if isinstance(texts, str) else texts)]
        return one[0] if isinstance(texts, str) else one

    def vector(self, text: str) -> list[float]:
        import numpy as np  # the import is measured

        found = abs(np.random.default_rng(zlib.crc32(text.encode())).standard_normal(SIZE))
        return list((found / np.linalg.norm(found)).tolist())


class SlowModel:
    """Answers after a while that there is nothing to remember; keeps the last prompt's length."""

    def __init__(self, config: Any = None, seconds: float = 1.0) -> None:
        self.config, self.seconds, self.length = config, seconds, 0

    def generate_response(self, messages: Any, **_: Any) -> str:
        self.length = len(messages[0]["content"])
        time.sleep(self.seconds)
        return '{"facts": [], "memory": []}'


def make(which: str, folder: str, *, awaits: bool = False, model: Any = None) -> Any:
    """Open a memory of either library in a folder."""
    store = {"provider": "qdrant", "config": {"path": f"{folder}/q"}}
    if which == "ours":
        import commonplace_mem0  # the import is measured

        ours = commonplace_mem0.AsyncMemory if awaits else commonplace_mem0.Memory
        return ours({"vector_store": store, "embedder": CheapEmbedder(), "llm": model})
    import mem0  # type: ignore[import-not-found,unused-ignore]
    from mem0.configs.embeddings.base import BaseEmbedderConfig
    from mem0.embeddings.base import EmbeddingBase
    from mem0.utils.factory import EmbedderFactory

    class Fake(EmbeddingBase):  # type: ignore[misc,unused-ignore]
        def __init__(self, config: Any = None) -> None:
            super().__init__(config or BaseEmbedderConfig())

        def embed(self, text: str, memory_action: Any = None) -> Any:
            return CheapEmbedder().vector(text)

    sys.modules["drop_in_fake"] = type(sys)("drop_in_fake")
    sys.modules["drop_in_fake"].Fake = Fake  # type: ignore[attr-defined]
    EmbedderFactory.provider_to_class["fake"] = "drop_in_fake.Fake"
    store["config"]["embedding_model_dims"] = SIZE  # type: ignore[index]
    config = {"embedder": {"provider": "fake"}, "vector_store": store}
    theirs = mem0.AsyncMemory if awaits else mem0.Memory
    opened = theirs.from_config({**config, "history_db_path": f"{folder}/h.db"})
    opened.llm = model or opened.llm
    return opened


def percentile(seconds: list[float], share: float) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * share))] * 1000


def timed(call: Any, times: int) -> list[float]:
    found = []
    for n in range(times):
        start = time.perf_counter()
        call(n)
        found.append(time.perf_counter() - start)
    return found


def importing(which: str, _: int) -> dict[str, float]:
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    __import__("mem0" if which == "mem0" else "commonplace_mem0")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"15 import": time.perf_counter() - start, "15 memory of the import": used / 1024}


def blocking(which: str, rows: int) -> dict[str, float]:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        m = make(which, folder)
        start = time.perf_counter()
        for at in range(0, rows, 500):
            turns = [{"role": "user", "content": f"note {n}"} for n in range(at, at + 500)]
            m.add(turns, user_id="many", infer=False)
        found["16 added in batches"] = rows / (time.perf_counter() - start)
        for n in range(rows // 50):
            turns = [{"role": "user", "content": f"note {n} {i}"} for i in range(50)]
            m.add(turns, user_id=f"few{n}", infer=False)
        single = timed(lambda n: m.add(f"single {n}", user_id="single", infer=False), 100)
        found["16 a single addition, p50"] = percentile(single, 0.5)
        for who, name in (("many", "one user of many rows"), ("few1", "a user with 50 rows")):
            ids = {"user_id": who}
            m.search("warm", filters=ids, top_k=5)
            took = timed(lambda n, ids=ids: m.search(f"note {n}", filters=ids, top_k=5), 60)  # type: ignore[misc]
            found[f"4 search, {name}, p50"] = percentile(took, 0.5)
            found[f"4 search, {name}, p95"] = percentile(took, 0.95)
        for _ in range(10):
            m.add("the same", user_id="same", infer=False)
        same = m.get_all(filters={"user_id": "same"}, top_k=50)["results"]
        found["8 the same text ten times"] = len(same)
        for n in range(100):
            gone = {"expiration_date": "2001-01-01"} if n % 10 else {}
            m.add(f"tea {n}", user_id="old", infer=False, **gone)
        live = m.get_all(filters={"user_id": "old"}, top_k=10)["results"]
        found["13 of 10 live rows behind 90 expired"] = len(live)
        start = time.perf_counter()
        m.delete_all(user_id="many")
        found["11 delete_all of many rows"] = time.perf_counter() - start
        if which == "ours":
            took = timed(lambda n: m.add(f"w {n}", user_id="w", infer=False, wait=False), 200)
            found["7 acknowledged without waiting, p95"] = percentile(took, 0.95)
        m.close()
    return found


def awaited(which: str, rows: int) -> dict[str, float]:
    return asyncio.run(_awaited(which, rows))


async def _awaited(which: str, rows: int) -> dict[str, float]:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = SlowModel()
        m = make(which, folder, awaits=True, model=model)
        for at in range(0, rows, 500):
            turns = [{"role": "user", "content": f"note {n}"} for n in range(at, at + 500)]
            await m.add(turns, user_id="many", infer=False)
        ids = {"user_id": "many"}
        await m.search("warm", filters=ids, top_k=5)
        lag = asyncio.create_task(longest_hold())
        start = time.perf_counter()
        await asyncio.gather(*(m.search(f"n {n}", filters=ids, top_k=5) for n in range(64)))
        found["5 64 searches at once"] = time.perf_counter() - start
        lag.cancel()
        found["5 longest the loop was held"] = (await lag) * 1000
        start = time.perf_counter()
        adding = [asyncio.create_task(m.add(f"hi {n}", user_id=f"u{n}")) for n in range(48)]
        await asyncio.sleep(0.3)
        asked = time.perf_counter()
        await m.search("note", filters={"user_id": "u1"}, top_k=5)
        found["6 a search meanwhile"] = (time.perf_counter() - asked) * 1000
        await asyncio.gather(*adding)
        found["6 48 additions with a model of 1 s"] = time.perf_counter() - start
        found["17 extraction prompt"] = model.length
        found["1 added at 64 at once, found after reopening"] = await added_at_once(which)
    return found


async def added_at_once(which: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        m = make(which, folder, awaits=True)
        gate = asyncio.Semaphore(64)

        async def add(n: int) -> None:
            async with gate:
                await m.add(f"note {n}", user_id="a", infer=False)

        await asyncio.gather(*(add(n) for n in range(1000)), return_exceptions=True)
        if which == "mem0":  # a folder it has opened is opened again by another process only
            m.vector_store.client.close()
        m.close()
        task = f"{which}:counting:{folder}"
        later = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--child", task, stdout=subprocess.PIPE
        )
        printed, _ = await later.communicate()
        return int(printed.split()[-1]) if later.returncode == 0 else 0


def counting(which: str, folder: str) -> int:
    """Count what another process finds, by listing and by looking for some of it."""
    m = make(which, folder)
    ids = {"user_id": "a"}
    held = {one["memory"] for one in m.get_all(filters=ids, top_k=2000)["results"]}
    for n in range(0, 1000, 50):
        best = m.search(f"note {n}", filters=ids, top_k=1)["results"]
        if not best or best[0]["memory"] != f"note {n}":
            held.discard(f"note {n}")
    return len(held)


async def longest_hold() -> float:
    longest = 0.0
    while True:
        start = time.perf_counter()
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            return longest
        longest = max(longest, time.perf_counter() - start - 0.001)


def child(task: str) -> None:
    which, part, given = task.split(":", 2)
    if part == "counting":
        print(counting(which, given))
        return
    parts = {"importing": importing, "blocking": blocking, "awaited": awaited}
    print("\n" + json.dumps(parts[part](which, int(given))))


def measured(python: str, which: str, rows: int) -> dict[str, float]:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "MEM0_TELEMETRY": "False", "MEM0_DIR": home, "OPENAI_API_KEY": "-"}
        if python != sys.executable:
            env.pop("PYTHONPATH", None)  # it has packages of its own
        for part in ("importing", "blocking", "awaited"):
            command = [python, "-W", "ignore", __file__, "--child", f"{which}:{part}:{rows}"]
            run = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
            if run.returncode:
                Console(stderr=True).print(f"{which} {part}: {run.stderr[-2000:]}")
                continue
            found |= json.loads(run.stdout.splitlines()[-1])
    return found


def main(
    peer: Annotated[Path, typer.Option(help="an interpreter with mem0ai")] = Path(sys.executable),
    rows: int = 5000,
    task: Annotated[str, typer.Option("--child", hidden=True)] = "",
    file: TablesFile = None,
) -> None:
    """Measure both and print them beside the budgets."""
    if task:
        child(task)
        return
    ours = measured(sys.executable, "ours", rows)
    theirs = measured(str(peer), "mem0", rows)
    table = Table(
        "what", "unit", "commonplace_mem0", "mem0 2.2.1 (times ours)", "budget", title=TITLE
    )
    for name, (unit, budget) in BUDGETS.items():
        row = [shown(one[name]) if name in one else missing(one) for one in (ours, theirs)]
        if unit in {"ms", "s", "MB"} and name in ours and name in theirs:
            row[1] += f" ({theirs[name] / max(ours[name], 1e-9):.2f})"
        sign = {"of 1000": "≥", "rows/s": "≥", "rows": "="}.get(unit, "≤")
        table.add_row(name.partition(" ")[2], unit, *row, f"{sign} {budget:g}")
    Console(width=110).print(table)
    save(file, [table])
    if not (ours and theirs):
        sys.exit("Not both were measured.")


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def missing(found: dict[str, float]) -> str:
    return NO_CALL if found else "not measured"


if __name__ == "__main__":
    typer.run(main)
