"""Models as mem0's users configure them: what is sent to a server, and who is asked for what."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from commonplace.testing.fakes import AsyncScriptedChat, HashEmbedder, ScriptedChat
from commonplace_mem0 import AsyncMemory, Memory
from commonplace_mem0.exceptions import ConfigurationError, DependencyError, LLMError

from .test_mem0 import Scripted, config, texts

FACTS = json.dumps({"facts": [{"text": "Likes tea"}]})


class Server(ThreadingHTTPServer):
    """Speaks as much of OpenAI's interface as is asked; keeps every request."""

    def __init__(self, *, knows_schemas=True) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.knows_schemas, self.model = [], knows_schemas, HashEmbedder(32)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        if self.path.endswith("/embeddings"):
            vectors = self.server.model.embed(body["input"], purpose="document")
            rows = [{"index": n, "embedding": one} for n, one in enumerate(vectors)]
            return self.answer(200, {"object": "list", "data": rows, "model": "m"})
        shape = body.get("response_format", {}).get("type")
        if shape == "json_schema" and not self.server.knows_schemas:
            return self.answer(400, {"error": {"message": "unknown response_format"}})
        message = {"role": "assistant", "content": FACTS}
        return self.answer(200, {"choices": [{"index": 0, "message": message}]})

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    pytest.importorskip("openai", reason="pip install 'commonplace-memory[openai]'")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    found = Server()
    yield found
    found.shutdown()
    found.server_close()


def asked(server, end):
    return [(key, body) for path, key, body in server.asked if path.endswith(end)]


def test_an_openai_model_and_embedder_are_asked_with_mem0s_keys(server, tmp_path):
    given = config(tmp_path)
    given["llm"] = {
        "provider": "openai",
        "config": {
            "model": "m1",
            "api_key": "k1",
            "openai_base_url": f"{server.url}/v1",
            "temperature": 0.2,
            "max_tokens": 99,
        },
    }
    given["embedder"] = {
        "provider": "openai",
        "config": {"model": "e1", "api_key": "k2", "openai_base_url": f"{server.url}/v1"},
    }
    with Memory.from_config(given) as m:
        assert [] == server.asked, "a constructor sends nothing"
        m.add("I like tea", user_id="a")
        found = m.search("tea", user_id="a")

    assert ["Likes tea"] == texts(found)
    [(key, body)] = asked(server, "/chat/completions")
    assert ("Bearer k1", "m1", 0.2, 99) == (
        key, body["model"], body["temperature"], body["max_tokens"],
    )  # fmt: skip
    assert "json_schema" == body["response_format"]["type"]
    assert {"Bearer k2"} == {key for key, _ in asked(server, "/embeddings")}
    assert "dimensions" not in asked(server, "/embeddings")[0][1]


def test_a_server_without_schemas_is_asked_for_plain_json_from_then_on(server, tmp_path):
    server.knows_schemas = False
    place = {"model": "m", "api_key": "k", "openai_base_url": server.url}
    with Memory.from_config(config(tmp_path, llm={"provider": "openai", "config": place})) as m:
        m.add("I like tea", user_id="a")
        m.add("I like milk", user_id="a")

    shapes = [body["response_format"]["type"] for _, body in asked(server, "/chat/completions")]
    assert ["json_schema", "json_object", "json_object"] == shapes


def test_ollama_is_asked_where_it_is_and_its_vectors_are_measured(server, tmp_path):
    given = config(tmp_path)
    given["llm"] = {"provider": "ollama", "config": {"model": "m", "ollama_base_url": server.url}}
    given["embedder"] = {"provider": "ollama", "config": {"ollama_base_url": server.url}}
    with Memory.from_config(given) as m:
        m.add("I like tea", user_id="a")
        assert ["Likes tea"] == texts(m.get_all(user_id="a"))

    assert {"/v1/chat/completions", "/v1/embeddings"} == {path for path, _, _ in server.asked}
    assert "nomic-embed-text" == asked(server, "/embeddings")[0][1]["model"]


def test_vectors_of_another_length_than_configured_name_both(server, tmp_path):
    given = config(tmp_path)
    place = {"huggingface_base_url": server.url, "embedding_dims": 768}
    given["embedder"] = {"provider": "huggingface", "config": place}
    with Memory.from_config(given) as m, pytest.raises(ConfigurationError, match=r"768.*32"):
        m.get_all(user_id="a")
    assert "tei" == asked(server, "/embeddings")[0][1]["model"]


def test_openrouter_is_used_only_when_it_is_named(server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "router")
    names = {"models": ["a", "b"], "openrouter_base_url": server.url, "app_name": "x"}
    with Memory.from_config(config(tmp_path, llm={"provider": "openai", "config": names})) as m:
        m.add("I like tea", user_id="a")
    plain = {"model": "m", "api_key": "k", "openai_base_url": f"{server.url}/plain"}
    with Memory.from_config(config(tmp_path, llm={"provider": "openai", "config": plain})) as m:
        m.add("I like milk", user_id="a")

    assert [("Bearer router", ["a", "b"]), ("Bearer k", None)] == [
        (key, body.get("models")) for key, body in asked(server, "/chat/completions")
    ]


def test_a_model_that_is_down_is_an_error_and_the_messages_are_not_lost(tmp_path):
    llm = Scripted(*[OSError("down")] * 3, FACTS)
    with Memory.from_config(config(tmp_path, llm=llm)) as m:
        with pytest.raises(LLMError):
            m.add("I like tea", user_id="a")
        assert {"pending": 0, "failed": []} == m.flush(30)

        assert ["Likes tea"] == texts(m.get_all(user_id="a"))


# -- models that are objects --------------------------------------------------------------------


class Answer:
    def __init__(self, content) -> None:
        self.content = content


class Chain:
    """As LangChain's chat models."""

    def __init__(self) -> None:
        self.asked = []

    def invoke(self, messages):
        self.asked.append(messages)
        return Answer([{"type": "text", "text": FACTS}])


class Embeddings:
    """As LangChain's embeddings, which tell documents from questions."""

    model = "e"

    def __init__(self) -> None:
        self.documents, self.questions, self.model_ = [], [], HashEmbedder(16)

    def embed_documents(self, texts):
        self.documents += texts
        return self.model_.embed(texts, purpose="document")

    def embed_query(self, text):
        self.questions.append(text)
        return self.model_.embed([text], purpose="query")[0]


def test_langchains_models_are_used_as_they_are(tmp_path):
    chain, embeddings = Chain(), Embeddings()
    given = config(tmp_path, llm={"provider": "langchain", "config": {"model": chain}})
    given["embedder"] = {"provider": "langchain", "config": {"model": embeddings}}
    with Memory.from_config(given) as m:
        m.add("I like tea", user_id="a")
        found = m.search("which tea?", user_id="a")

    assert ["Likes tea"] == texts(found)
    assert "JSON schema" in chain.asked[0][0]["content"]
    assert "Likes tea" in embeddings.documents
    assert ["I like tea", "which tea?"] == embeddings.questions  # what is known is looked up


@pytest.mark.parametrize(
    "llm", [lambda _: FACTS, ScriptedChat([FACTS]), Scripted(FACTS), Chain()], ids=lambda _: "llm"
)
def test_a_model_may_stand_in_the_configuration_itself(tmp_path, llm):
    with Memory.from_config(config(tmp_path, llm=llm)) as m:
        assert ["Likes tea"] == texts(m.add("I like tea", user_id="a"))


async def test_an_asynchronous_model_is_awaited_where_it_is_asked(tmp_path):
    async def answer(_):
        return FACTS

    for n, llm in enumerate((answer, AsyncScriptedChat([FACTS]))):
        async with AsyncMemory(config(tmp_path / str(n), llm=llm)) as m:
            assert ["Likes tea"] == texts(await m.add("I like tea", user_id="a"))
        with pytest.raises(ConfigurationError, match="AsyncMemory"):
            Memory(config(tmp_path, llm=llm))


async def test_a_procedure_can_be_written_by_a_model_of_the_call(tmp_path):
    async with AsyncMemory(config(tmp_path)) as m:
        answer = await m.add(
            "did it", agent_id="bot", memory_type="procedural_memory", llm=lambda _: "1. Do it."
        )

    assert ["1. Do it."] == texts(answer)


# -- mem0's own ---------------------------------------------------------------------------------


def test_a_provider_of_mem0s_needs_mem0_and_the_error_names_ours(tmp_path, without_mem0):
    for part in ("llm", "embedder", "reranker"):
        with pytest.raises(ConfigurationError, match=r"pip install mem0ai.*openai_base_url"):
            Memory(config(tmp_path) | {part: {"provider": "gemini", "config": {}}})


@pytest.fixture
def without_mem0(monkeypatch):
    monkeypatch.setitem(sys.modules, "mem0", None)
    monkeypatch.setitem(sys.modules, "mem0.utils.factory", None)


def test_a_compatible_server_needs_no_mem0(server, tmp_path, monkeypatch, without_mem0):
    monkeypatch.setenv("OPENAI_API_KEY", "of OpenAI")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "of DeepSeek")
    given = config(tmp_path)
    place = {"model": "m", "deepseek_base_url": server.url, "temperature": 0.2}
    given["llm"] = {"provider": "deepseek", "config": place}
    given["embedder"] = {"provider": "lmstudio", "config": {"model": "e", "base_url": server.url}}
    with Memory.from_config(given) as m:
        assert ["Likes tea"] == texts(m.add("I like tea", user_id="a"))

    [(key, body)] = asked(server, "/chat/completions")
    assert ("Bearer of DeepSeek", "m", 0.2) == (key, body["model"], body["temperature"])
    assert {"Bearer unused"} == {key for key, _ in asked(server, "/embeddings")}


@pytest.mark.parametrize("part", ["llm", "embedder"])
def test_a_compatible_server_without_a_known_model_asks_for_one(tmp_path, without_mem0, part):
    with pytest.raises(ConfigurationError, match=rf"{part}\.config names no model of 'groq'"):
        Memory(config(tmp_path) | {part: {"provider": "groq", "config": {}}})


@pytest.fixture
def factory(tmp_path, monkeypatch):
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    return pytest.importorskip("mem0.utils.factory", reason="pip install mem0ai")


@pytest.mark.filterwarnings("ignore")
def test_a_provider_of_mem0s_is_made_by_mem0_where_it_is_installed(server, tmp_path, factory):
    place = {"model": "m", "api_key": "k", "deepseek_base_url": server.url}
    with Memory.from_config(config(tmp_path, llm={"provider": "deepseek", "config": place})) as m:
        assert ["Likes tea"] == texts(m.add("I like tea", user_id="a"))

    [(key, body)] = asked(server, "/chat/completions")
    assert ("Bearer k", "m", 2000) == (key, body["model"], body["max_tokens"])  # mem0's default


@pytest.mark.filterwarnings("ignore")
def test_what_mem0_refuses_or_lacks_is_an_error_of_ours(tmp_path, monkeypatch, factory):
    with pytest.raises(ConfigurationError, match=r"mem0 refuses .*'deepseek': .*colour"):
        Memory(config(tmp_path, llm={"provider": "deepseek", "config": {"colour": "red"}}))

    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    for part, provider in (("embedder", "huggingface"), ("reranker", "sentence_transformer")):
        with pytest.raises(DependencyError, match=rf"{part} provider '{provider}' needs a package"):
            Memory(config(tmp_path) | {part: {"provider": provider, "config": {}}})


@pytest.mark.filterwarnings("ignore")
def test_what_is_registered_with_mem0_is_used(tmp_path, monkeypatch, factory):
    from mem0.configs.llms.base import BaseLlmConfig

    kinds = {"mine": (f"{__name__}.Registered", BaseLlmConfig)}
    monkeypatch.setattr(factory.LlmFactory, "provider_to_class", kinds)
    monkeypatch.setattr(
        factory.EmbedderFactory, "provider_to_class", {"mine": f"{__name__}.RegisteredEmbedder"}
    )
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Registered.__module__])
    given = config(tmp_path, llm={"provider": "mine", "config": {"model": "x"}})
    given["embedder"] = {"provider": "mine", "config": {"model": "y"}}
    with Memory(given) as m:
        assert ["Likes tea"] == texts(m.add("I like tea", user_id="a"))
        assert ["Likes tea"] == texts(m.search("tea", user_id="a"))
    assert {"add", "search"} == set(RegisteredEmbedder.actions)


class Registered(Scripted):
    def __init__(self, config) -> None:
        super().__init__(FACTS)
        self.config = config


class RegisteredEmbedder:
    actions: ClassVar[list[str]] = []

    def __init__(self, config) -> None:
        self.config = config

    def embed(self, text, memory_action):
        self.actions.append(memory_action)
        return HashEmbedder(24).embed([text], purpose="document")[0]


@pytest.mark.filterwarnings("ignore")
def test_mem0s_own_configuration_object_is_read_for_what_was_set(tmp_path, monkeypatch):
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    monkeypatch.setenv("COMMONPLACE_PATH", str(tmp_path / "m"))
    base = pytest.importorskip("mem0.configs.base", reason="pip install mem0ai")
    plain = base.MemoryConfig()
    named = base.MemoryConfig(
        vector_store={"provider": "qdrant", "config": {"path": str(tmp_path / "other")}},
        custom_instructions="Only food.",
    )
    with Memory(plain) as m, Memory(named) as n:
        m.add("tea", user_id="a", infer=False)

        assert str(tmp_path / "m") in m.core.location
        assert str(tmp_path / "other") in n.core.location
        assert "Only food." == n._settings.instructions
