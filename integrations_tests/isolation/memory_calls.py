"""Every public function of `Memory`, called by owners who are after what is others'.

There is one case for each function; the function with an `a` in front is the same case, awaited. A
case asks as one owner, with ids, cursors, texts, namespaces, names and threads of another where the
function takes them.
"""

import os
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from commonplace import (
    CommonplaceError,
    Delete,
    Extraction,
    Memory,
    Record,
    Revise,
    Scope,
    Upsert,
)
from commonplace.ports.checkpoints import Address, Blob, Checkpoint, Selection, TaskWrite
from commonplace.testing.fakes import HashEmbedder

from .calls import Calls
from .owners import OWNERS, canary, make_filter, owners_in

KEPT = 4_000  # live records, beyond which users are forgotten
_BATCH = 25


class MemoryCalls(Calls):
    """The cases, each named `do_` and the function."""

    # -- writing -------------------------------------------------------------------------------

    def do_add(self) -> None:
        """Write facts, texts and turns, and let facts be extracted, some of which fails."""
        scope, kind = self._owner(), self._random.random()
        given: dict[str, Any] = {"infer": False}
        content: Any
        if kind < 0.4:
            content = [self._fact(scope) for _ in range(3)]
        elif kind < 0.6:
            content = f"{canary(scope)} likes tea, number {self._number}"
            given = {"key": "one", "upsert": True, "metadata": {"of": canary(scope)}}
        else:
            content = [self._message(scope), self._message(scope)]
            if kind > 0.8:
                given = {"infer": Extraction(keep_messages=kind > 0.9)}
        written = self.ask("add", scope, content, scope, **given)
        if written is None:
            self._note(scope)  # a model failed; the turns are there
        else:
            self._keep([written], [scope])

    def do_batch(self) -> None:
        """Write for many owners at once; delete and revise as somebody else, too."""
        scopes = [self._owner() for _ in range(_BATCH)]
        commands: list[Any] = []
        for scope in scopes:
            chosen = self._random.random()
            if chosen < 0.8 or not self._records:
                commands.append(Upsert(facts=[self._fact(scope)], scope=scope))
            elif chosen < 0.9:
                commands.append(Delete(record_id=self._pick()[1], scope=scope))
            else:
                record = self._random.choice(self._records)
                text = f"{canary(record.scope)} changed to number {self._number}"
                commands.append(Revise(record=record, text=text))
        owners = [one.record.scope if isinstance(one, Revise) else one.scope for one in commands]
        written = self.ask("batch", None, commands)
        self._sightings.operations["batch"] += len(commands) - 1
        for result, owner in zip(written or (), owners, strict=False):
            self._sightings.check("batch", owner, result.changes)
        self._keep(written, owners)

    def do_update(self) -> None:
        """Change a record of anybody."""
        reader, record_id = self._pick()
        owner = self.live.get(record_id)
        text = f"{canary(owner or reader)} drinks coffee, number {self._number}"
        self._number += 1
        self._changes("update", record_id, reader, record_id, text, reader)

    def do_delete(self) -> None:
        """Delete a record of anybody."""
        reader, record_id = self._pick()
        if self._changes("delete", record_id, reader, record_id, reader):
            self.live.pop(record_id, None)

    def do_restore(self) -> None:
        """Bring back a record of anybody, where it is deleted."""
        reader, record_id = self._pick()
        if self.ask("restore", reader, record_id, reader):
            owner = self.memory.admin.scope_of(record_id)
            is_new = record_id not in self.live
            mine = is_new and owner is not None and reader.covers(owner)
            self._sightings.expect("restore", mine, (reader, record_id, owner))
            if owner is not None:
                self.live[record_id] = owner

    def do_feedback(self) -> None:
        """Vote for a record of anybody."""
        reader, record_id = self._pick()
        self._changes("feedback", record_id, reader, record_id, reader, helped=True)

    def _changes(self, name: str, record_id: str, reader: Scope, *args: Any, **given: Any) -> bool:
        """Change something; that it succeeds, for its owners alone."""
        mine = record_id in self.live and reader.covers(self.live[record_id])
        done = self.ask(name, reader, *args, **given)
        self._sightings.expect(name, mine or done is None, (reader, record_id, done))
        return done is not None

    def do_prune(self) -> None:
        """Delete what an owner has too much of."""
        reader, dry_run = self._owner(), self._random.random() < 0.9
        for one in self.ask("prune", reader, reader, keep=2, dry_run=dry_run) or ():
            if not dry_run:
                self.live.pop(one.id, None)

    def do_forget(self) -> None:
        """Forget somebody: often a session, sometimes a user, where there is too much."""
        is_full = len(self.live) > KEPT
        for _ in range(20 if is_full else 1):
            scope = self._owner()
            if is_full and scope.user_id is not None:
                scope = Scope(user_id=scope.user_id)
            receipt = self.ask("forget", scope, scope)
            self._sightings.expect("forget", receipt is not None and receipt.complete, receipt)
            self._drop(scope)

    # -- reading -------------------------------------------------------------------------------

    def do_search(self) -> None:
        """Search with the words of somebody else, and his values in a filter."""
        reader, other, random = self._owner(), self._owner(), self._random
        text = random.choice((f"{canary(other)} drinks tea", "who drinks tea in Oslo?", "Ann"))
        given: dict[str, Any] = {"top_k": random.choice((1, 5, 10))}
        if random.random() < 0.5:
            given["where"] = make_filter(random)
        given |= random.choice(
            ({}, {}, {"decay": True}, {"include_superseded": True}, {"ranking": "similarity"},
             {"as_of": datetime.now(UTC)}, {"kinds": ["fact", "episode"]},
             {"asked_at": datetime.now(UTC)},
             {"predicate": lambda record: self._sees("predicate", reader, record)})
        )  # fmt: skip
        found = self.ask("search", reader, text, reader, **given)
        if found:
            self._records = [*self._records[-500:], *(one.record for one in found)]

    def _sees(self, name: str, reader: Scope, record: Record) -> bool:
        self._sightings.check(name, reader, record)
        return True

    def do_get(self) -> None:
        """Read a record of anybody."""
        reader, record_id = self._pick()
        found = self.ask("get", reader, record_id, reader)
        mine = record_id in self.live and reader.covers(self.live[record_id])
        self._sightings.expect("get", mine == (found is not None), (reader, record_id, found))

    def do_get_many(self) -> None:
        """Read records of many."""
        self._get_many("get_many")

    def do_get_excerpts(self) -> None:
        """Read what an item needs of records of many."""
        self._get_many("get_excerpts")

    def _get_many(self, name: str) -> None:
        reader, record_id = self._pick()
        ids = [record_id, *(self._pick()[1] for _ in range(4))]
        self.ask(name, reader, ids, reader)

    def do_list(self) -> None:
        """List with a filter, or from a cursor that somebody else was given."""
        reader, random = self._owner(), self._random
        given: dict[str, Any] = {"limit": random.choice((1, 3, 20))}
        if random.random() < 0.6:
            given["where"] = make_filter(random)
        elif self._cursors and random.random() < 0.6:
            given["cursor"] = random.choice(self._cursors)
        if random.random() < 0.2:
            given["predicate"] = lambda record: self._sees("predicate", reader, record)
        if random.random() < 0.3:
            given |= {"include_superseded": True, "include_expired": True}
        page = self.ask("list", None, reader, **given)
        if page is not None:
            self._sightings.check("list", reader, page.records)
            self._sightings.check("list", reader, page.cursor)
            self._records = [*self._records[-500:], *page.records[:2]]
            if page.cursor:
                self._cursors = [*self._cursors[-50:], page.cursor]

    def do_history(self) -> None:
        """Read the history of a record of anybody, live or deleted."""
        reader, record_id = self._pick()
        self.ask("history", reader, record_id, reader)

    def do_sessions(self) -> None:
        """List sessions, perhaps from a cursor that somebody else was given."""
        reader, random = self._owner(), self._random
        cursor = random.choice([None, *self._cursors])
        page = self.ask("sessions", None, reader, limit=random.choice((1, 5)), cursor=cursor)
        for one in page or ():
            self._sightings.expect("sessions", reader.covers(one.scope), one)
            self._sightings.check("sessions", reader, one.summary)
        if page is not None and page.cursor:
            self._cursors = [*self._cursors[-50:], page.cursor]

    def do_session(self) -> None:
        """Use a session, with a record of anybody to begin at and to stand for."""
        scope = self._random.choice([one for one in OWNERS if one.session_id is not None])
        record_id = self._pick()[1]
        self._sightings.operations["session"] += 1
        session = self.memory.session(scope)
        session.put_state({"of": canary(scope), record_id: self._number})
        found = [session.state(), session.messages(limit=3), session.summary()]
        self._sightings.check("session", scope, found)
        self._sightings.check("session", scope, session.messages(before=record_id))
        mine = record_id in self.live and scope.covers(self.live[record_id])
        with suppress(CommonplaceError):
            session.summarize(f"{canary(scope)} said much", covers=[record_id])
            self._sightings.expect("session", mine, (scope, record_id))
        if self._random.random() < 0.2:
            self._sightings.check("session", scope.owner, session.promote(min_recalls=0))
        self._note(scope)

    def do_relations(self) -> None:
        """Read the relations around what somebody else knows, or of his records."""
        self._around("relations")

    def do_diagram(self) -> None:
        """Draw the same."""
        self._around("diagram")

    def _around(self, name: str) -> None:
        (reader, record_id), other, random = self._pick(), self._owner(), self._random
        given: dict[str, Any] = random.choice(
            ({"entity": "Ann", "hops": 3}, {"entity": f"me {canary(other)}", "hops": 2},
             {"records": [record_id, self._pick()[1]]}, {},
             {"entity": "Oslo", "include_superseded": True}, {"as_of": datetime.now(UTC)})
        )  # fmt: skip
        if name == "diagram":
            given = {**given, "form": random.choice(("text", "mermaid"))}
        self.ask(name, reader, reader, **given)

    def do_entities(self) -> None:
        """List the names that somebody knows."""
        reader = self._owner()
        self.ask("entities", reader, reader)

    def do_namespaces(self) -> None:
        """List the namespaces of somebody."""
        reader = self._owner()
        self.ask("namespaces", reader, reader)

    # -- operating -----------------------------------------------------------------------------

    def do_list_namespaces(self) -> None:
        """List the namespaces of everybody: each with those who ever wrote there."""
        prefix = self._path()
        found = self.ask("list_namespaces", None, prefix, limit=20) or {}
        for namespace, scopes in found.items():
            wrong = set(scopes) - self._namespaces.get(namespace, set())
            is_below = namespace[: len(prefix)] == prefix
            self._sightings.expect("list_namespaces", is_below, namespace)
            self._sightings.expect("list_namespaces", not wrong, (namespace, wrong))
            self._sightings.rows["list_namespaces"] += 1

    def do_list_users(self) -> None:
        """List the users of a namespace: those who ever wrote in it or below it."""
        asked = self._path()
        users = set(self.ask("list_users", None, asked) or ())
        wrote = [
            scope.user_id
            for namespace, scopes in self._namespaces.items()
            if namespace[: len(asked)] == asked
            for scope in scopes
        ]
        wrong = users - {*wrote}
        self._sightings.expect("list_users", not wrong, (asked, wrong))
        self._sightings.rows["list_users"] += len(users)

    def do_list_scopes(self) -> None:
        """List the scopes of everybody: none that has no number."""
        found = set(self.ask("list_scopes", None) or ())
        self._sightings.expect("list_scopes", found <= set(OWNERS), found - set(OWNERS))

    def do_scope_of(self) -> None:
        """Ask whose a record is."""
        _, record_id = self._pick()
        found = self.ask("scope_of", None, record_id)
        owner = self.live.get(record_id, found)
        self._sightings.expect("scope_of", found == owner, (record_id, found, owner))

    def do_outdated_turns(self) -> None:
        """Ask which turns of anybody are outdated: those of the reader alone."""
        reader, record_id = self._pick()
        ids = [record_id, *(self._pick()[1] for _ in range(4))]
        for one in self.ask("outdated_turns", reader, reader, ids) or ():
            owner = self.memory.admin.scope_of(one)
            mine = owner is not None and reader.covers(owner)
            self._sightings.expect("outdated_turns", mine, (reader, one, owner))

    def do_statements(self) -> None:
        """Ask which of the reader's records state something: the answer names those alone."""
        reader = self._owner()
        page = self.ask("list", None, reader, limit=20)
        records = page.records if page else []
        answer = self.ask("statements", None, records) or ()
        named = {id_ for links in answer for pair in links.items() for id_ in pair}
        self._sightings.expect("statements", named <= {one.id for one in records}, (reader, named))

    def do_dead_letters(self) -> None:
        """Read somebody's dead letters, or for an operator everybody's."""
        reader = self._owner()
        for letter in self.ask("dead_letters", reader, reader) or ():
            self._sightings.expect("dead_letters", reader.covers(letter.scope), (reader, letter))
        if self._random.random() < 0.2:
            self._letters = self.memory.admin.dead_letters()

    def do_retry(self) -> None:
        """Retry some dead letter, which goes to its own owner again."""
        letters = self._letters[:1]
        self.ask("retry", None, [one.operation for one in letters])
        for one in letters:
            self._note(one.scope)

    def do_flush(self) -> None:
        """Wait for all writes."""
        self.ask("flush", None, 30)

    def do_follow(self) -> None:
        """Follow a write: an error that it tells is of its owner."""
        scope = self._owner()
        written = self.memory.add(
            self._message(scope), scope, infer=Extraction(keep_messages=False), wait=False
        )

        def failed(error: Exception) -> None:
            self._sightings.check("follow", scope, repr(error))

        self.ask("follow", scope, written, failed)
        self._note(scope)

    def do_before_close(self) -> None:
        """Ask to be called before the memory closes, which is about nobody."""
        self._sightings.operations["before_close"] += 1
        self.memory.admin.before_close(print)

    def do_was_forgotten(self) -> None:
        """Ask for erasures of somebody: nobody was forgotten in a moment that is to come."""
        reader, later = self._owner(), datetime.now(UTC) + timedelta(days=1)
        found = self.ask("was_forgotten", reader, reader, since=later)
        self._sightings.expect("was_forgotten", found in (False, None), reader)

    def do_run(self) -> None:
        """Read on a thread of the memory."""
        reader, record_id = self._pick()
        self._sightings.operations["run"] += 1
        found = self._await(self.memory.admin.run(self.memory.get, record_id, reader))
        self._sightings.check("run", reader, found)

    def do_admin(self) -> None:
        """Read a property, which is about nobody."""
        self._sightings.operations["admin"] += 1

    def do_redact(self) -> None:
        """Read a property: nothing is redacted here."""
        self._sightings.operations["redact"] += 1
        self._sightings.expect("redact", self.memory.admin.redact is None, None)

    def do_location(self) -> None:
        """Read a property, which is about nobody."""
        self._sightings.operations["location"] += 1
        self._sightings.expect("location", not owners_in(self.memory.location), "a canary")

    def do_embedder(self) -> None:
        """Read a property, which is about nobody."""
        self._sightings.operations["embedder"] += 1
        self._sightings.expect("embedder", not owners_in(self.memory.embedder.id), "a canary")

    def do_checkpoints(self) -> None:
        """Write a state in the thread of one owner and read it, and nobody else's, there."""
        scope, other = self._owner(), self._owner()
        self._sightings.operations["checkpoints"] += 1
        states, word = self.memory.admin.checkpoints, canary(scope)
        # Threads are named like their owners, so that they are as easily confused.
        thread = f"{scope.user_id}{scope.agent_id or ''}{scope.session_id or ''} {word}"[-256:]
        blob = Blob(type="text", data=word.encode())
        at = Address(thread=thread, namespace="", id=str(self._number))
        body = Checkpoint(address=at, parent=None, body=blob, metadata=blob, versions={"c": "1"})
        states.put(body, {("c", "1"): blob}, scope)
        write = TaskWrite(task="t", path="", index=0, channel="c", value=blob)
        states.write(at, [write], scope)
        if other != scope:
            with suppress(CommonplaceError):  # a thread has one owner
                states.put(body, {("c", "1"): Blob(type="text", data=b"stolen")}, other)
        state = states.read(thread, "")
        assert state is not None
        held = [state.checkpoint.body, *state.values.values(), *(one.value for one in state.writes)]
        page = states.page(Selection(thread=thread), limit=5)
        held += [one.metadata for one in page]
        text = " ".join(one.data.decode() for one in held)
        self._sightings.check("checkpoints", scope, text)
        mine = state.owner == scope and "stolen" not in text
        self._sightings.expect("checkpoints", mine, (state, text))
        states.delete([thread])

    # -- opening -------------------------------------------------------------------------------

    def do_open(self) -> None:
        """Open another folder, of nearly the same name, and find nothing of this one in it."""
        reader = self._owner()
        self._sightings.operations["aopen" if self.is_awaited else "open"] += 1
        with tempfile.TemporaryDirectory(dir=self._folder, prefix="memory") as folder:
            given: dict[str, Any] = {"embedder": HashEmbedder()}
            opened = (
                self._await(Memory.aopen(folder, **given))
                if self.is_awaited
                else Memory.open(folder, **given)
            )
            with opened:
                found = opened.search("who drinks tea?", reader)
                self._sightings.expect("open", not found and not opened.admin.list_scopes(), found)

    def do_from_env(self) -> None:
        """Open the same with a folder of the environment."""
        self._sightings.operations["afrom_env" if self.is_awaited else "from_env"] += 1
        with tempfile.TemporaryDirectory(dir=self._folder, prefix="memory") as folder:
            with mock.patch.dict(os.environ, {"COMMONPLACE_PATH": folder}):
                opened = self._await(Memory.afrom_env()) if self.is_awaited else Memory.from_env()
            with opened:
                self._sightings.expect("from_env", not opened.admin.list_scopes(), folder)

    def do_close(self) -> None:
        """Read from a memory that is closed: an error, without a word of anybody."""
        reader = self._owner()
        self._sightings.operations["aclose" if self.is_awaited else "close"] += 1
        with tempfile.TemporaryDirectory(dir=self._folder, prefix="memory") as folder:
            other = Memory.open(folder, embedder=HashEmbedder())
            if self.is_awaited:
                self._await(other.aclose())
            else:
                other.close()
            try:
                found: object = other.search("who drinks tea?", reader)
            except CommonplaceError as error:
                found = str(error)
            self._sightings.check("close", reader, found)
