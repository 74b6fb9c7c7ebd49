"""Server class of the MCP SDK, and all in which its releases 1.x and 2.x differ."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import unquote

from ..errors import MissingExtraError

PATH = "/mcp"
NAME = "commonplace"

try:
    _is_first = version("mcp").startswith("1.")
except PackageNotFoundError as error:
    raise MissingExtraError(package="mcp", extra="mcp") from error

_package = "mcp.server.fastmcp" if _is_first else "mcp.server.mcpserver"
_errors = import_module(f"{_package}.exceptions")

Server: Any = getattr(import_module(_package), "FastMCP" if _is_first else "MCPServer")
ToolError: type[Exception] = _errors.ToolError
ResourceError: type[Exception] = _errors.ResourceError


def run(make: Any, host: str | None = None, port: int = 0) -> None:
    """Run a server until it is told to stop.

    Args:
        make: makes it, with the options that it is given.
        host: an address that it listens on, each request on its own; None for stdio.
    """
    if host is None:
        make().run("stdio")
        return
    from mcp.server.transport_security import TransportSecuritySettings

    listen = {
        "host": host, "port": port, "stateless_http": True, "json_response": True,
        # A browser has no token to lend, and a proxy passes on the host that it was asked for.
        "transport_security": TransportSecuritySettings(enable_dns_rebinding_protection=False),
    }  # fmt: skip
    if _is_first:
        make(**listen).run("streamable-http")
    else:
        make().run("streamable-http", **listen)


def decoded(part: str) -> str:
    """Read a part of the address of a resource, which 2.x has decoded already."""
    return unquote(part) if _is_first else part
