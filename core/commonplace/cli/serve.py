"""Command `commonplace serve`: the pages of a memory in a browser."""

import secrets
import socket
from pathlib import Path
from typing import Annotated

from ..errors import MissingExtraError

try:
    import typer
except ImportError as error:
    raise MissingExtraError(package="typer", extra="cli") from error

from . import arguments
from .options import SENTENCE, Commands, EmbedderName, OptionalPlaceName
from .output import answer, refuse, say

serving = Commands("Operators")
_UsersFile = Annotated[
    Path | None,
    typer.Option("--users-file", help="Hashes of the tokens of users, who see only their own."),
]


@serving.register()
def serve(
    location: OptionalPlaceName = None,
    embedder: EmbedderName = SENTENCE,
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8765,
    write: Annotated[
        bool, typer.Option("--write", help="Let forms change, delete and erase.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name by which browsers reach this host; may be repeated."),
    ] = None,
    users_file: _UsersFile = None,
    new_token: Annotated[
        str | None,
        typer.Option(help="Add a token of this user to the users file, print it, and end."),
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option(help="Header in which a reverse proxy tells the id of the user."),
    ] = None,
) -> None:
    """Show in a browser what is remembered, and why it is recalled; for this host alone."""
    from .. import web
    from ..agents.lazy_memory import start_warming

    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(package="uvicorn", extra="serve") from error
    if new_token is not None:
        if users_file is None:
            refuse("Give --users-file, to which the token is added.")
        answer(web.add_user_token(users_file, new_token))
        return
    if user_header is not None and users_file is not None:
        refuse("Give --user-header or --users-file, not both.")
    hosts = [*web.LOOPBACK, host, *(allow_host or ())]
    with arguments.opened(location, embedder, create=False) as memory:
        start_warming(memory)  # while the link is opened: the first question has no time for it
        token = "" if user_header else secrets.token_urlsafe(32)
        app = (
            web.create_app(memory, login=web.header_login(user_header), write=write, hosts=hosts)
            if user_header
            else web.create_app(
                memory, token=token, users=web.read_users(users_file) if users_file else None,
                write=write, hosts=hosts,
            )
        )  # fmt: skip
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}"
        answer(f"{address}/login?token={token}" if token else address)
        if host not in ("127.0.0.1", "::1", "localhost"):
            say("Others can reach this: put a reverse proxy with TLS in front.", style="yellow")
        config = uvicorn.Config(app, log_level="warning", server_header=False, access_log=False)
        uvicorn.Server(config).run(sockets=[listening])
