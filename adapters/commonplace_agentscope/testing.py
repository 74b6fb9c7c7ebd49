"""Chat model for tests and examples of agents, without a key and a network."""

from typing import Any

from agentscope.credential import CredentialBase
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import HintBlock, Msg, TextBlock
from agentscope.model import ChatModelBase, ChatResponse


class ScriptedModel(ChatModelBase):
    """Chat model of AgentScope 2 that gives its answers in order, then the last one again.

    Args:
        answers: texts; without any, every answer is "I see.".

    Attributes:
        shown: the text of all messages of its last call; empty before the first.
    """

    def __init__(self, *answers: str) -> None:
        super().__init__(CredentialBase(), "scripted", self.Parameters(), stream=False)
        self.formatter: OpenAIChatFormatter = OpenAIChatFormatter()
        self.shown: str = ""
        self._answers = list(answers or ["I see."])

    @property
    def remembered(self) -> list[str]:
        """Memories in the note that it was shown in its last call, best first."""
        return [line[2:] for line in self.shown.splitlines() if line.startswith("- ")]

    async def _call_api(  # positional, as AgentScope gives them
        self, model_name: str, messages: list[Msg], *_: Any, **__: Any
    ) -> ChatResponse:
        self.shown = "\n".join(map(_text_of, messages))
        text = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return ChatResponse(content=[TextBlock(text=text)], is_last=True)


def _text_of(message: Msg) -> str:
    hints = (
        block.hint for block in message.get_content_blocks("hint") if isinstance(block, HintBlock)
    )
    return "\n".join([message.get_text_content() or "", *map(str, hints)])
