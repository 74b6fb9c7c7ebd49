"""MCP server: the memories of a user as tools, resources and a prompt; the extra `mcp`.

`commonplace mcp` runs it.
"""

from .sdk import PATH
from .server import serve, serve_users
from .tokens import SignedTokens, TokenFile

__all__ = ["PATH", "SignedTokens", "TokenFile", "serve", "serve_users"]
