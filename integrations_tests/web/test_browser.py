"""Every view in a real browser: languages, widths, keyboard, and without JavaScript."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("playwright", reason="pip install playwright")
pytest.importorskip("uvicorn", reason="pip install 'commonplace-memory[serve]'")

from playwright.sync_api import Browser, BrowserContext, Page

from commonplace import Fact, Memory, Message, Relation, Scope
from commonplace.testing.fakes import HashEmbedder
from commonplace.web.security import hash_token
from commonplace.web.strings import Words
from commonplace.web.views import PAGES

from .browser import ALICE, addresses, fill, log_in, serving, started_browser
from .logged import log_notes
from .many import fill_many

pytestmark = pytest.mark.slow
DESKTOP, PHONE = 1280, 360
ONE_LINE = 50
READABLE = 600  # pixels of a graph, at least
LOUD = ("error", "warning")
REACHABLE = "a[href], button, input:not([type=hidden]), select, textarea, summary"
FOCUSED = """() => {
  const at = document.activeElement;
  return [at.dataset.number, getComputedStyle(at).outlineStyle, at.innerText || at.name];
}"""
NUMBER = f"""() => {{
  const all = [...document.querySelectorAll("{REACHABLE}")].filter((one) => one.checkVisibility());
  all.forEach((one, number) => {{ one.dataset.number = number; }});
  document.activeElement.blur();
  return all.map((one) => one.innerText || one.name);
}}"""


class Refusing(HashEmbedder):
    def embed(self, texts, *, purpose):
        if "unreadable" in texts:
            raise OSError("no")
        return super().embed(texts, purpose=purpose)


def fail_to_write(memory: Memory, scope: Scope, reason: str) -> None:
    memory.add("unreadable", scope, wait=False)
    journal = memory._runtime.engines.journal
    [waiting] = journal.pending()
    journal.dead_letter(waiting.seq, reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    place = tmp_path_factory.mktemp("pages")
    with Memory.open(str(place), embedder=Refusing()) as opened:
        fill(opened)
        # The long form, on 20,000 records and 2,000 relations: PAGES_USERS=200.
        fill_many(opened, int(os.environ.get("PAGES_USERS", "0")))
        fail_to_write(opened, ALICE, f"the model refused {'x' * 200}")
        yield opened


@pytest.fixture(scope="module")
def site(memory: Memory) -> Iterator[str]:
    with serving(memory, write=True) as address:
        yield address


@pytest.fixture(scope="module")
def login(browser: Browser, site: str) -> Any:
    return log_in(browser, site)


def opened(context: BrowserContext) -> tuple[Page, list[str]]:
    """Open a page, and the list of what its browser complains of."""
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda said: said.type in LOUD and complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # A request that the next page cuts off is no failure.
    page.on("requestfailed", lambda one: "ABORTED" in one.failure or complaints.append(one.url))
    return page, complaints


@pytest.mark.parametrize(
    ("language", "locale", "scripts"), [("en", "en-GB", True), ("zh", "zh-CN", False)]
)
def test_every_view_is_whole_in_its_language_with_or_without_scripts_and_fits_a_phone(
    browser, memory, site, login, language, locale, scripts
):
    views = addresses(memory)
    assert set(views) == {*PAGES, "error"}
    context = browser.new_context(storage_state=login, locale=locale, java_script_enabled=scripts)
    with context:
        page, complaints = opened(context)
        for name, address in views.items():
            answer = page.goto(f"{site}/{address}")

            assert answer.status == (404 if name == "error" else 200), name
            assert page.locator("html").get_attribute("lang").startswith(language)
            assert page.locator("h1").inner_text().startswith(Words(language)(name)), name
            for width in (DESKTOP, PHONE):
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name
                if name == "graph":  # its names stay readable
                    assert page.locator(".graph svg").bounding_box()["width"] >= READABLE
                if name == "people":  # without a way to scroll that nobody sees
                    assert page.locator(".rows").evaluate("one => one.scrollWidth") <= width - 30
                if (name, width) == ("operation", DESKTOP):
                    tiles = page.locator(".tiles > div").all()
                    assert len({one.bounding_box()["y"] for one in tiles}) == 1
                    for one in page.locator(".rows :is(a, button)").all():  # on one line each
                        assert one.bounding_box()["height"] < ONE_LINE
            assert "`" not in page.locator("main").inner_text(), name
        # The browser says itself that one answer had the status 404.
        assert [one for one in complaints if "404" not in one] == []


def test_every_view_is_reached_by_tab_alone_and_shows_where_one_is(browser, memory, site, login):
    with browser.new_context(storage_state=login) as context:
        page, _ = opened(context)
        for name, address in addresses(memory).items():
            page.goto(f"{site}/{address}")
            wanted = page.evaluate(NUMBER)
            reached = []
            for _ in wanted:
                page.keyboard.press("Tab")
                number, outline, _ = page.evaluate(FOCUSED)
                assert outline != "none", (name, number)
                reached.append(number)
            missed = [text for at, text in enumerate(wanted) if str(at) not in reached]
            assert missed == [], name


def test_dark_is_dark_and_light_is_light(browser, site, login):
    for scheme, is_right in (("dark", lambda one: one < 0.3), ("light", lambda one: one > 0.7)):
        with browser.new_context(storage_state=login, color_scheme=scheme) as context:
            page, _ = opened(context)
            page.goto(f"{site}/people")
            for selector in ("body", ".top", ".rows", "input"):
                colour = page.evaluate(
                    "(one) => getComputedStyle(document.querySelector(one)).backgroundColor",
                    selector,
                )
                levels = [int(one) for one in colour.partition("(")[2].rstrip(")").split(", ")[:3]]
                assert is_right(sum(levels) / 765), (scheme, selector, colour)


def test_axe_finds_nothing_wrong_on_a_desktop_or_in_the_dark_on_a_phone(
    browser, memory, site, login
):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python"
    )
    light = (DESKTOP, {"resultTypes": ["violations"]})
    dark = (PHONE, {**light[1], "runOnly": ["color-contrast", "scrollable-region-focusable"]})
    with browser.new_context(storage_state=login) as context:
        page, _ = opened(context)
        for name, address in {**addresses(memory), "login": "login"}.items():
            page.goto(f"{site}/{address}")
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            for scheme, (width, options) in {"light": light, "dark": dark}.items():
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 800})
                found = axe.Axe().run(page, options=options)
                assert found.violations_count == 0, f"{name} {scheme}: {found.generate_report()}"


def test_no_stored_text_or_name_acts_in_a_browser(browser, tmp_path: Path):
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'>"
    scope = Scope(user_id=evil, agent_id=evil, session_id=evil)
    told = Relation(subject=evil, predicate=evil, object=f"{evil}!")
    with Memory.open(str(tmp_path), embedder=Refusing()) as memory:
        [added] = memory.add(Fact(text=evil, relations=(told,), metadata={evil: evil}), scope).ids
        memory.add([Message(text=evil, name=evil)], scope, infer=False)
        memory.session(scope).summarize(evil)
        log_notes(memory, scope, evil)
        fail_to_write(memory, scope, evil)
        with (
            serving(memory, write=True) as site,
            browser.new_context(storage_state=log_in(browser, site)) as context,
        ):
            page, complaints = opened(context)
            given = {"user": evil, "agent": evil, "session": evil, "id": added, "q": evil}
            for name in PAGES:
                answer = page.goto(f"{site}/{name}?{urlencode(given)}")
                assert answer.status == 200, name
                assert page.locator("img").count() == 0, name
                assert page.locator("script").count() == 1, name
                assert "<img" in page.locator("body").inner_text(), name
            assert complaints == []  # as of a script that the policy of the page held up


def test_a_link_on_another_site_leads_to_its_page_and_keys_change_nothing_before_one_asks(
    browser, site, login
):
    with browser.new_context(storage_state=login) as context:
        page, _ = opened(context)
        there = f"{site.replace('127.0.0.1', 'localhost')}/login"  # has its own cookies
        page.goto(there)
        page.evaluate("(to) => { location.href = to; }", f"{site}/rights?user=alice")
        page.get_by_role("heading", name=Words("en")("rights")).wait_for()
        asked = f"{site}/why?user=alice&q=hello"
        page.goto(asked)
        page.locator("[name=top_k]").press("ArrowUp")
        page.locator("[name=top_k]:focus").wait_for()
        assert page.url == asked


def enter_token(page: Page) -> None:
    page.locator("[name=token]:focus").wait_for()
    page.keyboard.type("hers")
    page.keyboard.press("Enter")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_person_looks_corrects_and_erases_by_keyboard_alone(browser, tmp_path: Path, scripts):
    def move_to(text: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            if text in page.evaluate(FOCUSED)[2]:
                return
        pytest.fail(f"{text!r} is not reached")

    def follow(text: str, where: str = "**") -> None:
        move_to(text)
        keys.press("Enter")
        page.wait_for_url(where)

    with Memory.open(str(tmp_path), embedder=HashEmbedder()) as memory:
        memory.add("Alice lives in Rome.", ALICE)
        memory.add("Bob lives in Oslo.", Scope(user_id="bob"))
        users = {hash_token("hers"): ["alice"]}
        with (
            serving(memory, users=users, write=True) as site,
            browser.new_context(java_script_enabled=scripts) as context,
        ):
            page, complaints = opened(context)
            keys = page.keyboard
            page.goto(f"{site}/rights?user=alice")
            enter_token(page)
            page.get_by_role("heading", name=Words("en")("rights")).wait_for()
            follow(Words("en")("why"), "**/why")
            if scripts:
                page.evaluate("document.activeElement.blur()")
                keys.press("/")
            keys.type("Where does Alice live?")
            keys.press("Enter")
            page.wait_for_url("**/why?q=*")
            follow("Record", "**/record?*")
            follow("Edit")
            move_to("text")
            keys.press("Control+A")
            keys.press("Space")
            follow("Save")
            page.locator("[name=text][aria-describedby=wrong]:focus").wait_for()
            keys.press("Control+A")
            keys.type("Alice lives in Lyon.")
            context.clear_cookies()  # as after twelve hours
            follow("Save")
            enter_token(page)
            page.locator("[name=text][aria-describedby=wrong]:focus").wait_for()
            follow("Save", "**done=changed*")
            assert page.get_by_role("status").inner_text() == Words("en")("changed")
            assert [one.text for one in memory.list(ALICE)] == ["Alice lives in Lyon."]
            follow("Forget", "**/forget?*")
            move_to("confirm")
            keys.type("alice")
            keys.press("Enter")
            page.get_by_role("heading", name=Words("en")("erased")).wait_for()
            assert page.get_by_role("status").inner_text() == Words("en")("erased_complete")
            # The browser says itself that answers had the status 400, 401 or 403.
            assert [one for one in complaints if "status of 40" not in one] == []
        assert len(memory.list(ALICE)) == 0
        assert len(memory.list(Scope(user_id="bob"))) == 1
