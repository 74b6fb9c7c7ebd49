"""Every block of code of docs/mem0.md with a Neo4j; `docs/test_code_blocks.py` runs it embedded."""

import re
from pathlib import Path

import pytest

from commonplace import Memory as Core

DOCUMENT = Path(__file__).parents[2] / "docs" / "mem0.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), flags=re.DOTALL)
EMBEDDED = '{"provider": "embedded"}'
NEO4J = '{"provider": "neo4j", "config": {"url": "neo4j://localhost:7687"}}'


def test_there_is_code_for_every_way_of_use():
    every = "".join(BLOCKS)

    for part in (".add(", ".search(", EMBEDDED, "AsyncMemory", "filters=", "custom_instructions"):
        assert part in every


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs_with_a_neo4j(tmp_path, monkeypatch, capsys, neo4j_uri, block):
    from ..servers.fixtures import empty_graph

    graph = empty_graph(neo4j_uri)
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path / "memory"))
    monkeypatch.setenv("COMMONPLACE_GRAPH", graph)
    run(block.replace(EMBEDDED, NEO4J.replace("neo4j://localhost:7687", graph)), capsys)


def run(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a block; each shows something, and something was remembered."""
    exec(compile(block, "docs/mem0.md", "exec"), {"__name__": "documented"})

    assert capsys.readouterr().out.strip() not in ("", "{'results': []}", "[]")
    with Core.from_env() as core:
        assert core.admin.list_scopes()
