"""Texts that a Neo4j server runs, and their query plans."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import neo4j
import pytest

from commonplace.backends.neo4j.driver import Neo4jDriver


def note_texts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Record every text that is run from now on with its parameters, in order."""
    asked: list[tuple[str, dict[str, Any]]] = []
    run = neo4j.ManagedTransaction.run
    monkeypatch.setattr(
        neo4j.ManagedTransaction,
        "run",
        lambda self, text, given: asked.append((text, given)) or run(self, text, given),
    )
    return asked


def plans_of(
    driver: Neo4jDriver, asked: Iterable[tuple[str, Mapping[str, Any]]]
) -> dict[str, list[str]]:
    """Read the operators of each text's plan, made for what the database holds now."""

    def operators(plan: dict[str, Any]) -> Iterator[str]:
        yield plan["operatorType"].partition("@")[0]
        for child in plan.get("children", []):
            yield from operators(child)

    with driver._session() as session:
        # A plan from when there was little in the database would be shown again.
        session.run("CALL db.prepareForReplanning(60)").consume()
        return {
            text: list(operators(session.run(f"EXPLAIN {text}", given).consume().plan))
            for text, given in dict(asked).items()
        }
