"""What a turn leaves behind: what was said and what was answered, written when it ends."""

from functools import partial

from strands.agent import AgentResult

from commonplace import Memory, Message
from commonplace.agents.handlers import within
from commonplace.agents.messages import to_messages
from commonplace.agents.policy import WRITE_PATIENCE, Policy
from commonplace.agents.session import WarnOnce

from .convert import answer_of, is_parked, text_of
from .handing import hand_over
from .turns import Turn


class Record:
    """Writes the turns of one plugin."""

    def __init__(self, memory: Memory, policy: Policy, warn: WarnOnce) -> None:
        self._memory = memory
        self._policy = policy
        self._warn = warn
        self._is_late = False

    async def write(self, turn: Turn, result: AgentResult) -> None:
        """Write a turn; nothing for one that was cut off. It never raises.

        Returns in time even if the memory hangs; a write that was accepted goes on. After one that
        took too long the next are waited for less.
        """
        try:
            messages = self._messages(turn, result)
            if not messages or turn.scope is None:
                return
            if self._policy.await_write:
                writing = self._memory.aadd(messages, turn.scope)
            else:
                adding = partial(self._memory.add, messages, turn.scope, wait=False)
                writing = hand_over(adding)
            patience = self._policy.recall_timeout if self._is_late else WRITE_PATIENCE
            await within(patience, "write", writing)
            self._is_late = False
        except Exception as error:  # noqa: BLE001 -- an agent outlives its memory
            self._is_late = isinstance(error, TimeoutError)
            self._warn("write", error)

    def _messages(self, turn: Turn, result: AgentResult) -> list[Message]:
        answer = answer_of(result)
        if not answer and not is_parked(result):
            return []
        said: list[Message] = []
        for message in turn.said:
            said += to_messages(text_of(message), "user", "", turn.step())
        return said + to_messages(answer, "assistant", "", turn.step())
