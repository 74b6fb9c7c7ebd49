"""TODO neo4j."""
