"""The pages of a memory: what they show, to whom, and what they refuse."""

import html
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest

pytest.importorskip("starlette")
pytest.importorskip("jinja2")

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from commonplace import Fact, Memory, Message, Relation, Scope
from commonplace.admin import restore
from commonplace.testing.fakes import HashEmbedder
from commonplace.web import add_user_token, create_app, header_login, read_users
from commonplace.web.security import hash_token
from commonplace.web.strings import Words
from commonplace.web.views import PAGES

from ..crash.web_worker import Worker
from .logged import log_notes

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")
EVIL = "<script>alert(1)</script>\x1b[31m\u202e\"'><img src=x onerror=alert(1)>"
LOCAL = "http://127.0.0.1"
DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTS = [DOCS / folder / "how-to" / "look_at_a_memory.md" for folder in (".", "zh")]


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


def hidden(page: str, read: Callable[[str], str] = str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: read(one) for name, one in found}


def test_every_page_and_its_json_answers_in_both_languages(memory):
    client = operator(memory)
    given = {"user": "alice", "q": "Where does Alice live?"}
    documents = [
        dict(re.findall(r"^\| `(\w+)` \| (`.*`) \|$", page.read_text("utf-8"), re.MULTILINE))
        for page in DOCUMENTS
    ]
    [known] = [one.id for one in memory.list(ALICE) if "Lyon" in one.text]

    for name in PAGES:
        asked = {**given, "id": known} | ({"session": "s"} if name == "conversation" else {})
        page = client.get(f"/{name}", params=asked)
        chinese = client.get(
            f"/{name}", params=asked, headers={"accept-language": "zh-CN,en;q=0.5"}
        )
        data = client.get(f"/{name}.json", params=asked)

        assert page.status_code == chinese.status_code == data.status_code == 200, name
        assert 'lang="en"' in page.text
        assert 'lang="zh-Hans"' in chinese.text
        for fields_of in documents:
            assert re.findall(r"\w+", fields_of[name]) == [*data.json()], name
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


def test_why_lists_the_logged_notes_of_those_whom_one_may_see_and_opens_one(memory):
    log_notes(memory, Scope(user_id="alice", session_id="s"), "Where does Alice live?")
    log_notes(memory, BOB, "What does Bob keep?")
    everybody = operator(memory)
    his = TestClient(
        create_app(memory, login=header_login("X-User")), base_url=LOCAL, headers={"x-user": "bob"}
    )

    listed = everybody.get("/why.json").json()["logged"]
    assert [one["question"] for one in listed] == ["What does Bob keep?", "Where does Alice live?"]
    assert everybody.get("/why.json?user=alice").json()["logged"] == listed[1:]
    assert his.get("/why.json").json()["logged"] == listed[:1]
    page = everybody.get("/why").text
    links = [html.unescape(one) for one in re.findall(r'href="([^"]*note=[^"]*)"', page)]
    assert links == [f"/why?note={one['id']}" for one in listed]
    assert his.get(links[0]).status_code == 200
    for end in ("", ".json"):
        assert his.get(f"/why{end}?note={listed[1]['id']}").status_code == 404

    opened = everybody.get(f"/why.json?note={listed[1]['id']}").json()
    anew = everybody.get("/why.json?user=alice&session=s&q=Where+does+Alice+live%3F").json()
    assert opened["opened"] == listed[1] | {"missing": 0}
    assert opened["note"] == anew["note"]
    assert [one["text"] for one in opened["lines"]] == [one["text"] for one in anew["lines"]]
    shown = everybody.get(links[1]).text
    assert "Alice lives in Lyon." in shown.partition('id="note"')[2].partition('id="left"')[0]
    [lyon] = [one["id"] for one in opened["lines"] if "Lyon" in one["text"]]
    record = everybody.get(f"/record.json?user=alice&id={lyon}").json()
    assert record["recalled"] == listed[1:]
    assert links[1] in everybody.get(f"/record?user=alice&id={lyon}").text
    memory.forget(Scope(user_id="alice"))
    assert everybody.get("/why.json").json()["logged"] == listed[:1]


def test_why_asks_whose_memory_is_meant_and_takes_an_id_with_a_space_behind_it(memory):
    client = operator(memory)
    for given in ("", "&user=+"):
        page = client.get(f"/why?q=What+does+Bob+keep%3F{given}").text
        assert f'role="alert">{Words("en")("why_nobody")}' in page
        assert "What does Bob keep?" in page

    found = client.get("/why.json?q=What+does+Bob+keep%3F&user=bob+").json()
    assert found["scope"]["user_id"] == "bob"
    assert any("tortoise" in one["text"] for one in found["lines"])


def test_long_texts_are_shown_in_part_where_there_are_many(memory):
    long, end = Scope(user_id="alice", agent_id="helper", session_id="long"), "the end of it."
    text = "I walk along the coast every single morning. " * 200
    memory.add([Message(text=f"{n} {text}{end}") for n in range(70)], long, infer=False)
    fact = Fact(text=f"{text}{end}", at=datetime.now(UTC))
    [known] = memory.add(fact, ALICE).ids
    for n in range(20):
        memory.update(known, f"{n} {text}{end}", ALICE)
    client = operator(memory)

    conversation = client.get("/conversation?user=alice&agent=helper&session=long")
    record = client.get(f"/record?user=alice&id={known}")
    about = client.get("/about?user=alice")
    assert conversation.text.count(f">{Words('en')('more')}<") == 70
    assert [one.text.count(end) for one in (conversation, record, about)] == [0, 1, 0]
    turn = html.unescape(re.findall(r'href="(/record[^"]*)"', conversation.text)[-1])
    assert end in client.get(turn).text


def test_a_conversation_of_long_turns_has_smaller_pages_with_all_of_each_turn(memory):
    turns = [f"{number:03}" + "海边散步" * 374 for number in range(100)]
    talk = {"user": "alice", "session": "long"}
    memory.add(
        [Message(text=one) for one in turns],
        Scope(user_id="alice", session_id="long"), infer=False,
    )  # fmt: skip
    client = operator(memory)

    where, seen = f"/conversation?{urlencode(talk)}", []
    while where:
        page = client.get(where)
        assert len(page.content) <= 200_000
        seen = [*re.findall(r'class="said" dir="auto">(.*)</p>', page.text), *seen]
        where = html.unescape("".join(re.findall(r'href="(/conv[^"]*before[^"]*)">Ear', page.text)))
    assert seen == turns


def test_no_page_is_large_whatever_is_stored(memory):
    words, name = "雨后的山谷" * 70, "一二三四五" * 40
    ids = {"user_id": "alice", "agent_id": name, "session_id": name}
    turns = [Message(text=f"我{number}{words}") for number in range(230)]
    memory.add(turns[:115], Scope(**ids), infer=False)
    memory.add(turns[115:], Scope(**ids | {"session_id": "other"}), infer=False)
    named = [f"{number}{name}" for number in range(100)]
    memory.add(
        Fact(
            text="雪",
            relations=[Relation(subject="伟", predicate="knows", object=one) for one in named],
            metadata=dict.fromkeys(named, words * 9),
        ),
        ALICE,
    )
    [known] = [one.id for one in memory.list(ALICE) if one.text == "雪"]
    for number in range(30):
        memory.update(known, f"{number}{words * 6}", ALICE)
    client = operator(memory)
    sizes = {
        name: len(client.get(f"/{name}", params={"user": "alice", "q": "我", "id": known}).content)
        for name in PAGES
    }
    assert max(sizes.values()) <= 200_000, sizes


@pytest.mark.every_engine
def test_operation_plots_writes_and_logged_notes_by_hour_and_says_what_the_engines_are(memory):
    client = operator(memory)
    empty = client.get("/operation.json").json()
    assert empty["notes_from"] is None
    assert "graph" in empty["engines"]
    assert all(told for told in empty["engines"].values())
    log_notes(memory, BOB, "What does Bob keep?", "What does he keep?")

    data = client.get("/operation.json").json()
    assert data["records"] == sum(data["writes"]) == 5
    assert sum(data["notes"]) == 2
    assert max(len(data[name]) for name in ("writes", "notes")) == 24
    page = client.get("/operation").text
    assert page.count('<figure class="hours">') == 2
    assert page.count("<rect") == 48
    assert "of the last 200 logged notes" in page
    assert 'href="/operation?check=1"' in client.get("/operation?retried=1").text


def test_why_shows_some_of_what_each_rule_left_out_and_its_json_all(memory):
    memory.add([f"Bob owns {n} tortoises of the tribe {n}." for n in range(2, 32)], BOB)
    client = operator(memory)
    asked = "?user=bob&q=Which+tortoises+does+Bob+own%3F&top_k=1"
    left = client.get(f"/why.json{asked}").json()["left_out"]
    page = client.get(f"/why{asked}").text

    rules = Counter(one["rule"] for one in left)
    number = max(rules.values())
    assert number > 6, rules
    assert f"{number - 6} more are in the JSON" in page
    shown = page.partition('id="left"')[2]
    assert shown.count("<li>") == sum(min(one, 6) for one in rules.values())


def test_a_person_has_sessions_and_a_session_its_summary_and_pages_of_turns(memory):
    long = Scope(user_id="alice", agent_id="helper", session_id="long")
    memory.add([Message(text=f"turn {n}") for n in range(130)], long, infer=False)
    memory.session(long).summarize("They counted.")
    client = operator(memory)

    person = client.get("/person.json?user=alice").json()
    shown = client.get("/person?user=alice").text
    last = client.get("/conversation?user=alice&agent=helper&session=long")
    [earlier] = re.findall(r'href="(/conversation\?[^"]*before=[^"]*)"', last.text)
    first = client.get(html.unescape(earlier)).text

    assert person["agents"] == ["helper"]
    assert [(one["scope"]["session_id"], one["turns"]) for one in person["sessions"]] == [
        ("long", 130),
        ("s", 2),
    ]
    assert "They counted." in shown
    assert "They counted." in last.text
    assert re.findall(r"turn (\d+)<", last.text) == [str(n) for n in range(30, 130)]
    assert re.findall(r"turn (\d+)<", first) == [str(n) for n in range(30)]
    assert "before=" not in first.partition("<main")[2].partition("</main>")[0]
    unnamed = client.get("/conversation?user=alice")
    assert (unnamed.status_code, "session_id" in unnamed.text) == (400, False)
    assert Words("en")("error_session") in unnamed.text


def test_a_probe_learns_without_a_login_whether_the_memory_can_be_read(memory):
    client = TestClient(create_app(memory), base_url=LOCAL)

    assert (client.get("/ready").status_code, client.get("/ready").text) == (200, "ready")
    memory.close()
    assert client.get("/ready").status_code == 503


def test_nobody_enters_without_a_login(memory):
    client = TestClient(create_app(memory, token="once"), base_url=LOCAL)

    for name in PAGES:
        assert client.get(f"/{name}?user=alice").status_code == 401
        assert client.get(f"/{name}.json?user=alice").status_code == 401
    assert client.get("/login?token=guessed").status_code == 403
    cookie = client.get("/login?token=once", follow_redirects=False).headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict"} <= set(cookie.split("; "))
    assert client.get("/why").status_code == 200
    again = TestClient(client.app, base_url=LOCAL)
    assert again.get("/login?token=once").status_code == 403  # it was for one login
    again.cookies.set("commonplace", client.cookies["commonplace"][:-1] + "x")
    assert again.get("/why").status_code == 401
    other = TestClient(create_app(memory, token="other"), base_url=LOCAL)
    other.cookies.set("commonplace", client.cookies["commonplace"])
    assert other.get("/why").status_code == 401  # signed by another process


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
                own = {"user": "bob", "q": "Lyon"}
                own |= {"session": "s"} if name == "conversation" else {}
                assert client.get(f"/{name}{end}", params=own).status_code == 200
            for other in (
                {**whose, "user": "bob"},
                {**whose, "user": "bob", "agent": "helper", "session": "s"},
                {"agent": "helper", "session": "s", "id": hers, "q": "Lyon"},
            ):
                text = client.get(f"/{name}{end}", params=other).text
                assert "lives in" not in text
                assert "I like tea" not in text
    assert client.get("/operation").status_code == 403
    assert [row["scope"]["user_id"] for row in client.get("/people.json").json()["rows"]] == ["bob"]
    delete = {"csrf": csrf, "user": "alice", "id": hers, "action": "delete"}
    assert client.post("/record", data=delete).status_code == 403
    assert client.post("/record", data={**delete, "user": "bob"}).status_code == 404
    assert client.post("/operation", data={"csrf": csrf}).status_code == 403
    assert memory.get(hers, ALICE) is not None


def test_a_record_is_edited_hidden_shown_again_deleted_and_restored(memory):
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
    assert "unexpire" in client.get("/record", params=where).text
    client.post("/record", data={**sent, "action": "unexpire"})
    assert memory.get(known, ALICE).expires_at is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_text_that_cannot_be_stored_comes_back_in_its_form(memory, language):
    words = Words(language)
    client = operator(memory, write=True)
    client.headers["accept-language"] = language
    [known] = [one.id for one in memory.list(ALICE) if "Lyon" in one.text]
    where = {"user": "alice", "id": known}
    sent = {**fields(client.get("/record", params=where).text), "action": "edit"}

    for text in (" \n\t", "", "<b>\x00", "长" * 15_000):
        answer = client.post("/record", params=where, data={**sent, "text": text})
        form = answer.text.partition('<details class="edit" open>')[2].partition("</details>")[0]
        kept = re.search(r"(?s)<textarea ([^>]*)>\n(.*)</textarea>", form)

        assert answer.status_code == 400, text[:9]
        assert html.unescape(kept[2]) == text
        assert 'aria-invalid="true" aria-describedby="wrong"' in kept[1]
        assert f'id="wrong" role="alert">{words("error_text")}' in form
        assert f'href="/record.json?{urlencode(where)}"' in html.unescape(answer.text)
        if text:
            again = client.post("/record", data=fields(form) | {"text": "Alice lives in Metz."})
            assert words("changed") in again.text
            client.post("/record", data=fields(form) | {"text": "Alice lives in Lyon."})
    refused = client.post("/record.json", params=where, data={**sent, "text": " "})
    assert refused.json()["error"].keys() == {"status", "reason"}
    assert memory.get(known, ALICE).text == "Alice lives in Lyon."


def test_a_change_that_fails_shows_its_page_again_and_says_why(memory):
    app = create_app(memory, login=header_login("X-User"), write=True)
    client = TestClient(app, base_url=LOCAL, headers={"x-user": "alice"})
    [known] = [one.id for one in memory.list(ALICE) if "Lyon" in one.text]
    where = {"user": "alice", "id": known}
    edit = {**where, "action": "edit", "text": "Alice lives in Metz."}
    csrf = fields(client.get("/record", params=where).text)["csrf"]

    def told(answer, key, status):
        assert answer.status_code == status
        assert f'role="alert">{Words("en")(key)}' in answer.text
        return answer.text

    old = told(
        client.post("/record", data={**edit, "csrf": "of another process"}), "error_csrf", 403
    )
    assert "Alice lives in Metz.</textarea>" in old
    told(client.post("/record", data={**where, "csrf": csrf, "action": "?"}), "error_400", 400)
    memory.delete(known, ALICE)
    left = memory.list(ALICE)
    gone = told(client.post("/record", data={**edit, "csrf": csrf}), "error_404", 404)
    assert 'value="restore"' in gone
    assert "Alice lives in Metz.</blockquote>" in gone
    wrong = {"user": "alice", "csrf": csrf, "confirm": "bob"}
    form = told(client.post("/forget", data=wrong), "error_confirm", 400)
    assert 'name="confirm" autocomplete="off" required aria-invalid="true"' in form
    told(operator(memory, write=True).post("/operation", data={"csrf": ""}), "error_csrf", 403)
    assert memory.list(ALICE) == left


def test_a_login_leads_to_the_page_that_was_asked_for_and_to_no_other_site(memory):
    app = create_app(memory, token="", users={hash_token("hers"): ["alice"]}, write=True)
    mounted = TestClient(Starlette(routes=[Mount("/memory", app)]), base_url=LOCAL)
    asked = "record?" + urlencode({"user": "alice", "id": "a/b&c=安"})

    for client, root in ((TestClient(app, base_url=LOCAL), ""), (mounted, "/memory")):
        for method in ("GET", "POST"):  # the cookie ended before the page, or before its form
            client.cookies.clear()
            sent = {"data": {"csrf": "old"}} if method == "POST" else {}
            refused = client.request(method, f"{root}/{asked}", **sent)
            form = {name: html.unescape(one) for name, one in fields(refused.text).items()}
            assert (refused.status_code, form) == (401, {"next": asked})
            wrong = client.post(f"{root}/login", data={**form, "token": "guessed"})
            assert fields(wrong.text) == fields(refused.text)
            done = client.post(
                f"{root}/login", data={**form, "token": "hers"}, follow_redirects=False
            )
            assert (done.status_code, done.headers["location"]) == (303, f"{root}/{asked}")
    for place, leads_to in {
        "export.jsonl?user=alice": "/rights?user=alice", "rights?": "/rights", "": "/why",
        "https://evil.example/": "/why", "//evil.example/why": "/why", "why@evil.example": "/why",
        "\\\\evil.example": "/why", "/why": "/why", "logout": "/why", "../why": "/why",
        "why#//evil.example": "/why", "why?q=\r\nx-evil: 1": "/why?q=%0D%0Ax-evil%3A+1",
        "javascript:alert(1)//why": "/why", " why": "/why", "why/..//evil.example": "/why",
    }.items():  # fmt: skip
        client = TestClient(app, base_url=LOCAL)
        sent = {"next": place, "token": "hers"}
        for done in (
            client.post("/login", data=sent, follow_redirects=False),
            client.get("/login", params=sent, follow_redirects=False),
        ):
            assert (done.status_code, done.headers["location"]) == (303, leads_to), place


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_sent_without_a_login_stands_in_its_form_after_it(memory, language):
    words = Words(language)
    app = create_app(memory, token="", users={hash_token("hers"): ["alice"]}, write=True)
    client = TestClient(app, base_url=LOCAL, headers={"accept-language": language})
    [known] = [one.id for one in memory.list(ALICE) if "Lyon" in one.text]
    where, typed = {"user": "alice", "id": known}, 'Alice lives in "Metz" & <Nancy>.\r\n安'
    edit = {"id": known, "user": "alice", "action": "edit", "text": typed, "csrf": "old"}

    login = client.post("/record", params=where, data=edit)
    for token, status in (("", 200), ("guessed", 403), ("hers", 403)):
        form = {name: html.unescape(one) for name, one in hidden(login.text).items()}
        assert form.pop("next") == f"record?{urlencode(where)}"
        assert form == {name: one for name, one in edit.items() if name != "csrf"}
        assert words("login_kept") in login.text
        goes_to = html.unescape(re.search(r'action="(/login[^"]*)"', login.text)[1])
        answer = client.post(goes_to, data=hidden(login.text, html.unescape) | {"token": token})
        assert answer.status_code == status
        login = login if token == "hers" else answer
    assert "Alice lives in &#34;Metz&#34; &amp; &lt;Nancy&gt;.\r\n安</textarea>" in answer.text
    assert f'role="alert">{words("error_csrf")}' in answer.text
    assert f'href="/record.json?{urlencode(where)}"' in html.unescape(answer.text)
    assert memory.get(known, ALICE).text == "Alice lives in Lyon."
    again = client.post("/record", data=fields(answer.text) | {"action": "edit", "text": typed})
    assert words("changed") in again.text
    assert memory.get(known, ALICE).text == typed.replace("\r\n", "\n")


def test_what_another_site_or_login_sends_is_not_kept(memory):
    app = create_app(memory, token="", users={hash_token("hers"): ["alice"]}, write=True)
    client = TestClient(app, base_url=LOCAL)
    [known] = [one.id for one in memory.list(BOB)]
    edit = {"id": known, "user": "bob", "action": "edit", "text": "typed", "next": "record"}

    other = client.post("/record", data=edit, headers={"sec-fetch-site": "cross-site"})
    assert (other.status_code, "typed" in other.text) == (403, False)
    refused = client.post("/login", data={**edit, "token": "hers", "csrf": ""})
    assert (refused.status_code, "tortoise" in refused.text) == (403, False)
    assert client.get("/why").status_code == 200
    nothing = client.post("/login?text=typed", data={"token": "hers", "next": "why"})
    assert (nothing.status_code, "typed" in nothing.text) == (200, False)


def test_forget_counts_first_asks_for_the_id_and_gives_a_receipt(memory):
    client = operator(memory, write=True)
    page = client.get("/forget?user=bob")
    assert client.get("/forget.json?user=bob").json()["counts"]["graph.records"] == 1
    sent = {"csrf": fields(page.text)["csrf"], "user": "bob"}

    refused = client.post("/forget", data={**sent, "confirm": "alice"})
    assert (refused.status_code, "nothing is erased" in refused.text) == (400, True)
    assert len(memory.list(BOB)) == 1
    done = client.post("/forget", data={**sent, "confirm": "bob "})  # as a phone writes it
    assert "Nothing of this is left" in done.text
    assert len(memory.list(BOB)) == 0
    assert len(memory.list(ALICE)) == 3


def test_each_article_of_a_law_is_named(memory):
    for language, name in (("en", "Article {}"), ("zh-CN", "第 {} 条")):
        page = operator(memory).get("/rights?user=alice", headers={"accept-language": language})
        assert f"{name.format(44)}<br>{name.format(45)}</td>" in page.text


def test_a_person_sees_takes_along_and_erases_what_is_stored(memory, tmp_path):
    app = create_app(memory, login=header_login("X-User"), write=True)
    client = TestClient(app, base_url=LOCAL, headers={"x-user": "alice"})
    page = client.get("/rights").text  # whose it is tells the login
    links = [html.unescape(one) for one in re.findall(r'<th scope="row"><a href="([^"]*)"', page)]
    given = "?user=alice"

    assert links == [f"/about{given}", f"/records{given}", f"/export.jsonl{given}",
                     f"/forget{given}"]  # fmt: skip
    assert [client.get(one).status_code for one in links] == [200] * 4
    assert 'href="/rights"' in client.get("/why").text
    assert "only read" not in page
    assert "only read" in operator(memory).get(f"/rights{given}").text
    assert client.get("/export.jsonl?user=bob").status_code == 403
    assert TestClient(app, base_url=LOCAL).get("/export.jsonl").status_code == 403
    assert operator(memory).get("/export.jsonl?agent=helper").status_code == 404
    sent = client.get(links[2])
    assert "attachment" in sent.headers["content-disposition"]
    assert "tortoise" not in sent.text
    (tmp_path / "alice.jsonl").write_bytes(sent.content)
    with Memory.open(str(tmp_path / "back"), embedder=HashEmbedder()) as back:
        restore(tmp_path / "alice.jsonl", back)
        assert back.list(ALICE) == memory.list(ALICE)
    form = fields(client.get(links[3]).text) | {"confirm": "alice"}
    assert "Nothing of this is left" in client.post("/forget", data=form).text
    assert client.get("/rights.json").json()["counts"]["graph.records"] == 0


def test_what_is_not_a_form_of_this_page_is_refused(memory):
    client = operator(memory, write=True)
    [known] = [one.id for one in memory.list(ALICE) if "Lyon" in one.text]
    csrf = fields(client.get("/forget?user=bob").text)["csrf"]
    sent = {"csrf": csrf, "user": "alice", "id": known, "action": "delete"}

    assert client.post("/record", data={**sent, "csrf": ""}).status_code == 403
    assert client.post("/record", data={**sent, "csrf": "0" * 64}).status_code == 403
    other = client.post("/record", data=sent, headers={"sec-fetch-site": "cross-site"})
    assert other.status_code == 403
    assert client.post("/record", data={**sent, "text": "x" * 300_000}).status_code == 413
    assert client.post("/record", json=sent).status_code == 415
    assert client.post("/record", content=b"csrf=%ff").status_code == 415
    assert client.get("/why?user=alice&q=" + "x" * 20_000).status_code == 414
    assert client.post("/forget", data={"user": "bob", "confirm": "bob"}).status_code == 403
    assert client.post("/operation", data={"user": "bob"}).status_code == 403
    assert client.post("/logout", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    for hosts in (["evil.example"], ["evil.example:80"], ["127.0.0.1", "evil.example"], [""]):
        headers = [("host", one) for one in hosts]
        assert client.get("/why", headers=headers).status_code == 421, hosts
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"):
        assert client.get(path).status_code == 404
    assert operator(memory).post("/record", data=sent).status_code == 403  # read only
    assert memory.get(known, ALICE) is not None


def test_two_other_processes_write_while_the_pages_read_and_change(tmp_path: Path):
    place = tmp_path / "shared"
    texts = [[f"process {n} noted thing {i}" for i in range(15)] for n in range(2)]
    with Memory.open(str(place), embedder=HashEmbedder()) as memory:
        [edited] = memory.add("Alice lives in Rome.", ALICE).ids
        client = operator(memory, write=True)
        where = {"user": "alice", "id": edited}
        sent = {**where, "csrf": fields(client.get("/record", params=where).text)["csrf"]}
        with Worker(place) as one, Worker(place) as other, ThreadPoolExecutor(2) as threads:
            learning = [
                threads.submit(lambda worker, some: [worker.ask("/learn", t) for t in some], *job)
                for job in zip((one, other), texts, strict=True)
            ]
            turn = 0
            while turn < 5 or not all(job.done() for job in learning):
                change = {**sent, "action": "edit", "text": f"Alice lives in house {turn}."}
                assert client.post("/record", data=change).status_code == 200
                for name in ("why", "people", "records", "about", "operation"):
                    page = client.get(f"/{name}", params={**where, "q": "noted thing"})
                    assert page.status_code == 200, page.text
                turn += 1
            for job in learning:
                job.result()
        found = {one.text for one in memory.list(ALICE, limit=100)}
        assert found == {*texts[0], *texts[1], f"Alice lives in house {turn - 1}."}
        assert client.get("/operation.json?check=1").json()["health"]["consistent"]


def test_markup_and_control_characters_stay_text(memory):
    name = "<b>eve</b>"
    eve = Scope(user_id=name, agent_id="<i>", session_id="<u>")
    lives = Relation(subject="<svg onload=x>", predicate="<p>", object="\"'>")
    fact = Fact(text=EVIL, relations=(lives,), metadata={"<k>": EVIL}, at=datetime.now(UTC))
    added = memory.add(fact, eve).ids[0]
    memory.add(Message(text=EVIL, name="<h1>"), eve)
    memory.session(eve).summarize(EVIL)
    client = operator(memory, write=True)

    for page in PAGES:
        given = {"user": name, "agent": "<i>", "session": "<u>", "id": added, "q": EVIL}
        given |= {"entity": "<svg onload=x>"} if page == "graph" else {}
        text = client.get(f"/{page}", params=given).text
        for mark in ("<script>alert", "<img", "<b>eve", "<i>", "<u>", "<svg onload", "<h1>&lt;h1"):
            assert mark not in text, page
        shown = re.sub(r'(?s)<textarea.*?</textarea>|value="[^"]*"', "", text)
        assert "\x1b" not in shown, page
        assert "\u202e" not in shown, page
