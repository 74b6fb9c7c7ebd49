"""How an adapter tells of a memory that fails, for the agent goes on without it."""

import logging


class WarnOnce:
    """Tells a log of a failure, each kind once: a memory that is down is down every turn.

    Args:
        log: the name of the log, which is the adapter's package.
    """

    def __init__(self, log: str) -> None:
        self._log = logging.getLogger(log)
        self._seen: set[str] = set()

    def __call__(self, what: str, error: Exception) -> None:
        """Log that `what` failed, unless it failed in the same way before."""
        kind = f"{what} {type(error).__name__}"
        if kind not in self._seen:
            self._seen.add(kind)
            self._log.warning("memory %s failed, the agent goes on without it: %s", what, error)
