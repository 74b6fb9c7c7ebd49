"""What a session keeps, as rows of JSON in a thread of checkpoints that is its own."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from strands.types.exceptions import SessionException

from commonplace import Memory, Scope
from commonplace.ports.checkpoints import Address, Blob, Checkpoint, Selection

Row = dict[str, Any]

_TYPE = "strands/json"
_PAGE = 256


class Rows:
    """The rows of one session, each under the name of its table and its own.

    Args:
        owner: whose session it is, which it names too.
    """

    def __init__(self, memory: Memory, owner: Scope) -> None:
        self._checkpoints = memory.checkpoints
        self._owner = owner
        self._thread = f"strands/{owner.key}"

    def put(self, table: str, name: str, row: Mapping[str, Any]) -> None:
        """Write a row, or write it anew, durably."""
        # What somebody said may hold anything.
        data = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")
        kept = Checkpoint(
            address=Address(thread=self._thread, namespace=table, id=name),
            body=Blob(type=_TYPE, data=data),
            metadata=Blob(type=_TYPE, data=b"{}"),
            versions={},
        )
        self._checkpoints.put(kept, {}, self._owner)

    def find(self, table: str, name: str) -> Row | None:
        """Read a row; None if there is none."""
        state = self._checkpoints.read(self._thread, table, name)
        return None if state is None else _load(state.checkpoint)

    def get(self, table: str, name: str) -> Row:
        """Read a row.

        Raises:
            SessionException: there is none.
        """
        row = self.find(table, name)
        if row is None:
            session = self._owner.session_id
            reason = f"Session {session} does not exist, or has no {name!r} in its {table}"
            raise SessionException(reason)
        return row

    def walk(self, table: str) -> Iterator[Row]:
        """Read the rows of a table, greatest name first."""
        asked = Selection(thread=self._thread, namespace=table)
        after: Address | None = None
        while True:
            page = self._checkpoints.page(asked, limit=_PAGE, after=after)
            yield from map(_load, page)
            if len(page) < _PAGE:
                return
            after = page[-1].address

    def delete(self) -> None:
        """Remove all rows of the session."""
        self._checkpoints.delete([self._thread])


def _load(kept: Checkpoint) -> Row:
    row: Row = json.loads(kept.body.data)
    return row
