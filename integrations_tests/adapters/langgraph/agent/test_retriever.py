import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.graph import StateGraph
from pydantic import ValidationError
from typing_extensions import TypedDict

from commonplace.agents.policy import Policy
from commonplace.errors import InvalidScopeError, StoreUnavailableError
from commonplace.types import Fact, Scope
from commonplace_langgraph import CommonplaceStore, MemoryRetriever

ALICE = Scope(user_id="alice")
CONFIG = {"configurable": {"user_id": "alice"}}


@pytest.fixture
def filled(memory):
    memory.add("Alice likes green tea.", ALICE, metadata={"topic": "drinks"})
    memory.add("Alice has a green bike.", ALICE, metadata={"topic": "things"})
    memory.add("Bob likes green tea.", Scope(user_id="bob"))
    return memory


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_chain_is_given_the_documents_of_whoever_it_runs_for(filled, model, is_async):
    scripted = model()
    retriever = MemoryRetriever(memory=filled)
    read = RunnableLambda(lambda found: "\n".join(one.page_content for one in found))
    chain = (
        {"known": retriever | read, "question": RunnablePassthrough()}
        | ChatPromptTemplate([("system", "{known}"), ("user", "{question}")])
        | scripted
    )
    if is_async:
        await chain.ainvoke("which tea?", CONFIG)
    else:
        chain.invoke("which tea?", CONFIG)

    assert "Alice likes green tea." in scripted.shown()
    assert "Bob" not in scripted.shown()


def test_documents_come_best_first_with_their_record(filled):
    best, other = MemoryRetriever(memory=filled).invoke("green tea", CONFIG)
    record = filled.get(best.id, ALICE)

    assert best.page_content == record.text == "Alice likes green tea."
    assert best.metadata["topic"] == "drinks"
    assert best.metadata["kind"] == "fact"
    assert best.metadata["score"] > other.metadata["score"]


def test_a_document_of_an_item_has_its_fields_and_not_the_notes_of_the_store(memory):
    value = {"content": "Bob sails", "topic": "boats"}
    CommonplaceStore(memory).put(("memories", "bob"), "k", value, index=["content"])
    memory.add(Fact(text="Bob rows", metadata={"under": "water"}), Scope(user_id="bob"))
    found = MemoryRetriever(memory=memory, user_id="bob").invoke("What does Bob do?")

    known = {"score", "kind", "created_at", "occurred_at"}
    assert {one.page_content: set(one.metadata) - known for one in found} == {
        "Bob sails": {"topic"},
        "Bob rows": {"under"},
    }


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"policy": Policy(top_k=1)}, 1),
        ({"policy": Policy(threshold=1.0)}, 0),
        ({"policy": Policy(kinds=("episode",))}, 0),
        ({"policy": Policy(where={"topic": "drinks"})}, 1),
        ({"where": {"topic": "things"}}, 1),
        ({"policy": Policy(where={"topic": "drinks"}), "where": {"topic": "things"}}, 0),
        ({"agent_id": "helper"}, 0),
        ({"agent_id": "helper", "policy": Policy(scope_search_by_agent=False)}, 2),
    ],
)
async def test_limits_and_filters_count(filled, given, found, is_async):
    retriever = MemoryRetriever(memory=filled, user_id="alice", **given)

    documents = await retriever.ainvoke("green") if is_async else retriever.invoke("green")

    assert len(documents) == found


async def test_a_retriever_in_a_graph_knows_who_runs_it(filled, context):
    class State(TypedDict):
        found: str

    retriever = MemoryRetriever(memory=filled)

    async def look(state):
        found = await retriever.ainvoke("green tea", {"tags": ["looking"]})
        return {"found": str(found)}

    built = StateGraph(State, context_schema=context)
    built.add_node("look", look)
    built.set_entry_point("look")
    out = await built.compile().ainvoke({"found": ""}, context=context("bob"))

    assert "Bob likes green tea." in out["found"]
    assert "Alice" not in out["found"]


def test_a_question_without_words_finds_nothing(filled):
    assert MemoryRetriever(memory=filled).invoke(" ", CONFIG) == []


def test_a_retriever_that_runs_for_nobody_raises(filled):
    with pytest.raises(InvalidScopeError):
        MemoryRetriever(memory=filled).invoke("tea")


def test_a_failing_memory_raises_so_that_a_fallback_can_answer(broken):
    retriever = MemoryRetriever(memory=broken)
    with pytest.raises(StoreUnavailableError):
        retriever.invoke("tea", CONFIG)

    spare = retriever.with_fallbacks([RunnableLambda(lambda _: [])])
    assert spare.invoke("tea", CONFIG) == []


@pytest.mark.parametrize("given", [{"memory": object()}, {"user_id": "*"}, {"user_id": True}])
def test_what_cannot_work_is_refused_when_it_is_made(memory, given):
    with pytest.raises(ValidationError):
        MemoryRetriever(**{"memory": memory, **given})
