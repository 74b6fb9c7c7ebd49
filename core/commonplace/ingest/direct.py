"""Direct writer: carries writes out in one transaction, where engines and embedder allow it.

Apart from the worker, which accepts writes first and applies them from the journal.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..concurrency import call_within
from ..errors import CommonplaceError, MemoryTimeoutError
from ..ports.stores import AskVectors, Engines, Transactional, crash_point
from ..settings import Settings
from ..types import WriteResult
from .applying import Describe, apply_to, described
from .codec import DeleteBody, Write, WriteBody
from .embedding import EmbedderPace, embed
from .planning import Models, PlannedChanges, embed_steps, plan_deletion

_QUICK_SECONDS = 0.05  # that an embedder may take before a write is accepted


class DirectWriter:
    """Writes on its caller's thread.

    Args:
        describe: gives a text's terms and its length in words.
        pace: of embedders, as the worker measures it; an unknown one counts as slow.
    """

    def __init__(
        self, engines: Engines, settings: Settings, describe: Describe, pace: EmbedderPace
    ) -> None:
        self._engines = engines
        self._settings = settings
        self._describe = describe
        self._pace = pace

    def write(self, writes: Sequence[Write], models: Models) -> list[WriteResult] | None:
        """Carry writes out in one transaction, all or none, and keep no operation.

        Returns:
            A result each; None, with nothing changed, where that cannot be: the engines are not in
            one file, a model is slow, or earlier writes of a partition wait.

        Raises:
            StoreUnavailableError: nothing was stored.
        """
        engines = self._engines
        if not isinstance(engines, Transactional):
            return None
        crash_point("before_journal")
        planned = self._plan_quickly(writes, models)
        if planned is None:
            return None
        describe = described(planned, self._describe)
        partitions = {one.operation.scope.partition for one in writes}

        def work(bound: Engines) -> list[WriteResult] | None:
            if any(bound.journal.pending(one, limit=1) for one in partitions):
                return None
            ops = bound.journal.stamp([one.operation for one in writes])
            return apply_to(bound, list(zip(ops, planned, strict=True)), describe)

        return engines.transact(work)

    def _plan_quickly(self, writes: Sequence[Write], models: Models) -> list[PlannedChanges] | None:
        """Plan writes that need an embedder alone, if it is quick; None if not."""
        planned: list[PlannedChanges] = []
        plans = []
        texts: list[str] = []
        for one in writes:
            if not one.only_embeds:
                return None
            if isinstance(one.body, WriteBody):
                plan = embed_steps(one.body.puts)
                ask = next(plan)
                assert isinstance(ask, AskVectors)  # noqa: S101 -- the only step
                plans.append((plan, len(texts), len(texts) + len(ask.texts)))
                texts += ask.texts
        vectors = self._embed_quickly(models, texts)
        if vectors is None:
            return None
        remaining = iter(plans)
        for one in writes:
            if isinstance(one.body, DeleteBody):
                planned.append(plan_deletion(one.operation.scope, one.body))
                continue
            plan, start, end = next(remaining)
            try:
                plan.send(vectors[start:end])
            except StopIteration as done:
                planned.append(done.value)
        return planned

    def _embed_quickly(self, models: Models, texts: Sequence[str]) -> Any:
        """Embed texts if that takes but a moment; None if it takes longer, or fails."""
        if not texts:
            return []
        embedder, limit = models.embedder, self._settings.max_embed_chars
        if models.embeds_on_loop or self._pace.expect(embedder, len(texts)) > _QUICK_SECONDS:
            return None
        call = partial(embed, embedder, texts, purpose="document", limit=limit)
        try:
            return call_within(_QUICK_SECONDS, "embed", call)
        except MemoryTimeoutError:
            self._pace.forget(embedder)
        except (CommonplaceError, SystemExit):  # once it is accepted, it is tried again
            pass
        return None
