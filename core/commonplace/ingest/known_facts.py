"""Lookup of the known facts that a conversation may tell again or change.

Apart from planning because it is the one step that reads the stores.
"""

from collections.abc import Callable, Sequence

from ..dedup_key import identity_of
from ..filters import METADATA, Filter, Group, Predicate, Where
from ..ports.stores import AskKnown, Engines, Hit, KnownFacts, Query, Terms
from ..types import KINDS

MAX_KNOWN = 16
_CANDIDATES = 50
_CONDITIONS = 8
_KINDS = tuple(kind for kind in KINDS if kind != "episode")


class KnownFactsLookup:
    """Finds known facts in the engines of one location.

    Args:
        describe: gives a text's terms and its length in words.
    """

    def __init__(self, engines: Engines, describe: Callable[[str], tuple[Terms, int]]) -> None:
        self._engines = engines
        self._describe = describe

    def find(self, ask: AskKnown, vector: Sequence[float]) -> KnownFacts:
        """Find the facts nearest to a text, at most 16, and the relations that they assert.

        Args:
            vector: of the text, of unit length.

        Raises:
            StoreUnavailableError, StoreRefusedError: a store failed.
        """
        scope = ask.scope
        terms, _ = self._describe(ask.text)
        query = Query(
            scope=scope,
            vector=vector,
            terms=terms,
            at=ask.at,
            kinds=_KINDS,
            where=_known_to(ask),
        )
        hits = self._engines.index.search(query, _CANDIDATES)
        records = [hit.record for hit in _nearest_first(hits)[:MAX_KNOWN]]
        if not records:
            return KnownFacts()
        ranks = {one.id: rank for rank, one in enumerate(records)}
        relations = self._engines.graph.relations(scope, records=list(ranks))
        relations.sort(key=lambda one: min(ranks.get(id_, MAX_KNOWN) for id_ in one.supports))
        return KnownFacts(records=tuple(records), relations=tuple(relations))


def _known_to(ask: AskKnown) -> Filter | None:
    """Make the filter for the records of the owner, and of the identity, of what is extracted."""
    owner, identity = ask.scope.owner, ask.identity
    wanted = identity_of(ask.metadata, identity)
    if not identity:
        # A scope without an agent covers those of all agents, and they are other owners.
        return None if ask.scope.agent_id else Predicate(lambda one: one.scope.owner == owner)
    same = Predicate(
        lambda one: one.scope.owner == owner and identity_of(one.metadata, identity) == wanted
    )
    # What an index can find needs not be read row by row.
    held = ((one, ask.metadata.get(one)) for one in identity)
    equal = [Where(METADATA + one, "eq", (value,)) for one, value in held if type(value) is str]
    return Group("AND", (*equal[:_CONDITIONS], same))


def _nearest_first(hits: Sequence[Hit]) -> list[Hit]:
    """Sort by the cosine plus the share of the best lexical score; ties by id."""
    best = max((hit.lexical for hit in hits), default=0.0) or 1.0
    return sorted(hits, key=lambda hit: (-hit.dense - hit.lexical / best, hit.record.id))
