"""One opening for all middlewares with the same folder and models.

So a service may make a middleware for every turn: the folder stays open between the turns, and
nothing piles up.
"""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from commonplace import Memory
from commonplace.ports.models import ChatModel, Embedder

from .models import to_chat, to_embedder
from .opening import Opening

if TYPE_CHECKING:
    from agentscope.embedding import EmbeddingModelBase
    from agentscope.model import ChatModelBase

MOST_IDLE = 8

_lock = threading.Lock()
_opened: dict[tuple[str | None, int, int], Opening] = {}
_given: "WeakValueDictionary[int, Opening]" = WeakValueDictionary()


def share(
    holder: object,
    memory: Memory | None,
    path: str | None,
    chat_model: "ChatModelBase | ChatModel | None",
    embedding_model: "EmbeddingModelBase[Any] | Embedder | None",
) -> Opening:
    """Find or make the opening of a given memory, or of a folder with these very models.

    Openings that nobody holds stay open for the next turn, the 8 that were used last.

    Raises:
        TypeError: a model is of another library.
    """
    chat, embedder = to_chat(chat_model), to_embedder(embedding_model)
    path = None if path is None else str(Path(path).expanduser().resolve())
    # An opening keeps its memory and models alive, so that an id is never another one's.
    key = (path, id(chat_model), id(embedding_model))
    with _lock:
        opening = _given.get(id(memory)) if memory is not None else _opened.pop(key, None)
        if opening is None:
            opening = Opening(memory, path=path, chat=chat, embedder=embedder)
        if memory is not None:
            _given[id(memory)] = opening
        else:
            _opened[key] = opening  # in front of it are those that were used before
        opening.holders.add(holder)
        idle = [key for key, one in _opened.items() if one.is_idle]
        spare = [_opened.pop(key) for key in idle[:-MOST_IDLE]]
    for one in spare:
        one.discard()
    return opening
