"""Shared graph store and checkpoint store on a Neo4j server."""
