"""What a memory manager hands a store of a conversation, as writes of those who spoke."""

import hashlib
import uuid
from collections.abc import Sequence
from functools import partial
from itertools import groupby

from strands.types.content import Message as StrandsMessage

from commonplace import InvalidScopeError, Memory, Message, Scope
from commonplace.agents.messages import to_messages
from commonplace.agents.session import WarnOnce

from .convert import text_of
from .handing import hand_over
from .scopes import NOBODY
from .stamps import stamp_of

Said = tuple[Scope, list[Message]]


class Ingest:
    """Accepts messages for their owners.

    Args:
        scope: whose all of them are; that of each one's stamp when missing.
    """

    def __init__(self, memory: Memory, scope: Scope | None, warn: WarnOnce) -> None:
        self._memory = memory
        self._scope = scope
        self._warn = warn
        self._run = uuid.uuid4().hex

    async def accept(
        self, messages: Sequence[StrandsMessage], numbers: Sequence[int] | None
    ) -> int:
        """Accept messages, one write for each run of one owner; answer how many are kept.

        Args:
            numbers: of each message; the same number and text again is the same message.
        """
        if numbers is None:
            said = [self._said(one, uuid.uuid4().hex) for one in messages]
        else:
            pairs = zip(messages, numbers, strict=True)
            said = [self._said(one, f"{self._run}:{number}") for one, number in pairs]
        owned = [one for one in said if one is not None]
        writes = [
            partial(self._memory.add, [one for _, parts in run for one in parts], scope, wait=False)
            for scope, run in groupby(owned, lambda one: one[0])
        ]
        if writes:
            await hand_over(lambda: [write() for write in writes])
        return len(owned)

    def _said(self, message: StrandsMessage, key: str) -> Said | None:
        text = text_of(message)
        stamp = stamp_of(message, self._memory)
        scope = self._scope or (stamp.scope if stamp is not None else None)
        if scope is None and text:
            self._warn("write", InvalidScopeError(field="user_id", value=None, reason=NOBODY))
        if stamp is not None:
            key = stamp.id
        else:
            # Numbers begin anew with each agent, so that alone they would name several messages.
            key += ":" + hashlib.sha256(f"{message['role']} {text}".encode()).hexdigest()[:16]
        parts = to_messages(text, message["role"], "", key)
        return (scope, parts) if scope is not None and parts else None
