"""Redaction of what a write or a question brings, by a function of the caller's."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InvalidRecordError
from ..types import Content, Extraction, Fact, Message, Record, Relation

Redact = Callable[[str], str]
_ENDS = ("subject", "predicate", "object", "subject_type", "object_type")
_MAX_DEPTH = 128  # as deep as a value that an adapter keeps in another form may be


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

    Ids, keys of metadata and namespaces stay as they are: records are found by them. Every method
    raises `InvalidRecordError`, without the text, if the function fails. What is not of the right
    type is returned as it is, for others to refuse.
    """

    def __init__(self, redact: Redact) -> None:
        self._redact = redact

    def text(self, text: Any) -> Any:
        """Redact one text."""
        if not isinstance(text, str):
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

    def values(self, value: Any, depth: int = 0) -> Any:
        """Redact the texts in JSON values; keys stay."""
        if depth > _MAX_DEPTH:  # deeper is refused by what may be stored
            return value
        if type(value) is dict:
            return {key: self.values(inner, depth + 1) for key, inner in value.items()}
        if type(value) in (list, tuple):
            return [self.values(inner, depth + 1) for inner in value]
        return self.text(value)

    def metadata(self, metadata: Any, unredacted: Collection[str] = ()) -> Any:
        """Redact metadata, except the values under the keys `unredacted`."""
        if not isinstance(metadata, Mapping):
            return metadata
        return {
            key: value if key in unredacted else self.values(value)
            for key, value in metadata.items()
        }

    def content(self, content: Any, unredacted: Collection[str] = ()) -> Any:
        """Redact what is added, except the values under some keys of the metadata of facts."""
        if isinstance(content, Sequence) and not isinstance(content, str | bytes):
            return [self._item(item, unredacted) for item in content]
        return self._item(content, unredacted)

    def _item(self, item: Content | Any, unredacted: Collection[str]) -> Any:
        if isinstance(item, Message):
            return replace(item, text=self.text(item.text), name=self.text(item.name))
        if isinstance(item, Fact):
            return replace(
                item,
                text=self.text(item.text),
                metadata=self.metadata(item.metadata, unredacted),
                situation=self.text(item.situation),
                outcome=self.text(item.outcome),
                relations=self.relations(item.relations),
            )
        return self.text(item)

    def record(self, record: Record) -> Record:
        """Redact a record that is imported."""
        return replace(
            record,
            text=self.text(record.text),
            name=self.text(record.name),
            metadata=self.metadata(record.metadata),
            situation=self.text(record.situation),
            outcome=self.text(record.outcome),
        )

    def relations(self, relations: Any) -> Any:
        """Redact the names in relations."""
        if not isinstance(relations, list | tuple):
            return relations
        return tuple(
            replace(relation, **{name: self.text(getattr(relation, name)) for name in _ENDS})
            if isinstance(relation, Relation)
            else relation
            for relation in relations
        )

    def extraction(self, infer: Extraction | None) -> Extraction | None:
        """Redact the metadata of extracted facts, and what a model reads before the messages."""
        if infer is None:
            return infer
        before = self.content(infer.before)
        return replace(infer, metadata=self.metadata(infer.metadata), before=before)
