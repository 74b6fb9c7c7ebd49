"""Shared graph store and checkpoints on a Neo4j server, behind URLs of `neo4j://` and `bolt://`."""

from ...ports.checkpoints import Checkpoints
from ...ports.engines import GraphStore
from ...settings import Settings, parse_server_url


class Neo4jEngine:
    """A `GraphEngine`: `neo4j://user:password@host:7687/database?prefix=Labels`."""

    def open_graph(self, url: str, settings: Settings) -> tuple[GraphStore, Checkpoints]:
        """Open the database, and make what is missing."""
        from .checkpoints import Neo4jCheckpoints
        from .graph import Neo4jGraph

        server = parse_server_url("graph", url, {"prefix": str})
        password = server.password or settings.neo4j_password
        graph = Neo4jGraph(
            server.url,
            auth=(server.user or settings.neo4j_user, password) if password else None,
            database=server.name or None,
            **server.options,
        )
        return graph, Neo4jCheckpoints(graph.driver)
