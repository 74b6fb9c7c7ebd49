"""Client of the MCP SDK, of whichever release is installed, with answers as plain JSON."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mcp
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

IS_FIRST = version("mcp").startswith("1.")
COMMAND = [sys.executable, "-m", "commonplace", "mcp"]


class Client:
    """A session whose answers are plain JSON."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def call(self, name: str, **arguments: Any) -> Any:
        """Call a tool; its structured answer, or the text of its error."""
        answer = plain(await self._session.call_tool(name, arguments))
        return answer["content"][0]["text"] if answer["isError"] else answer["structuredContent"]

    async def read(self, uri: str) -> str:
        """Read a resource."""
        if IS_FIRST:
            from pydantic import AnyUrl

            return plain(await self._session.read_resource(AnyUrl(uri)))["contents"][0]["text"]
        return plain(await self._session.read_resource(uri))["contents"][0]["text"]

    async def listed(self, what: str) -> list[dict[str, Any]]:
        """List tools, resources, resource_templates or prompts."""
        answer = plain(await getattr(self._session, f"list_{what}")())
        return next(value for value in answer.values() if isinstance(value, list))

    async def prompt(self, name: str) -> str:
        """Read a prompt."""
        return plain(await self._session.get_prompt(name))["messages"][0]["content"]["text"]


def plain(answer: Any) -> dict[str, Any]:
    """Turn an answer into JSON, whose names are those of the protocol in both releases."""
    return answer.model_dump(mode="json", by_alias=True)


@asynccontextmanager
async def over_stdio(*words: str, env: dict[str, str] | None = None) -> AsyncIterator[Client]:
    """Start a server of its own and talk to it over its standard input and output."""
    python, *rest = COMMAND
    server = StdioServerParameters(
        command=python, args=[*rest, *words], env={**os.environ, **(env or {})}
    )
    async with _session(stdio_client(server)) as session:
        yield Client(session)


@asynccontextmanager
async def over_http(url: str, token: str | None) -> AsyncIterator[Client]:
    """Talk to a running server with a token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        _session(streamable_http_client(url, http_client=http)) as session,
    ):
        yield Client(session)


@asynccontextmanager
async def _session(transport: Any) -> AsyncIterator[Any]:
    if not IS_FIRST:
        async with mcp.Client(transport) as client:
            yield client
        return
    async with transport as (read, write, *_), mcp.ClientSession(read, write) as session:
        await session.initialize()
        yield session


@contextmanager
def http_server(folder: Path, *words: str) -> Iterator[str]:
    """Start a server over HTTP on a free port; its address, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = [str(folder), "--port", str(port), *words]
    process = subprocess.Popen([*COMMAND, *given])
    try:
        for _ in range(600):
            assert process.poll() is None
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(30)
