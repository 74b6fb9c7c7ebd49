"""What forms change: records, erasures, and dead letters that are tried again."""

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException

from ..types import Scope, WriteResult, now
from .views import Ask, Shown, View, confirmation

PATIENCE = 5.0  # seconds that a form waits for its change; it is safe before


class Moved(Exception):  # noqa: N818 -- no error: where a change leads
    """Where to go after a change: the name of a page, and its parameters."""

    def __init__(self, page: str, given: Mapping[str, Any]) -> None:
        super().__init__(page)
        self.page = page
        self.given = given


def scope_parameters(scope: Scope) -> dict[str, str | None]:
    """Write a scope as the parameters of an address."""
    return {"user": scope.user_id, "agent": scope.agent_id, "session": scope.session_id}


async def record(ask: Ask) -> Shown:
    """Edit, pin, hide, show again, delete or restore a record."""
    scope, record_id, memory = ask.scope(), ask.text("id") or "", ask.memory
    action = ask.text("action")
    done: WriteResult
    if action == "edit":
        text = ask.given.get("text", "").replace("\r\n", "\n")  # as browsers send line breaks
        done = await memory.aupdate(record_id, text, scope, wait=PATIENCE)
    elif action in ("pin", "unpin"):
        pinned = action == "pin"
        done = await memory.aupdate(record_id, None, scope, pinned=pinned, wait=PATIENCE)
    elif action in ("expire", "unexpire"):
        at = now() if action == "expire" else None
        done = await memory.aupdate(record_id, None, scope, expires_at=at, wait=PATIENCE)
    elif action == "delete":
        done = await memory.adelete(record_id, scope, wait=PATIENCE)
    elif action == "restore":
        done = await memory.arestore(record_id, scope, wait=PATIENCE)
    else:
        raise HTTPException(400)
    state = "pending" if done.pending else "changed"
    raise Moved("record", {**scope_parameters(scope), "id": record_id, "done": state})


async def forget(ask: Ask) -> Shown:
    """Erase a scope whose id was typed, and show the receipt."""
    scope = ask.scope()
    if ask.text("confirm") != confirmation(scope):
        raise HTTPException(400, "confirm")
    receipt = await ask.memory.aforget(scope)
    return {"scope": scope, "counts": receipt.removed, "receipt": receipt}


async def operation(ask: Ask) -> Shown:
    """Try a dead letter again, or all of them."""
    if ask.login.users is not None:
        raise HTTPException(403)
    admin, wanted = ask.memory.admin, ask.text("operation")
    letters = await ask.run(admin.dead_letters)
    chosen = [one.operation for one in letters if wanted in (None, one.operation)]
    raise Moved("operation", {"retried": await ask.run(admin.retry, chosen)})


CHANGES: Mapping[str, View] = {"record": record, "forget": forget, "operation": operation}
