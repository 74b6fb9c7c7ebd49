"""Chat model of a memory on a model of Strands."""

import asyncio
from collections.abc import Mapping
from typing import Any

from strands.models import Model

from commonplace import ModelFailedError, WrongTypeError
from commonplace.agents import hinting_init, with_schema, without_fence

CUT_OFF = ("max_tokens", "content_filtered", "guardrail_intervened")


@hinting_init
class StrandsChat:
    """Extracts with a Strands model; one call for one answer.

    Each call runs on an event loop of its own, as each call of a synchronous agent does, so that a
    memory goes on extracting when the loop of the agent's call is closed. A model whose client
    belongs to one loop should not be the agent's own object: make another.

    Raises:
        WrongTypeError: `model` is not a Strands model.
    """

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise WrongTypeError(
                field="model",
                value=model,
                takes="a strands.models.Model",
                hint="Pass an instance, such as BedrockModel().",
            )
        self.model = model

    @property
    def id(self) -> str:
        """The model's class and name."""
        config = self.model.get_config()
        name = config.get("model_id") if isinstance(config, Mapping) else None
        return f"{type(self.model).__name__}:{name or 'unnamed'}"

    def complete(self, system: str, user: str, *, schema: Mapping[str, Any]) -> str:
        """Answer with JSON text; the schema goes into the prompt, which every model can read.

        Raises:
            ModelFailedError: the answer was cut off.
        """
        return asyncio.run(self._complete(with_schema(system, schema), user))

    async def _complete(self, system: str, user: str) -> str:
        parts: list[str] = []
        messages: Any = [{"role": "user", "content": [{"text": user}]}]
        async for event in self.model.stream(messages, None, system):
            stop = event.get("messageStop", {}).get("stopReason")
            if stop in CUT_OFF:
                raise ModelFailedError(model=self.id, reason=f"its answer ended with {stop}")
            text = event.get("contentBlockDelta", {}).get("delta", {}).get("text")
            parts += [text] if text else []
        return without_fence("".join(parts))
