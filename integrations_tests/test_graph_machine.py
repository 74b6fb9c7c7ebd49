"""Random writes and erasures on the real graph store, compared with a model that is only naive.

The model keeps the statements of every live record and works everything else out anew each time.
"""

import itertools
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from commonplace import Entity, Fact, Memory, Record, Relation, Scope
from commonplace.backends.sqlite.connection import SqliteConnection
from commonplace.backends.sqlite.graph import SqliteGraph
from commonplace.ports.stores import Outcome, Put, Remove
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Event, fold

START = datetime(2020, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
FAR = datetime(2999, 1, 1, tzinfo=UTC)
LONG_AGO = datetime.min.replace(tzinfo=UTC)
MOMENTS = (START - DAY, START, START + DAY, START + 2.5 * DAY, FAR)
SINGLE = {"lives_in": True, "likes": False}

OWNERS = tuple(
    Scope(user_id=user, agent_id=agent, session_id=session)
    for user, agent, session in itertools.product(("alice", None), ("a", None), ("s", "t", None))
    if user or agent or session
)
VIEWS = (*OWNERS, Scope(user_id="alice", agent_id="b"), Scope(user_id="bob"))
SAID = tuple(
    Relation(
        subject=subject,
        predicate=predicate,
        object=place,
        object_type=kind,
        valid_from=begins,
        valid_to=ends,
        single_valued=SINGLE[fold(predicate)],
    )
    for subject, predicate, (place, kind), (begins, ends) in itertools.product(
        ("Ann", "ANN", "Bob"),
        ("lives_in", "lives_in", "LIVES_IN", "likes"),
        (("Rome", "thing"), ("rome", "city"), ("Oslo", "thing"), ("Ann", "person")),
        (
            (START, None), (START, None), (START + DAY, None), (START + 2 * DAY, None),
            (START, START + DAY), (START, FAR), (FAR, None), (None, START + DAY), (None, None),
        ),
    )
)  # fmt: skip
# By number, because what cannot be drawn is printed.
STATED = st.lists(st.integers(0, len(SAID) - 1).map(lambda n: SAID[n]), max_size=3)
SCOPES = st.sampled_from((*OWNERS, *OWNERS[:3], *OWNERS[:3]))
KEYS = st.sampled_from(("k1", "k2", "k3"))
LATE = st.sampled_from((0, 0, 0, 5))
ACTIONS = st.sampled_from(
    (
        *["add"] * 8, *["tell"] * 4, *["update"] * 5, *["end"] * 2, *["delete"] * 3,
        *["restore"] * 2, "rename", "repeat", "repeat", "forget",
    )
)  # fmt: skip
SEEN: Counter[str] = Counter()  # by one run of a machine

Name = tuple[Scope, str]
Edge = tuple[Scope, str, str, str, datetime]  # owner, subject, type, object, beginning
Truth = tuple[datetime | None, tuple[str, ...]]  # until when, and against what


@dataclass(slots=True, kw_only=True)
class Told:
    """A live record: what it states now, and what it stated before it was changed.

    Attributes:
        ended: when it was ended itself.
    """

    scope: Scope
    key: str
    version: int
    begins: datetime
    text: str = ""
    times: int = 1
    says: dict[Edge, datetime | None] = field(default_factory=dict)
    said: dict[Edge, datetime] = field(default_factory=dict)
    ended: datetime | None = None


class Model:
    """Live records, tombstones and fences; every answer is computed from them each time."""

    def __init__(self) -> None:
        self.told: dict[str, Told] = {}
        self.dead: dict[str, tuple[Scope, int]] = {}
        self.gone: dict[str, tuple[Told, list[Relation]]] = {}  # as they were when deleted
        self.fences: list[tuple[Scope, int]] = []
        self.names: dict[Name, tuple[str, str]] = {}
        self.first: dict[Edge, tuple[int, str, datetime]] = {}
        self.count = itertools.count()

    # -- changing --------------------------------------------------------------------------------

    def put(
        self,
        one: str,
        scope: Scope,
        key: str,
        version: int,
        at: datetime,
        said: Iterable[Relation] | None,
        *,
        begins: datetime,
        text: str,
        update: bool,
    ) -> Event:
        """Add or update; answers what that did."""
        held = self.told.get(one)
        dead_since = self.dead[one][1] if one in self.dead else -1
        if (update and held is None) or self._is_fenced(scope, version) or version <= dead_since:
            return "NONE"
        event: Event = "UPDATE"
        if held is None:
            event = "ADD"
            held = Told(scope=scope, key=key, version=version, begins=begins)
            self.told[one] = held
            self.dead.pop(one, None)
        elif version <= held.version:
            return "NONE"
        elif not update:
            return self._tell_again(one, version, at, said or (), begins=begins, text=text)
        if said is not None:
            held.ended = None
            before, held.says = held.says, {}
            for relation in said:
                held.says[self._meet(scope.owner, relation, at)] = relation.valid_to
            gone = dict.fromkeys(before, at) | held.said
            held.said = {edge: when for edge, when in gone.items() if edge not in held.says}
        held.version, held.text = version, text
        self._forget_unused()
        return event

    def _tell_again(
        self,
        one: str,
        version: int,
        at: datetime,
        said: Iterable[Relation],
        *,
        begins: datetime,
        text: str,
    ) -> Event:
        held = self.told[one]
        until, _ = self.truth(one)
        if held.text != text or (until is not None and until <= begins):
            return "NONE"
        held.times += 1
        news: list[Relation] = []
        for relation in said:
            since = relation.valid_from or LONG_AGO
            same = [edge for edge in held.says if self._is_same(edge, relation, since)]
            if any(relation.valid_to in (None, held.says[edge]) for edge in same):
                continue
            if same:
                known = min(same, key=lambda edge: (edge[4] != since, self.first[edge][0]))
                begun = None if known[4] == LONG_AGO else known[4]
                relation = replace(relation, valid_from=begun)  # noqa: PLW2901 -- its end is new
            news.append(relation)
        if not news:
            return "NONE"
        held.says |= {
            self._meet(held.scope.owner, relation, at): relation.valid_to for relation in news
        }
        held.said = {edge: when for edge, when in held.said.items() if edge not in held.says}
        held.version, held.ended = version, None
        return "UPDATE"

    def _is_same(self, edge: Edge, relation: Relation, since: datetime) -> bool:
        """Tell whether a record that states `edge` is told nothing new by a relation."""
        if edge[1:4] != self._edge(edge[0], relation)[1:4]:
            return False
        ends = self.ends(edge)
        holds = edge[4] <= since and (ends is None or ends > since)
        return edge[4] == since or (SINGLE[edge[2]] and holds)

    def end(self, one: str, version: int, at: datetime, until: datetime) -> bool:
        """End a record and what it states; answers whether that changed anything."""
        held = self.told.get(one)
        if held is None or version <= held.version or self._is_fenced(held.scope, version):
            return False
        for edge, ends in list(held.says.items()):
            if edge[4] >= until:
                del held.says[edge]
                held.said[edge] = at
            else:
                held.says[edge] = until if ends is None else min(ends, until)
        held.version, held.ended = version, until
        return True

    def _is_fenced(self, scope: Scope, version: int) -> bool:
        return any(fence.covers(scope) and version <= until for fence, until in self.fences)

    def remove(self, one: str, version: int) -> bool:
        """Delete; answers whether that changed anything."""
        held = self.told.get(one)
        if held is None or version <= held.version:
            return False
        self.dead[one] = held.scope, version
        self.gone[one] = held, self._stated_by(held)
        del self.told[one]
        self._forget_unused()
        return True

    def _stated_by(self, held: Told) -> list[Relation]:
        """List what a record states, oldest first, as it was first spelt."""
        stated = []
        for edge in sorted(held.says, key=lambda one: self.first[one][0]):
            owner, subject, _, object_, begins = edge
            subject, kind = self.names[owner, subject]
            object_, other = self.names[owner, object_]
            stated.append(
                Relation(
                    subject=subject,
                    predicate=self.first[edge][1],
                    object=object_,
                    subject_type=kind,
                    object_type=other,
                    valid_from=None if begins == LONG_AGO else begins,
                    valid_to=held.says[edge],
                )
            )
        return stated

    def restore(self, one: str, version: int, at: datetime) -> bool:
        """Bring a deleted record back; answers whether that changed anything."""
        if one not in self.dead or version <= self.dead[one][1]:
            return False
        held, stated = self.gone[one]
        if self._is_fenced(held.scope, version):
            return False
        del self.dead[one]
        says = {self._meet(held.scope.owner, said, at): said.valid_to for said in stated}
        self.told[one] = replace(held, version=version, says=says, said={})
        return True

    def erase(self, scope: Scope, version: int) -> tuple[int, int]:
        """Forget; answers how many relations and entities that removed."""
        relations, entities = len(self.first), len(self.names)
        self.told = {
            one: held
            for one, held in self.told.items()
            if not scope.covers(held.scope) or held.version > version
        }
        self.dead = {
            one: (owner, since)
            for one, (owner, since) in self.dead.items()
            if not scope.covers(owner) or since > version
        }
        self.fences.append((scope, version))
        self._forget_unused()
        return relations - len(self.first), entities - len(self.names)

    def _meet(self, owner: Scope, said: Relation, at: datetime) -> Edge:
        for name, kind in ((said.subject, said.subject_type), (said.object, said.object_type)):
            known, held = self.names.get((owner, fold(name)), (name, kind))
            self.names[owner, fold(name)] = known, kind if held == "thing" else held
        edge = self._edge(owner, said)
        self.first.setdefault(edge, (next(self.count), said.predicate, at))
        return edge

    def _edge(self, owner: Scope, said: Relation) -> Edge:
        begins = said.valid_from or LONG_AGO
        return owner, fold(said.subject), fold(said.predicate), fold(said.object), begins

    def _forget_unused(self) -> None:
        used = {edge for held in self.told.values() for edge in (*held.says, *held.said)}
        self.first = {edge: known for edge, known in self.first.items() if edge in used}
        ends = {(edge[0], name) for edge in used for name in (edge[1], edge[3])}
        self.names = {name: known for name, known in self.names.items() if name in ends}

    def pick(self, number: int) -> tuple[Scope, str]:
        """Choose a live record if there is one, else what was never there."""
        live = sorted((held.key, held.scope.key, held.scope) for held in self.told.values())
        key, _, scope = live[number % len(live)] if live else ("none", "", OWNERS[0])
        return scope, key

    def pick_dead(self, number: int) -> str:
        """Choose a deleted record if there is one, else what was never there."""
        dead = sorted(self.dead, key=lambda one: (self.gone[one][0].key, one))
        return dead[number % len(dead)] if dead else "none"

    # -- answering -------------------------------------------------------------------------------

    def speakers(self, edge: Edge) -> set[str]:
        """Name the records that state a relation."""
        return {one for one, held in self.told.items() if edge in held.says}

    def slot(self, edge: Edge) -> list[Edge]:
        """List the other values that somebody states of the same single-valued relation."""
        if not SINGLE[edge[2]]:
            return []
        stated = {other for held in self.told.values() for other in held.says}
        return [other for other in stated - {edge} if other[:3] == edge[:3]]

    def ends(self, edge: Edge) -> datetime | None:
        """Tell when a stated relation ends: as was said, or when the next value begins."""
        said = [held.says[edge] for held in self.told.values() if edge in held.says]
        later = [other[4] for other in self.slot(edge) if other[4] > edge[4]]
        return min((one for one in (*said, *later) if one), default=None)

    def rivals(self, edge: Edge) -> set[str]:
        """Name the records that state another value from the same moment on."""
        found = [self.speakers(one) for one in self.slot(edge) if one[4] == edge[4]]
        return set().union(*found)

    def truth(self, one: str) -> Truth:
        """Tell until when a record is true, and which records contradict it."""
        single = [edge for edge in self.told[one].says if SINGLE[edge[2]]]
        ends = [self.ends(edge) for edge in single]
        known = [end for end in ends if end]
        until = max(known) if known and len(known) == len(ends) else None
        until = until if single else self.told[one].ended
        against = {rival for edge in single for rival in self.rivals(edge)} - {one}
        return until, tuple(sorted(against))

    def truths(self) -> dict[str, Truth]:
        """Tell both of every record."""
        return {one: self.truth(one) for one in self.told}

    def relations(
        self, scope: Scope, *, include_superseded: bool = False, as_of: datetime | None = None
    ) -> list[Relation]:
        """List what a scope is shown, in the order in which it was first said."""
        found = []
        for edge, (_, predicate, at) in sorted(self.first.items(), key=lambda one: one[1][0]):
            owner, subject, kind, object_, begins = edge
            by = self.speakers(edge)
            before = {o: held.said[edge] for o, held in self.told.items() if edge in held.said}
            ends = self.ends(edge) if by else None
            shown = sorted(o for o in by or before if scope.covers(self.told[o].scope))
            if as_of is not None:
                holds = bool(by) and begins <= as_of and (ends is None or ends > as_of)
            else:
                holds = include_superseded
                holds = holds or (bool(by) and (ends is None or ends > datetime.now(UTC)))
            if not shown or not holds:
                continue
            found.append(
                Relation(
                    subject=self.names[owner, subject][0],
                    predicate=predicate,
                    object=self.names[owner, object_][0],
                    subject_type=self.names[owner, subject][1],
                    object_type=self.names[owner, object_][1],
                    valid_from=None if begins == LONG_AGO else begins,
                    valid_to=ends,
                    single_valued=SINGLE[kind],
                    created_at=at,
                    expired_at=None if by else max(before.values()),
                    conflict=bool(by) and any(o[4] == begins for o in self.slot(edge)),
                    supports=tuple(shown),
                )
            )
        return found

    def entities(self, scope: Scope) -> list[Entity]:
        """List the entities of relations that have not expired, by name."""
        found: dict[str, Entity] = {}
        for one in self.relations(scope, include_superseded=True):
            if one.expired_at is None:
                for name, kind in ((one.subject, one.subject_type), (one.object, one.object_type)):
                    held = found.setdefault(fold(name), Entity(name=name, type=kind))
                    if held.type == "thing":
                        found[fold(name)] = Entity(name=held.name, type=kind)
        return sorted(found.values(), key=lambda one: one.name)


def seen(record: Record) -> Truth:
    return record.valid_to, record.conflicts


def timeless(relation: Relation) -> Relation:
    return replace(relation, created_at=None, expired_at=relation.expired_at and FAR)


def compare(found: Sequence[Relation], wanted: Sequence[Relation]) -> None:
    wrong = [one for one in found if one not in wanted]
    missing = [one for one in wanted if one not in found]
    both = zip_longest(wrong, missing)
    assert list(found) == list(wanted), "\n".join(f"- {one}\n+ {other}" for one, other in both)


class GraphMachine(RuleBasedStateMachine):
    """Writes of any age to the embedded graph store, and repetitions of the last one."""

    home: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=self.home)
        path = Path(self.folder.name, "graph.db")
        self.graph = SqliteGraph(SqliteConnection(str(path)))
        self.look = sqlite3.connect(path)
        self.model = Model()
        self.steps = 0
        self.last: Put | Remove | None = None
        self.said: Outcome | None = None

    def teardown(self) -> None:
        self.look.close()
        self.graph.close()
        self.folder.cleanup()

    # One rule for all: a machine of many plays whole games without some of them.
    @rule(action=ACTIONS, scope=SCOPES, key=KEYS, said=STATED, late=LATE, pick=st.integers(0, 99))
    def change(
        self, action: str, scope: Scope, key: str, said: list[Relation], late: int, pick: int
    ) -> None:
        if action == "add":
            self._write(scope, key, late, said, update=False)
        elif action == "tell":
            scope, key = self.model.pick(pick)
            told = self.model.told.get(scope.record_id("fact", key))
            self._write(scope, key, late, said, update=False, text=told and told.text)
        elif action == "update":
            self._write(*self.model.pick(pick), late, said, update=True)
        elif action == "end":
            self._end(*self.model.pick(pick), late, MOMENTS[pick % len(MOMENTS)])
        elif action == "rename":
            self._write(*self.model.pick(pick), late, None, update=True)
        elif action == "delete":
            self._delete(*self.model.pick(pick), late)
        elif action == "restore":
            self._restore(self.model.pick_dead(pick), late)
        elif action == "repeat":
            self._repeat()
        else:
            self._forget(scope)

    def _next(self, late: int) -> tuple[int, datetime]:
        """Give a version that was never used: the newest, or one so many steps older."""
        self.steps += 1
        version = 1000 * max(1, self.steps - late) + self.steps
        return version, START + timedelta(seconds=self.steps)

    def _apply(self, change: Put | Remove) -> Outcome:
        self.last = change
        [self.said] = self.graph.apply([change])
        return self.said

    def _write(
        self,
        scope: Scope,
        key: str,
        late: int,
        said: list[Relation] | None,
        *,
        update: bool,
        text: str | None = None,
    ) -> None:
        version, at = self._next(late)
        begins = min((one.valid_from for one in said or () if one.valid_from), default=at)
        record = Record(
            id=scope.record_id("fact", key),
            text=text or f"{key} {version}",
            scope=scope,
            created_at=at,
            updated_at=at,
            occurred_at=begins,
            version=version,
        )
        before = self.model.truths()
        event = self.model.put(
            record.id, scope, key, version, at, said, begins=begins, text=record.text, update=update
        )
        relations = None if said is None else tuple(said)
        fields = ("text",) if update else ()
        outcome = self._apply(
            Put(record=record, relations=relations, replace=update, fields=fields)
        )

        is_told_again = outcome.record and outcome.record.last_told_at == at
        SEEN["tell" if is_told_again else event.lower()] += 1
        assert outcome.change.event == event
        if outcome.record:
            assert seen(outcome.record) == self.model.truth(record.id)
            assert outcome.record.times_told == self.model.told[record.id].times
        self._touched(outcome.touched, before, but=record.id, changed=event != "NONE")

    def _end(self, scope: Scope, key: str, late: int, until: datetime) -> None:
        version, at = self._next(late)
        one, before = scope.record_id("fact", key), self.model.truths()
        changed = self.model.end(one, version, at, until)
        record = Record(
            id=one, text=key, scope=scope, created_at=at, updated_at=at, occurred_at=at,
            version=version, valid_to=until,
        )  # fmt: skip
        put = Put(record=record, relations=None, replace=True, fields=("valid_to",))
        outcome = self._apply(put)

        SEEN["end" if changed else "none"] += 1
        assert (outcome.change.event == "UPDATE") is changed
        if outcome.record:
            assert seen(outcome.record) == self.model.truth(one)
        self._touched(outcome.touched, before, but=one, changed=changed)

    def _delete(self, scope: Scope, key: str, late: int) -> None:
        version, at = self._next(late)
        one, before = scope.record_id("fact", key), self.model.truths()
        changed = self.model.remove(one, version)
        outcome = self._apply(Remove(id=one, scope=scope, version=version, at=at))

        SEEN["delete" if changed else "none"] += 1
        assert (outcome.change.event == "DELETE") is changed
        self._touched(outcome.touched, before, changed=changed)

    def _restore(self, one: str, late: int) -> None:
        version, at = self._next(late)
        before = self.model.truths()
        scope, text = OWNERS[0], "none"
        if one in self.model.gone:
            scope, text = self.model.gone[one][0].scope, self.model.gone[one][0].text
        changed = self.model.restore(one, version, at)
        record = Record(
            id=one, text=text, scope=scope, created_at=at, updated_at=at, occurred_at=at,
            version=version,
        )  # fmt: skip
        fields = ("text", "situation")
        put = Put(record=record, relations=None, replace=True, fields=fields, restores=True)
        outcome = self._apply(put)

        SEEN["restore" if changed else "none"] += 1
        assert (outcome.change.event == "RESTORE") is changed
        if outcome.record:
            assert seen(outcome.record) == self.model.truth(one)
            assert outcome.record.times_told == self.model.told[one].times
            assert outcome.record.text == self.model.told[one].text
        self._touched(outcome.touched, before, but=one, changed=changed)

    def _forget(self, scope: Scope) -> None:
        version, _ = self._next(0)
        before = self.model.truths()
        relations, entities = self.model.erase(scope, version)
        erased = self.graph.erase(scope, version)
        self.last = None

        SEEN["forget"] += 1
        assert (erased.removed["relations"], erased.removed["entities"]) == (relations, entities)
        self._touched(erased.touched, before, changed=erased.removed["records"] > 0)
        assert not any(self.graph.count(scope).values())

    def _repeat(self) -> None:
        if self.last is not None and self.said is not None:
            [again] = self.graph.apply([self.last])
            SEEN["repeat"] += 1
            assert (again.change, again.record) == (self.said.change, self.said.record)
            if self.said.change.event != "NONE":
                assert {one.id for one in again.touched} >= {one.id for one in self.said.touched}

    def _touched(
        self,
        touched: Iterable[Record],
        before: dict[str, Truth],
        *,
        but: str | None = None,
        changed: bool = True,
    ) -> None:
        after = self.model.truths()
        wanted = {one for one in after if one != but and before.get(one) != after[one]}
        answered = {one.id: seen(one) for one in touched}
        SEEN["touched"] += len(wanted)
        if not changed:  # a late change tells again of all that it may have touched
            assert not wanted
            wanted = set(answered)
        assert answered == {one: after[one] for one in wanted}

    @invariant()
    def records_are_true_as_long_as_what_they_state(self) -> None:
        SEEN["steps"] += 1
        scope = VIEWS[self.steps % len(VIEWS)]
        every = self.graph.page(scope, limit=1000).records
        mine = {one: held for one, held in self.model.told.items() if scope.covers(held.scope)}
        truths = {one: self.model.truth(one) for one in mine}
        assert {one.id: seen(one) for one in every} == truths
        assert {one.id: (one.version, one.times_told) for one in every} == {
            one: (held.version, held.times) for one, held in mine.items()
        }
        for as_of in (None, MOMENTS[self.steps % len(MOMENTS)]):
            at = as_of or datetime.now(UTC)
            page = self.graph.page(scope, limit=1000, include_superseded=False, as_of=as_of)
            assert {one.id for one in page.records} == {
                one
                for one, (until, _) in truths.items()
                if (until is None or until > at) and (as_of is None or mine[one].begins <= at)
            }

    @invariant()
    def relations_are_what_is_stated(self) -> None:
        scope, as_of = VIEWS[self.steps * 5 % len(VIEWS)], MOMENTS[self.steps % len(MOMENTS)]
        for include_superseded in (False, True):
            found = self.graph.relations(scope, include_superseded=include_superseded)
            compare(found, self.model.relations(scope, include_superseded=include_superseded))
        found = self.graph.relations(scope, as_of=as_of)
        compare(found, self.model.relations(scope, as_of=as_of))
        assert self.graph.entities(scope) == self.model.entities(scope)

    @invariant()
    def nothing_is_left_alone(self) -> None:
        for table, fault in (
            (
                "entity",
                "id NOT IN (SELECT subject FROM relation UNION SELECT object FROM relation)",
            ),
            ("relation", "id NOT IN (SELECT relation FROM support)"),
            ("relation", "subject NOT IN (SELECT id FROM entity)"),
            ("relation", "object NOT IN (SELECT id FROM entity)"),
            ("support", "relation NOT IN (SELECT id FROM relation)"),
            ("support", "record NOT IN (SELECT id FROM record WHERE live)"),
            ("pair", "entity NOT IN (SELECT id FROM entity)"),
        ):
            sql = f"SELECT * FROM {table} WHERE {fault}"
            assert self.look.execute(sql).fetchall() == [], sql


class MemoryMachine(RuleBasedStateMachine):
    """The same through the front door, where the index must show what the graph knows."""

    home: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=self.home)
        self.memory = Memory.open(self.folder.name, embedder=HashEmbedder())
        for owner in OWNERS:  # of an earlier game on the same server
            self.memory.forget(owner)
        self.model = Model()
        self.steps = 0

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    @rule(action=ACTIONS, scope=SCOPES, key=KEYS, said=STATED, pick=st.integers(0, 99))
    def change(self, action: str, scope: Scope, key: str, said: list[Relation], pick: int) -> None:
        self.steps += 1
        # The front door gives a value without a beginning the time of writing.
        said = [one for one in said if one.valid_from or not one.single_valued]
        if action in ("update", "delete"):
            scope, key = self.model.pick(pick)
        one, at = scope.record_id("fact", key), START + timedelta(seconds=self.steps)
        if action == "add":
            begins = min((one.valid_from for one in said if one.valid_from), default=START)
            fact = Fact(text=f"note {key}", key=key, at=begins, relations=tuple(said))
            [done] = self.memory.add(fact, scope).changes
            event = self.model.put(
                one, scope, key, self.steps, at, said, begins=begins, text=fact.text, update=False
            )
            assert (done.id, done.event) == (one, event)
        elif action == "forget":
            self.model.erase(scope, self.steps)
            assert self.memory.forget(scope).complete
        elif action == "update" and one in self.model.told:
            begins = self.model.told[one].begins
            text = f"note {self.steps}"
            self.model.put(
                one, scope, key, self.steps, at, said, begins=begins, text=text, update=True
            )
            self.memory.update(one, text, scope, relations=said)
        elif action == "delete" and self.model.remove(one, self.steps):
            self.memory.delete(one, scope)
        elif action == "restore":
            one = self.model.pick_dead(pick)
            if self.model.restore(one, self.steps, at):
                self.memory.restore(one, self.model.told[one].scope)

    @invariant()
    def what_is_found_is_true_as_long_as_the_graph_says(self) -> None:
        SEEN["memory steps"] += 1
        for scope in (VIEWS[self.steps % len(VIEWS)], OWNERS[2]):
            mine = [o for o, held in self.model.told.items() if scope.covers(held.scope)]
            truths = {one: self.model.truth(one) for one in mine}
            for include_superseded in (False, True):
                wanted = {
                    one: truth
                    for one, truth in truths.items()
                    if not (not include_superseded and truth[0] and truth[0] <= datetime.now(UTC))
                }
                found = self.memory.search(
                    "note", scope, top_k=100, include_superseded=include_superseded
                )
                listed = self.memory.list(scope, include_superseded=include_superseded).records
                assert {one.record.id: seen(one.record) for one in found} == wanted
                assert {one.id: seen(one) for one in listed} == wanted
                times = {one: self.model.told[one].times for one in wanted}
                assert {one.record.id: one.record.times_told for one in found} == times
                stated = self.memory.relations(scope, include_superseded=include_superseded)
                shown = self.model.relations(scope, include_superseded=include_superseded)
                compare([timeless(one) for one in stated], [timeless(one) for one in shown])


def run(
    machine: type[GraphMachine | MemoryMachine], home: Path, *, games: int, steps: int
) -> Counter[str]:
    """Play so many games of so many steps; count what was done and compared in them."""
    machine.home = home
    SEEN.clear()
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=games,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    return SEEN


@pytest.mark.timeout(900)  # ten thousand steps
def test_the_graph_agrees_with_a_naive_model_after_every_step(tmp_path: Path) -> None:
    seen = run(GraphMachine, tmp_path, games=102, steps=100)

    assert seen["steps"] >= 10_000
    done = ("add", "tell", "update", "end", "delete", "restore", "forget", "touched")
    assert min(seen[one] for one in done) > 200


@pytest.mark.timeout(900)
def test_the_memory_agrees_with_the_same_model_after_every_step(tmp_path: Path) -> None:
    seen = run(MemoryMachine, tmp_path, games=10, steps=100)

    assert seen["memory steps"] >= 1_000


@pytest.mark.timeout(900)
@pytest.mark.every_engine("folders", "neo4j+folder", "neo4j+qdrant")
def test_a_memory_on_other_engines_agrees_with_it_too(tmp_path: Path) -> None:
    seen = run(MemoryMachine, tmp_path, games=2, steps=60)

    assert seen["memory steps"] >= 120
