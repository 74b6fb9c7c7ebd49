"""Does a note show what holds now before what it replaced, and mark what no longer holds?

    python benchmarks/corrections.py [--half apart|checked|natural_apart|...] [--misses N]

Each pair of `corrections.toml` is told to a store of its own user, three weeks apart: once alone,
once between the turns of twelve other sessions (`agent_days.py`). A month later its question is
asked. All with the default embedder, without a model that extracts.

- old first or alone: share of the pairs whose older text stands before the newer one, or without.
- old unmarked: of the pairs, those whose older text is shown and not marked.
- new unfound: share of the pairs whose newer text no search found, although it found the older one.
- new shown: share of the pairs whose newer text is shown.
- wrongly marked: of the pairs of which both texts hold, those with a mark.
"""

import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, get_args

import scoring
import typer
from agent_days import LANGUAGES, Language, lives
from rich.console import Console
from rich.table import Table
from tables import TablesFile, save

from commonplace import Fact, Memory, Message, Scope
from commonplace.agents import AgentMemory, Policy, shown
from commonplace.agents.note import is_earlier

Half = Literal[
    "develop", "judge", "second", "third", "apart", "checked", "simple_apart", "natural_apart",
    "lived_apart", "brief_apart", "lately_apart",
]  # fmt: skip
PAIRS = Path(__file__).with_name("corrections.toml")
OTHERS = (0, 12)
SPEAKERS = (None, "Alice", "bob", "Maximilian", "李雷")  # drawn by the length of what is told
_TOLD, _CORRECTED, _ASKED = (datetime(2026, 3, day, 9, tzinfo=UTC) for day in (1, 22, 31))
_TOPICS = ("allergy", "birthday", "trip", "dislike", "instrument")  # no matter of a pair
_SEARCHED = 30  # as many as a recall searches for


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A pair, and what was shown for its question.

    Attributes:
        holds: both texts hold.
        is_found: whether a search found the newer text, or not even the older one.
        shown: the texts of the note's lines that are of the pair, in their order; and whether each
            is marked.
    """

    language: Language
    others: int
    old: str
    new: str
    question: str
    holds: bool
    is_found: bool
    shown: tuple[tuple[str, bool], ...]

    @property
    def is_old_first(self) -> bool:
        """The older text stands before the newer one, or without it."""
        return bool(self.shown) and self.shown[0][0] == self.old

    @property
    def is_unmarked(self) -> bool:
        """The older text is shown without a mark."""
        return (self.old, False) in self.shown


def play(half: Half, embedder: scoring.Cached) -> list[Asked]:
    """Tell all pairs of a half, and ask for each."""
    pairs = tomllib.loads(PAIRS.read_text("utf-8"))
    found = []
    for language in LANGUAGES:
        for others in OTHERS:
            with (
                tempfile.TemporaryDirectory() as folder,
                Memory.open(folder, embedder=embedder) as memory,
            ):
                for holds in (False, True):
                    for number, texts in enumerate(pairs[language][half][_list_of(holds)]):
                        user = f"alice {holds} {number}"
                        found.append(_ask(memory, user, language, others, holds, texts))
    return found


def _list_of(holds: bool) -> str:
    return "kept" if holds else "replaced"


def _ask(
    memory: Memory, user: str, language: Language, others: int, holds: bool, texts: Sequence[str]
) -> Asked:
    old, new, question = (one.removeprefix("fact: ") for one in texts)
    for session, at, told in _other_sessions(language, others):
        messages = [Message(text=text, at=at, id=f"{n}") for n, text in enumerate(told)]
        memory.add(messages, Scope(user_id=user, session_id=session))
    for text, at in zip(texts, (_TOLD, _CORRECTED), strict=False):
        if text.startswith("fact: "):
            memory.add([Fact(text=text.removeprefix("fact: "), at=at)], Scope(user_id=user))
        else:
            scope = Scope(user_id=user, session_id=str(at))
            memory.add(Message(text=text, name=SPEAKERS[len(old) % len(SPEAKERS)], at=at), scope)
    scope = Scope(user_id=user, session_id="asked")
    searched = {one.text for one in memory.search(question, scope.owner, top_k=_SEARCHED)}
    matches = AgentMemory(memory, Policy(), log="corrections").recall(scope, question)
    lines = [(one.text, is_earlier(one)) for one in shown(matches, Policy(), _ASKED)]
    return Asked(
        language=language,
        others=others,
        old=old,
        new=new,
        question=question,
        holds=holds,
        is_found=new in searched or old not in searched,
        shown=tuple(line for line in lines if line[0] in (old, new)),
    )


def _other_sessions(language: Language, number: int) -> Iterator[tuple[str, datetime, list[str]]]:
    """Make up sessions that tell nothing of a pair's matter, from before until after both."""
    if number:
        [life] = lives(language, 1, 1)
        for place, session in enumerate(life.sessions[:number]):
            told = [one.text for one in session.turns if one.topic in ("", *_TOPICS)]
            yield f"other {place}", _TOLD + timedelta(days=2 * place), told


def report(asked: Sequence[Asked], half: Half) -> Table:
    """Lay out a line for each language and size of the store."""
    table = Table(title=f"what holds now, {half}")
    names = ("pairs", "old first or alone", "old unmarked", "new unfound", "new shown")
    for name in ("lang", "sessions", *names, "both hold", "wrongly marked"):
        table.add_column(name, justify="left" if name == "lang" else "right")
    for language in LANGUAGES:
        for others in OTHERS:
            rows = [one for one in asked if (one.language, one.others) == (language, others)]
            pairs = [one for one in rows if not one.holds]
            both = [one for one in rows if one.holds]
            table.add_row(
                language, str(others), str(len(pairs)),
                _share([one.is_old_first for one in pairs]),
                str(sum(one.is_unmarked for one in pairs)),
                _share([not one.is_found for one in pairs]),
                _share([any(text == one.new for text, _ in one.shown) for one in pairs]),
                str(len(both)),
                str(sum(any(mark for _, mark in one.shown) for one in both)),
            )  # fmt: skip
    return table


def misses(asked: Sequence[Asked]) -> Iterator[str]:
    """Describe the pairs that miss a target."""
    for one in asked:
        bad = any(mark for _, mark in one.shown) if one.holds else one.is_old_first
        if bad or (not one.holds and one.is_unmarked):
            kind = "both hold" if one.holds else "replaced"
            yield f"[{one.language}, {one.others}, {kind}] {one.question} {one.shown}"


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values) / len(values):.3f}" if values else "-"


def main(
    half: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(Half))}.")] = "develop",
    most: Annotated[int, typer.Option("--misses", help="Print that many in full.")] = 0,
    tables: TablesFile = None,
) -> None:
    """Measure whether what holds now comes first."""
    if half not in get_args(Half):
        raise typer.BadParameter(f"It is one of {', '.join(get_args(Half))}.")
    asked = play(half, scoring.cached(scoring.embedder("default")))  # type: ignore[arg-type]
    console = Console(width=None if Console().is_terminal else 130)
    for text in [*misses(asked)][:most]:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    laid = report(asked, half)  # type: ignore[arg-type]
    console.print(laid)
    save(tables, [laid])


if __name__ == "__main__":
    typer.run(main)
