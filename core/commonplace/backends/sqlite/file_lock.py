"""Database file of the embedded engine: how it is made, where it may be, and who has it open.

A file appears whole or not at all, so an empty one was emptied by something else and is refused.
"""

import contextlib
import os
import sqlite3
import sys
import uuid
import weakref
from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection

from ...errors import StoreLockedError, StoreUnavailableError

BUSY_SECONDS = 10.0  # to wait for the writers of other processes
LITTLE_SPACE = 2**20  # bytes; a disk with less counts as full, as a failed write gives back space
_SQLITE_BLOCK = 4096  # bytes of its shared memory that SQLite makes room for at a time

# SQLite's shared memory and its locks do not work over a network.
_NETWORK = {
    "9p", "afs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs",
    "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb2", "smb3", "smbfs",
}  # fmt: skip
_MOUNTS = Path("/proc/self/mountinfo")
_LOCKS = Path("/proc/locks")
_SHOWN_HOLDERS = 3
_SHOWN_WORDS = 3  # of a command line: further ones may be secret
_SHOWN_CHARACTERS = 80


def make_file(path: Path, fill: Callable[[Connection], None], *, create: bool) -> None:
    """Make the file of a new database, unless there is one, and check that this may be one.

    Args:
        create: False refuses a file that is not there.

    Raises:
        StoreUnavailableError: the file is missing or empty, or lies on a network file system, or
            on one whose space is too little to open it.
    """
    if not create and not path.exists():
        raise StoreUnavailableError(store=str(path), reason="there is no such file")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (kind := file_system_of(path.parent)) in _NETWORK:
        raise StoreUnavailableError(
            store=str(path),
            reason=f"it lies on a network file system ({kind}), where its processes cannot see "
            "each other's locks. Give a folder on a local disk, or use server engines",
        )
    check_space(path)
    if not path.exists():
        _make(path, fill)
    if path.stat().st_size == 0:
        raise StoreUnavailableError(
            store=str(path),
            reason="the file is empty, so somebody has emptied it. Put a backup in its place, or "
            "delete it and the files beside it to start over",
        )


def check_space(path: Path, needed: int = LITTLE_SPACE) -> bool:
    """Refuse what could end the process by SIGBUS: shared memory that the disk has no room for.

    SQLite maps the file of its shared memory, and writes one byte in each 4 KiB of it before. Where
    blocks are smaller, that leaves holes, which a full disk cannot fill. Elsewhere nothing is
    checked: SQLite itself finds that the disk is full.

    Returns:
        True if the blocks are smaller.

    Raises:
        StoreUnavailableError: the blocks are smaller, and there is less free space.
    """
    if sys.platform == "win32":
        return False
    found = os.statvfs(os.path.dirname(path) or ".")  # quicker than by `Path`
    if not found.f_blocks or found.f_bsize >= _SQLITE_BLOCK:
        return False
    free = found.f_bavail * found.f_frsize
    if free < needed:
        raise StoreUnavailableError(
            store=str(path),
            reason=f"the disk is full: {free >> 10:,} KiB are free, and {needed >> 10:,} KiB are "
            f"needed on a file system with blocks of {found.f_bsize:,} bytes",
        )
    return True


def _make(path: Path, fill: Callable[[Connection], None]) -> None:
    new = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.new")
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        connection = sqlite3.connect(new, isolation_level=None)
        with contextlib.closing(connection):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("BEGIN IMMEDIATE")
            fill(connection)
            connection.execute("COMMIT")
            # Last: a log that a full disk keeps from being moved into the file would be left here.
            connection.execute("PRAGMA journal_mode = WAL")
        # Another process may have been quicker: its file stays.
        with contextlib.suppress(FileExistsError):
            _rename(new, path)
    finally:
        for suffix in ("", "-wal", "-shm"):  # the last two are left where the disk was full
            new.with_name(f"{new.name}{suffix}").unlink(missing_ok=True)


def _rename(new: Path, path: Path) -> None:
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if not path.exists():
            new.rename(path)


def file_system_of(folder: Path) -> str:
    """Return the type of the file system that a folder lies on; empty where that is unknown."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    folder = folder.resolve()
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = before.split()[4].encode().decode("unicode_escape", "replace")
        if len(mount) >= best and folder.is_relative_to(mount):
            best, kind = len(mount), after.split()[0]
    return kind


# -- locks -----------------------------------------------------------------------------------------

if sys.platform == "win32":
    import msvcrt

    _FIRST, _HOLDERS = 1 << 20, 256  # bytes that are locked, far behind the end of the file

    def _lock(descriptor: int, *, shared: bool) -> None:
        # There are no shared locks: who shares locks any one byte, who does not locks all of them.
        for place in range(_HOLDERS if shared else 1):
            os.lseek(descriptor, _FIRST + place, os.SEEK_SET)
            try:
                return msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1 if shared else _HOLDERS)
            except OSError:
                continue
        raise BlockingIOError
else:
    import fcntl

    def _lock(descriptor: int, *, shared: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


class ProcessLock:
    """Lock on a file until `release` or the end of the process, whichever comes first.

    Args:
        path: made if missing; it stays, which is harmless: the lock is the operating system's.
        shared: others may hold it too, if they share it.

    Raises:
        StoreLockedError: another holder has it.
    """

    def __init__(self, path: str, *, shared: bool = False) -> None:
        self._path = Path(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor, shared=shared)
        except OSError as error:
            holder = _holder_of(self._descriptor)
            os.close(self._descriptor)
            raise StoreLockedError(path=path.removesuffix(".lock"), holder=holder) from error
        _held.add(self)

    @property
    def is_there(self) -> bool:
        """The locked file still has its name."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock; repeating it does nothing."""
        if self._descriptor >= 0:
            _held.discard(self)
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Remove the locked file, and release it."""
        if os.name == "nt":  # no open file can be removed there: then its next holder removes it
            self.release()
            with contextlib.suppress(PermissionError):
                self._path.unlink(missing_ok=True)
        else:
            with contextlib.suppress(OSError):  # the folder is read-only: the file does no harm
                self._path.unlink(missing_ok=True)
            self.release()


def _holder_of(descriptor: int) -> str:
    """Name the processes that hold a lock on an open file, where the platform tells."""
    file = os.fstat(descriptor)
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        lines = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:
        return "another process"
    # "5: FLOCK  ADVISORY  WRITE 4890 fe:00:10002497 0 EOF"; one that waits has an arrow.
    pids = {int(line[-4]) for line in lines if line[-3:-2] == [place] and "->" not in line}
    names = [_process_name(pid) for pid in sorted(pids) if pid > 0]  # of other containers: 0
    more = f" and {len(names) - _SHOWN_HOLDERS} more" if len(names) > _SHOWN_HOLDERS else ""
    return ", ".join(names[:_SHOWN_HOLDERS]) + more or "another process"


def _process_name(pid: int) -> str:
    if pid == os.getpid():
        return "this process"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").split("\0")
    except OSError:
        return f"process {pid}"
    shown = " ".join(command[:_SHOWN_WORDS]).strip()[:_SHOWN_CHARACTERS]
    return f"process {pid} ({shown!r})" if shown else f"process {pid}"


_held: "weakref.WeakSet[ProcessLock]" = weakref.WeakSet()


def _drop_inherited() -> None:
    # A forked child shares the lock; without this it would hold it for as long as it lives.
    for lock in list(_held):
        with contextlib.suppress(OSError):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_inherited)
