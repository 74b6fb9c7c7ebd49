"""Run by a test in a process of its own: AgentScope's `Mem0Middleware` makes its client itself.

It is given AgentScope's models only, and finds ours where it imports mem0.
"""

import asyncio
import json
import sys

from commonplace_mem0 import AsyncMemory, install_as_mem0

install_as_mem0()

from agentscope.credential import CredentialBase  # mem0 is ours from here on
from agentscope.embedding import EmbeddingModelBase, EmbeddingResponse
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import TextBlock
from agentscope.middleware import Mem0Middleware
from agentscope.model import ChatModelBase, ChatResponse

from commonplace.testing.fakes import HashEmbedder


class Model(ChatModelBase):
    """Takes everything as one fact."""

    def __init__(self) -> None:
        super().__init__(CredentialBase(), "scripted", self.Parameters(), stream=False)
        self.formatter, self.asked = OpenAIChatFormatter(), 0

    async def _call_api(self, *_, **__):
        self.asked += 1
        text = json.dumps({"facts": ["Alice likes tea"]})
        return ChatResponse(content=[TextBlock(text=text)], is_last=True)


class Embedding(EmbeddingModelBase):
    """Embeds by words."""

    def __init__(self) -> None:
        super().__init__(CredentialBase(), "fake", 16, None, 1000, 2, 0, 0.0)

    async def _call_api(self, inputs, **_):
        vectors = HashEmbedder(16).embed(inputs, purpose="document")
        return EmbeddingResponse(embeddings=vectors, source="api")


async def main() -> None:
    """Add by the middleware, and search by it."""
    model = Model()
    middleware = Mem0Middleware(user_id="alice", chat_model=model, embedding_model=Embedding())
    client = middleware._client
    said = [{"role": "user", "content": "I like tea"}]
    await middleware._async_add(said, user_id="alice", agent_id=None)
    found = await middleware._async_search("tea", user_id="alice", agent_id=None)
    await client.close()
    answer = [isinstance(client, AsyncMemory), found, model.asked]
    sys.stdout.write(f"\n{json.dumps(answer)}\n")


if __name__ == "__main__":
    asyncio.run(main())
