"""Calls of a framework, run on its own implementation and on ours, and what became of each.

A case is one call, or a few that belong together; its outcome is a value, with ids, times and scores
left out, or an exception. Ours is the same as theirs when the values are equal, or when it raises
theirs or a subclass, so that `except` clauses hold.
"""

import asyncio
import dataclasses
import importlib
import importlib.metadata
import inspect
import logging
import math
import re
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

Open = Callable[[Path, ExitStack], Any]
# The sections of the page, in order, by the module that has each.
MODULES = {
    "langgraph_store": "langgraph_store",
    "langgraph_sqlite": "langgraph_store",
    "langgraph_saver": "langgraph_saver",
    "langgraph_graph": "langgraph_graph",
    "langgraph_documents": "langgraph_documents",
    "langgraph_middleware": "langgraph_middleware",
    "mem0": "mem0_cases",
    "mem0_v1": "mem0_cases",
    "strands_store": "strands_cases",
    "strands_sessions": "strands_cases",
    "strands_storage": "strands_storage",
    "strands_tool": "strands_cases",
    "agentscope_v2": "agentscope_cases",
    "agentscope_v1": "agentscope_v1_cases",
    "agentscope_runtime": "agentscope_runtime_cases",
    "adk_memory": "adk_cases",
    "adk_sessions": "adk_cases",
    "openai_agents_sessions": "openai_agents_cases",
}
HEADER = "<!-- {} -->"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}|[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.]*(Z|[+-]\d\d:\d\d)?")


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One row: the call as the page shows it, what runs it, and why ours differs, if it does."""

    call: str
    run: Callable[[Any], Any]
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table: how to open theirs and ours for each column, its cases, and the interface.

    Attributes:
        packages: whose versions the page names.
        columns: how theirs and ours are opened, by what the column is called.
        interface: what must be in the cases: methods with all their parameters.
    """

    name: str
    title: str
    packages: Sequence[str]
    columns: Mapping[str, tuple[Open, Open]]
    cases: Sequence[Case]
    interface: Mapping[str, Callable[..., Any]]

    def versions(self) -> str:
        """Name the packages as they are installed."""
        found = (f"{name} {importlib.metadata.version(name)}" for name in self.packages)
        return f"{', '.join(self.columns)} ({', '.join(found)})."


class ProblemError(Exception):
    """A difference without a reason, a reason without a difference, or a call without a case."""


@dataclasses.dataclass(frozen=True, slots=True)
class Raised:
    """An exception as an outcome."""

    kind: type[BaseException]


class Awaited:
    """A face that runs the awaitable methods of another one, each until it is done."""

    def __init__(self, of: Any, prefix: str = "a") -> None:
        self._of, self._prefix, self._loop = of, prefix, asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, self._prefix + name, None) or getattr(self._of, name)
        return (
            (lambda *given, **more: self.run(found(*given, **more))) if callable(found) else found
        )

    def run(self, done: Any) -> Any:
        """Wait for what a method returned."""
        if isinstance(done, AsyncIterator):
            done = _collect(done)
        return self._loop.run_until_complete(done) if inspect.isawaitable(done) else done


async def _collect(items: AsyncIterator[Any]) -> list[Any]:
    return [one async for one in items]


def tried(call: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """Call, and return what it returns or raises."""
    try:
        return call(*given, **more)
    except Exception as error:
        return error


def public(kind: type, *, but: Sequence[str] = ()) -> dict[str, Callable[..., Any]]:
    """List the public methods of a class, without the awaitable twins of others."""
    found = {
        name: method
        for name, method in inspect.getmembers(kind, callable)
        if not name.startswith("_") and name not in but
    }
    return {name: one for name, one in found.items() if not (name[0] == "a" and name[1:] in found)}


def plain(value: Any) -> Any:
    """Make values of two libraries comparable: without ids, times, scores and classes."""
    if isinstance(value, BaseException):
        return Raised(type(value))
    if isinstance(value, (Raised, bool, type(None), bytes)):
        return value
    if isinstance(value, int) and not isinstance(value, Enum):
        return int(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else round(value, 3)
    if isinstance(value, (UUID, date, Enum)):
        return f"<{type(value).__name__}>"
    if isinstance(value, str):
        return _TIME.sub("<time>", _ID.sub("<id>", value))
    if isinstance(value, Mapping):
        return {str(key): _field(str(key), one) for key, one in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, (Sequence, Iterator, set, frozenset)):
        found = [plain(one) for one in value]
        return sorted(found, key=repr) if isinstance(value, (set, frozenset)) else found
    if callable(getattr(value, "dict", None)):
        return plain(value.dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({one.name: getattr(value, one.name) for one in dataclasses.fields(value)})
    return f"<{type(value).__name__}>"


def _field(key: str, value: Any) -> Any:
    return type(value).__name__ if key in {"score"} and value is not None else plain(value)


def outcome(opened: Open, case: Case) -> Any:
    """Run a case on a new instance in a folder of its own."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        logging.disable()
        stack.callback(logging.disable, logging.NOTSET)
        subject = opened(Path(folder), stack)
        try:
            return plain(case.run(subject))
        except Exception as error:
            return plain(error)


def compare(theirs: Any, ours: Any) -> str:
    """Say in a word how ours is to theirs."""
    if _equal(theirs, ours):
        return "same"
    return "refused" if isinstance(ours, Raised) and not isinstance(theirs, Raised) else "different"


def _equal(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, Raised):
        return isinstance(ours, Raised) and _catches(theirs.kind, ours.kind)
    if isinstance(theirs, list):
        ok = isinstance(ours, list) and len(theirs) == len(ours)
        return ok and all(map(_equal, theirs, ours))
    if isinstance(theirs, dict):
        ok = isinstance(ours, dict) and theirs.keys() == ours.keys()
        return ok and all(_equal(one, ours[key]) for key, one in theirs.items())
    return type(theirs) is type(ours) and bool(theirs == ours)


def _catches(theirs: type[BaseException], ours: type[BaseException]) -> bool:
    # `install_as_mem0` puts our classes in the place of mem0's of the same name.
    names = {
        one.__name__ for one in ours.__mro__ if one.__module__ == "commonplace_mem0.exceptions"
    }
    return issubclass(ours, theirs) or (theirs.__module__, theirs.__name__ in names) == (
        "mem0.exceptions",
        True,
    )


def find(name: str) -> Section | None:
    """Find a section; None where its framework is not installed, or another release."""
    try:
        module = importlib.import_module(f"{__name__}.{MODULES[name]}")
    except ImportError:
        return None
    found: Mapping[str, Section] = module.SECTIONS
    return found.get(name)


def table(section: Section, show: Callable[[str], None] = lambda _: None) -> list[str]:
    """Run all cases of a section and write its lines.

    Args:
        section: which.
        show: is called with both outcomes of each case that differs.

    Raises:
        ProblemError: one or more, told all at once.
    """
    problems = list(_uncovered(section))
    rows: list[str] = []
    same: list[str] = []
    for case in section.cases:
        call = "`" + case.call.replace("`", "") + "`"
        words = []
        for column, (theirs, ours) in section.columns.items():
            found = outcome(theirs, case), outcome(ours, case)
            words.append(compare(*found))
            if words[-1] != "same" or "Raised" in repr(found):
                show(
                    f"{case.call} [{column}] {words[-1]}\n  theirs: {found[0]}\n  ours:   {found[1]}"
                )
        if {*words} == {"same"} and case.why:
            problems.append(f"{case.call}: has no difference any more, but the reason {case.why!r}")
        if {*words} != {"same"} and not case.why:
            problems.append(f"{case.call}: {', '.join(words)}, without a reason")
        if {*words} == {"same"}:
            same.append(call)
            continue
        rows.append(f"| {call} | {_cell(section, words)} | {case.why} |")
    if problems:
        raise ProblemError("\n".join([section.name, *problems]))
    opening = [HEADER.format(section.name), f"## {section.title}", "", section.versions(), ""]
    heads = ["| call | here | how and why |", "|---|---|---|"]
    return [*opening, f"Same: {' · '.join(same)}.", "", *heads, *rows, ""]


def _cell(section: Section, words: list[str]) -> str:
    if len({*words}) == 1:
        return words[0]
    return "; ".join(f"{word}: {one}" for one, word in zip(section.columns, words, strict=True))


def _uncovered(section: Section) -> Iterator[str]:
    for name, method in section.interface.items():
        calls = " ".join(
            case.call for case in section.cases if re.search(rf"\b{name}\b", case.call)
        )
        if not calls:
            yield f"{name}: no case"
        for one in inspect.signature(method).parameters.values():
            named = one.name not in ("self", "cls") and one.kind not in (
                one.VAR_KEYWORD,
                one.VAR_POSITIONAL,
            )
            if calls and named and not re.search(rf"\b{one.name}\b", calls):
                yield f"{name}({one.name}): no case"


def split(page: str) -> dict[str, list[str]]:
    """Split a page into the lines of its sections, by their names; what is before them is ''."""
    found: dict[str, list[str]] = {"": []}
    marks = {HEADER.format(name): name for name in MODULES}
    at = ""
    for line in page.splitlines():
        at = marks.get(line, at)
        found.setdefault(at, []).append(line)
    return found
