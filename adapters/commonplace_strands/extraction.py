"""Extraction settings of a memory store, made safe for an agent that serves several users.

The framework gives an extractor one batch with the messages of all of them, and keeps no owner of
what it extracts. Here each owner's messages are extracted alone, and what is extracted carries its
owner past the framework, where no model can change it.
"""

from itertools import groupby
from typing import Any
from weakref import WeakKeyDictionary

from strands.hooks import AfterModelCallEvent, BeforeInvocationEvent, HookOrder
from strands.memory import (
    ExtractionConfig,
    ExtractionResult,
    ExtractionTrigger,
    ExtractionTriggerContext,
    Extractor,
    ExtractorContext,
    IntervalTrigger,
)
from strands.types.content import Message as StrandsMessage

from commonplace import Scope, WrongTypeError
from commonplace.agents import LazyMemory, check_choice, check_mapping

from .convert import blocks_of
from .multiagent_turns import caller_of
from .turn_owner import is_agents, mark_as_agents, read_tag

DEFAULT_INTERVAL = 5  # turns, as the manager's own

_extracted: WeakKeyDictionary[Any, WeakKeyDictionary[LazyMemory, set[Scope | None]]] = (
    WeakKeyDictionary()
)
_inner: WeakKeyDictionary[Any, set[int]] = WeakKeyDictionary()  # states of calls by agents


class OwnedMetadata(dict[str, Any]):
    """The metadata of an extracted text, with the scope of its owner."""

    def __init__(self, scope: Scope, metadata: dict[str, Any] | None) -> None:
        super().__init__(metadata or {})
        self.scope = scope


class PerOwnerExtractor:
    """Runs an extractor on the messages of one owner at a time."""

    def __init__(self, extractor: Extractor, memory: LazyMemory, scope: Scope | None) -> None:
        self._extractor = extractor
        self._memory = memory
        self._scope = scope

    async def extract(
        self, messages: list[StrandsMessage], context: ExtractorContext | None = None
    ) -> list[ExtractionResult]:
        """Extract from each run of messages of one owner; those of no owner are left out."""
        extracted: list[ExtractionResult] = []
        for owner, run in groupby(messages, self._owner):
            if owner is not None:
                results = await self._extractor.extract(list(run), context)
                extracted += [
                    ExtractionResult(result.content, OwnedMetadata(owner, result.metadata))
                    for result in results
                ]
        return extracted

    def _owner(self, message: StrandsMessage) -> Scope | None:
        if is_agents(message):
            return None
        if self._scope is not None:
            return self._scope
        tag = read_tag(message, self._memory)
        return None if tag is None else tag.scope


class ExtractionRegistration(ExtractionTrigger):
    """Registers that an agent's turns are extracted into a memory; never fires.

    Marks what agents write to one another, which is not extracted.
    """

    name = "commonplace-registration"

    def __init__(self, memory: LazyMemory, scope: Scope | None) -> None:
        self._memory = memory
        self._scope = scope

    def attach(self, context: ExtractionTriggerContext) -> None:
        """Register the agent that the manager serves."""
        memories = _extracted.setdefault(context.agent, WeakKeyDictionary())
        if not memories:
            order = HookOrder.SDK_LAST
            context.agent.add_hook(_use_blocks, BeforeInvocationEvent, order=order)
            context.agent.add_hook(_mark_question, BeforeInvocationEvent, order=order)
            context.agent.add_hook(_mark_answer, AfterModelCallEvent)
        memories.setdefault(self._memory, set()).add(self._scope)


def _use_blocks(event: BeforeInvocationEvent) -> None:
    """Put blocks in place of plain strings, at which the manager fails for all that it has."""
    given: list[Any] = event.messages or []
    if any(isinstance(one.get("content"), str) for one in given):
        in_blocks: list[Any] = [
            {**one, "content": blocks_of(one)} if isinstance(one.get("content"), str) else one
            for one in given
        ]
        event.messages = in_blocks


def _mark_question(event: BeforeInvocationEvent) -> None:
    calls = _inner.setdefault(event.agent, set())
    calls.discard(id(event.invocation_state))
    if event.messages and caller_of(event.agent, event.invocation_state):
        calls.add(id(event.invocation_state))
        for message in event.messages:
            mark_as_agents(message)


def _mark_answer(event: AfterModelCallEvent) -> None:
    is_inner = id(event.invocation_state) in _inner.get(event.agent, ())
    if is_inner and event.stop_response is not None:
        mark_as_agents(event.stop_response.message)


def is_extracted(agent: Any, memory: LazyMemory, scope: Scope | None) -> bool:
    """Return whether a memory manager extracts a turn of this scope into this memory.

    False if it extracts for another owner only.
    """
    scopes = _extracted.get(agent, WeakKeyDictionary()).get(memory, ())
    owner = None if scope is None else scope.owner
    return any(extracted is None or extracted.owner == owner for extracted in scopes)


def extraction_config(
    given: "ExtractionConfig | bool | None", memory: LazyMemory, scope: Scope | None
) -> "ExtractionConfig | bool | None":
    """Make the settings that a memory manager gets; its defaults stay what they are.

    Raises:
        InvalidRecordError: they are none.
    """
    if given is None or given is False:
        return given
    if given is not True:
        check_mapping("extraction", given, "{'trigger': IntervalTrigger(turns=5)}")
        _check_config(given)
    config = ExtractionConfig() if given is True else ExtractionConfig(**given)
    triggers = config.get("trigger")
    triggers = IntervalTrigger(turns=DEFAULT_INTERVAL) if triggers is None else triggers
    triggers = list(triggers) if isinstance(triggers, list) else [triggers]
    if triggers:
        triggers.append(ExtractionRegistration(memory, scope))
    config["trigger"] = triggers
    if config.get("extractor") is not None:
        config["extractor"] = PerOwnerExtractor(config["extractor"], memory, scope)
    return config


def _check_config(given: ExtractionConfig) -> None:
    for name in given:
        check_choice("extraction", name, tuple(ExtractionConfig.__annotations__))
    triggers = given.get("trigger")
    for trigger in triggers if isinstance(triggers, list) else [triggers]:
        if trigger is not None and not isinstance(trigger, ExtractionTrigger):
            raise WrongTypeError(
                field="trigger",
                value=trigger,
                takes="a trigger of Strands",
                hint="Pass an instance.",
            )
    extractor = given.get("extractor")
    if extractor is not None and (isinstance(extractor, type) or not hasattr(extractor, "extract")):
        raise WrongTypeError(
            field="extractor", value=extractor, takes="an Extractor", hint="Pass an instance."
        )
