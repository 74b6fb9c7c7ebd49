"""Users of the command line who are after others' memories, and the owners of exported lines."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import Result

from commonplace import Fact, Memory, Message, Relation, Scope
from commonplace.cli.memories import memories

from ..isolation.asking import Asker, Case, ask, check, scope_of, word_of
from ..isolation.owners import OWNERS, USERS, canary, make_filter, owners_in
from .populated import opened


def fact_of(scope: Scope, number: int) -> Fact:
    word = canary(scope)
    knows = Relation(subject=f"me {word}", predicate="knows", object="Ann")
    return Fact(text=f"{word} drinks tea, at first {number}", relations=(knows,))


def command_names() -> set[str]:
    return {
        one.name or one.callback.__name__ for one in memories.registered_commands if one.callback
    }


def _deleted(memory: Memory, user: str, number: int) -> str:
    """Add a fact of a user and delete it; return its id."""
    scope = scope_of(user)
    [written] = memory.add(f"{canary(scope)} drank milk, number {number}", scope).changes
    memory.delete(written.id, scope)
    return written.id


def test_no_command_prints_what_is_of_another_user(run: Callable[..., Result], tmp_path: Path):
    ids: dict[str, str] = {}
    with opened(tmp_path / "memory") as memory:
        for number, user in enumerate(USERS):
            [written] = memory.add(fact_of(scope_of(user), number), scope_of(user)).changes
            ids[user] = written.id
            memory.add(Message(text="Hello."), Scope(user_id=user, session_id=word_of(user)))
        gone = {user: _deleted(memory, user, number) for number, user in enumerate(USERS)}

    def case(name: str, make: Callable[[Asker], list[str]]) -> Case:
        def call(asker: Asker) -> Any:
            style = asker.random.choice(([], ["--json"]))
            done = run(name, *make(asker), f"--user={asker.user}", *style)
            kind = type(done.exception)
            assert done.exception is None or kind is SystemExit, done.exception
            return [*done.stdout.splitlines(), *done.stderr.splitlines()]

        return call

    def where(asker: Asker) -> list[str]:
        if asker.random.random() < 0.5:
            return []
        return [f"--filter={json.dumps(make_filter(asker.random))}"]

    def record(asker: Asker) -> list[str]:
        """Name a record of the other, by its whole id or by how it begins."""
        whole = ids[asker.other]
        return [asker.random.choice((whole, whole[:8], whole[0]))]

    cases = {
        "add": case("add", lambda asker: [asker.text]),
        "search": case("search", lambda asker: [asker.query, *where(asker)]),
        "list": case("list", where),
        "about": case("about", lambda _: []),
        "sessions": case("sessions", lambda _: []),
        "show": case("show", record),
        "history": case("history", record),
        "update": case("update", lambda asker: [*record(asker), asker.text]),
        "delete": case("delete", lambda asker: record(asker) if asker.number % 3 == 0 else ["f"]),
        "restore": case(
            "restore", lambda asker: [gone[asker.random.choice((asker.user, asker.other))]]
        ),
        "graph": case("graph", lambda asker: [f"--entity=me {word_of(asker.other)}"]),
        "forget": case(
            "forget", lambda asker: ["--yes"] if asker.number % 5 == 0 else ["--dry-run"]
        ),
    }
    assert set(cases) == command_names()

    seen = ask(cases, 210)

    check(seen, "forget")
    assert not seen.errors, seen.errors


def test_a_line_of_an_export_holds_the_canaries_of_its_own_owner(
    run: Callable[..., Result], tmp_path: Path
):
    with opened(tmp_path / "memory") as memory:
        for number, scope in enumerate(OWNERS[::7]):
            memory.add(fact_of(scope, number), scope)

    assert run("export", "memory", "all.jsonl").exit_code == 0

    lines = (tmp_path / "all.jsonl").read_text("utf-8").splitlines()
    assert len(owners_in("".join(lines))) >= 2 * len(OWNERS[::7])
    for line in lines:
        assert len(set(owners_in(line))) <= 1, line
