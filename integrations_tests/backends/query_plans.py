"""Statements that SQLite runs, and their query plans."""

import re
import sqlite3
from collections.abc import Iterable

import pytest

from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.types import Scope

each_kind_of_scope = pytest.mark.parametrize(
    "scope",
    [
        Scope(user_id="alice"),
        Scope(agent_id="g"),
        Scope(session_id="s"),
        Scope(user_id="u", agent_id="g"),
        Scope(user_id="u", agent_id="g", session_id="s"),
    ],
    ids=["user", "agent", "session", "user+agent", "all"],
)


def note_statements(file: SqliteConnection) -> set[str]:
    """Record every statement that is run from now on."""
    asked: set[str] = set()
    file.write(lambda c: c.set_trace_callback(asked.add))
    with file.read() as reader:
        reader.set_trace_callback(asked.add)
    return asked


def plans_of(file: SqliteConnection, asked: Iterable[str]) -> dict[str, list[str]]:
    """Read the steps of each statement's plan; this ends the recording on the writer."""

    def explain(connection: sqlite3.Connection) -> dict[str, list[str]]:
        connection.set_trace_callback(None)
        statements = [one for one in asked if re.match("SELECT|INSERT|UPDATE|DELETE", one)]
        return {
            one: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {one}")]
            for one in statements
        }

    return file.write(explain)


def scans_of(plans: dict[str, list[str]], expected: str) -> dict[str, list[str]]:
    """Choose the statements that read a whole table, except those that match `expected`."""
    return {
        sql: plan
        for sql, plan in plans.items()
        if any(step.startswith("SCAN") and "VIRTUAL TABLE" not in step for step in plan)
        and not re.search(expected, sql)
    }
