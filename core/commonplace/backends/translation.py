"""A filter in the conditions of an engine, at least as wide as asked; rows are judged once more."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..filters import TIMES, Filter, Test, Where
from .payload import tags_of


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine says what `payload_of` makes findable.

    Attributes:
        filter: makes a condition of lists of others: `must`, `should`, `must_not`.
        equals: asks that a field is one of some texts.
        between: asks that a number of this field is in a range, `gte` to `lte`; None if it cannot.
    """

    filter: Callable[..., Any]
    equals: Callable[..., Any]
    between: Callable[[str, float | None, float | None], Any]

    def translate(self, part: Filter) -> Any:
        """Say a filter: a condition at least as wide, None for all."""
        return self._say(part)[0]

    def _say(self, part: Filter) -> tuple[Any, bool]:
        """Say a part, and whether that is exact."""
        if isinstance(part, Where):
            return self._say_one(part)
        if isinstance(part, Test):
            return None, False
        said = [self._say(one) for one in part.parts]
        exact = all(one for _, one in said)
        if part.combine == "NOT":
            sure = [condition for condition, one in said if one]
            return (self.filter(must_not=sure) if sure else None), exact
        known = [condition for condition, _ in said if condition is not None]
        if part.combine == "AND":
            return (self.filter(must=known) if known else None), exact
        return (self.filter(should=known) if len(known) == len(said) else None), exact

    def _say_one(self, part: Where) -> tuple[Any, bool]:
        tags = [] if part.field in TIMES else tags_of(part.field, part.values)
        if part.operator in ("eq", "in", "ne", "nin"):
            if len(tags) < len(part.values):
                return None, False
            same = self.equals("tags", *tags)
            if part.operator in ("eq", "in"):
                return same, True
            return self.filter(must_not=[same]), False
        value = part.values[0]
        if isinstance(value, str) or not abs(value) <= 2**53:
            return None, False
        # An engine's numbers may differ in the last digit.
        slack = 0.001 + abs(value) * 1e-12
        low = value - slack if part.operator in ("gt", "gte") else None
        high = value + slack if part.operator in ("lt", "lte") else None
        return self.between(part.field, low, high), False
