"""AgentScope 1.x's chat models as `ChatModel`."""

from collections.abc import Mapping
from typing import Any

from agentscope.model import ChatModelBase, ChatResponse

from commonplace import ChatModel
from commonplace.agents import with_schema, without_fence

from ..shared_models import AgentScopeEmbedder, model_id, wrong_model

AgentScopeV1Embedder = AgentScopeEmbedder


class AgentScopeV1Chat:
    """Extraction with a chat model of AgentScope 1.x, streaming or not; one call per answer."""

    def __init__(self, model: ChatModelBase) -> None:
        if not isinstance(model, ChatModelBase):
            raise wrong_model("chat_model", model, "ChatModelBase", "ChatModel")
        self.model: Any = model

    @property
    def id(self) -> str:
        """The model's class and name."""
        return model_id(self.model)

    async def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text; the schema goes into the prompt, which every model can read."""
        prompt = with_schema(system, schema)
        answer = await self.model(
            [{"role": "system", "content": prompt}, {"role": "user", "content": user}]
        )
        if isinstance(answer, ChatResponse):
            blocks: Any = answer.content
        else:
            chunks = [chunk async for chunk in answer]
            blocks = chunks[-1].content if chunks else []  # each holds the whole text so far
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        return without_fence("".join(texts))


def to_chat(model: "ChatModelBase | ChatModel | None") -> ChatModel | None:
    """Wrap a chat model of AgentScope; return others and None as they are."""
    return model if model is None or isinstance(model, ChatModel) else AgentScopeV1Chat(model)
