"""What every adapter is built on: policy, the note, tools, and a memory that never fails an agent."""

from .policy import Policy

__all__ = ["Policy"]
