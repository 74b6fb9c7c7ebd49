"""Values as bytes, by the serializer of a saver."""

from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from commonplace import InvalidRecordError
from commonplace.ports.checkpoints import Blob


def dump(serde: SerializerProtocol, value: object) -> Blob:
    """Write a value with the saver's serializer."""
    kind, data = serde.dumps_typed(value)
    return Blob(type=kind, data=bytes(data))


def loader(serde: SerializerProtocol) -> Callable[[Blob], Any]:
    """Give what reads values with the saver's serializer; ask once for many values.

    The reader raises `InvalidRecordError` when the serializer encrypts and a value is plain: then it was
    written by somebody without the key.
    """

    def load(blob: Blob) -> Any:
        return serde.loads_typed((blob.type, blob.data))

    def decrypt(blob: Blob) -> Any:
        if "+" not in blob.type:
            raise InvalidRecordError(
                field="type",
                value=blob.type,
                reason="is not encrypted, and this saver reads only what is",
                hint="Open the thread without encryption, or delete it.",
            )
        return load(blob)

    return decrypt if isinstance(serde, EncryptedSerializer) else load
