"""A store's extraction settings, made safe for an agent that serves several users.

The framework hands an extractor one batch with the messages of all of them, and learns of no
owner of what comes out. Here each user's messages are extracted alone, and what comes out carries
its owner past the framework, out of reach of any model.
"""

from itertools import groupby
from typing import Any
from weakref import WeakKeyDictionary

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

from commonplace import Memory, Scope

from .stamps import stamp_of

TURNS = 5

Scopes = set[Scope | None]

_extracted: WeakKeyDictionary[Any, WeakKeyDictionary[Memory, Scopes]] = WeakKeyDictionary()


class Owned(dict[str, Any]):
    """The metadata of an extracted text, with the scope that it belongs to."""

    def __init__(self, scope: Scope, metadata: dict[str, Any] | None) -> None:
        super().__init__(metadata or {})
        self.scope = scope


class OwnedExtractor:
    """Lets an extractor see one owner's messages at a time; others than theirs it never sees."""

    def __init__(self, extractor: Extractor, memory: Memory, scope: Scope | None) -> None:
        self._extractor = extractor
        self._memory = memory
        self._scope = scope

    async def extract(
        self, messages: list[StrandsMessage], context: ExtractorContext | None = None
    ) -> list[ExtractionResult]:
        """Extract from each run of messages of one owner; messages of nobody are left out."""
        found: list[ExtractionResult] = []
        for owner, run in groupby(messages, self._owner):
            if owner is not None:
                results = await self._extractor.extract(list(run), context)
                found += [
                    ExtractionResult(one.content, Owned(owner, one.metadata)) for one in results
                ]
        return found

    def _owner(self, message: StrandsMessage) -> Scope | None:
        if self._scope is not None:
            return self._scope
        stamp = stamp_of(message, self._memory)
        return None if stamp is None else stamp.scope


class Witness(ExtractionTrigger):
    """Fires never, but notes that an agent's turns are extracted into a memory, and for whom."""

    name = "commonplace-witness"

    def __init__(self, memory: Memory, scope: Scope | None) -> None:
        self._memory = memory
        self._scope = scope

    def attach(self, context: ExtractionTriggerContext) -> None:
        """Note whose turns they are."""
        memories = _extracted.setdefault(context.agent, WeakKeyDictionary())
        memories.setdefault(self._memory, set()).add(self._scope)


def is_extracted(agent: Any, memory: Memory, scope: Scope | None) -> bool:
    """Tell whether a memory manager extracts a turn of this scope into this memory, for its owner.

    Not if what it extracts becomes somebody else's.
    """
    scopes = _extracted.get(agent, WeakKeyDictionary()).get(memory, ())
    return any(one is None or (scope is not None and one.owner == scope.owner) for one in scopes)


def settings(
    given: "ExtractionConfig | bool | None", memory: Memory, scope: Scope | None
) -> "ExtractionConfig | bool | None":
    """Make the settings that a memory manager is given; its defaults stay what they are."""
    if given is None or given is False:
        return given
    config = ExtractionConfig() if given is True else ExtractionConfig(**given)
    triggers = config.get("trigger")
    triggers = IntervalTrigger(turns=TURNS) if triggers is None else triggers
    triggers = list(triggers) if isinstance(triggers, list) else [triggers]
    if triggers:
        triggers.append(Witness(memory, scope))
    config["trigger"] = triggers
    if config.get("extractor") is not None:
        config["extractor"] = OwnedExtractor(config["extractor"], memory, scope)
    return config
