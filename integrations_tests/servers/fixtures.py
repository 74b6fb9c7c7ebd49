"""Fixtures for the servers of a run, one of each, and empty stores on them.

A server is one that the environment names, one in docker, or a process of ours. Where there is no
Qdrant, the driver's imitation stands in, behind both of its protocols.
"""

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

import pytest

from .local_neo4j import HOW as HOW_NEO4J
from .local_neo4j import LocalNeo4j, is_possible
from .qdrant_process import QdrantProcess
from .qdrant_process import is_possible as is_qdrant_possible

HOW_QDRANT = (
    "no Qdrant server: its optimizer, its durability, clusters and strict mode are untested. Set"
    " QDRANT_URL (and QDRANT_API_KEY, QDRANT_GRPC_PORT), put qdrant on the PATH, or start"
    " docker and install testcontainers"
)
PASSWORD = "only-for-tests"
_STANDS_IN = pytest.StashKey[bool]()


@dataclass(frozen=True)
class Neo4jPlace:
    """Where a server is, as whom to ask it, and the process if it is ours to kill."""

    uri: str
    auth: tuple[str, str] | None
    process: LocalNeo4j | None = None


@dataclass(frozen=True)
class QdrantPlace:
    """Where a server is, its key if it has one, whether it is one, and the process if ours."""

    url: str
    grpc_port: int
    key: str | None = None
    is_real: bool = True
    process: QdrantProcess | None = None


@pytest.fixture(scope="session")
def neo4j_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jPlace]:
    """A Neo4j that tests may fill."""
    driver = pytest.importorskip("neo4j", reason="pip install 'commonplace-memory[neo4j]'")
    if given := os.environ.get("NEO4J_URI"):
        user, password = os.environ.get("NEO4J_USER", "neo4j"), os.environ.get("NEO4J_PASSWORD")
        yield Neo4jPlace(given, (user, password) if password else None)
    elif containers := _containers("neo4j"):
        container = containers.Neo4jContainer("neo4j:5.26-community", password=PASSWORD)
        # A test that is refused must not keep the next ones out.
        container.with_env("NEO4J_dbms_security_auth__max__failed__attempts", "0")
        with container as one:
            yield Neo4jPlace(one.get_connection_url(), ("neo4j", PASSWORD))
    elif is_possible():
        try:
            server = LocalNeo4j(tmp_path_factory.mktemp("neo4j"))
        except subprocess.CalledProcessError as error:
            if os.environ.get("CI"):
                raise  # there a skip would be taken for a pass
            pytest.skip(f"{HOW_NEO4J}; {error}")
        try:
            with driver.GraphDatabase.driver(server.uri, auth=("neo4j", "neo4j")) as first:
                change = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $new"
                first.execute_query(change, new=PASSWORD, database_="system")
            yield Neo4jPlace(server.uri, ("neo4j", PASSWORD), server)
        finally:
            server.kill()
    else:
        pytest.skip(HOW_NEO4J)


@pytest.fixture
def killable_neo4j(neo4j_place: Neo4jPlace) -> LocalNeo4j:
    """The server's process, for a test that kills it and starts it again."""
    if neo4j_place.process is None:
        pytest.skip("this Neo4j is not ours to kill")
    return neo4j_place.process


@pytest.fixture(scope="session")
def neo4j_uri(neo4j_place: Neo4jPlace) -> str:
    """Where it is, with user and password, as `Memory.open(graph=...)` takes it."""
    scheme, _, place = neo4j_place.uri.partition("://")
    who = ":".join(quote(one, safe="") for one in neo4j_place.auth or ())
    return f"{scheme}://{who}@{place}" if who else neo4j_place.uri


@pytest.fixture(scope="session")
def qdrant_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[QdrantPlace]:
    """A Qdrant that tests may fill, or what stands in for one."""
    pytest.importorskip("qdrant_client", reason="pip install 'commonplace-memory[qdrant]'")
    if "QDRANT_URL" in os.environ:
        given = os.environ["QDRANT_URL"]
        # As a server does when it is not told otherwise.
        port = os.environ.get("QDRANT_GRPC_PORT") or (urlsplit(given).port or 6333) + 1
        yield QdrantPlace(given, int(port), os.environ.get("QDRANT_API_KEY"))
    elif containers := _containers("qdrant"):
        with containers.QdrantContainer("qdrant/qdrant:v1.19.0") as one:
            yield QdrantPlace(f"http://{one.rest_host_address}", one.exposed_grpc_port)
    elif is_qdrant_possible():
        process = QdrantProcess(tmp_path_factory.mktemp("qdrant"))
        yield QdrantPlace(process.url, process.grpc_port, process=process)
        process.kill()
    else:
        from .local_qdrant import Imitation, LocalQdrant

        request.config.stash[_STANDS_IN] = True
        imitation = Imitation()
        server = LocalQdrant(imitation)
        yield QdrantPlace(server.url, server.grpc_port, is_real=False)
        server.close()
        imitation.close()


@pytest.fixture(scope="session")
def qdrant_url(qdrant_place: QdrantPlace) -> str:
    """Where it is, with its key, as `Memory.open(vectors=...)` takes it."""
    scheme, _, place = qdrant_place.url.partition("://")
    key = f"{quote(qdrant_place.key, safe='')}@" if qdrant_place.key else ""
    return f"{scheme}://{key}{place.strip('/')}?grpc_port={qdrant_place.grpc_port}"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what a run has not tested."""
    if config.stash.get(_STANDS_IN, False):
        terminalreporter.write_line(HOW_QDRANT)


def empty_graph(neo4j_uri: str) -> str:
    """Empty the graph stores of all tests on a server; answer the URI of one."""
    import neo4j

    parts = urlsplit(neo4j_uri)
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    uri = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    ours = "any(one IN labels(n) WHERE one STARTS WITH 'Test')"
    ours += " AND coalesce(n.id, '') <> 'schema'"  # the schema is there as long as its indexes
    with neo4j.GraphDatabase.driver(uri, auth=auth) as driver:
        driver.execute_query(f"MATCH (n) WHERE {ours} DETACH DELETE n")
    return f"{neo4j_uri}?prefix=Test"


@contextlib.contextmanager
def empty_index(qdrant_url: str) -> Iterator[str]:
    """Give the URL of a collection that is not there yet; drop it in the end."""
    import qdrant_client

    name = f"test_{uuid.uuid4().hex}"
    parts = urlsplit(qdrant_url)
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    yield f"{parts.scheme}://{parts.netloc}/{name}?{parts.query}"
    key = unquote(parts.username) if parts.username else None
    client = qdrant_client.QdrantClient(url, api_key=key, check_compatibility=False)
    with contextlib.closing(client):
        client.delete_collection(name)


def has_qdrant() -> bool:
    """Tell whether there is a real server, or could be."""
    if "QDRANT_URL" in os.environ or is_qdrant_possible():
        return True
    return _containers("qdrant") is not None


def _containers(name: str):
    """Import what starts a server in docker; None where that cannot be."""
    docker = shutil.which("docker")
    if docker is None:
        return None
    if subprocess.run([docker, "info"], capture_output=True, check=False).returncode != 0:
        return None
    try:
        return getattr(__import__(f"testcontainers.{name}"), name)
    except ImportError:
        return None
