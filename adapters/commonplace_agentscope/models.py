"""AgentScope 2's chat models as `ChatModel`."""

import asyncio
from collections.abc import Mapping
from typing import Any

from agentscope.message import SystemMsg, TextBlock, UserMsg
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.model import FinishedReason as Finished

from commonplace import ChatModel, ModelFailedError
from commonplace.agents import hinting_init, with_schema, without_fence

from .shared_models import model_id, wrong_model


@hinting_init
class AgentScopeChat:
    """Extraction with an AgentScope chat model, streaming or not; one call per answer."""

    def __init__(self, model: ChatModelBase) -> None:
        if not isinstance(model, ChatModelBase):
            raise wrong_model("chat_model", model, "ChatModelBase", "ChatModel")
        self.model = model

    @property
    def id(self) -> str:
        """The model's class and name."""
        return model_id(self.model)

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text; the schema goes into the prompt, which every model can read.

        Raises:
            ModelFailedError: the call was interrupted.
        """
        prompt = with_schema(system, schema)
        answer = await self.model(
            [SystemMsg(name="system", content=prompt), UserMsg(name="user", content=user)]
        )
        if isinstance(answer, ChatResponse):
            self._check(answer)
            return without_fence(_text(answer))
        parts: list[str] = []
        async for chunk in answer:
            self._check(chunk)
            if chunk.is_last:
                # The last chunk repeats the whole answer.
                return without_fence(_text(chunk) or "".join(parts))
            parts.append(_text(chunk))
        return without_fence("".join(parts))

    def _check(self, response: ChatResponse) -> None:
        if response.finished_reason != Finished.INTERRUPTED:
            return
        # A model of AgentScope swallows a cancellation; its caller still waits for it.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        raise ModelFailedError(model=self.id, reason="the call was interrupted")


def to_chat(model: ChatModelBase | ChatModel | None) -> ChatModel | None:
    """Wrap a chat model of AgentScope; return others and None as they are."""
    return model if model is None or isinstance(model, ChatModel) else AgentScopeChat(model)


def _text(response: ChatResponse) -> str:
    return "".join(block.text for block in response.content if isinstance(block, TextBlock))
