"""Offloader that keeps what an agent takes out of its context beside a memory.

- `list[Msg]`, `ToolResultBlock` → JSON of AgentScope's own form, exactly, in the session.
- `DataBlock` with base64 → its bytes, of the user; with a URL → unchanged.
"""

import base64
import hashlib
import json
import logging
from typing import Any
from urllib.parse import quote, unquote

from agentscope.message import Base64Source, DataBlock, Msg, ToolResultBlock, URLSource

from commonplace import Scope
from commonplace.agents import MemorySource, acquire_memory, hinting_init, in_session, to_scope
from commonplace.ports import Address, Blob, Checkpoint

_PREFIX = "commonplace://offloaded/session:"  # a URL would lose a part that is empty
_CHANNEL = "data"
_JSON, _BYTES = "agentscope/json", "agentscope/bytes"
_PAGE = 4_000
_log = logging.getLogger("commonplace_agentscope")


@hinting_init
class CommonplaceOffloader:
    """What `Agent(offloader=...)` takes: it keeps compressed messages, long results and files.

    They are kept exactly, are never searched, and `Memory.forget` of their user or session erases
    them. A memory that fails is logged, and the agent goes on: what was not kept has no reference,
    and a data block stays as it is. For example:

        offloader = CommonplaceOffloader("./memory", user_id="alice")
        tools = [FunctionTool(offloader.read_offloaded)]

    Args:
        memory: an open memory, the path of its folder, or None for the environment's location.
        user_id: of whom the agent serves; one offloader is for one user.
        agent_id: the agent's id; None for no particular agent.

    Raises:
        WrongTypeError, MemoryClosedError: `memory` is something else, or closed.
        InvalidScopeError: an id cannot be used.
    """

    def __init__(
        self, memory: MemorySource = None, *, user_id: str, agent_id: str | None = None
    ) -> None:
        self._owner: Scope = to_scope(user_id, agent_id)
        self._memory = acquire_memory(self, memory)

    async def offload_context(self, session_id: str, msgs: list[Msg]) -> str:
        """Keep messages that a summary stands for; return their reference, empty if that failed."""
        data = [message.model_dump(mode="json") for message in msgs]
        return await self._keep(session_id, _JSON, _to_json(data))

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock) -> str:
        """Keep what was cut off a tool's result; return its reference, empty if that failed."""
        return await self._keep(session_id, _JSON, _to_json(tool_result.model_dump(mode="json")))

    async def offload_data_block(self, block: DataBlock) -> DataBlock:
        """Keep the bytes of a block, of the user; return it with its reference as the source."""
        if not isinstance(block.source, Base64Source):
            return block
        reference = await self._keep("", _BYTES, base64.b64decode(block.source.data))
        if not reference:
            return block
        source = URLSource(url=reference, media_type=block.source.media_type)  # type: ignore[arg-type]  # pydantic parses it
        return block.model_copy(update={"source": source})

    async def read(self, reference: str) -> bytes | None:
        """Read what was kept, as it was kept; None for a reference that this user does not have."""
        session, _, key = reference.removeprefix(_PREFIX).partition("/")
        thread = _thread(in_session(self._owner, unquote(session)))
        state = await self._memory.on_checkpoints(
            lambda checkpoints: checkpoints.read(thread, "", key)
        )
        return None if state is None else state.values[_CHANNEL].data

    async def read_offloaded(self, reference: str, offset: int = 0) -> str:
        """Read content that was taken out of the conversation, 4,000 characters at a time.

        Args:
            reference (str): The reference that stands in its place, such as commonplace://...
            offset (int): How many characters to skip.
        """
        try:
            data = await self.read(reference)
        except Exception as error:  # the model reads it
            return f"(it cannot be read: {error})"
        if data is None:
            return "(nothing is kept under this reference)"
        text = data.decode("utf-8", "replace")
        return text[max(offset, 0) :][:_PAGE]

    async def _keep(self, session_id: str, kind: str, data: bytes) -> str:
        try:
            scope, key = in_session(self._owner, session_id), hashlib.sha256(data).hexdigest()[:32]
            address = Address(thread=_thread(scope), namespace="", id=key)
            body = Blob(type=kind, data=b"")
            head = Checkpoint(address=address, body=body, versions={_CHANNEL: key})
            values = {(_CHANNEL, key): Blob(type=kind, data=data)}
            await self._memory.on_checkpoints(
                lambda checkpoints: checkpoints.put(head, values, scope)
            )
        except Exception:
            _log.warning("What an agent took out of its context was not kept", exc_info=True)
            return ""
        return f"{_PREFIX}{quote(session_id, safe='')}/{key}"


def _thread(scope: Scope) -> str:
    return f"agentscope-offloaded/{scope.key}"


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
