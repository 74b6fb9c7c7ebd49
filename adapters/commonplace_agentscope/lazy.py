"""Opening of an adapter's memory: on first use, shared by all who name the same folder and models.

Apart from the middleware, as it knows no AgentScope: those of 1.x and 2.x open a memory alike.
"""

import contextlib
import logging

from commonplace import ChatModel, CommonplaceError, Embedder, Memory
from commonplace.agents import (
    AgentMemory,
    LazyMemory,
    MemoryPool,
    await_within,
    check_memory,
    warm,
)

LOG = "commonplace_agentscope"
_pool = MemoryPool()


def share(
    holder: object,
    *,
    client: Memory | None,
    folder: str | None,
    models: tuple[object, object],
    chat: ChatModel | None,
    embedder: Embedder | None,
) -> LazyMemory:
    """Find or make the memory of all holders with the same client, or folder and models.

    Args:
        folder: its path in full; None for the environment's.
        models: the chat and the embedding model as they were given.
        chat, embedder: the same models, wrapped for the core.

    Raises:
        WrongTypeError, MemoryClosedError: the client is of another library, or closed.
    """
    if client is not None:
        check_memory(client, "client", otherwise=", or leave it out and pass path=")
    given = {"path": folder, "chat_model": models[0], "embedding_model": models[1]}
    ignored = [name for name, value in given.items() if value is not None]
    if client is not None and ignored:
        logging.getLogger(LOG).warning("client is given, so %s is ignored", ", ".join(ignored))

    def open_memory() -> Memory:
        memory = Memory.open(folder, chat=chat, embedder=embedder)
        try:
            if embedder is None:
                # The default one takes more than a second to load: not in the first recall.
                warm(memory)
        except BaseException:
            memory.close()
            raise
        return memory

    # `open_memory` keeps the models alive, so that an id is never another one's.
    key = (folder, id(models[0]), id(models[1]))
    return _pool.acquire(holder, key, open_memory if client is None else client)


async def reopen_misconfigured(memory: AgentMemory) -> None:
    """Open a memory again that could not be opened as configured: somebody may have mended it.

    Raises:
        InvalidRecordError, SchemaMismatchError, StoreRefusedError, MissingExtraError: nobody has.
    """
    try:
        memory.raise_misconfiguration()
    except CommonplaceError:
        opening = memory.lazy.aget()
        with contextlib.suppress(Exception):
            await await_within(memory.policy.recall_timeout, "opening the memory", opening)
        memory.raise_misconfiguration()


async def close(memory: AgentMemory, holder: object, timeout: float) -> None:
    """Wait for writes that still run, then close the memory if nobody else uses it.

    A memory that was given stays open.

    Args:
        timeout: seconds that the writes are waited for.
    """
    await memory.wait_for_writes(timeout)
    memory.lazy.holders.discard(holder)
    if not memory.lazy.holders:
        await memory.lazy.aclose()
