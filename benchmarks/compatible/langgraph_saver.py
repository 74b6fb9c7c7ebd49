"""LangGraph's checkpointer in memory beside `CommonplaceSaver`."""

from dataclasses import dataclass

from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from commonplace_langgraph import CommonplaceSaver

from . import Awaited, Case, Section, public


@dataclass
class Made:
    of: str


def theirs(folder, stack):
    return InMemorySaver()


def ours(folder, stack):
    return stack.enter_context(CommonplaceSaver(str(folder)))


def awaited(opened):
    return lambda folder, stack: Awaited(opened(folder, stack))


def thread(name="t", **more):
    return {"configurable": {"thread_id": name, "checkpoint_ns": "", **more}}


def saved(do, steps=3, value=str):
    """Run on a saver with a thread `t` of some steps, and its configs, the oldest first."""

    def run(s):
        config, configs = thread(), []
        for n in range(steps):
            state = {"n": s.get_next_version(None, None)}
            checkpoint = {**empty_checkpoint(), "id": f"{n:08d}-0000-6000-8000-000000000000"}
            checkpoint |= {"channel_values": {"n": value(n)}, "channel_versions": state}
            metadata = {"source": "loop", "step": n, "run_id": f"run{n}"}
            config = s.put(config, checkpoint, metadata, state)
            s.put_writes(config, [("n", n), ("m", [n])], f"task{n}", "path")
            configs.append(config)
        return do(s, configs)

    return run


def shown(found):
    if found is None:
        return None
    values, writes = found.checkpoint["channel_values"], found.pending_writes
    return values, dict(found.metadata), writes, bool(found.parent_config)


def steps(found):
    return [one.metadata["step"] for one in found]


def listed(**how):
    return saved(lambda s, _: steps(s.list(thread(), **how)))


def again(s, configs):
    s.put_writes(configs[2], [("n", "other")], "task2")
    return shown(s.get_tuple(configs[2]))


def copied(s, _):
    s.copy_thread("t", "u")
    return steps(s.list(thread("u"))), steps(s.list(thread()))


def dropped(name, *given, **more):
    def do(s, _):
        done = getattr(s, name)(*given, **more)
        return done, steps(s.list(thread()))

    return saved(do)


def versions(s):
    first = s.get_next_version(None, None)
    return type(first).__name__, s.get_next_version(first, None) > first


def revived(s, configs):
    return type(s.get_tuple(configs[0]).checkpoint["channel_values"]["n"]).__name__


def allowed(s, configs):
    clone = s.with_allowlist([(Made.__module__, "Made")])
    return type(clone.get_tuple(configs[0]).checkpoint["channel_values"]["n"]).__name__


CASES = [
    Case("put(config, checkpoint, metadata, new_versions); get_tuple(config)", saved(lambda s, c: [shown(s.get_tuple(one)) for one in c])),
    Case("get_tuple(config) of the newest", saved(lambda s, _: shown(s.get_tuple(thread())))),
    Case("get_tuple(config) of an unknown thread", lambda s: s.get_tuple(thread("no"))),
    Case("get(config)", saved(lambda s, _: [s.get(thread())["channel_values"], s.get(thread("no"))])),
    Case("get_tuple({}) without a thread", lambda s: s.get_tuple({"configurable": {}}), "`InvalidRecordError` that names `thread_id`, in place of a `KeyError`"),
    Case("put_writes(config, writes, task_id, task_path) again", saved(again)),
    Case("list(config)", saved(lambda s, _: [shown(one) for one in s.list(thread())])),
    Case("list(None)", saved(lambda s, _: steps(s.list(None)))),
    Case("list(config, filter=)", saved(lambda s, _: [steps(s.list(thread(), filter={"step": 1})), steps(s.list(None, filter={"run_id": "run2", "step": 2}))])),
    Case("list(config, before=)", saved(lambda s, c: steps(s.list(thread(), before=c[1])))),
    Case("list(config, limit=)", listed(limit=2)),
    Case("list(config, limit=0)", listed(limit=0)),
    Case("delete_thread(thread_id)", dropped("delete_thread", "t")),
    Case("delete_for_runs(run_ids)", dropped("delete_for_runs", ["run1"]), "`InMemorySaver` has none; as the conformance tests of `BaseCheckpointSaver` say"),
    Case("copy_thread(source_thread_id, target_thread_id)", saved(copied), "`InMemorySaver` has none; as the conformance tests of `BaseCheckpointSaver` say"),
    Case('prune(thread_ids, strategy="keep_latest")', dropped("prune", ["t"], strategy="keep_latest"), "`InMemorySaver` has none; as the conformance tests of `BaseCheckpointSaver` say"),
    Case('prune(thread_ids, strategy="delete")', dropped("prune", ["t"], strategy="delete"), "`InMemorySaver` has none; as the conformance tests of `BaseCheckpointSaver` say"),
    Case("prune(thread_ids, strategy=anything else)", dropped("prune", ["t"], strategy="no"), "`InvalidRecordError`; `InMemorySaver` has no `prune`"),
    Case("get_delta_channel_history(config=, channels=)", saved(lambda s, c: s.get_delta_channel_history(config=c[2], channels=["n", "m"]))),
    Case("get_next_version(current, channel)", versions),
    Case("config_specs", lambda s: [one.id for one in s.config_specs]),
    Case("get_tuple(...) of a value of your own class", saved(revived, value=lambda n: Made(str(n))), "only LangGraph's safe types are made again, others are their fields: name your classes by `with_allowlist`"),
    Case("with_allowlist(extra_allowlist)", saved(allowed, value=lambda n: Made(str(n)))),
]  # fmt: skip

SAVER = Section(
    name="langgraph_saver",
    title="LangGraph: checkpointer",
    packages=("langgraph-checkpoint",),
    columns={
        "`InMemorySaver`": (theirs, ours),
        "its awaitable methods": (awaited(theirs), awaited(ours)),
    },
    cases=CASES,
    interface=public(BaseCheckpointSaver, but=("serde",)),
)
SECTIONS = {SAVER.name: SAVER}
