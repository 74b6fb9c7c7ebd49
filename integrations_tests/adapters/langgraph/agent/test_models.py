import asyncio
import json

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage

from commonplace.errors import InvalidRecordError
from commonplace.ingest.extraction import SCHEMA
from commonplace.memory import Memory
from commonplace.testing.fakes import HashEmbedder
from commonplace.types import Message, Scope
from commonplace_langgraph import (
    AsyncLangChainChat,
    AsyncLangChainEmbedder,
    LangChainChat,
    LangChainEmbedder,
)

ALICE = Scope(user_id="alice")
FACTS = {"facts": [{"text": "Alice likes tea.", "kind": "fact", "since": None, "relations": []}]}


class Named(Embeddings):
    """Embeds with hashes; queries and documents apart, sync and async counted."""

    def __init__(self, model="small-3", dimensions=64):
        self.model, self.dimensions, self.calls = model, dimensions, []
        self.hashes = HashEmbedder(dimensions)

    def embed_documents(self, texts):
        self.calls.append("documents")
        return self.hashes.embed(texts, purpose="document")

    def embed_query(self, text):
        self.calls.append("query")
        return self.hashes.embed([text], purpose="query")[0]

    async def aembed_documents(self, texts):
        self.calls.append("async")
        return self.embed_documents(texts)

    async def aembed_query(self, text):
        self.calls.append("async")
        return self.embed_query(text)


class Refused(Exception):
    status_code = 400


def facts():
    return AIMessage("", tool_calls=[{"name": "answer", "args": FACTS, "id": "c1"}])


def complete(chat, system="system", user="user"):
    answer = chat.complete(system, user, schema=SCHEMA)
    return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer


@pytest.fixture(params=[LangChainChat, AsyncLangChainChat])
def chat(request):
    return request.param


def test_a_model_that_knows_schemas_is_given_one(chat, model):
    scripted = model(facts())

    assert json.loads(complete(chat(scripted))) == FACTS
    ((bound,),) = scripted.tools
    assert bound["properties"] == SCHEMA["properties"]


def test_a_model_without_schemas_reads_it_in_its_prompt(chat):
    listed = FakeListChatModel(responses=[json.dumps(FACTS)])

    assert json.loads(complete(chat(listed))) == FACTS


def test_a_model_that_refuses_a_schema_is_asked_once_and_then_by_prompt(chat, model):
    scripted = model(Refused(), json.dumps(FACTS), json.dumps(FACTS))
    asked = chat(scripted)

    assert [json.loads(complete(asked)) for _ in range(2)] == [FACTS, FACTS]
    assert ["JSON schema" in scripted.shown(one) for one in range(3)] == [False, True, True]


def test_a_model_that_is_down_is_not_asked_in_another_way(chat, model):
    scripted = model(ConnectionError("down"), facts())
    asked = chat(scripted)
    with pytest.raises(ConnectionError):
        complete(asked)

    assert json.loads(complete(asked)) == FACTS


def test_an_answer_that_does_not_fit_is_passed_on_to_be_repaired(chat, model):
    assert complete(chat(model("I am sorry."))) == "I am sorry."


async def test_facts_are_extracted_with_a_langchain_model(chat, model, tmp_path):
    place = str(tmp_path / "extracting")
    with Memory.open(place, embedder=HashEmbedder(), chat=chat(model(facts()))) as memory:
        await memory.aadd(Message(text="I like tea"), ALICE)

        assert {one.text for one in memory.list(ALICE).records} == {
            "I like tea",
            "Alice likes tea.",
        }


def test_a_chat_model_has_a_name(chat, model):
    assert chat(model()).id == "langchain/Scripted/?"
    assert chat(model(), id="mine").id == "mine"


@pytest.mark.parametrize("embedder", [LangChainEmbedder, AsyncLangChainEmbedder])
async def test_a_memory_stands_on_a_langchain_embedder(embedder, tmp_path):
    named = Named()
    with Memory.open(str(tmp_path / "embedding"), embedder=embedder(named)) as memory:
        await memory.aadd("Alice likes tea.", ALICE)
        (found,) = await memory.asearch("tea", ALICE)

    assert found.record.text == "Alice likes tea."
    # The last call is the first search's: how this embedder's cosines are spread.
    calls = [one for one in named.calls if one != "async"]
    assert calls == ["documents", "query", "documents"]
    assert ("async" in named.calls) == (embedder is AsyncLangChainEmbedder)


async def test_texts_are_embedded_in_their_order():
    words = ["a", "b", "c"]
    expected = HashEmbedder().embed(words, purpose="document")

    assert LangChainEmbedder(Named()).embed(words, purpose="query") == expected
    assert LangChainEmbedder(Named()).embed(words, purpose="document") == expected
    assert await AsyncLangChainEmbedder(Named()).embed(words, purpose="query") == expected
    assert await AsyncLangChainEmbedder(Named()).embed(words, purpose="document") == expected


def test_the_same_model_has_the_same_id_and_another_has_another():
    first = LangChainEmbedder(Named())

    assert first.id == "langchain/Named/small-3/64"
    assert first.id == LangChainEmbedder(Named()).id == AsyncLangChainEmbedder(Named()).id
    assert first.id != LangChainEmbedder(Named("large-3")).id
    assert first.id != LangChainEmbedder(Named(dimensions=32)).id


def test_a_model_that_tells_neither_name_nor_dimensions_is_not_guessed_at():
    silent = DeterministicFakeEmbedding(size=8)

    with pytest.raises(InvalidRecordError, match="dimensions="):
        LangChainEmbedder(silent, id="fake-8")
    with pytest.raises(InvalidRecordError, match="id="):
        LangChainEmbedder(silent, dimensions=8)
    assert LangChainEmbedder(silent, dimensions=8, id="fake-8").id == "fake-8"


def test_what_is_no_model_is_refused(chat):
    with pytest.raises(TypeError):
        chat(object())
    with pytest.raises(TypeError):
        LangChainEmbedder(object(), dimensions=8)
