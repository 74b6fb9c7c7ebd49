"""Tool of an agent that shows its model the note, in place of ADK's `preload_memory`."""

from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from .convert import text_of
from .store import CommonplaceMemoryService


class PreloadNoteTool(BaseTool):
    """Shows the model what helps with what the user said, as data, in front of it.

    For `Agent(tools=[...])`; the model never calls it. ADK's `preload_memory` works too; its text
    does not tell the model that a memory is no instruction, and a memory can fake its end.

    Args:
        service: whose policy says what is shown.
    """

    def __init__(self, service: CommonplaceMemoryService) -> None:
        super().__init__(name="preload_note", description="Shows the model what is remembered.")
        self._service = service

    async def process_llm_request(
        self, *, tool_context: ToolContext, llm_request: LlmRequest
    ) -> None:
        """Add the note to a call of the model; it is kept nowhere."""
        contents = llm_request.contents
        held = [text for content in contents if (text := text_of(content))]
        query = text_of(tool_context.user_content)
        note = await self._service.note(tool_context.session, query, held)
        if note:
            asked = [at for at, one in enumerate(contents) if one.role == "user" and text_of(one)]
            content = types.Content(role="user", parts=[types.Part(text=note)])
            contents.insert(asked[-1] if asked else len(contents), content)
