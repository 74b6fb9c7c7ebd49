"""The OpenAPI file of the pages' JSON, held against what every route answers."""

import importlib.util
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("jinja2")

from starlette.testclient import TestClient

from commonplace import Extraction, Fact, Memory, Message, Relation, Scope
from commonplace.agents.note_log import logged_notes
from commonplace.testing.fakes import HashEmbedder
from commonplace.web import create_app

from .logged import log_notes

ROOT = Path(__file__).parents[2]
DOCUMENT = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text("utf-8"))
ALICE = Scope(user_id="alice")
SESSION = Scope(user_id="alice", agent_id="helper", session_id="s")
TYPES = {
    "string": str, "integer": int, "number": int | float, "boolean": bool, "null": type(None),
    "array": list, "object": dict,
}  # fmt: skip

KEYWORDS = {
    "type", "title", "description", "properties", "required", "additionalProperties", "items",
}  # fmt: skip


def faults(value: Any, schema: dict[str, Any], where: str = "") -> list[str]:
    """Compare a value with a schema; a keyword that is not known is a fault of the schema."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        schema = DOCUMENT["components"]["schemas"][name]
    if "anyOf" in schema:
        return min((faults(value, one, where) for one in schema["anyOf"]), key=len)
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{where}: {value!r}"]
    assert set(schema) <= KEYWORDS, schema
    kind = schema.get("type", "object" if isinstance(value, dict) else "array")
    is_kind = isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if not is_kind and "type" in schema:
        return [f"{where}: {value!r} is no {kind}"]
    parts = enumerate(value) if kind == "array" and is_kind else ()
    named, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    if kind == "object":
        parts = value.items()
        missing = [one for one in schema.get("required", ()) if one not in value]
        extra = [one for one in value if one not in named] if more is False else []
        if missing or extra:
            return [f"{where}: without {missing}, with {extra}"]
    rest = more if isinstance(more, dict) else schema.get("items", {})
    return [
        fault for key, one in parts for fault in faults(one, named.get(key, rest), f"{where}.{key}")
    ]


class Refusing:
    id = "scripted"

    def complete(self, system: str, user: str, *, schema: Any) -> str:
        raise RuntimeError("incorrect API key")


@pytest.fixture
def client(tmp_path: Path):
    with Memory.open(str(tmp_path), embedder=HashEmbedder(), chat=Refusing()) as memory:
        cities = [
            Fact(
                text=f"Alice lives in {city}.",
                relations=(Relation(subject="Alice", predicate="lives_in", object=city),),
                at=datetime(2026, month, 1, tzinfo=UTC),
                metadata={"sure": True, "tags": ["a"]},
            )
            for month, city in enumerate(("Rome", "Lyon"), 1)
        ]
        memory.add(cities, ALICE)
        memory.add([Message(text="I like tea."), Message(text="So?")], SESSION, infer=False)
        memory.session(SESSION).summarize("She likes tea.")
        told = Message(text="I moved.")
        memory.add(told, ALICE, infer=Extraction(keep_messages=False), wait=False)
        memory.flush()
        log_notes(memory, SESSION, "Where does Alice live?")
        app = create_app(memory, token="once")
        made = TestClient(app, base_url="http://127.0.0.1")
        assert made.get("/login?token=once").status_code == 200
        made.memory = memory
        yield made


def test_every_route_answers_as_the_file_says(client):
    routes = {route.path for route in client.app.routes if route.path.endswith(".json")}
    assert set(DOCUMENT["paths"]) == routes
    lives = {one.text: one.id for one in client.memory.list(ALICE, include_superseded=True)}
    deleted = client.memory.add("Alice skis.", ALICE).ids[0]
    client.memory.delete(deleted, ALICE)
    given = {
        "user": "alice", "q": "Where does Alice live?", "id": lives["Alice lives in Lyon."],
        "entity": "Alice", "as_of": "2026-01-20", "ended": "1", "check": "1",
    }  # fmt: skip
    [logged] = [one.id for one in logged_notes(client.memory.admin.checkpoints)]
    nothing = {"user": "nobody", "id": deleted}
    of_session = {"user": "alice", "agent": "helper", "session": "s"}

    seen = dict[str, list[Any]]()
    for path, one in DOCUMENT["paths"].items():
        operation = one["get"]
        names = {parameter["name"] for parameter in operation["parameters"]}
        asked = [given, nothing | ({"user": "alice"} if path == "/record.json" else {}), {}]
        asked += [{"note": logged}] if path == "/why.json" else []
        for want in [*asked, of_session, of_session | {"id": "17"}]:
            answer = client.get(path, params={n: one for n, one in want.items() if n in names})
            response = operation["responses"]["200" if answer.is_success else "default"]
            schema = response["content"]["application/json"]["schema"]
            assert faults(answer.json(), schema) == [], path
            seen.setdefault(path, []).append(answer.json() if answer.is_success else None)

    assert all(any(answers) for answers in seen.values())  # each page answered, and with this:
    assert seen["/why.json"][0]["lines"]
    assert seen["/why.json"][0]["left_out"]
    assert seen["/why.json"][3]["opened"]
    assert seen["/people.json"][0]["rows"] or seen["/people.json"][2]["rows"]
    assert seen["/person.json"][0]["sessions"][0]["summary"]
    assert seen["/records.json"][0]["records"]
    assert seen["/conversation.json"][3]["turns"]
    assert seen["/record.json"][0]["relations"]
    assert seen["/record.json"][1]["history"]
    assert seen["/about.json"][0]["known"]
    assert seen["/graph.json"][0]["drawing"]["edges"]
    assert seen["/operation.json"][0]["dead"]
    assert seen["/operation.json"][0]["health"]


def test_a_wrong_answer_is_found():
    row = {"scope": {"user_id": "a", "agent_id": None, "session_id": None}, "agents": 0,
           "sessions": 0, "records": 1, "last": None}  # fmt: skip
    people = {"q": "", "rows": [row], "total": 1, "page": 1, "next_page": None}
    schema = DOCUMENT["components"]["schemas"]["People"]
    assert faults(people, schema) == []
    for wrong in (
        {**people, "total": "1"}, {**people, "page": True}, {**people, "more": 1},
        {**people, "rows": [{**row, "last": 3}]}, {**people, "rows": [{**row, "scope": {}}]},
        {name: one for name, one in people.items() if name != "q"},
    ):  # fmt: skip
        assert len(faults(wrong, schema)) == 1, wrong


def test_the_file_is_what_its_generator_writes():
    spec = importlib.util.spec_from_file_location("page_openapi", ROOT / ".ci/page_openapi.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    written = generator.FILE.read_text("utf-8")
    assert generator.written() == written, "run `nox -s openapi`"
