"""The log that a memory's failures are told to, for the agent goes on without it."""

import logging

logger = logging.getLogger("commonplace_agentscope")


class Warn:
    """Tells the log of a failure, each kind once: a memory that is down is down every turn."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, what: str, error: Exception) -> None:
        """Log that `what` failed, unless it failed in the same way before."""
        kind = f"{what} {type(error).__name__}"
        if kind not in self._seen:
            self._seen.add(kind)
            logger.warning("memory %s failed, the agent goes on without it: %s", what, error)
