"""Does an agent that lives with the memory for some weeks see what helps, and lose no turn?

    python benchmarks/agent_day.py [--quick] [--adapter NAME] [--language en|zh] [--seed N]
                                   [--misses N] [--json FILE]

Made-up days (`agent_days.py`) are played through the adapter of each framework with a scripted chat
model and the default embedder: once without a model that extracts, once with one. The first table
has a line for each adapter and the targets below it, the second is by language and extraction, the
third says which share of the users' messages is listed after a fault (`agent_faults.py`).

- first, ninth, all: share of those askings of a fact whose note holds it. Each of nine askings is
  in other words and in another session, and only the turn that told the fact can serve.
- freely: the same for questions that share no word with what was told.
- held: lines of notes whose text a message of the running conversation holds, or that hold one.
- double: lines of a note that equal one above them, but for case, spaces and punctuation.
- empty: share of greetings, thanks and commands without a note, from the second session on.
- changed: share of askings after a change whose note holds the new value; new first: with no old
  value before it; old absent: without the old one at all.
- records: facts stored for each fact that was told in six sessions; with extraction only.
- kept: the least share under any fault.

The rows `bound` say what a search alone finds among what the users told and chatted, with none of
their questions and no answers in store: what a note could show with this embedder.
"""

import asyncio
import json
import multiprocessing
import re
import statistics
import tempfile
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import scoring
import typer
from agent_days import ASKINGS, LANGUAGES, NEEDS_NO_MEMORY, Extractor, Language, Life, Turn, lives
from agent_drivers import ADAPTERS, TOP_K, make_driver, without_speaker
from agent_faults import FAULTS, Kept, play_faults
from rich.console import Console
from rich.table import Table
from tables import TablesFile, save

from commonplace import Kind, Memory, Message, Scope

USERS, QUICK_USERS = 10, 1
WORKERS = 2
_LEAST_PART, _LEAST_HAN_PART = 15, 6  # characters: less than that is in a text by chance
_HAN = re.compile("[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the model was shown in one turn.

    Attributes:
        session: its number, from 1.
        held: texts of the running conversation, the turn's own last.
        note: the note's lines.
    """

    user: str
    session: int
    turn: Turn
    held: tuple[str, ...]
    note: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """The days of several users with one adapter, in one language.

    Attributes:
        extracts: the memory had a model that extracts facts.
        facts: for each user and fact told in six sessions, the texts of the records that state it.
        longest_prompt: characters of the extractor's longest prompt; 0 without one.
    """

    adapter: str
    language: Language
    extracts: bool
    shown: tuple[Shown, ...]
    facts: tuple[tuple[str, tuple[str, ...]], ...]
    longest_prompt: int


@dataclass(slots=True, kw_only=True)
class Figure:
    """A figure, as a mean or as a sum over cases, and the cases that missed it in full."""

    name: str
    target: str
    values: list[float] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    sums: bool = False

    def add(self, value: float, *, is_miss: bool, describe: Callable[[], str]) -> None:
        self.values.append(value)
        if is_miss:
            self.misses.append(describe())

    @property
    def value(self) -> float | None:
        """The mean or the sum; None without cases."""
        if not self.values:
            return None
        return sum(self.values) if self.sums else statistics.fmean(self.values)

    @property
    def meets_target(self) -> bool:
        """Tell whether the target is kept; True where there is none."""
        value = self.value
        if value is None or not self.target:
            return True
        if self.target.startswith("≥"):
            return value >= float(self.target[1:])
        return value == float(self.target)

    def __str__(self) -> str:
        """Write the value, with an exclamation mark where it misses the target."""
        value = self.value
        if value is None:
            return "-"
        text = f"{value:.0f}" if self.sums else f"{value:.3f}"
        return text if self.meets_target else f"{text} !"


# -- playing -------------------------------------------------------------------------------------


@cache
def default_embedder() -> scoring.Cached:
    """Load the default embedder, once for all days that this process plays."""
    return scoring.cached(scoring.embedder("default"))


def play_days(adapter: str, language: Language, extracts: bool, users: int, seed: int) -> Days:
    """Play the days of all users, one after the other."""
    embedder = default_embedder()
    shown: list[Shown] = []
    facts: list[tuple[str, tuple[str, ...]]] = []
    longest = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for number, life in enumerate(lives(language, users, seed)):
            chat = Extractor(life) if extracts else None
            place = str(Path(folder) / str(number))
            with Memory.open(place, embedder=embedder, chat=chat) as memory:
                memory.search("warm", Scope(user_id="nobody"))
                shown += asyncio.run(_live(adapter, memory, life, extracts=extracts))
                memory.flush(30.0)
                facts += [
                    (f"{life.name}: {topic}", _stating(memory, life, topic))
                    for topic in life.repeated * extracts
                ]
            longest = max(longest, chat.longest_prompt if chat else 0)
    return Days(
        adapter=adapter,
        language=language,
        extracts=extracts,
        shown=tuple(shown),
        facts=tuple(facts),
        longest_prompt=longest,
    )


async def _live(adapter: str, memory: Memory, life: Life, *, extracts: bool) -> list[Shown]:
    driver = make_driver(adapter, memory, life.name, extracts=extracts)
    shown = []
    for number, session in enumerate(life.sessions, 1):
        await driver.begin(f"{life.name} {number}")
        held: list[str] = []
        for turn in session.turns:
            note = await driver.say(turn.text, turn.answer, session.at)
            held.append(turn.text)
            lines = tuple(without_speaker(line, life.name) for line in note)
            shown.append(
                Shown(user=life.name, session=number, turn=turn, held=tuple(held), note=lines)
            )
            held.append(turn.answer)
    return shown


def play_bound(language: Language, users: int, seed: int) -> Days:
    """Search for each question among what was told before, with no question and no answer."""
    embedder = default_embedder()
    shown: list[Shown] = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Memory.open(folder, embedder=embedder) as memory,
    ):
        for life in lives(language, users, seed):
            for number, session in enumerate(life.sessions, 1):
                scope = Scope(user_id=life.name, session_id=str(number))
                for place, turn in enumerate(session.turns):
                    if turn.kind not in ("ask", "freely"):
                        message = Message(text=turn.text, id=str(place), at=session.at)
                        memory.add(message, scope)
                        continue
                    found = memory.search(turn.text, scope.owner, top_k=TOP_K)
                    note = tuple(match.record.text for match in found)
                    shown.append(
                        Shown(user=life.name, session=number, turn=turn, held=(), note=note)
                    )
    return Days(
        adapter="bound", language=language, extracts=False, shown=tuple(shown), facts=(),
        longest_prompt=0,
    )  # fmt: skip


def _stating(memory: Memory, life: Life, topic: str) -> tuple[str, ...]:
    """Read the facts in store that state the value of a topic."""
    forms = life.canonical[topic, life.values[topic][0]]
    scope = Scope(user_id=life.name)
    kinds: tuple[Kind, ...] = ("fact", "preference", "profile", "procedure")
    page = memory.list(scope, kinds=kinds, limit=1_000)
    return tuple(one.text for one in page.records if any(form in one.text for form in forms))


# -- figures -------------------------------------------------------------------------------------


def measure(played: Iterable[Days], kept: Iterable[Kept] = ()) -> list[Figure]:
    """Compute every figure over some days and faults."""
    figures = {
        name: Figure(name=name, target=target, sums=target == "0")
        for name, target in (
            ("first", "≥0.95"), ("ninth", "≥0.95"), ("all", "≥0.95"), ("freely", ""),
            ("held", "0"), ("double", "0"), ("empty", "≥0.9"), ("changed", ""),
            ("new first", ""), ("old absent", ""), ("records", "1.0"), ("kept", "1.0"),
        )
    }  # fmt: skip
    for days in played:
        for one in days.shown:
            _measure_turn(figures, days, one)
        for name, texts in days.facts:
            stored = f"{_where(days)} {name}\n{_bullets(texts)}"
            figures["records"].add(
                len(texts), is_miss=len(texts) != 1, describe=partial(str, stored)
            )
    by_fault = [one for one in kept if one.said]
    if by_fault:
        worst = min(by_fault, key=lambda one: 1 - len(one.lost) / one.said)
        lost = [_describe_lost(one) for one in by_fault if one.lost]
        figures["kept"].values.append(1 - len(worst.lost) / worst.said)
        figures["kept"].misses += lost
    return list(figures.values())


def _measure_turn(figures: dict[str, Figure], days: Days, one: Shown) -> None:
    def describe() -> str:
        return _describe(days, one)

    turn = one.turn
    has_value = _holds(one.note, turn.value) is not None if turn.value else False
    if turn.kind == "ask" and turn.number:
        places = {1: ("first", "all"), ASKINGS: ("ninth", "all")}.get(turn.number, ("all",))
        for name in places:
            figures[name].add(has_value, is_miss=not has_value, describe=describe)
    elif turn.kind == "freely":
        figures["freely"].add(has_value, is_miss=not has_value, describe=describe)
    elif turn.kind == "ask":
        new, old = _holds(one.note, turn.value), _holds(one.note, turn.former)
        is_first = new is not None and (old is None or new < old)
        figures["changed"].add(has_value, is_miss=not has_value, describe=describe)
        figures["new first"].add(is_first, is_miss=not is_first, describe=describe)
        figures["old absent"].add(old is None, is_miss=old is not None, describe=describe)
    elif turn.kind in NEEDS_NO_MEMORY and one.session > 1:
        figures["empty"].add(not one.note, is_miss=bool(one.note), describe=describe)
    held = [line for line in one.note if _repeats(line, one.held)]
    figures["held"].add(
        len(held), is_miss=bool(held), describe=lambda: f"{describe()}\n  held: {held}"
    )
    texts = [_bare(line) for line in one.note]
    double = [line for place, line in enumerate(one.note) if texts[place] in texts[:place]]
    figures["double"].add(
        len(double), is_miss=bool(double), describe=lambda: f"{describe()}\n  double: {double}"
    )


def _holds(note: Sequence[str], value: str) -> int | None:
    """Find the first line of a note that has a value as words of their own; None if none does."""
    edge = "" if _HAN.search(value) else r"\b"
    word = re.compile(rf"{edge}{re.escape(value)}{edge}", re.IGNORECASE)
    return next((place for place, line in enumerate(note) if word.search(line)), None)


def _repeats(line: str, held: Sequence[str]) -> bool:
    """Tell whether a line equals a message, is a part of one, or has one as its part."""
    bare = _bare(line)
    for text in map(_bare, held):
        short, long = sorted((bare, text), key=len)
        least = _LEAST_HAN_PART if _HAN.search(short) else _LEAST_PART
        if bare == text or (len(short) >= least and short in long):
            return True
    return False


def _bare(text: str) -> str:
    """Write a text without case, spaces and punctuation."""
    return "".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def _where(days: Days) -> str:
    return f"[{days.adapter}, {days.language}, {'with' if days.extracts else 'no'} extraction]"


def _describe(days: Days, one: Shown) -> str:
    turn = one.turn
    told = f" (needs {turn.value!r}" if turn.value else ""
    told += f", formerly {turn.former!r}" if turn.former else ""
    told += f", asking {turn.number}" if turn.number else ""
    told += ")" if turn.value else ""
    return (
        f"{_where(days)} {one.user}, session {one.session}, {turn.kind} {turn.topic}{told}\n"
        f"  says: {turn.text}\n  note:\n{_bullets(one.note)}\n  conversation:\n"
        f"{_bullets(one.held[:-1])}"
    )


def _describe_lost(one: Kept) -> str:
    errors = f"\n  errors:\n{_bullets(one.errors)}" if one.errors else ""
    return f"[{one.adapter}, {one.fault}]\n  lost:\n{_bullets(one.lost)}{errors}"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"    - {line}" for line in lines) or "    (none)"


# -- report --------------------------------------------------------------------------------------


def summary(days: Sequence[Days], kept: Sequence[Kept]) -> Table:
    """Lay out a line for each adapter, and the targets."""
    table = Table(title="over all languages, with and without extraction")
    table.add_column("adapter")
    for one in measure(()):
        table.add_column(one.name, justify="right")
    for adapter in dict.fromkeys([*(one.adapter for one in days), *(one.adapter for one in kept)]):
        if adapter not in ADAPTERS:
            continue
        figures = measure(
            [one for one in days if one.adapter == adapter],
            [one for one in kept if one.adapter == adapter],
        )
        table.add_row(adapter, *map(str, figures))
    table.add_section()
    table.add_row("target", *(one.target or "-" for one in measure(())))
    return table


def details(days: Sequence[Days]) -> Table:
    """Lay out a line for each adapter, language and way of writing."""
    table = Table(title="by language and extraction")
    for name in ("adapter", "lang", "extracts"):
        table.add_column(name)
    names = [one.name for one in measure(()) if one.name != "kept"]
    for name in (*names, "lines", "asked"):
        table.add_column(name, justify="right")
    for one in days:
        figures = {figure.name: figure for figure in measure([one])}
        lines = statistics.fmean(len(shown.note) for shown in one.shown)
        way = "yes" if one.extracts else "no"
        values = [str(figures[name]) for name in names]
        asked = str(len(figures["all"].values))
        table.add_row(one.adapter, one.language, way, *values, f"{lines:.1f}", asked)
    return table


def turns_kept(kept: Sequence[Kept]) -> Table:
    """Lay out which share of the users' messages is kept, and how long the longest turn took."""
    table = Table(title="messages kept of those said (seconds of the longest turn)")
    table.add_column("adapter")
    for name in FAULTS:
        table.add_column(name, justify="right")
    by_adapter: dict[str, dict[str, str]] = defaultdict(dict)
    for one in kept:
        left = one.said - len(one.lost)
        mark = " !" if one.lost else ""
        by_adapter[one.adapter][one.fault] = f"{left}/{one.said} ({one.seconds:.1f}){mark}"
    for adapter, cells in by_adapter.items():
        table.add_row(adapter, *(cells.get(name, "-") for name in FAULTS))
    return table


def print_misses(console: Console, figures: Sequence[Figure], most: int) -> None:
    """Print some misses of each figure in full, spread over all of them."""
    for one in figures:
        if not one.misses or not most:
            continue
        console.rule(f"{one.name}: {len(one.misses)} of {len(one.values)} cases miss")
        for text in one.misses[:: max(1, len(one.misses) // most)][:most]:
            console.print(text, markup=False, highlight=False, soft_wrap=True)


def as_json(days: Sequence[Days], kept: Sequence[Kept], **run: object) -> dict[str, Any]:
    """Describe all figures as JSON values."""
    return {
        "run": run,
        "days": [
            {
                "adapter": one.adapter,
                "language": one.language,
                "extraction": one.extracts,
                "longest_prompt": one.longest_prompt,
                **{figure.name: figure.value for figure in measure([one])},
            }
            for one in days
        ],
        "faults": [
            {
                "adapter": one.adapter,
                "fault": one.fault,
                "said": one.said,
                "lost": one.lost,
                "errors": one.errors,
                "seconds": one.seconds,
            }
            for one in kept
        ],
    }


def run_all(
    adapters: Sequence[str], languages: Sequence[Language], users: int, seed: int, *,
    quick: bool, faults: bool,
) -> tuple[list[Days], list[Kept]]:  # fmt: skip
    """Play days on two processors; the faults, which mostly wait, at the same time."""
    spawn = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(len(adapters), mp_context=spawn) as waiting,
        ProcessPoolExecutor(WORKERS, mp_context=spawn) as working,
    ):
        broken: list[Future[list[Kept]]] = []
        if faults:
            broken = [waiting.submit(play_faults, one, seed, quick=quick) for one in adapters]
        played = [
            working.submit(play_days, adapter, language, extracts, users, seed)
            for adapter in adapters
            for language in languages
            for extracts in (False, True)
        ]
        played += [working.submit(play_bound, one, users, seed) for one in languages]
        days = [one.result() for one in played]
        return days, [kept for one in broken for kept in one.result()]


def main(
    quick: Annotated[bool, typer.Option("--quick", help="One user a language.")] = False,
    adapter: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    language: Annotated[list[str] | None, typer.Option(help="en or zh; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Other days.")] = 1,
    users: Annotated[int, typer.Option(help="Users a language; 0 for the default.")] = 0,
    faults: Annotated[bool, typer.Option(help="Also play the faults.")] = True,
    misses: Annotated[int, typer.Option(help="Print that many of each figure in full.")] = 0,
    file: Annotated[Path | None, typer.Option("--json", help="Write the figures there.")] = None,
    tables: TablesFile = None,
) -> None:
    """Measure what an agent sees of its memory, and what it loses."""
    start = time.monotonic()
    adapters = adapter or list(ADAPTERS)
    languages = [one for one in LANGUAGES if one in (language or LANGUAGES)]
    if not set(adapters) <= set(ADAPTERS) or not set(language or ()) <= set(LANGUAGES):
        message = f"Adapters are {', '.join(ADAPTERS)}; languages are {', '.join(LANGUAGES)}."
        raise typer.BadParameter(message)
    users = users or (QUICK_USERS if quick else USERS)
    days, kept = run_all(adapters, languages, users, seed, quick=quick, faults=faults)
    console = Console(width=None if Console().is_terminal else 170)
    own = [one for one in days if one.adapter in adapters]
    print_misses(console, measure(own, kept), misses)
    laid = [summary(days, kept), details(days), *([turns_kept(kept)] if kept else [])]
    console.print(*laid)
    save(tables, laid)
    prompt = max(one.longest_prompt for one in days)
    seconds = time.monotonic() - start
    console.print(
        f"Seed {seed}, {users} users a language, {sum(len(one.shown) for one in own)} turns; the "
        f"longest extraction prompt has {prompt} characters; {seconds:.0f} s. ! misses its target."
    )
    if file is not None:
        figures = as_json(days, kept, seed=seed, users=users, seconds=round(seconds))
        file.write_text(json.dumps(figures, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
