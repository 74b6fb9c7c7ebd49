"""The adapter of the page keeps the contract of adapters."""

import asyncio
import uuid
from contextvars import ContextVar
from pathlib import Path

import pytest

from commonplace import Memory, Scope, StoreUnavailableError
from commonplace.testing.contracts.adapter import AdapterContract

from ..docs.pages import blocks_of
from . import functions_adapter

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write_an_adapter.md"
SHOWN: ContextVar[list[str]] = ContextVar("shown")


def agent(messages: list[str]) -> str:
    SHOWN.get().extend(messages)
    return "Noted."


def run_with(memory: Memory):
    turn = functions_adapter.with_memory(agent, memory)

    async def run(user: str, text: str) -> str:
        SHOWN.set(shown := [])
        await asyncio.to_thread(turn, text, Scope(user_id=user, session_id=uuid.uuid4().hex))
        return "\n".join(shown)

    return run


class TestFunctionsAdapter(AdapterContract):
    """The shipped contract."""

    @pytest.fixture
    def turn(self, memory: Memory):
        return run_with(memory)

    @pytest.fixture
    def turn_without_memory(self, memory: Memory, monkeypatch: pytest.MonkeyPatch):
        def fail(*_args: object, **_options: object) -> None:
            raise StoreUnavailableError(store="memory", reason="it is away")

        for name in ("search", "asearch", "add", "aadd", "list", "alist"):
            monkeypatch.setattr(memory, name, fail)
        return run_with(memory)


def test_the_page_has_the_code_of_the_adapter():
    code = blocks_of(PAGE.read_text("utf-8"))[0].code

    assert code == Path(functions_adapter.__file__).read_text("utf-8")
