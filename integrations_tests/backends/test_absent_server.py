"""A server that is not there is named with host and port, and with the way out."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace import Memory, StoreUnavailableError
from commonplace.testing.fakes import HashEmbedder

pytest.importorskip("neo4j", reason="pip install 'commonplace-memory[neo4j]'")


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("scheme", ["neo4j", "bolt"])
def test_a_neo4j_that_is_not_there_is_named(tmp_path: Path, closed_port: int, scheme: str):
    graph = f"{scheme}://neo4j:secret@127.0.0.1:{closed_port}"
    expected = rf"no Neo4j server answers at 127\.0\.0\.1:{closed_port} \(.*refused\). Start it, or"

    with pytest.raises(StoreUnavailableError, match=expected) as caught:
        Memory.open(str(tmp_path), graph=graph, embedder=HashEmbedder())
    assert "secret" not in str(caught.value)


def test_a_host_without_an_address_is_named_with_the_usual_port(tmp_path: Path):
    with pytest.raises(StoreUnavailableError, match=r"answers at nowhere\.invalid:7687 "):
        Memory.open(str(tmp_path), graph="neo4j://nowhere.invalid", embedder=HashEmbedder())


def test_the_driver_says_nothing_beside_our_error(tmp_path: Path, closed_port: int):
    code = "import sys; from commonplace import Memory; Memory.open(sys.argv[1], graph=sys.argv[2])"
    command = [sys.executable, "-c", code, str(tmp_path), f"neo4j://127.0.0.1:{closed_port}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "no Neo4j server answers" in done.stderr.splitlines()[-1]
    assert "\nUnable to retrieve" not in f"\n{done.stderr}"
