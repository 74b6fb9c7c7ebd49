"""Commands that connect other programs: an MCP server, and hooks of coding agents."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..types import Scope
from . import arguments
from .options import SENTENCE, Commands, EmbedderName, OptionalPlaceName
from .output import FAILURE, document, refuse, say

_PLACES = ("COMMONPLACE_PATH", "COMMONPLACE_VECTORS", "COMMONPLACE_GRAPH")
_SERVING = "What was accepted is not lost; run the same command again."

connections = Commands("Connections")


@connections.register(again=_SERVING)
def mcp(
    location: OptionalPlaceName = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Whose memories, over standard input and output.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Only what this agent wrote, and write as it.")
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Serve many users over HTTP instead: a line `SHA256 USER` for each token.",
        ),
    ] = None,
    jwks: Annotated[
        str | None,
        typer.Option(
            metavar="URL_OR_FILE",
            help="Serve many users over HTTP instead: the keys that their tokens (JWT) are signed"
            " with; the user is the claim `sub`.",
        ),
    ] = None,
    issuer: Annotated[
        str | None, typer.Option(metavar="URL", help="The claim `iss` of signed tokens.")
    ] = None,
    audience: Annotated[
        str | None,
        typer.Option(help="The claim `aud` of signed tokens, such as this server's address."),
    ] = None,
    project: Annotated[
        bool,
        typer.Option(
            "--project", help="For the project of the working folder and whoever works on it."
        ),
    ] = False,
    host: Annotated[str, typer.Option(help="Where to listen for HTTP.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The port for HTTP.")] = 8765,
    embedder: EmbedderName = SENTENCE,
) -> None:
    """Serve memories to MCP clients; creates the memory if there is none."""
    ways = [user is not None or project, tokens is not None, jwks is not None]
    if sum(ways) != 1 or (project and agent is not None):
        refuse(
            "Whose memories? Give --user for one user, or --tokens or --jwks for many over HTTP."
        )
    if any((given is None) != (jwks is None) for given in (issuer, audience)):
        refuse("Give --jwks, --issuer and --audience together: whose tokens, and for whom.")
    from ..agents.coding_agent import project_scope
    from ..mcp_server import PATH, SignedTokens, TokenFile, serve, serve_users

    known: TokenFile | SignedTokens | None = None if tokens is None else TokenFile(tokens)
    if jwks is not None and issuer is not None and audience is not None:
        known = SignedTokens(jwks, issuer=issuer, audience=audience)
    owner = None if user is None else Scope(user_id=user, agent_id=agent)
    if project:
        location, owner = location or _home(), project_scope(user)
    arguments.check_new(location)
    with arguments.opened(location, embedder) as memory:
        if owner is not None:
            serve(memory, owner)
        elif known is not None:
            say(f"Serving http://{host}:{port}{PATH}")
            serve_users(memory, known, host=host, port=port, agent_id=agent)


@connections.register()
def hook(
    location: OptionalPlaceName = None,
    user: Annotated[
        str | None, typer.Option("--user", help="The id of the user; by default the account.")
    ] = None,
    embedder: EmbedderName = SENTENCE,
) -> None:
    """Do what a hook of a coding agent asks on standard input; see plugins/claude-code.

    It never ends with 2, by which a hook would stop the agent.
    """
    from ..agents.coding_agent import project_scope, run_hook
    from ..secret_patterns import secrets

    try:
        event = json.loads(sys.stdin.buffer.read())
        with arguments.opened(location or _home(), embedder, redact=secrets) as memory:
            said = run_hook(event, memory, project_scope(user))
    except Exception as error:  # noqa: BLE001 -- the agent goes on without its memory
        say(f"No memory: {error}", style="red")
        raise typer.Exit(FAILURE) from None
    if said:
        document(said)


def _home() -> str | None:
    """Return the folder of whoever works on projects, unless the environment names another."""
    is_named = any(os.environ.get(name) for name in _PLACES)
    return None if is_named else str(Path.home() / ".commonplace")
