"""Logged notes for the pages."""

from commonplace import Memory, Scope
from commonplace.agents import AgentMemory, Policy


def log_notes(memory: Memory, scope: Scope, *questions: str) -> None:
    """Recall for turns of an agent that logs its notes, and wait until they are written."""
    agent = AgentMemory(memory, Policy(note_log="questions"), log="tests")
    for question in questions:
        agent.recall(scope, question)
    for writing in list(agent.lazy.accepting):
        writing.result(10)
