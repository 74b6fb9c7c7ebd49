"""Chat model for tests and examples of agents, without a key and a network."""

from collections.abc import AsyncIterator
from typing import Any, NoReturn

from strands.models import Model
from strands.types.content import Messages
from strands.types.streaming import StreamEvent


class ScriptedModel(Model):
    """Chat model of Strands that gives its answers in order, then the last one again.

    Args:
        answers: texts; without any, every answer is "I see.".

    Attributes:
        shown: the text of all messages of its last call; empty before the first.
    """

    def __init__(self, *answers: str) -> None:
        self.shown: str = ""
        self._answers = list(answers or ["I see."])

    @property
    def remembered(self) -> list[str]:
        """Memories in the note that it was shown in its last call, best first."""
        return [line[2:] for line in self.shown.splitlines() if line.startswith("- ")]

    def update_config(self, **_: Any) -> None:
        """Change nothing: there is nothing to configure."""

    def get_config(self) -> dict[str, Any]:
        """Return its name, as other models return theirs."""
        return {"model_id": "scripted"}

    def structured_output(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: its answers are texts.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("ScriptedModel answers with text. Use another model for objects.")

    async def stream(self, messages: Messages, *_: Any, **__: Any) -> AsyncIterator[StreamEvent]:
        """Answer with the next text."""
        blocks = (block for message in messages for block in message["content"])
        self.shown = "\n".join(block["text"] for block in blocks if "text" in block)
        text = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}
