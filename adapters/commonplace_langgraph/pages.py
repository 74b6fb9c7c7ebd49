"""Walking over checkpoints, newest first, a page at a time; nothing is held between two pages."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from commonplace import Memory
from commonplace.ports.checkpoints import Address, Selection, State

from .addresses import address_of
from .states import has

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

_PAGE = 64


def selection(config: "RunnableConfig | None", before: "RunnableConfig | None") -> Selection:
    """Say which checkpoints a listing means: without a namespace those of all namespaces."""
    below = ((before or {}).get("configurable") or {}).get("checkpoint_id") or None
    if config is None:
        return Selection(before=below)
    thread, namespace, checkpoint = address_of(config)
    is_open = config["configurable"].get("checkpoint_ns") is None
    return Selection(
        thread=thread, namespace=None if is_open else namespace, id=checkpoint, before=below
    )


def walk(
    memory: Memory,
    asked: Selection,
    *,
    wanted: Mapping[str, Any] | None,
    limit: int | None,
    serde: SerializerProtocol,
) -> Iterator[list[State]]:
    """Read page by page what is asked for, two questions to the store each.

    Args:
        wanted: what the metadata must have. It is judged here, so that it means the same on every
            engine, may be encrypted, and is never part of a question.
    """
    after: Address | None = None
    while limit is None or limit > 0:
        size = _PAGE if limit is None or wanted else min(limit, _PAGE)
        rows = memory.checkpoints.page(asked, limit=size, after=after)
        ours = (one for one in rows if "/" not in one.metadata.type)
        addresses = [one.address for one in ours if has(one, wanted, serde)]
        found = memory.checkpoints.states(addresses[:limit])
        limit = None if limit is None else limit - len(found)
        yield found
        if len(rows) < size:
            return
        after = rows[-1].address
