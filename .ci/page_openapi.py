"""Write the OpenAPI file of what `commonplace serve` answers as JSON: `nox -s openapi`.

    python .ci/page_openapi.py            write docs/reference/openapi.json

Each page has a type below, whose names are those of its data in `commonplace.web.views`; a test
asks for every page and compares.
"""

import inspect
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

import commonplace
from commonplace.agents.about import Known
from commonplace.types import (
    DeadLetter,
    EraseReceipt,
    Kind,
    Record,
    Relation,
    Role,
    Scope,
    SessionInfo,
    Version,
)
from commonplace.web.drawing import GraphDrawing
from commonplace.web.security import COOKIE
from commonplace.web.views import PAGES

FILE = Path(__file__).parents[1] / "docs" / "reference" / "openapi.json"
REFERENCE = "#/components/schemas/{name}"


class Scored(TypedDict):
    """A match with its score, and the parts that add up to its logit."""

    id: str
    text: str
    kind: Kind
    role: Role | None
    at: datetime
    scope: Scope
    score: float
    parts: Mapping[str, float]
    logit: float


class Line(Scored):
    """A line of a note; `always` comes with every turn, `earlier` is replaced by a newer one."""

    line: str
    earlier: bool
    always: bool


class LeftOut(Scored):
    """A match that is not in the note, and the rule that left it out."""

    rule: Literal[
        "superseded", "retracted", "expired", "held", "repeat", "room", "threshold", "floor",
        "asks_only", "small_talk",
    ]  # fmt: skip


class Logged(TypedDict):
    """A logged note: when, for whom, and how many lines it had; no question if none is kept."""

    id: str
    at: datetime
    scope: Scope
    question: str | None
    shown: int
    left_out: int


class Opened(Logged):
    """The logged note that is shown, of which so many records are missing now."""

    missing: int


class Why(TypedDict):
    """The note for a question, or a logged one; without either only the last logged notes."""

    question: str
    scope: Scope | None
    top_k: int
    opened: Opened | None
    logged: Sequence[Logged]
    note: NotRequired[str]
    head: NotRequired[Sequence[str]]
    lines: NotRequired[Sequence[Line]]
    foot: NotRequired[str]
    left_out: NotRequired[Sequence[LeftOut]]


class Owner(TypedDict):
    """A user, or an agent or session that belongs to no user, with what it has."""

    scope: Scope
    agents: int
    sessions: int
    records: int
    last: datetime | None


class People(TypedDict):
    """Users, the latest first; `next_page` is null on the last page."""

    q: str
    rows: Sequence[Owner]
    total: int
    page: int
    next_page: int | None


class Person(TypedDict):
    """The agents and sessions of a user; `cursor` is null on the last page."""

    scope: Scope
    agents: Sequence[str]
    sessions: Sequence[SessionInfo]
    cursor: str | None


class Records(TypedDict):
    """Records, newest first; `cursor` is null on the last page."""

    scope: Scope
    kind: str | None
    ended: bool
    kinds: Sequence[str]
    records: Sequence[Record]
    cursor: str | None


class Conversation(TypedDict):
    """Turns in their order, the last ones first; `before` is null on the first page."""

    scope: Scope
    summary: Record | None
    turns: Sequence[Record]
    before: str | None


class OneRecord(TypedDict):
    """A record with its history, and the logged notes that showed it; null when it is deleted."""

    scope: Scope
    id: str
    record: Record | None
    history: Sequence[Version]
    done: str | None
    relations: NotRequired[Sequence[Relation]]
    sources: NotRequired[Sequence[Record]]
    conflicts: NotRequired[Sequence[Record]]
    passages: NotRequired[Sequence[str]]
    recalled: NotRequired[Sequence[Logged]]


class About(TypedDict):
    """What is known of a person, what holds now first."""

    scope: Scope
    known: Sequence[Known]


class Graph(TypedDict):
    """Relations, and where a drawing of them has its names."""

    scope: Scope
    entity: str | None
    as_of: str | None
    dates: Sequence[str]
    drawing: GraphDrawing
    relations: Sequence[Relation]


class Forget(TypedDict):
    """What an erasure would remove, and the id that its form asks for."""

    scope: Scope
    counts: Mapping[str, int]
    confirm: str
    receipt: EraseReceipt | None


class Law(TypedDict):
    """A right of the person concerned, and the articles of two laws that give it."""

    right: str
    gdpr: str
    pipl: str


class Rights(TypedDict):
    """How much is stored of a person, and which law asks for what."""

    scope: Scope
    counts: Mapping[str, int]
    law: Sequence[Law]


class Health(TypedDict):
    """Whether the stores agree, and how many records are missing, outdated or left over."""

    healthy: bool
    consistent: bool
    counts: Mapping[str, int]
    indexed: int
    missing: int
    outdated: int
    orphans: int


class Operation(TypedDict):
    """What waits, what failed, how large it all is, and the 24 hours from `since` on.

    `writes` are the records that were last written in each hour, null if there are too many to
    count at once; `notes` those of the last 200 logged notes, the first from `notes_from`.
    """

    records: int | None
    since: datetime
    writes: Sequence[int] | None
    notes: Sequence[int]
    notes_from: datetime | None
    location: str
    embedder: str
    engines: Mapping[str, Mapping[str, str | int]]
    pending: int
    dead: Sequence[DeadLetter]
    dead_total: int
    users: int
    agents: int
    sessions: int
    files: Mapping[str, int]
    retried: str | None
    health: Health | None


class Fault(TypedDict):
    """Why a request is refused."""

    status: int
    reason: str


class Refused(TypedDict):
    """The answer to a request that is refused."""

    error: Fault


OF_SCOPE = ("user", "agent", "session")
ANSWERS: Mapping[str, tuple[Any, Sequence[str]]] = {
    "why": (Why, (*OF_SCOPE, "q", "top_k", "note")),
    "people": (People, ("q", "page")),
    "person": (Person, (*OF_SCOPE, "cursor")),
    "records": (Records, (*OF_SCOPE, "kind", "ended", "cursor")),
    "conversation": (Conversation, (*OF_SCOPE, "before")),
    "record": (OneRecord, (*OF_SCOPE, "id")),
    "about": (About, OF_SCOPE),
    "graph": (Graph, (*OF_SCOPE, "entity", "as_of")),
    "forget": (Forget, OF_SCOPE),
    "rights": (Rights, OF_SCOPE),
    "operation": (Operation, ("check",)),
}
"""What each page answers, and the parameters of its address."""
PARAMETERS = {
    "user": "The id of a user; for a login of one user it may be left out.",
    "agent": "The id of an agent.",
    "session": "The id of a session.",
    "q": "A question, or a part of the ids that are looked for.",
    "top_k": "How many memories a note has at most, 1 to 20.",
    "note": "The id of a logged note, instead of a question.",
    "page": "The number of a page, from 1.",
    "cursor": "The `cursor` of the page before.",
    "before": "The `before` of the page that follows it in time.",
    "kind": "Only records of this kind.",
    "ended": "1 for records, too, that are no longer true or have expired.",
    "id": "The id of a record.",
    "entity": "Only what is at most two relations away from this name.",
    "as_of": "Draw what held at the end of this day, such as 2026-05-04.",
    "check": "1 to compare the stores and count all records, which reads all of them.",
}
NEEDED = {("record", "id"), ("conversation", "session")}


def document() -> dict[str, Any]:
    """Make the document, of the types above."""
    types = [Refused, *(answer for answer, _ in ANSWERS.values())]
    (refused, *answers), schemas = msgspec.json.schema_components(types, ref_template=REFERENCE)
    paths = {
        f"/{name}.json": {"get": _operation(name, answer, refused)}
        for name, answer in zip(ANSWERS, answers, strict=True)
    }
    if list(ANSWERS) != list(PAGES):
        raise SystemExit("ANSWERS has other pages than commonplace.web.views")
    login = {"type": "apiKey", "in": "cookie", "name": COOKIE}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "commonplace",
            "version": commonplace.__version__,
            "description": "What `commonplace serve` answers as JSON. `/login?token=` sets the "
            "cookie; moments are "
            "texts in ISO 8601; changes are made by the forms of the pages.",
        },
        "security": [{"login": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"login": login},
            "schemas": {name: _whole(name, one) for name, one in sorted(schemas.items())},
        },
    }


def _operation(name: str, answer: Any, refused: Any) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": (inspect.getdoc(PAGES[name]) or "").partition("\n")[0],
        "parameters": [
            {
                "name": one, "in": "query", "description": PARAMETERS[one],
                "required": (name, one) in NEEDED, "schema": {"type": "string"},
            }
            for one in ANSWERS[name][1]
        ],
        "responses": {
            "200": _response("The data of the page.", answer),
            "default": _response("The request is refused.", refused),
        },
    }  # fmt: skip


def _response(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _whole(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Describe a type in one paragraph; an answer has all fields, those with a default too."""
    optional = getattr(globals()[name], "__optional_keys__", ()) if name in globals() else ()
    for one in schema["properties"].values():
        one.pop("default", None)
    paragraph = schema["description"].partition("\n\n")[0]
    return {
        **schema,
        "description": " ".join(paragraph.split()),
        "required": [one for one in schema["properties"] if one not in optional],
        "additionalProperties": False,
    }


def written() -> str:
    """Write the document as text."""
    return json.dumps(document(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), "utf-8")
