"""Every public function of `AgentMemory`, called for turns of owners who are after others'."""

from dataclasses import replace
from functools import partial
from typing import Any

from commonplace import Message, Scope
from commonplace.agents import ShownRecords
from commonplace.sans_io import call
from commonplace.types import now

from .calls import Calls
from .owners import canary


class AgentCalls(Calls):
    """The cases, each named `do_agent_` and the function."""

    def do_agent_recall(self) -> None:
        """Recall for a turn, in whose words somebody else's stand."""
        reader = self._owner()
        query = f"What does {canary(self._owner())} drink?"
        self.ask_agent("recall", reader.owner, reader, query)

    def do_agent_summarize(self) -> None:
        """Keep a summary of a session."""
        scope = self._owner()
        self.ask_agent("summarize", scope, f"{canary(scope)} said {self._number}", scope)
        self._note(scope)

    def do_agent_write(self) -> None:
        """Remember a turn."""
        scope = self._owner()
        self.ask_agent("write", scope, [self._message(scope)], scope)
        self._note(scope)

    def do_agent_add(self) -> None:
        """Remember a turn without an event."""
        scope = self._owner()
        self.ask_agent("add", scope, [self._message(scope)], scope, True)
        self._note(scope)

    def do_agent_reopen_misconfigured(self) -> None:
        """Do nothing, as the memory is open."""
        self._sightings.operations["agent_reopen_misconfigured"] += 1
        self._await(self._agent.reopen_misconfigured())

    def do_agent_aclose(self) -> None:
        """Wait for writes; a memory that was given open stays open."""
        self._sightings.operations["agent_aclose"] += 1
        self._await(self._agent.aclose(self, 30))

    def do_agent_write_later(self) -> None:
        """Remember a turn in the background."""
        scope = self._owner()
        self._sightings.operations["agent_write_later"] += 1

        async def write() -> None:
            self._agent.write_later([self._message(scope)], scope)
            await self._agent.wait_for_writes(30)

        self._await(write())
        self._note(scope)

    def do_agent_accept(self) -> None:
        """Accept what a user says, before the turn ends."""
        scope = self._owner()
        self.ask_agent("accept", scope, [self._identified(scope)], scope)
        self._await(self._agent.wait_for_writes(30))
        self._note(scope)

    def do_agent_withdraw(self) -> None:
        """Take back what was accepted, by the id of a message that somebody else said too."""
        scope, other = self._owner(), self._owner()
        said = self._identified(scope)
        for one in (scope, other):
            of_one = replace(said, text=f"{canary(one)} said tea", name=f"name {canary(one)}")
            self._agent.accept([of_one], one)
        self.ask_agent("withdraw", scope, [said], scope)
        self._await(self._agent.wait_for_writes(30))
        self._note(scope)
        self._note(other)

    def do_agent_retract(self) -> None:
        """Forget by words what may be somebody else's."""
        scope, other = self._owner(), self._owner()
        said = [self._identified(scope)]
        self.ask_agent("retract", scope, [f"that {canary(other)} drinks tea"], said, scope, now())
        self._note(scope)

    def _identified(self, scope: Scope) -> Message:
        return replace(self._message(scope), id=f"said {self._number}")

    def do_agent_wait_for_writes(self) -> None:
        """Wait for turns."""
        self._sightings.operations["agent_wait_for_writes"] += 1
        self._await(self._agent.wait_for_writes(30))

    def do_agent_call_tool(self) -> None:
        """Call each tool, with the ids that somebody else was shown."""
        reader, other, random = self._owner(), self._owner(), self._random
        shown, his = ShownRecords(), ShownRecords()
        call_tool = partial(self.ask_agent, "call_tool", reader.owner)
        arguments: dict[str, Any] = {"keywords": [canary(other), "tea"], "limit": 5}
        call_tool("search_memory", arguments, reader, shown)
        self._agent.call_tool("search_memory", arguments, other, his)
        text = f"{canary(reader.owner)} remembers tea, number {self._number}"
        self._number += 1
        call_tool("add_memory", {"thinking": "", "content": [text]}, reader)
        for one in random.sample(sorted(his.ids), min(2, len(his.ids))):
            owner = self.memory.admin.scope_of(one)
            assert owner is not None
            mine = reader.owner.covers(owner)
            # A fact of a session stays in it; who may read a corrected turn may read the session.
            text = f"{canary(owner if mine else reader.owner)} changed to number {self._number}"
            for name, given in (
                ("update_memory", {"memory_id": one, "text": text}),
                ("forget_memory", {"memory_id": one}),
            ):
                # Also where an adapter mistook what somebody else was shown for the reader's.
                done = call_tool(name, given, reader, random.choice((shown, his)))
                self._sightings.expect(name, mine or done is None, (reader, one, done))
            self._note(owner)
        self._note(reader)

    def do_agent_acall(self) -> None:
        """Await a call that asks for another owner's record."""
        reader, record_id = self._pick()
        self._sightings.operations["agent_acall"] += 1
        found = self._await(self._agent.acall(call("get_many", [record_id], reader)))
        self._sightings.check("agent_acall", reader, found)

    def do_agent_reporting(self) -> None:
        """Report what comes of a block, which is logged."""
        scope = self._owner()
        self._sightings.operations["agent_reporting"] += 1
        with self._agent.reporting("recall", scope, 1, late="timed_out"):
            pass

    def do_agent_counters(self) -> None:
        """Read numbers."""
        self.ask_agent("counters", self._owner())

    def do_agent_report(self) -> None:
        """Report an event, which is logged."""
        scope = self._owner()
        self.ask_agent("report", scope, "recalled", "recall", scope, 0.0)

    def do_agent_with_policy(self) -> None:
        """Use the memory by a policy of its own."""
        self.ask_agent("with_policy", self._owner(), self._agent.policy)

    def do_agent_raise_misconfiguration(self) -> None:
        """Raise nothing, as the memory is open."""
        self.ask_agent("raise_misconfiguration", self._owner())
