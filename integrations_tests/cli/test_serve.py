"""Command `serve`: its link, its logins, and an embedder that is there for the first question."""

import time
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="pip install 'commonplace-memory[serve]'")
uvicorn = pytest.importorskip("uvicorn", reason="pip install 'commonplace-memory[serve]'")

from starlette.testclient import TestClient

from commonplace.cli import arguments

from .populated import embedder_of


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch):
    """Let a function look at the pages, as a client, in place of serving them."""

    def visit(look) -> None:
        def serve(server: uvicorn.Server, sockets) -> None:
            port = sockets[0].getsockname()[1]
            sockets[0].close()
            look(TestClient(server.config.app, base_url=f"http://127.0.0.1:{port}"))

        monkeypatch.setattr(uvicorn.Server, "run", serve)

    return visit


def test_the_link_logs_in_once_and_the_embedder_is_loaded_unasked(
    run, lived: Path, visits, monkeypatch: pytest.MonkeyPatch
):
    embedder = embedder_of("sentence-encoder")
    monkeypatch.setattr(arguments, "embedder_of", lambda _: embedder)
    tokens = []

    def look(client: TestClient) -> None:
        until = time.monotonic() + 30
        while ("warm",) not in embedder.calls and time.monotonic() < until:
            time.sleep(0.01)
        assert ("warm",) in embedder.calls
        tokens.append(client.app.state.token)
        assert client.get("/why").status_code == 401
        assert client.get(f"/login?token={tokens[0]}").status_code == 200
        assert client.get("/person?user=user 1").status_code == 200
        assert client.post("/record", data={"user": "user 1"}).status_code == 403  # read only

    visits(look)
    done = run("serve", lived, "--port", "0")

    assert (done.exit_code, done.stderr) == (0, ""), done.exception
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stdout.endswith(f"/login?token={tokens[0]}\n")


def test_tokens_and_a_header_let_people_see_their_own(run, lived: Path, visits):
    token = run("serve", "--users-file", "users", "--new-token", "user 1").stdout.strip()

    def look(client: TestClient, headers=None) -> None:
        assert client.get("/person?user=user 1", headers=headers).status_code == 200
        assert client.get("/person?user=user 2", headers=headers).status_code == 403

    def look_by_token(client: TestClient) -> None:
        assert client.post("/login", data={"token": token}).status_code == 200
        look(client)

    visits(look_by_token)
    assert run("serve", lived, "--port", "0", "--users-file", "users").exit_code == 0
    visits(lambda client: look(client, {"x-user": "user 1"}))
    done = run("serve", lived, "--port", "0", "--user-header", "X-User")
    assert (done.exit_code, "token" in done.stdout) == (0, False)
    assert run("serve", lived, "--user-header", "X", "--users-file", "users").exit_code == 2


@pytest.mark.parametrize("name", ["", "X User", "X:User", "用户"])
def test_a_header_of_users_has_a_name_that_can_be_sent(run, lived: Path, visits, name: str):
    visits(lambda _: pytest.fail("it serves"))
    done = run("serve", lived, "--port", "0", "--user-header", name)

    assert (done.exit_code, "must be the name of a header" in done.stderr) == (2, True)


@pytest.mark.parametrize("user", ["", "*", " bob", "bob ", "x\ny", "x\u2028y"])
def test_a_token_is_for_an_id_that_a_user_can_have(run, user: str):
    run("serve", "--users-file", "users", "--new-token", "alice")
    before = Path("users").read_bytes()
    done = run("serve", "--users-file", "users", "--new-token", user)

    assert (done.exit_code, done.stdout) == (2, "")
    assert "user_id=" in done.stderr
    assert Path("users").read_bytes() == before
