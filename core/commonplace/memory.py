"""`Memory`: what a user opens and talks to. It wires the stages and holds no logic of its own."""

import asyncio
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Self

from .errors import InvalidRecordError
from .ingest.planning import Models
from .model import Backlog, DeadLetter, Scope
from .ports.models import ChatModel, Embedder
from .runtime import Store
from .settings import Location, Settings
from .validation import check_ids
from .writing import Editor


class Memory(Editor):
    """One long-term memory; every method that touches it takes whose memory it is about.

    Safe in any thread and on any event loop. Each method has an awaitable twin whose name begins
    with `a`; only the twin can use asynchronous models, which it awaits on the running loop. All
    raise `MemoryClosedError` after `close`, `InvalidRecordError` for what is no `Scope`.
    """

    @classmethod
    def open(
        cls,
        path: str | None = None,
        *,
        vectors: str | None = None,
        graph: str | None = None,
        journal: str | None = None,
        embedder: Embedder | None = None,
        chat: ChatModel | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """Open the memory in a folder, which is made when it is not there, or on servers.

        Opening a place again in one process shares its engines; close each memory you open.

        Args:
            path: the folder of all engines that have no place of their own; `settings.path`
                when missing. A path alone is a folder, whatever the environment says.
            vectors: such as `qdrant://host:6333` (`https://` with TLS), with `/collection` and
                options of `QdrantIndex` after a `?`; the key may stand before an `@`.
            graph: such as `neo4j://user:password@host:7687` (`neo4j+s://` with TLS), with
                `/database` and `?prefix=` of the labels.
            journal: a folder on this host, for this process alone, for what was accepted.
            embedder: the multilingual sentence encoder that ships with the library when missing,
                loaded on first use. A store takes only the embedder it was made with.
            chat: extracts facts from messages; without it messages are kept verbatim only.
            settings: read from the environment when missing.

        Raises:
            SchemaMismatchError: the store was made with another embedder.
            StoreLockedError: another process holds the folder.
            StoreUnavailableError: a server does not answer.
            MissingExtraError: the driver of a server is not installed.
        """
        said = settings or (Settings.from_env() if path is None else Settings())
        place = Location.find(path, said, vectors=vectors, graph=graph, journal=journal)
        settings = settings or Settings.from_env()
        if embedder is None:
            from .models.sentence_encoder import SentenceEncoder  # noqa: PLC0415 -- on first use

            embedder = SentenceEncoder()
        if not isinstance(embedder, Embedder):
            raise InvalidRecordError(
                field="embedder", value=embedder, reason="has no id, dimensions and embed"
            )
        models = Models(embedder=embedder, chat=chat)
        return cls(Store.open(place, settings, models), models, settings)

    @classmethod
    def from_env(cls) -> Self:
        """Open what `COMMONPLACE_PATH`, `COMMONPLACE_VECTORS` and their kin say."""
        return cls.open(settings=Settings.from_env())

    # -- what is on its way --------------------------------------------------------------------

    def drain(self, timeout: float = 30.0) -> Backlog:
        """Wait until every accepted write is applied or `timeout` seconds are over."""
        self._check_open()
        return self._store.writer.drain(timeout)

    async def adrain(self, timeout: float = 30.0) -> Backlog:
        """Wait as `drain`; writes that a dead loop left behind are planned on this one."""
        self._check_open()
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        self._adopt()
        while own := [task for task in self._tasks if task.get_loop() is loop]:
            if until <= loop.time():
                break
            await asyncio.wait(own, timeout=until - loop.time())
        return await self._run(self.drain, max(0.0, until - loop.time()))

    def dead_letters(self, scope: Scope | None = None) -> Sequence[DeadLetter]:
        """Read the accepted writes that cannot be applied, oldest first; None for everybody's."""
        self._check_open(scope)
        return self._store.engines.journal.dead(scope)

    def retry(self, operations: Collection[str]) -> int:
        """Put dead letters back in line, by operation; answer how many."""
        self._check_open()
        check_ids("operations", operations)
        count = self._store.engines.journal.retry(operations)
        self._store.writer.resume()
        return count

    def close(self, timeout: float = 10.0) -> None:
        """Finish what is on its way, for `timeout` seconds, and let go; repeating does nothing.

        What is not finished stays in the journal and goes on at the next open.
        """
        if not self._closed:
            self._closed = True
            self._store.release(timeout)

    async def aclose(self, timeout: float = 10.0) -> None:
        """Close, as `close`; this loop's own writes are finished first."""
        if self._closed:
            return
        await self.adrain(timeout)
        await asyncio.get_running_loop().run_in_executor(None, self.close, timeout)

    def __enter__(self) -> Self:
        """Take part."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Close."""
        self.close()

    async def __aenter__(self) -> Self:
        """Take part."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Close."""
        await self.aclose()
