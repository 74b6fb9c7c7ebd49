"""What a configuration comes to: what every method needs to know, once it is read."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .calls import Compat

logger = logging.getLogger("commonplace_mem0")
_TELLS = {
    "no_model": "No language model is configured, so add() keeps texts as they are. Configure "
    '"llm", or pass infer=False to say that this is meant.',
    "limit": "search() answers at most 1000 memories. get_all() pages through all of them.",
    "data": "update(data=...) is mem0's old name. Use text=...",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a memory was configured to do.

    Attributes:
        compat: which calls mean what, see `calls`.
        shows_relations: a graph was asked for, so answers have `relations`.
        bare_lists: answers are lists, as `version: "v1.0"` wanted.
        instructions: told to the model with every extraction.
        model: answers messages; None when none is configured.
        is_given: a memory of ours was given, whose own model extracts when `infer=True` is said.
        reranker: has `rerank(query, documents, top_k)`; None when none is configured.
    """

    compat: Compat = "auto"
    shows_relations: bool = False
    bare_lists: bool = False
    instructions: str | None = None
    model: Callable[..., Any] | None = None
    is_given: bool = False
    reranker: Any = None
    _said: set[str] = field(default_factory=set)

    def say_once(self, what: str) -> None:
        """Tell the log of something, once for each memory."""
        if what not in self._said:
            self._said.add(what)
            logger.warning(_TELLS[what])

    def shaped(self, answer: dict[str, Any]) -> Any:
        """Give the answer in the configured version's shape."""
        if self.bare_lists and "relations" not in answer and "ticket" not in answer:
            return answer["results"]
        return answer
