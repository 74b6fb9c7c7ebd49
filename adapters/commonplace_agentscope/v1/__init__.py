"""Long-term memory for agents of AgentScope 1.x: `ReActAgent(long_term_memory=...)`.

It needs AgentScope 1.0.11 or later, and nothing of 2.x.
"""

from .. import importing

with importing("agentscope>=1.0.11,<2"):
    from .memory import LongTermMemory, SessionId, UserId
    from .models import AgentScopeV1Chat, AgentScopeV1Embedder

__all__ = [
    "AgentScopeV1Chat",
    "AgentScopeV1Embedder",
    "LongTermMemory",
    "SessionId",
    "UserId",
]
