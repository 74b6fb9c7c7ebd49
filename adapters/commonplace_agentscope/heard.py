"""What an agent was heard to say, from the events of its reply."""

from agentscope.event import (
    ModelCallStartEvent,
    TextBlockDeltaEvent,
    TextBlockEndEvent,
    ToolResultStartEvent,
)


class Heard:
    """The text since the last model call or tool result."""

    def __init__(self) -> None:
        self._blocks: dict[str, str] = {}

    @property
    def text(self) -> str:
        """All of it, a line break between blocks."""
        return "\n".join(self._blocks.values())

    def hear(self, event: object) -> None:
        """Take an event in, or whatever else a reply yields."""
        if isinstance(event, ModelCallStartEvent | ToolResultStartEvent):
            self._blocks.clear()
        elif isinstance(event, TextBlockDeltaEvent):
            self._blocks[event.block_id] = self._blocks.get(event.block_id, "") + event.delta
        elif isinstance(event, TextBlockEndEvent) and event.text is not None:
            self._blocks[event.block_id] = event.text
