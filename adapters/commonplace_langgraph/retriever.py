"""A memory as a retriever for chains."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from pydantic import PrivateAttr

from commonplace import Memory
from commonplace.agents import search_scope as asked
from commonplace.agents import to_query as question
from commonplace.agents.policy import Policy

from .convert import to_document
from .reach import DEFAULT, Reach
from .scopes import Id, user_of

_config: ContextVar[RunnableConfig | None] = ContextVar("config", default=None)


class MemoryRetriever(BaseRetriever):
    """Finds memories of whoever the chain runs for, best first.

    A memory that fails raises, as retrievers do: `with_fallbacks` says what happens then.

    Attributes:
        memory: an open memory.
        user_id, agent_id: as of `MemoryMiddleware`.
        policy: `top_k`, `threshold` and `scope_search_by_agent` count.
        where: a filter on the records' metadata (`commonplace.filters`), AND-ed with the scope.

    Raises:
        pydantic.ValidationError: a field cannot be used.
    """

    memory: Memory
    user_id: Id = user_of
    agent_id: Id | None = None
    policy: Policy = DEFAULT
    where: Mapping[str, Any] | None = None
    _reach: Reach = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check what cannot work."""
        super().model_post_init(context)
        self._reach = Reach(self.memory, self.user_id, self.agent_id, self.policy)

    def invoke(
        self,
        input: str,  # noqa: A002 -- LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Find documents; the config may say whose."""
        token = _config.set(config)
        try:
            return super().invoke(input, config, **kwargs)
        finally:
            _config.reset(token)

    async def ainvoke(
        self,
        input: str,  # noqa: A002 -- LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Find documents, as `invoke`."""
        token = _config.set(config)
        try:
            return await super().ainvoke(input, config, **kwargs)
        finally:
            _config.reset(token)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        scope, text = asked(self._reach.whose(config=_config.get()), self.policy), question(query)
        found = self.memory.search(text, scope, **self._options) if text else ()
        return [to_document(one) for one in found]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        scope, text = asked(self._reach.whose(config=_config.get()), self.policy), question(query)
        found = await self.memory.asearch(text, scope, **self._options) if text else ()
        return [to_document(one) for one in found]

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "top_k": self.policy.top_k,
            "threshold": self.policy.threshold,
            "where": self.where,
        }
