"""Test contracts of a LangGraph store, for authors of stores, and a chat model for tests.

Import a class from `store_contract` or `stock_store_contract` and inherit from it in a pytest file
of your own. The chat model needs no key, no network and no pytest, so examples of agents use it.
"""

import contextlib
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

__all__ = ["ScriptedModel"]

with contextlib.suppress(ImportError):
    import pytest

    pytest.register_assert_rewrite(
        "commonplace_langgraph.testing.stock_store_contract",
        "commonplace_langgraph.testing.store_contract",
    )


class ScriptedModel(BaseChatModel):
    """Chat model of LangChain that gives its answers in order, then the last one again.

    It may be given tools and calls none of them.

    Args:
        answers: texts; without any, every answer is "I see.".

    Attributes:
        shown: the text of all messages of its last call; empty before the first.
    """

    shown: str = ""
    answers: list[str]

    def __init__(self, *answers: str) -> None:
        super().__init__(answers=list(answers or ["I see."]))  # type: ignore[call-arg]

    @property
    def remembered(self) -> list[str]:
        """Memories in the note that it was shown in its last call, best first."""
        return [line[2:] for line in self.shown.splitlines() if line.startswith("- ")]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Self:
        """Return itself: it calls no tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.shown = "\n".join(str(one.text) for one in messages)
        text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])
