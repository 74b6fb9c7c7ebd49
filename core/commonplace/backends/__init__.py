"""The engines, one a file; `open_engines` is the only place that knows which there are."""

from pathlib import Path

from ..ports import Embedder, Engines

SCHEMA = "1"


def open_engines(path: Path, embedder: Embedder, lexical: str) -> Engines:
    """Open or create the embedded engines in a folder.

    Args:
        lexical: the version of the lexical terms, which the store remembers with the embedder.

    Raises:
        SchemaMismatch: the folder was made with another embedder or schema.
        StoreLocked: another process holds the folder.
    """
    from .edge import EdgeIndex  # noqa: PLC0415 -- drivers load on first use
    from .file import SqliteFile  # noqa: PLC0415 -- drivers load on first use
    from .journal import SqliteJournal  # noqa: PLC0415 -- drivers load on first use
    from .sqlite import SqliteGraph  # noqa: PLC0415 -- drivers load on first use

    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = SqliteFile(str(path / "memory.db"))
    meta = {
        "schema": SCHEMA,
        "embedder": embedder.id,
        "dimensions": str(embedder.dimensions),
        "lexical": lexical,
    }
    try:
        index = EdgeIndex(str(path / "vectors"), dimensions=embedder.dimensions, meta=meta)
    except BaseException:
        file.close()
        raise
    return Engines(index=index, graph=SqliteGraph(file), journal=SqliteJournal(file))
