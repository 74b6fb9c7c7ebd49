"""Whose memory it is, is an argument all the way down; what reads without it is listed here."""

import ast
import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import commonplace
from commonplace import Memory, Record, Scope
from commonplace.agents import AgentMemory
from commonplace.ingest.operations import Command
from commonplace.memory_admin import MemoryAdmin
from commonplace.ports.checkpoints import Checkpoints
from commonplace.ports.engines import GraphStore, Journal
from commonplace.ports.engines import VectorIndex as Index
from commonplace.ports.stores import Operation, Point, Put, Query, Remove

CORE = Path(commonplace.__file__).parent
ADAPTERS = CORE.parents[1] / "adapters"
# What has a scope in itself: an argument of one of these says whose memory it is.
CARRIERS = (Scope, Query, Record, Operation, Point, Put, Remove, *get_args(Command))
MAINTENANCE = "reads or writes the whole store, for the operator's commands"
NO_ROWS = "touches no row of anybody"
BY_THREAD = "a framework names a run by its thread alone; the adapter checks whose thread it is"
BY_NUMBER = "operations by the numbers that the journal itself gave out, never a caller's"

# Methods of the ports that take no scope, and why.
PORTS = {
    "Index.flush": NO_ROWS,
    "Index.close": NO_ROWS,
    "GraphStore.scope_of": "answers whose a record is, for interfaces that are given only its id",
    "GraphStore.list_scopes": MAINTENANCE,
    "GraphStore.list_namespaces": "namespaces, for LangGraph's list_namespaces",
    "GraphStore.list_users": "user ids of a namespace, for a LangGraph search of a bare prefix",
    "GraphStore.dump": MAINTENANCE,
    "GraphStore.load": MAINTENANCE,
    "GraphStore.get_meta": NO_ROWS,
    "GraphStore.set_meta": NO_ROWS,
    "GraphStore.close": NO_ROWS,
    "Journal.plan": BY_NUMBER,
    "Journal.pending": BY_NUMBER,
    "Journal.take_over": BY_NUMBER,
    "Journal.remove": BY_NUMBER,
    "Journal.failed": BY_NUMBER,
    "Journal.dead_letter": BY_NUMBER,
    "Journal.retry": "tries again what was already accepted for its own scope",
    "Journal.close": NO_ROWS,
    "Checkpoints.read": BY_THREAD,
    "Checkpoints.page": BY_THREAD,
    "Checkpoints.states": BY_THREAD,
    "Checkpoints.steps": BY_THREAD,
    "Checkpoints.delete": BY_THREAD,
    "Checkpoints.delete_runs": BY_THREAD,
    "Checkpoints.copy": BY_THREAD,
    "Checkpoints.prune": BY_THREAD,
    "Checkpoints.close": NO_ROWS,
}
# Methods of `Memory` (each with its twin) and of an agent's memory that take none, and why.
PUBLIC = {
    "AgentMemory.counters": NO_ROWS,
    "AgentMemory.acall": "the call that it awaits has one",
    "AgentMemory.aclose": NO_ROWS,
    "AgentMemory.raise_misconfiguration": NO_ROWS,
    "AgentMemory.reopen_misconfigured": NO_ROWS,
    "AgentMemory.with_policy": NO_ROWS,
    "AgentMemory.wait_for_writes": NO_ROWS,
    "Memory.close": NO_ROWS,
    "MemoryAdmin.list_namespaces": PORTS["GraphStore.list_namespaces"],
    "MemoryAdmin.list_users": PORTS["GraphStore.list_users"],
    "MemoryAdmin.list_scopes": MAINTENANCE,
    "MemoryAdmin.scope_of": PORTS["GraphStore.scope_of"],
    "MemoryAdmin.retry": PORTS["Journal.retry"],
    "Memory.flush": "waits, and counts what is pending",
    "MemoryAdmin.follow": "takes a result that the caller got for his own write",
    "MemoryAdmin.before_close": NO_ROWS,
    "MemoryAdmin.run": NO_ROWS,
}
# Functions that ask a port or a memory without a scope, outside of `admin`, `cli` and the engines.
ASKED = {
    ("memory_admin.py", "list_namespaces"): PUBLIC["MemoryAdmin.list_namespaces"],
    ("memory_admin.py", "list_users"): PUBLIC["MemoryAdmin.list_users"],
    ("memory_admin.py", "list_scopes"): PUBLIC["MemoryAdmin.list_scopes"],
    ("memory_admin.py", "scope_of"): PUBLIC["MemoryAdmin.scope_of"],
    ("memory_admin.py", "was_forgotten"): "compares the scopes of erasures with the given one",
    ("runtime.py", "_lost_index"): "asks whether the index is empty beside a graph that is not",
    ("ingest/worker.py", "flush"): "counts what is pending, whoever it is for",
    ("ingest/worker.py", "retry"): "finds the dead letters that it is given by their numbers",
    ("ingest/worker.py", "_resolve_overtaken"): "looks for the numbers of its own operations",
    (
        "commonplace_langgraph/store_queries.py",
        "_namespaces_of_items",
    ): "as LangGraph's own stores do",
    ("commonplace_langgraph/store_queries.py", "scopes_of"): "a prefix that names no user",
    ("commonplace_mem0/operations.py", "_of_users"): "compat= of mem0: a run or agent of all users",
    ("commonplace_mem0/operations.py", "_scope_of"): "mem0 names a memory by its id alone",
    ("commonplace_mem0/operations.py", "reset"): "mem0's reset is of everything",
    ("commonplace_mem0/operations.py", "flush"): "lists what failed, whoever it was for",
}
UNSCOPED = ("scope_of", "list_scopes", "list_namespaces", "list_users", "dump", "load")
OPTIONAL = ("versions", "dead", "dead_letters", "count")  # None there means all owners


def public_methods(of: type, name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """List the public methods with their names; a twin counts as what it is the twin of."""
    for method, function in inspect.getmembers(of, inspect.isfunction):
        if not method.startswith("_"):
            original = method[1:] if method[:1] == "a" and hasattr(of, method[1:]) else method
            yield f"{name}.{original}", function


def carries_scope(annotation: Any) -> bool:
    """Tell whether a value of this type always has a scope; None or an empty one does not."""
    if annotation in CARRIERS:
        return True
    origin, arguments = typing.get_origin(annotation), get_args(annotation)
    if origin in (Sequence, Collection, list, tuple):
        return all(carries_scope(one) for one in arguments if one is not Ellipsis)
    return bool(arguments) and type(None) not in arguments and all(map(carries_scope, arguments))


def takes_scope(function: Callable[..., Any]) -> bool:
    """Tell whether a required argument says whose memory is meant."""
    hints = get_type_hints(function)
    return any(
        one.default is inspect.Parameter.empty and carries_scope(hints.get(name))
        for name, one in inspect.signature(function).parameters.items()
        if name != "self"
    )


def has_optional_scope(function: Callable[..., Any]) -> bool:
    """Tell whether a scope may be None, which the port says is for maintenance alone."""
    hints = {name: hint for name, hint in get_type_hints(function).items() if name != "return"}
    return any(Scope in get_args(hint) for hint in hints.values())


@pytest.mark.parametrize("port", [Index, GraphStore, Journal, Checkpoints])
def test_every_method_of_a_port_takes_a_scope_or_is_listed(port: type) -> None:
    name = "Index" if port is Index else port.__name__
    methods = dict(public_methods(port, name))
    missing = {
        one
        for one, function in methods.items()
        if not takes_scope(function) and not has_optional_scope(function)
    }

    assert missing == {one for one in PORTS if one.startswith(f"{name}.")}


@pytest.mark.parametrize("face", [Memory, MemoryAdmin, AgentMemory])
def test_every_public_method_takes_a_scope_or_is_listed(face: type) -> None:
    missing = {
        one
        for one, function in public_methods(face, face.__name__)
        if not takes_scope(function) and not has_optional_scope(function)
    }

    assert missing == {one for one in PUBLIC if one.startswith(f"{face.__name__}.")}


def sources() -> Iterator[Path]:
    """List the modules that serve agents: not the engines, the operator's commands, the tests."""
    apart = {"admin", "backends", "cli", "testing", "tests"}
    for file in [*CORE.rglob("*.py"), *ADAPTERS.rglob("*.py")]:
        if not apart.intersection(file.parts[len(CORE.parents[1].parts) :]):
            yield file


def asks_without_scope(call: ast.Call) -> bool:
    """Tell whether a call is one that may answer about every owner."""
    if isinstance(call.func, ast.Name) and call.func.id == "call":  # of `sans_io`
        name = ast.literal_eval(call.args[0]) if isinstance(call.args[0], ast.Constant) else ""
        name = name.removeprefix("admin.")
        return name in UNSCOPED or (name in OPTIONAL and not call.args[1:] and not call.keywords)
    if not isinstance(call.func, ast.Attribute):
        return False
    of = ast.unparse(call.func.value)
    if call.func.attr == "run" and of.endswith("admin"):  # `run(memory.admin.list_users)`
        called = ast.Call(call.args[0], call.args[1:], call.keywords)
        return asks_without_scope(called)
    is_port = of.endswith(("graph", "index", "journal", "checkpoints", "memory", "admin"))
    first = call.args[0] if call.args else None
    is_none = first is None or (isinstance(first, ast.Constant) and first.value is None)
    name = call.func.attr.removeprefix("a") if of.endswith("memory") else call.func.attr
    if name in UNSCOPED:
        return is_port
    return is_port and name in OPTIONAL and is_none and not call.keywords


def unscoped_calls(source: str) -> Iterator[tuple[str, int]]:
    """List the functions of a module that ask without a scope, with the line."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and asks_without_scope(call):
                    yield function.name, call.lineno


def test_only_what_is_listed_asks_a_store_about_everybody() -> None:
    found = {
        (str(file.relative_to(CORE if CORE in file.parents else ADAPTERS)), name)
        for file in sources()
        for name, _ in unscoped_calls(file.read_text())
    }

    assert found == set(ASKED)


@pytest.mark.parametrize(
    "planted",
    [
        "def f(self):\n return self._engines.graph.list_scopes()",
        "def f(self):\n return self._engines.journal.dead()",
        "def f(self):\n return self._engines.index.versions(None)",
        "async def f(m):\n return await m.admin.run(m.admin.list_users, 'notes')",
        "def f():\n return (yield call('list_scopes'))",
        "def f():\n return (yield call('dead_letters'))",
    ],
)
def test_a_call_without_a_scope_would_be_seen(planted: str) -> None:
    assert [name for name, _ in unscoped_calls(planted)] == ["f"]
