"""Which namespaces are a user's memory, and which scope of the memory stands for each.

Namespaces are compared label by label and never joined, so that no label can reach into another.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from commonplace import InvalidRecordError, InvalidScopeError, Scope
from commonplace.validation import SCOPE_FIELDS

Namespace = tuple[str, ...]
Users = Iterable[str] | Callable[[], Iterable[str]]

PLAIN = Scope(agent_id="langgraph")  # of namespaces that are nobody's memory


class Template:
    """Tells the scope of a namespace from labels such as `("memories", "{user_id}")`.

    A namespace belongs to a user when its labels fit the template up to `{user_id}`; what comes
    after says more (`{agent_id}`, `{session_id}`) as far as it fits. All others are plain.

    Args:
        labels: None for a store in which every namespace is plain.
        agent_id: of a user's namespaces, when the template does not name it.

    Raises:
        InvalidRecordError: the labels do not name `{user_id}`, or name a field twice.
    """

    def __init__(self, labels: Sequence[str] | None, agent_id: str | None = None) -> None:
        self.labels = tuple(labels or ())
        self._fields = [_field(label) for label in self.labels]
        named = [one for one in self._fields if one]
        if labels is not None and (named.count("user_id") != 1 or len({*named}) < len(named)):
            raise InvalidRecordError(
                field="template", value=labels, reason="does not name every field of a scope once",
                hint="Give labels such as ('memories', '{user_id}'), or None.",
            )  # fmt: skip
        self._agent = {"agent_id": agent_id} if agent_id and "agent_id" not in named else {}
        self._bind = lru_cache(4096)(self._bound)
        self.scope_of = lru_cache(4096)(self._scope_of)

    def _scope_of(self, namespace: Namespace) -> Scope:
        """Tell the scope in which the items of a namespace are."""
        bound, _ = self._bind(namespace)
        return Scope(**bound, **self._agent) if "user_id" in bound else PLAIN

    def scopes(self, prefix: Namespace, users: Users | None) -> list[Scope]:
        """List the scopes that may hold namespaces which begin so, plain ones first.

        Raises:
            InvalidScopeError: that would cross users, and nobody said which there are.
        """
        bound, goes_on = self._bind(prefix)
        if "user_id" in bound or not goes_on:
            return [self.scope_of(prefix)]
        if users is None:
            raise _Crossing(prefix, self.labels)
        known = users() if callable(users) else users
        return [PLAIN, *(Scope(user_id=one, **bound, **self._agent) for one in known)]

    def narrows(self, prefix: Namespace) -> bool:
        """Tell whether only items can be under a prefix, and nothing that others learned."""
        fitting = zip(self.labels, self._fields, prefix, strict=False)
        return len(prefix) > len(self.labels) or any(
            not field and label != given for label, field, given in fitting
        )

    def home(self, scope: Scope) -> Namespace:
        """Name the namespace of a record that was not written as an item."""
        found: list[str] = []
        for label, field in zip(self.labels, self._fields, strict=True):
            value = getattr(scope, field) if field else label
            if value is None:
                break
            found.append(value)
        return tuple(found)

    def _bound(self, namespace: Namespace) -> tuple[dict[str, Any], bool]:
        """Read the fields that a namespace names, and whether longer ones may name more."""
        bound: dict[str, Any] = {}
        for label, field, given in zip(self.labels, self._fields, namespace, strict=False):
            if not field:
                if label != given:
                    return bound, False
                continue
            try:
                Scope(**{field: given})
            except InvalidScopeError:  # no id can be so: nobody's memory, or of no agent
                return bound, False
            bound[field] = given
        return bound, len(namespace) < len(self.labels)


class _Crossing(InvalidScopeError):
    """A prefix under which several users' memories are."""

    def __init__(self, prefix: Namespace, template: Namespace) -> None:
        self.field, self.value = "namespace", prefix
        ValueError.__init__(
            self,
            f"The namespace prefix {prefix!r} covers the memories of several users, for the "
            f"template is {template!r}. Name the user in the prefix, tell the store "
            "which users it may cross with users=[...] or a function, or open it with "
            "template=None if no namespace is a user's memory.",
        )


def folder(prefix: Namespace) -> str:
    """Name a prefix as metadata does."""
    return json.dumps(prefix)


def folders(namespace: Namespace) -> list[str]:
    """Name a namespace and all that it is in, from the outermost."""
    return [folder(namespace[:end]) for end in range(1, len(namespace) + 1)]


def _field(label: str) -> str:
    name = label[1:-1] if label.startswith("{") and label.endswith("}") else ""
    return name if name in SCOPE_FIELDS else ""
