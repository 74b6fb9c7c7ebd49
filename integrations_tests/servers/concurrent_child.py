"""Child process that opens a store on a signal and writes: `together.py ENGINE NUMBER JSON`."""

import json
import sys

from commonplace.testing.contracts.graph import likes, put
from commonplace.testing.contracts.index import DIMENSIONS, make_point


def main(engine: str, number: str, given: str) -> None:
    """Import what takes long, say so, wait for a line, then open, write and count."""
    options = json.loads(given)
    if engine == "neo4j":
        from commonplace.backends.neo4j.graph import Neo4jGraph

        tell_and_wait()
        auth = tuple(options.pop("auth") or ()) or None
        store = Neo4jGraph(auth=auth, **options)
        store.apply([put(f"k{number}", 1, relations=[likes("Ann", "tea")])])
    else:
        from commonplace.backends.qdrant.index import QdrantIndex

        tell_and_wait()
        store = QdrantIndex(dimensions=DIMENSIONS, **options)
        store.upsert([make_point(f"k{number}")])
    store.close()


def tell_and_wait() -> None:
    """Say that all is ready, and wait for the word to begin."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
