"""What a turn calls to mind: asked once, at its first model call, and in time."""

from commonplace import Match, Memory
from commonplace.agents.handlers import recall
from commonplace.agents.policy import Policy
from commonplace.agents.session import WarnOnce

from .convert import text_of
from .turns import Turn
from .warm import ready


class Recall:
    """AccessLog for the turns of one plugin."""

    def __init__(self, memory: Memory, policy: Policy, warn: WarnOnce) -> None:
        self._memory = memory
        self._policy = policy
        self._warn = warn

    async def of(self, turn: Turn) -> tuple[Match, ...]:
        """Find what a turn's words call to mind, best first; nothing if the memory fails.

        The first turn also waits for the embedder, for 10 seconds at most.
        """
        if turn.matches is not None:
            return turn.matches
        turn.matches = ()
        query = "\n".join(text_of(one) for one in turn.said)
        if turn.scope is None or not query:
            return ()
        try:
            await ready(self._memory)
            turn.matches = tuple(await recall(self._memory, turn.scope, query, self._policy))
        except Exception as error:  # noqa: BLE001 -- an agent outlives its memory
            self._warn("recall", error)
        return turn.matches
