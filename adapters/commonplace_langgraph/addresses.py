"""The names of checkpoints: LangGraph's configs and our addresses."""

from typing import TYPE_CHECKING

from commonplace import InvalidRecordError
from commonplace.ports.checkpoints import Address
from commonplace.validation import is_sound

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig


def address_of(config: "RunnableConfig") -> tuple[str, str, str | None]:
    """Read thread, namespace and checkpoint id; the last is None when the latest is meant.

    Raises:
        InvalidRecordError: there is no thread, or its name is no text that can be stored.
    """
    given = config.get("configurable") or {}
    thread = given.get("thread_id")
    if thread is None or not str(thread) or not is_sound(str(thread)):
        raise InvalidRecordError(
            field="thread_id",
            value=thread,
            reason="names no thread",
            hint="Give the config {'configurable': {'thread_id': '...'}}.",
        )
    return str(thread), given.get("checkpoint_ns") or "", given.get("checkpoint_id") or None


def config_of(address: Address) -> "RunnableConfig":
    """Name a checkpoint as LangGraph does."""
    return {
        "configurable": {
            "thread_id": address.thread,
            "checkpoint_ns": address.namespace,
            "checkpoint_id": address.id,
        }
    }
