"""Spans and metrics of real memories, in the exporters that OpenTelemetry's SDK has for tests."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Collection, Iterator
from functools import partial
from pathlib import Path

import pytest

from commonplace import InvalidRecordError, Memory, Message, Scope
from commonplace.telemetry import CONTENT
from commonplace.testing.fakes import HashEmbedder

metrics_sdk = pytest.importorskip("opentelemetry.sdk.metrics")
trace_sdk = pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

ALICE = Scope(user_id="alice@example.org")
ROOT = Path(__file__).parents[1]
FRAMEWORKS = ("agents", "agentscope", "google.adk", "langchain", "strands")
FACTS = '{"facts": [{"text": "Alice skis.", "kind": "fact"}]}'


class Chat:
    id = "scripted"

    def complete(self, system, user, *, schema):
        return FACTS


class AsyncChat:
    id = "scripted"

    async def complete(self, system, user, *, schema):
        await asyncio.sleep(0.01)
        return FACTS


@pytest.fixture(scope="module")
def exported() -> Iterator[tuple[InMemorySpanExporter, InMemoryMetricReader]]:
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    trace.set_tracer_provider(trace_sdk.TracerProvider())
    trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
    metrics.set_meter_provider(metrics_sdk.MeterProvider([reader]))
    yield spans, reader
    spans.shutdown()  # the process has them to its end, and collects no more


@pytest.fixture
def spans(exported) -> InMemorySpanExporter:
    exported[0].clear()
    return exported[0]


def tree(spans: InMemorySpanExporter, scopes: Collection[str] = ()) -> list[str]:
    """Write the finished spans as lines, each below its parent, in the order of their start.

    Args:
        scopes: those who made them; empty for anybody.
    """
    found = sorted(spans.get_finished_spans(), key=lambda span: span.start_time)
    by_id = {span.context.span_id: span for span in found}

    def is_shown(span) -> bool:
        return not scopes or span.instrumentation_scope.name in scopes

    def holder(span) -> object:
        while span := by_id.get(span.parent.span_id) if span.parent else None:
            if is_shown(span):
                return span
        return None

    def below(parent: object, depth: int) -> list[str]:
        lines = []
        for span in filter(is_shown, found):
            if holder(span) is parent:
                lines += ["  " * depth + span.name, *below(span, depth + 1)]
        return lines

    return below(None, 0)


def attributes(spans: InMemorySpanExporter, name: str) -> dict:
    [span] = [span for span in spans.get_finished_spans() if span.name == name]
    return dict(span.attributes)


def test_each_call_is_a_span_with_the_names_of_the_convention(spans, memory):
    done = memory.add(["Alice skis.", "Alice sings."], ALICE)
    memory.search("What does Alice do?", ALICE)
    memory.update(done.ids[0], "Alice skates.", ALICE)
    memory.list(ALICE)
    memory.forget(ALICE)

    assert [line for line in tree(spans) if not line.startswith(" ")] == [
        "create_memory", "search_memory", "update_memory", "list_memory", "delete_memory",
    ]  # fmt: skip
    assert sum(line == "  embeddings hash-64" for line in tree(spans)) >= 1
    created = attributes(spans, "create_memory")
    assert created["gen_ai.operation.name"] == "create_memory"
    assert created["gen_ai.memory.record.count"] == 2
    assert created["gen_ai.memory.store.id"] == memory.location
    assert attributes(spans, "update_memory")["gen_ai.memory.record.id"] == done.ids[0]
    assert attributes(spans, "search_memory")["gen_ai.memory.record.count"] == 2
    every = spans.get_finished_spans()
    assert {span.kind for span in every} == {trace.SpanKind.INTERNAL}
    assert all("alice" not in str(span.attributes).lower() for span in every)  # neither id nor text
    scopes = {span.attributes["commonplace.scope"] for span in every if not span.parent}
    assert len(scopes) == 1


async def test_calls_on_a_loop_and_their_threads_are_one_tree(spans, memory):
    with trace.get_tracer("app").start_as_current_span("turn"):
        await memory.aadd("Alice skis.", ALICE)
        await asyncio.gather(memory.asearch("Alice", ALICE), memory.alist(ALICE))

    lines = tree(spans)
    assert lines[0] == "turn"
    assert sorted(line for line in lines if line[2:3].strip()) == [
        "  create_memory", "  list_memory", "  search_memory", "turn",
    ]  # fmt: skip
    assert "    embeddings hash-64" in lines


@pytest.mark.parametrize("chat", [Chat(), AsyncChat()], ids=["thread", "loop"])
async def test_a_background_write_belongs_to_the_call_that_accepted_it(spans, tmp_path, chat):
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=chat) as memory:
        with trace.get_tracer("app").start_as_current_span("turn"):
            await memory.aadd(Message(text="I ski."), ALICE, wait=False)
        assert (await memory.aflush()).pending == 0

    found = spans.get_finished_spans()
    assert len({span.context.trace_id for span in found}) == 1
    by_id = {span.context.span_id: span for span in found}
    [asked] = [span for span in found if span.name == "chat scripted"]
    ancestors = []
    while asked.parent is not None:
        asked = by_id[asked.parent.span_id]
        ancestors.append(asked.name)
    assert ancestors[-2:] == ["create_memory", "turn"]


def test_an_error_is_told_by_its_class_and_texts_only_when_asked_for(spans, tmp_path, monkeypatch):
    with Memory.open(
        str(tmp_path), embedder=HashEmbedder(), redact=lambda text: text.replace("1234", "[pin]")
    ) as memory:
        with pytest.raises(InvalidRecordError):
            memory.search("secret question", ALICE, top_k=0)
        [failed] = spans.get_finished_spans()
        assert failed.attributes["error.type"] == "InvalidRecordError"
        assert failed.status.status_code is trace.StatusCode.ERROR
        assert "secret" not in failed.to_json()
        spans.clear()
        monkeypatch.setenv(CONTENT, "true")
        memory.add("The pin is 1234.", ALICE)
        memory.search("What is 1234?", ALICE)
    searched = attributes(spans, "search_memory")
    assert searched["gen_ai.memory.query.text"] == "What is [pin]?"
    assert searched["gen_ai.memory.records"] == '[{"content": "The pin is [pin]."}]'
    assert "1234" not in str(attributes(spans, "create_memory"))


def test_metrics_tell_durations_the_backlog_and_the_events_of_agents(exported, spans, memory):
    from commonplace.agents import AgentMemory, Policy

    memory.add("Alice skis.", ALICE)
    agent = AgentMemory(memory, Policy(), log="test")
    agent.recall(ALICE, "What does Alice do?")

    found = {
        metric.name: list(metric.data.data_points)
        for resource in exported[1].get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    durations = {
        point.attributes["gen_ai.operation.name"]
        for point in found["gen_ai.client.operation.duration"]
    }
    assert {"create_memory", "search_memory"} <= durations
    assert memory.location in {
        point.attributes["gen_ai.memory.store.id"]
        for point in found["commonplace.backlog.pending"]
        if point.value == 0
    }
    assert "commonplace.backlog.dead" in found
    assert {"commonplace.event": "recalled", "commonplace.operation": "recall"} in [
        dict(point.attributes) for point in found["commonplace.agent.events"]
    ]


def turn_of(adapter: str, memory: Memory) -> Callable[[str], Awaitable[str]]:
    """Make an agent of an adapter; what is returned takes a turn of it."""
    for framework in FRAMEWORKS:
        pytest.importorskip(framework, exc_type=Exception)
    if adapter != "ADK":
        from .adapters import test_user_ids

        driver = getattr(test_user_ids, adapter.removesuffix(" SDK").replace(" ", ""))
        return partial(driver(memory).turn, user_id="alice")
    from .adapters import test_adk as adk

    service = adk.CommonplaceMemoryService(memory)
    agent = adk.make(adk.PreloadNoteTool(service))
    return lambda text: adk.run(agent, text, service, adk.InMemorySessionService())


def pictures(page: Path) -> dict[str, list[str]]:
    """Read the trees of a page, by the adapters that their first line names."""
    found = {}
    for block in re.findall(r"```text\n(turn .*?)```", page.read_text("utf-8"), re.DOTALL):
        rows = [re.match(r"( *\S+(?: \S+)?)(?:  +(.*))?$", line) for line in block.splitlines()]
        tree = [row[1].replace("chat MODEL", "chat scripted") for row in rows]
        tree = [line.replace("embeddings MODEL", "embeddings hash-64") for line in tree]
        found |= dict.fromkeys(re.split(", |、", rows[0][2]), tree)
    return found


@pytest.mark.parametrize(
    "adapter", ["AgentScope", "LangGraph", "Strands", "OpenAI Agents SDK", "ADK"]
)
async def test_a_turn_of_each_adapter_is_the_tree_of_the_pages(spans, tmp_path, adapter):
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=Chat()) as memory:
        take_turn = turn_of(adapter, memory)
        await take_turn("I am allergic to peanuts.")  # and the memory is warm
        memory.flush()
        spans.clear()
        with trace.get_tracer("app").start_as_current_span("turn"):
            await take_turn("What must I not eat?")
        memory.flush()

    lines = tree(spans, scopes=("app", "commonplace"))
    for page in ("docs/how-to/observe.md", "docs/zh/how-to/observe.md"):
        assert lines == pictures(ROOT / page)[adapter]
    own = {"Strands": "invoke_agent Strands Agents", "ADK": "invoke_agent cook"}.get(adapter)
    assert own is None or any(line.strip() == own for line in tree(spans))


def test_a_process_without_opentelemetry_imports_none_of_it(tmp_path: Path):
    code = (
        "import sys\n"
        "from commonplace import Memory, Scope\n"
        "from commonplace.testing.fakes import HashEmbedder\n"
        f"with Memory.open({str(tmp_path)!r}, embedder=HashEmbedder()) as memory:\n"
        "    memory.add('Alice skis.', Scope(user_id='alice'))\n"
        "    memory.search('Alice', Scope(user_id='alice'))\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
