"""Redaction of what a write or a question brings, by a function of the caller's."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InvalidRecordError
from ..filters import FOLDERS
from ..types import Content, Extraction, Fact, Message, Relation

Redact = Callable[[str], str]
_ENDS = ("subject", "predicate", "object", "subject_type", "object_type")


def check_redact(redact: object) -> None:
    """Refuse what is neither None nor a synchronous function."""
    if redact is not None and (not callable(redact) or inspect.iscoroutinefunction(redact)):
        raise InvalidRecordError(
            field="redact",
            value=redact,
            reason="must be a synchronous function of a text that returns a text",
            hint="Such as commonplace.secret_patterns.secrets.",
        )


class Redaction:
    """Passes texts through a function before anything else sees them.

    Every method raises `InvalidRecordError`, without the text, if the function fails. What is not
    of the right type is returned as it is, for others to refuse.

    Args:
        redact: None changes nothing.
    """

    def __init__(self, redact: Redact | None) -> None:
        self._redact = redact

    def text(self, text: Any) -> Any:
        """Redact one text."""
        if self._redact is None or not isinstance(text, str):
            return text
        try:
            redacted: object = self._redact(text)
        except Exception as error:
            raise self._failure(f"raised {type(error).__name__}") from None  # it may quote the text
        if not isinstance(redacted, str):
            raise self._failure(f"returned {type(redacted).__name__} and not a text")
        return redacted

    def _failure(self, reason: str) -> InvalidRecordError:
        return InvalidRecordError(
            field="redact",
            value=self._redact,
            reason=f"{reason}; nothing was stored",
            hint="Mend the function that Memory.open was given as redact.",
        )

    def values(self, value: Any) -> Any:
        """Redact the texts in JSON values; keys stay."""
        if self._redact is None:
            return value
        return self._values(value, 0)

    def _values(self, value: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            return value  # refused by the checks of what may be stored
        if type(value) is dict:
            return {key: self._values(one, depth + 1) for key, one in value.items()}
        if type(value) in (list, tuple):
            return [self._values(one, depth + 1) for one in value]
        return self.text(value)

    def metadata(self, metadata: Any) -> Any:
        """Redact metadata, but the folders that a record is in and an item of LangGraph's store.

        The store redacts the values of its items itself; the rest is what it finds them by.
        """
        if self._redact is None or not isinstance(metadata, Mapping):
            return metadata
        return {
            key: one if _is_address(key, one) else self._values(one, 0)
            for key, one in metadata.items()
        }

    def content(self, content: Any) -> Any:
        """Redact what is added."""
        if self._redact is None:
            return content
        if isinstance(content, Sequence) and not isinstance(content, str | bytes):
            return [self._item(one) for one in content]
        return self._item(content)

    def _item(self, item: Content | Any) -> Any:
        if isinstance(item, Message):
            return replace(item, text=self.text(item.text), name=self.text(item.name))
        if isinstance(item, Fact):
            return replace(
                item,
                text=self.text(item.text),
                metadata=self.metadata(item.metadata),
                situation=self.text(item.situation),
                outcome=self.text(item.outcome),
                relations=self.relations(item.relations),
            )
        return self.text(item)

    def relations(self, relations: Any) -> Any:
        """Redact the names in relations."""
        if self._redact is None or not isinstance(relations, list | tuple):
            return relations
        return tuple(
            replace(one, **{name: self.text(getattr(one, name)) for name in _ENDS})
            if isinstance(one, Relation)
            else one
            for one in relations
        )

    def extraction(self, infer: "bool | Extraction") -> "bool | Extraction":
        """Redact the metadata of extracted facts."""
        if self._redact is None or not isinstance(infer, Extraction):
            return infer
        return replace(infer, metadata=self.metadata(infer.metadata))


_MAX_DEPTH = 128  # as deep as a value of LangGraph's store may be


def _is_address(key: object, value: object) -> bool:
    return key == FOLDERS or (key == "langgraph" and isinstance(value, dict) and "told" in value)
