"""The pages of a memory: what they show, to whom, and what they refuse."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("jinja2")

from starlette.testclient import TestClient

from commonplace import Fact, Memory, Message, Relation, Scope
from commonplace.testing.fakes import HashEmbedder
from commonplace.web import add_user_token, create_app, header_login, read_users
from commonplace.web.views import PAGES

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
EVIL = "<script>alert(1)</script>\x1b[31m\u202e\"'><img src=x onerror=alert(1)>"
LOCAL = "http://127.0.0.1"


@pytest.fixture
def memory(tmp_path: Path):
    with Memory.open(str(tmp_path / "memory"), embedder=HashEmbedder()) as opened:
        old = datetime.now(UTC) - timedelta(days=400)
        for city, at in (("Rome", old), ("Lyon", old + timedelta(days=300))):
            lives = Relation(subject="Alice", predicate="lives_in", object=city)
            opened.add(Fact(text=f"Alice lives in {city}.", relations=(lives,), at=at), ALICE)
        session = Scope(user_id="alice", agent_id="helper", session_id="s")
        opened.add([Message(text="I like tea."), Message(text="What do I like?")], session)
        opened.add("Bob keeps a secret tortoise.", BOB)
        yield opened


def operator(memory: Memory, **options: object) -> TestClient:
    client = TestClient(create_app(memory, token="once", **options), base_url=LOCAL)
    assert client.get("/login?token=once").status_code == 200
    return client


def fields(page: str) -> dict[str, str]:
    return dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))


def test_every_page_and_its_json_answers_in_both_languages(memory):
    client = operator(memory)
    given = {"user": "alice", "q": "Where does Alice live?"}
    [known] = [one.id for one in memory.list(ALICE) if "Lyon" in one.text]

    for name in PAGES:
        page = client.get(f"/{name}", params={**given, "id": known})
        chinese = client.get(
            f"/{name}", params={**given, "id": known}, headers={"accept-language": "zh-CN,en;q=0.5"}
        )
        data = client.get(f"/{name}.json", params={**given, "id": known})

        assert page.status_code == chinese.status_code == data.status_code == 200, name
        assert 'lang="en"' in page.text
        assert 'lang="zh-Hans"' in chinese.text
        assert isinstance(data.json(), dict)
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["cache-control"] == "no-store"
        assert "style=" not in page.text
        assert not re.search(r"<script(?! src=)", page.text)


def test_why_shows_the_note_and_the_parts_of_each_score(memory):
    data = operator(memory).get("/why.json?user=alice&q=Where+does+Alice+live%3F").json()

    [line] = [one for one in data["lines"] if "Lyon" in one["text"]]
    assert line["line"] in data["note"].splitlines()
    assert sum(line["parts"].values()) == pytest.approx(line["logit"])
    left = {one["text"]: one["rule"] for one in data["left_out"]}
    assert left["Alice lives in Rome."] == "superseded"
    assert left["What do I like?"] == "asks_only"


def test_nobody_enters_without_a_login(memory):
    client = TestClient(create_app(memory, token="once"), base_url=LOCAL)

    for name in PAGES:
        assert client.get(f"/{name}?user=alice").status_code == 401
        assert client.get(f"/{name}.json?user=alice").status_code == 401
    assert client.get("/login?token=guessed").status_code == 403
    assert client.get("/login?token=once").status_code == 200
    again = TestClient(client.app, base_url=LOCAL)
    assert again.get("/login?token=once").status_code == 403  # it was for one login
    again.cookies.set("commonplace", client.cookies["commonplace"][:-1] + "x")
    assert again.get("/why").status_code == 401


@pytest.mark.parametrize("how", ["token", "header"])
def test_a_limited_login_reaches_its_own_users_only(memory, tmp_path, how):
    if how == "token":
        token = add_user_token(tmp_path / "users", "bob")
        app = create_app(memory, token="", users=read_users(tmp_path / "users"), write=True)
        client = TestClient(app, base_url=LOCAL)
        assert token not in (tmp_path / "users").read_text()
        assert client.post("/login", data={"token": token}).status_code == 200
    else:
        app = create_app(memory, login=header_login("X-User"), write=True)
        client = TestClient(app, base_url=LOCAL, headers={"x-user": "bob"})
        assert TestClient(app, base_url=LOCAL).get("/why").status_code == 403
    [hers] = [one.id for one in memory.list(ALICE) if "Lyon" in one.text]
    csrf = fields(client.get("/forget?user=bob").text)["csrf"]

    for name in PAGES:
        for end in ("", ".json"):
            whose = {"user": "alice", "id": hers, "q": "Lyon"}
            if name not in ("people", "operation"):
                assert client.get(f"/{name}{end}", params=whose).status_code == 403
            if name not in ("operation", "record"):
                assert client.get(f"/{name}{end}?user=bob&q=Lyon").status_code == 200
            for other in ({**whose, "user": "bob"}, {"agent": "helper", "id": hers, "q": "Lyon"}):
                assert "lives in" not in client.get(f"/{name}{end}", params=other).text
    assert client.get("/operation").status_code == 403
    assert [row["scope"]["user_id"] for row in client.get("/people.json").json()["rows"]] == ["bob"]
    delete = {"csrf": csrf, "user": "alice", "id": hers, "action": "delete"}
    assert client.post("/record", data=delete).status_code == 403
    assert client.post("/record", data={**delete, "user": "bob"}).status_code == 404
    assert client.post("/operation", data={"csrf": csrf}).status_code == 403
    assert memory.get(hers, ALICE) is not None


def test_a_record_is_edited_hidden_deleted_and_restored(memory):
    client = operator(memory, write=True)
    [known] = [one.id for one in memory.list(ALICE) if "Lyon" in one.text]
    where = {"user": "alice", "id": known}
    sent = {**where, "csrf": fields(client.get("/record", params=where).text)["csrf"]}

    client.post("/record", data={**sent, "action": "edit", "text": "Alice lives\r\nin Lyon 7."})
    assert memory.get(known, ALICE).text == "Alice lives\nin Lyon 7."
    client.post("/record", data={**sent, "action": "pin"})
    assert memory.get(known, ALICE).pinned
    client.post("/record", data={**sent, "action": "delete"})
    assert memory.get(known, ALICE) is None
    assert "restore" in client.get("/record", params=where).text
    client.post("/record", data={**sent, "action": "restore"})
    client.post("/record", data={**sent, "action": "expire"})
    assert memory.get(known, ALICE) is None
    assert memory.get(known, ALICE, include_expired=True) is not None


def test_forget_counts_first_asks_for_the_id_and_gives_a_receipt(memory):
    client = operator(memory, write=True)
    page = client.get("/forget?user=bob")
    assert client.get("/forget.json?user=bob").json()["counts"]["graph.records"] == 1
    sent = {"csrf": fields(page.text)["csrf"], "user": "bob"}

    assert client.post("/forget", data={**sent, "confirm": "alice"}).status_code == 400
    assert len(memory.list(BOB)) == 1
    done = client.post("/forget", data={**sent, "confirm": "bob"})
    assert "Nothing of this is left" in done.text
    assert len(memory.list(BOB)) == 0
    assert len(memory.list(ALICE)) == 3


def test_what_is_not_a_form_of_this_page_is_refused(memory):
    client = operator(memory, write=True)
    [known] = [one.id for one in memory.list(ALICE) if "Lyon" in one.text]
    csrf = fields(client.get("/forget?user=bob").text)["csrf"]
    sent = {"csrf": csrf, "user": "alice", "id": known, "action": "delete"}

    assert client.post("/record", data={**sent, "csrf": ""}).status_code == 403
    assert client.post("/record", data={**sent, "csrf": "0" * 64}).status_code == 403
    other = client.post("/record", data=sent, headers={"sec-fetch-site": "cross-site"})
    assert other.status_code == 403
    assert client.post("/record", data={**sent, "text": "x" * 70_000}).status_code == 413
    assert client.post("/record", json=sent).status_code == 415
    assert client.post("/record", content=b"csrf=%ff").status_code == 415
    assert client.get("/why?user=alice&q=" + "x" * 20_000).status_code == 414
    assert client.get("/why", headers={"host": "evil.example"}).status_code == 421
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"):
        assert client.get(path).status_code == 404
    assert operator(memory).post("/record", data=sent).status_code == 403  # read only
    assert memory.get(known, ALICE) is not None


def test_markup_and_control_characters_stay_text(memory):
    name = "<b>eve</b>"
    eve = Scope(user_id=name, agent_id="<i>", session_id="<u>")
    lives = Relation(subject="<svg onload=x>", predicate="<p>", object="\"'>")
    fact = Fact(text=EVIL, relations=(lives,), metadata={"<k>": EVIL}, at=datetime.now(UTC))
    added = memory.add(fact, eve).ids[0]
    memory.add(Message(text=EVIL, name="<h1>"), eve)
    client = operator(memory, write=True)

    for page in PAGES:
        given = {"user": name, "agent": "<i>", "session": "<u>", "id": added, "q": EVIL}
        text = client.get(f"/{page}", params=given).text
        for mark in ("<script>alert", "<img", "<b>eve", "<i>", "<u>", "<svg onload", "<h1>&lt;h1"):
            assert mark not in text, page
        shown = re.sub(r'(?s)<textarea.*?</textarea>|value="[^"]*"', "", text)
        assert "\x1b" not in shown, page
        assert "\u202e" not in shown, page
