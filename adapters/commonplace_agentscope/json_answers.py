"""Prompt and answer of a chat model that is asked for JSON, alike for AgentScope 1.x and 2.x."""

import json
from collections.abc import Mapping
from typing import Any


def with_schema(prompt: str, schema: Mapping[str, Any]) -> str:
    """Add the schema of the answer to a prompt, where every model can read it."""
    return f"{prompt}\n\nJSON schema of the answer:\n{json.dumps(dict(schema))}"


def without_fence(text: str) -> str:
    """Read an answer without the fence of a code block."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json")
    return text.strip()
