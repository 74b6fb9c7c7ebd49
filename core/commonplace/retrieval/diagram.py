"""Diagrams of the relationship graph: lines of text, or a Mermaid flowchart."""

import re
from collections.abc import Sequence
from datetime import datetime

from ..types import Relation, fold

# Characters with a meaning for Mermaid inside a quoted label.
_MARKS = re.compile(r'["<>&#`\\|\[\]{}()]')


def as_text(relations: Sequence[Relation]) -> str:
    """Write a line for each relation, in their order, with its dates; empty text for none."""
    return "\n".join(_line(relation) for relation in relations)


def as_mermaid(relations: Sequence[Relation]) -> str:
    """Write a flowchart with a node for each entity, numbered in the order of appearance.

    What ended or expired is dotted. Names are escaped, so that none can add to the chart.
    """
    nodes: dict[str, str] = {}
    lines = ["flowchart LR"]
    for relation in relations:
        for name in (relation.subject, relation.object):
            if fold(name) not in nodes:
                nodes[fold(name)] = f"n{len(nodes)}"
                lines.append(f'  {nodes[fold(name)]}["{_label(name)}"]')
    for relation in relations:
        is_over = relation.valid_to is not None or relation.expired_at is not None
        arrow = "-.->" if is_over else "-->"
        label = _label(" ".join([relation.predicate, *_dates(relation)]))
        lines.append(
            f'  {nodes[fold(relation.subject)]} {arrow}|"{label}"| {nodes[fold(relation.object)]}'
        )
    return "\n".join(lines)


def _line(one: Relation) -> str:
    dates = _dates(one)
    text = " ".join(" ".join(part.split()) for part in (one.subject, one.predicate, one.object))
    return f"{text} ({', '.join(dates)})" if dates else text


def _dates(one: Relation) -> list[str]:
    found = []
    if one.valid_from:
        found.append(f"since {_day(one.valid_from)}")
    if one.valid_to:
        found.append(f"until {_day(one.valid_to)}")
    if one.expired_at:
        found.append(f"retracted {_day(one.expired_at)}")
    if one.conflict:
        found.append("contradicted")
    return found


def _day(at: datetime) -> str:
    return at.date().isoformat()


def _label(text: str) -> str:
    plain = "".join(char for char in " ".join(text.split()) if char.isprintable())
    return _MARKS.sub(lambda mark: f"#{ord(mark[0])};", plain)
