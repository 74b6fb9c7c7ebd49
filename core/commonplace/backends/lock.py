"""The lock that keeps an embedded store to one process; apart because every system has its own."""

import contextlib
import os
import sys
import weakref

from ..errors import StoreLocked

if sys.platform == "win32":
    import msvcrt

    def _seize(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _seize(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lock:
    """An exclusive hold on `path` that ends with `release` or with the process.

    The file stays behind, which is harmless: the hold is the system's, not the file's.

    Raises:
        StoreLocked: somebody holds it; the message names the process. Close it there.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _seize(self._descriptor)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0) if hasattr(os, "pread") else b""
            os.close(self._descriptor)
            pid = holder.decode("ascii", "replace").strip() or "unknown"
            raise StoreLocked(path=path, holder=f"process {pid}") from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, str(os.getpid()).encode())
        _held.add(self)

    def release(self) -> None:
        """Let go; repeating it does nothing."""
        if self._descriptor >= 0:
            _held.discard(self)
            os.close(self._descriptor)
            self._descriptor = -1


_held: "weakref.WeakSet[Lock]" = weakref.WeakSet()


def _drop_inherited() -> None:
    # A forked child shares the hold; without this it would keep the store locked after the parent.
    for lock in list(_held):
        with contextlib.suppress(OSError):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_inherited)
