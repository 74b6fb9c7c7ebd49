"""Misuses of the mem0 adapter by a newcomer: errors of the classes that code for mem0 catches."""

from collections.abc import Callable
from typing import Any

import pytest

import commonplace
from commonplace import Fact, Message, WrongTypeError
from commonplace.testing.fakes import HashEmbedder, ScriptedChat
from commonplace_mem0 import AsyncMemory, Memory, Source, import_mem0
from commonplace_mem0.exceptions import (
    ClosedError,
    ConfigurationError,
    MemoryNotFoundError,
    ValidationError,
)

from .misuses import ALICE, NAN, Row, acoroutine, check, closed, shared

__all__ = ["shared"]

GONE = "00000000-0000-0000-0000-000000000000"
HUGE = "x" * 5_000_000


def deep(depth: int) -> list[Any]:
    """Nest lists."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def anded(depth: int) -> dict[str, Any]:
    """Nest filters."""
    found: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        found = {"AND": [found]}
    return found


def config(given: Any) -> Callable[[Any], Any]:
    """Add with a memory of this configuration."""
    return lambda _: Memory(given).add("x", user_id="bob", infer=False)


def section(name: str, given: Any) -> Callable[[Any], Any]:
    """Add with a memory of a configuration with this section."""
    return config({name: given})


def vectors(**given: Any) -> Callable[[Any], Any]:
    """Add with a memory of a configuration with this vector store."""
    return section("vector_store", {"provider": "qdrant", "config": given})


def graph(**given: Any) -> Callable[[Any], Any]:
    """Add with a memory of a configuration with this graph store."""
    return section("graph_store", {"provider": "neo4j", "config": given})


def model(name: str, provider: str, **given: Any) -> Callable[[Any], Any]:
    """Add with a memory of a configuration with this model of a server."""
    return section(name, {"provider": provider, "config": {"model": "x", **given}})


def on(call: Callable[[Memory], Any]) -> Callable[[Any], Any]:
    """Call mem0's memory on the shared one."""
    return lambda core: call(Memory(core=core))


def add(messages: Any = "x", **given: Any) -> Callable[[Any], Any]:
    """Add messages for a user."""
    return on(lambda m: m.add(messages, **{"user_id": "bob", **given}))


def search(query: Any = "x", **given: Any) -> Callable[[Any], Any]:
    """Search for a user."""
    return on(lambda m: m.search(query, **{"user_id": "alice", **given}))


def filtered(**given: Any) -> Callable[[Any], Any]:
    """Search with a filter for a user."""
    return on(lambda m: m.search("x", filters={"user_id": "alice", **given}))


ROWS: dict[str, Row] = {
    # -- configuration
    "path": (config("./memory"), ConfigurationError, "config must be a dict"),
    "memory": (lambda m: Memory(m), ConfigurationError, r"Memory\(core=\.\.\.\)"),
    "memory class": (config(commonplace.Memory), ConfigurationError, "To use an open commonplace"),
    "class": (config(Memory), ConfigurationError, "config must be a dict"),
    "embedder as config": (config(HashEmbedder), ConfigurationError, "config must be a dict"),
    "path=": (lambda _: Memory(path="x"), TypeError, "Did you mean 'config'"),
    "client=": (lambda m: Memory(client=m), TypeError, "Did you mean 'core'"),
    "two positional": (lambda m: Memory({}, m), TypeError, "Its parameters are config, compat, core"),
    "path in config": (config({"path": "./x"}), ConfigurationError, "no key of mem0's.*core="),
    "store name": (section("vector_store", "qdrant"), ConfigurationError, "provider=''.*Use 'qdrant'"),
    "store unknown": (section("vector_store", {"provider": "pinecone"}), ConfigurationError, "'pinecone'"),
    "store without provider": (section("vector_store", {"config": {}}), ConfigurationError, "must be the name of a provider"),
    "url as path": (vectors(path="http://localhost:6333"), ValidationError, "not a URL"),
    "path as url": (vectors(url="./memory"), ConfigurationError, "such as http://localhost:6333"),
    "path int": (vectors(path=3), ConfigurationError, "path=3 must be the path"),
    "dims text": (vectors(path="x", embedding_model_dims="512"), ConfigurationError, "embedding_model_dims='512'"),
    "dims deep": (vectors(path="x", embedding_model_dims=deep(2_000)), ConfigurationError, "embedding_model_dims=<list>"),
    "url port": (vectors(url="http://localhost:99999999"), ConfigurationError, r"config\.url='http://…' must be a URL .*port up to 65535, such as http"),
    "url port text": (vectors(url="http://localhost:secret"), ConfigurationError, r"config\.url='http://…' must be a URL"),
    "url port zero": (vectors(url="http://localhost:0"), ConfigurationError, r"config\.url='http://…' must be a URL"),
    "url bracket": (vectors(url="http://[::1"), ConfigurationError, r"config\.url='http://…' must be a URL"),
    "url brackets": (vectors(url="http://[x]:6333"), ConfigurationError, r"config\.url='http://…' must be a URL"),
    "url surrogate": (vectors(url="http://\ud800"), ConfigurationError, r"config\.url='http://…' must be a URL"),
    "url without a scheme": (vectors(url="localhost:6333"), ConfigurationError, "url='localhost:6333' must be a URL"),
    "url of a key": (vectors(url="secret@localhost:6333"), ConfigurationError, "url='…' must be a URL"),
    "url int": (vectors(url=6333), ConfigurationError, "url=6333 must be a URL"),
    "url deep": (vectors(url=deep(2_000)), ConfigurationError, "url=<list> must be a URL"),
    "host url": (vectors(host="http://localhost"), ConfigurationError, "host='http://…' must be the name of a host.*a URL as url"),
    "host port": (vectors(host="localhost:6333"), ConfigurationError, "host='localhost:6333' must be the name of a host.*a port as port"),
    "host int": (vectors(host=3), ConfigurationError, "host=3 must be the name of a host"),
    "host empty": (vectors(host=""), ConfigurationError, "host='' must be the name of a host"),
    "host space": (vectors(host="a b"), ConfigurationError, "host='a b' must be the name of a host"),
    "host surrogate": (vectors(host="\ud800"), ConfigurationError, r"host='\\ud800' must be the name of a host"),
    "port": (vectors(host="localhost", port=99999999), ConfigurationError, "port=99999999 must be a number from 1 to 65535"),
    "port text": (vectors(host="localhost", port="abc"), ConfigurationError, "port='abc' must be a number"),
    "port True": (vectors(host="localhost", port=True), ConfigurationError, "port=True must be a number"),
    "port list": (vectors(host="localhost", port=[1]), ConfigurationError, r"port=\[1\] must be a number"),
    "key surrogate": (vectors(host="localhost", api_key="secret\ud800"), ConfigurationError, "config.api_key of the type str must be a text without a lone surrogate"),
    "key list": (vectors(host="localhost", api_key=["secret"]), ConfigurationError, "config.api_key of the type list must be a text"),
    "collection list": (vectors(path="x", collection_name=["a"]), ConfigurationError, r"collection_name=\['a'\] must be a text"),
    "collection True": (vectors(path="x", collection_name=True), ConfigurationError, "collection_name=True must be a text"),
    "collection number": (vectors(collection_name=3), ConfigurationError, "collection_name=3 must be a text"),
    "collection empty": (vectors(path="x", collection_name=""), ConfigurationError, "collection_name='' must be a text"),
    "collection surrogate": (vectors(host="localhost", collection_name="\ud800"), ConfigurationError, "collection_name="),
    "collection of faiss": (section("vector_store", {"provider": "faiss", "config": {"path": "x", "collection_name": ["a"]}}), ConfigurationError, "must be a text"),
    "path of faiss": (section("vector_store", {"provider": "faiss", "config": {"path": 3}}), ConfigurationError, "path=3 must be the path"),
    "host outside": (config({"host": "http://localhost"}), ConfigurationError, r"config\['host'\]='http://…' is no key of mem0's.*vector_store.*url"),
    "url outside": (config({"url": "http://secret@localhost"}), ConfigurationError, r"config\['url'\]='…' is no key"),
    "collection outside": (config({"collection_name": "a"}), ConfigurationError, r"config\['collection_name'\]='a' is no key"),
    "store key": (vectors(folder="x"), ConfigurationError, r"unknown keys \['folder'\].*path"),
    "llm name": (section("llm", "gpt-4o"), ConfigurationError, "llm='gpt-4o' must be a model"),
    "llm class": (section("llm", ScriptedChat), ConfigurationError, "llm is the class ScriptedChat"),
    "llm int": (section("llm", 3), ConfigurationError, "llm=3"),
    "llm unknown": (section("llm", {"provider": "nope"}), ConfigurationError, "'nope'"),
    "llm config": (section("llm", {"provider": "openai", "config": "x"}), ConfigurationError, "must be a mapping"),
    "llm async": (section("llm", acoroutine), ConfigurationError, "Use AsyncMemory"),
    "embedder name": (section("embedder", "openai"), ConfigurationError, "embedder='openai'"),
    "embedder class": (section("embedder", HashEmbedder), ConfigurationError, "embedder is the class HashEmbedder"),
    "embedder dims": (section("embedder", {"provider": "ollama", "config": {"embedding_dims": "x"}}), ConfigurationError, "embedding_dims='x'"),
    "graph name": (section("graph_store", "neo4j"), ConfigurationError, "Use 'neo4j' or 'embedded'"),
    "graph port": (graph(url="neo4j://localhost:99999999"), ConfigurationError, r"graph_store\.config\.url='neo4j://…' must be a URL"),
    "graph bracket": (graph(url="neo4j://[::1"), ConfigurationError, "must be a URL.*such as neo4j"),
    "graph password": (graph(url="neo4j://localhost", username="a", password="secret\ud800"), ConfigurationError, "config.password of the type str"),
    "graph database": (graph(url="neo4j://localhost", database=["x"]), ConfigurationError, "config.database of the type list"),
    "llm url": (model("llm", "openai", openai_base_url="http://localhost:99999999"), ConfigurationError, r"llm\.config\.openai_base_url='http://…' must be a URL"),
    "llm url int": (model("llm", "ollama", ollama_base_url=3), ConfigurationError, "ollama_base_url=3 must be a URL"),
    "embedder url": (model("embedder", "ollama", ollama_base_url="http://[::1"), ConfigurationError, r"embedder\.config\.ollama_base_url='http://…' must"),
    "llm proxy": (model("llm", "openai", http_client_proxies="http://localhost:abc"), ConfigurationError, "http_client_proxies='http://…' must be a URL"),
    "llm deep": (section("llm", deep(2_000)), ConfigurationError, "llm=<list> must be a model"),
    "provider deep": (section("llm", {"provider": deep(2_000)}), ConfigurationError, "llm.provider=<list>"),
    "graph url": (section("graph_store", {"provider": "neo4j", "config": {"url": "x"}}), ConfigurationError, "must be a URL"),
    "reranker name": (section("reranker", "cohere"), ConfigurationError, "reranker='cohere' must be a reranker"),
    "reranker class": (section("reranker", object), ConfigurationError, "must be a reranker"),
    "version": (section("version", 1.1), ConfigurationError, r"config\['version'\]=1.1 must be of the type str"),
    "instructions": (section("custom_instructions", 3), ConfigurationError, "type str"),
    "strict": (section("strict", "yes"), ConfigurationError, "type bool"),
    "graph flag": (section("enable_graph", "no"), ConfigurationError, "type bool"),
    "unknown key": (config({1: 2, "strict": True}), ConfigurationError, "no effect here: 1"),
    "fallback": (section("fallback", True), ConfigurationError, "'embedded'"),
    "compat": (lambda _: Memory(compat="v3"), ConfigurationError, "'auto', 'v1' or 'v2'"),
    "core path": (lambda _: Memory(core="./memory"), ValidationError, r"core=str .*Memory\.open"),
    "core class": (lambda _: Memory(core=commonplace.Memory), ValidationError, "core=the class Memory"),
    "core function": (lambda m: Memory(core=lambda: m), ValidationError, "core="),
    "core of mem0": (lambda m: Memory(core=Memory(core=m)), ValidationError, "core=.*Mem0Memory"),
    "core closed": (lambda m: Memory(core=closed(m)), ClosedError, "closed"),
    "core and llm": (lambda m: Memory({"llm": print}, core=m), ConfigurationError, "leave out"),
    "event": (lambda m: Memory(core=m, on_event="x"), ValidationError, "on_event='x'"),
    "event async": (lambda m: Memory(core=m, on_event=acoroutine), ValidationError, "async def"),
    "from_config a file": (lambda _: Memory.from_config("mem0.yaml"), ConfigurationError, "not str"),
    "llm assigned": (lambda m: setattr(Memory(core=m), "llm", print), ConfigurationError, "chat="),
    # -- add
    "add nobody": (on(lambda m: m.add("x")), ValidationError, "user_id"),
    "add None": (add(None), ValidationError, "not NoneType"),
    "add int": (add(3), ValidationError, "not int"),
    "add bytes": (add(b"x"), ValidationError, "not bytes"),
    "add a message of ours": (add(Message(text="x")), ValidationError, "not Message"),
    "add a fact of ours": (add(Fact(text="x")), ValidationError, "not Fact"),
    "add a list of numbers": (add([3]), ValidationError, "The message 3"),
    "add a dict without content": (add({"text": "x"}), ValidationError, "has no content.*'content'"),
    "add content": (add({"role": "user", "content": 3}), ValidationError, "The content 3"),
    "add content bytes": (add([{"role": "user", "content": b"x"}]), ValidationError, r"The content b'x' must be a text.*decode\(\)"),
    "add content bytearray": (add({"role": "user", "content": bytearray(b"x")}), ValidationError, "must be a text.*Decode it"),
    "add a part of bytes": (add([{"role": "user", "content": ["a", b"x"]}]), ValidationError, "The content b'x' must be a text"),
    "add the text of a part in bytes": (add({"role": "user", "content": [{"type": "text", "text": b"x"}]}), ValidationError, "The content b'x'"),
    "add content huge": (add({"text": HUGE}), ValidationError, r"The message \{'text': 'xxx.*has no content"),
    "add a message that is deep": (add([deep(2_000)]), ValidationError, "The message <list>"),
    "add role": (add({"role": 3, "content": "x"}), ValidationError, "The role 3 must be a text, such as 'user'"),
    "add role 0": (add({"role": 0, "content": "x"}), ValidationError, "The role 0 must be a text"),
    "add role list": (add([{"role": ["user"], "content": "x"}]), ValidationError, r"The role \['user'\] must be a text"),
    "add name deep": (add([{"role": "user", "content": "x", "name": deep(2_000)}]), ValidationError, "The name <list> must be a text"),
    "add user list": (add(user_id=["a"]), ValidationError, "user_id="),
    "add user deep": (add(user_id=deep(2_000)), ValidationError, "user_id=<list>"),
    "add user of 5000 digits": (add(user_id=10**5_000), ValidationError, "user_id='…' must have 1 to 256"),
    "add user newline": (add(user_id="a\n"), ValidationError, "user_id='a"),
    "add user empty": (add(user_id=""), ValidationError, "user_id"),
    "add user scope": (on(lambda m: m.add("x", ALICE)), ValidationError, "user_id=Scope"),
    "add user=": (on(lambda m: m.add("x", user="a")), TypeError, "'user'"),
    "add run": (add(run_id=["r"]), ValidationError, "run_id="),
    "add metadata": (add(metadata="y"), ValidationError, "metadata='y'"),
    "add metadata NaN": (add(metadata={"a": NAN}), ValidationError, r"metadata\['a'\]=nan"),
    "add metadata 900 deep": (add(metadata={"a": deep(900)}), ValidationError, r"metadata\['a'\].* must not be nested deeper than 8"),
    "add metadata 9 deep": (add(metadata={"a": deep(9)}), ValidationError, "must not be nested deeper than 8"),
    "add metadata key": (add(metadata={"\ud800": 1}), ValidationError, r"metadata\['\\ud800'\].*lone surrogate"),
    "add metadata key inside": (add(metadata={"a": {"\ud800": 1}}), ValidationError, r"metadata\['a'\].*lone surrogate"),
    "add metadata key to no messages": (add([], metadata={"\ud800": 1}), ValidationError, "lone surrogate"),
    "add filters deep": (add(filters=deep(2_000)), ValidationError, "filters=<list> must be a mapping"),
    "add filters": (add(filters="u"), ValidationError, "filters='u'"),
    "add infer": (add(infer=3), ValidationError, "infer=3 must be True or False"),
    "add prompt": (add(prompt=3), ValidationError, "prompt=3"),
    "add wait": (add(wait="no"), ValidationError, "wait='no' must be True or False"),
    "add memory type": (add(memory_type="semantic"), ValidationError, "procedural_memory"),
    "add time": (add(timestamp="yesterday"), ValidationError, "ISO 8601"),
    "add expiry": (add(expiration_date="soon"), ValidationError, "YYYY-MM-DD format, not 'soon'"),
    "add expiry in metadata": (add(metadata={"expiration_date": 5}), ValidationError, "YYYY-MM-DD format, not 5"),
    "add time deep": (add(timestamp=deep(2_000)), ValidationError, "<list> must be a time"),
    "add 40 kB": (add("x" * 40_000), ValidationError, "Split it"),
    "add NUL": (add("a\0"), ValidationError, "NUL"),
    "aadd nobody": (lambda m: AsyncMemory(core=m).add("x"), ValidationError, "user_id"),
    "aadd int": (lambda m: AsyncMemory(core=m).add(3, user_id="bob"), ValidationError, "not int"),
    "add userid": (on(lambda m: m.add("x", userid="a")), TypeError, "Did you mean 'user_id'"),
    "aadd metdata": (lambda m: AsyncMemory(core=m).add("x", user_id="a", metdata={}), TypeError, "Did you mean 'metadata'"),
    # -- search, get_all
    "search nobody": (on(lambda m: m.search("x")), ValidationError, "user_id"),
    "search None": (search(None), ValidationError, "non-empty string, not None"),
    "search empty": (search(""), ValidationError, "empty or whitespace-only, as '' is"),
    "search list": (search(["x"]), ValidationError, r"non-empty string, not \['x'\]"),
    "search limit": (search(limit="5"), ValidationError, "limit must be a valid integer, not '5'"),
    "search limit -1": (search(limit=-1), ValidationError, "Invalid limit: -1"),
    "search limit True": (search(limit=True), ValidationError, "not True"),
    "search two limits": (search(limit=3, top_k=5), ValidationError, "differ"),
    "search topk": (search(topk=5), TypeError, "Did you mean 'top_k'"),
    "search threshold": (search(threshold="0.5"), ValidationError, "threshold must be a valid number, not '0.5'. Give one from 0 to 1"),
    "search threshold 2": (search(threshold=2), ValidationError, "Invalid threshold: 2. .*between 0 and 1"),
    "search threshold huge": (search(threshold=10**400), ValidationError, "Invalid threshold: 1000"),
    "search threshold NaN": (search(threshold=NAN), ValidationError, "threshold must be a valid number, not nan"),
    "search threshold deep": (search(threshold=deep(2_000)), ValidationError, "threshold must be a valid number, not <list>"),
    "search limit deep": (search(limit=deep(2_000)), ValidationError, "limit must be a valid integer, not <list>"),
    "search explain": (search(explain="no"), ValidationError, "explain='no' must be True or False"),
    "search expired": (search(show_expired="no"), ValidationError, "show_expired='no' must be True or False"),
    "search nothing, expired": (search(show_expired="no", limit=0), ValidationError, "show_expired='no'"),
    "search rerank": (search(rerank="no"), ValidationError, "rerank='no'"),
    "search hosted": (search(reference_date="x"), ValidationError, "hosted product only"),
    "search filters": (on(lambda m: m.search("x", filters="u")), ValidationError, "filters='u'"),
    "filter of Mongo": (filtered(a={"$ne": 1}), ValidationError, r"'\$ne' on 'a'. Use eq"),
    "filter AND": (filtered(AND={"a": 1}), ValidationError, "AND=.*must be a list"),
    "filter AND deep": (filtered(**anded(900)), ValidationError, "filters=.* is nested too deep"),
    "filter value deep": (filtered(a=deep(2_000)), ValidationError, "'a' cannot compare with <list>"),
    "filter object": (filtered(a=object()), ValidationError, "must be a string, number or boolean"),
    "filter nobody": (on(lambda m: m.search("x", filters={"user_id": None})), ValidationError, "Leave it out"),
    "asearch int": (lambda m: AsyncMemory(core=m).search(3, user_id="a"), ValidationError, "string"),
    "get_all nobody": (on(lambda m: m.get_all()), ValidationError, "user_id"),
    "get_all limit": (on(lambda m: m.get_all(user_id="a", limit="5")), ValidationError, "not '5'"),
    "get_all cursor": (on(lambda m: m.get_all(user_id="a", cursor=3)), ValidationError, "cursor"),
    "get_all cursor of nobody": (on(lambda m: m.get_all(agent_id="a", cursor=3)), ValidationError, "cursor=3 must be"),
    "get_all expired": (on(lambda m: m.get_all(user_id="a", show_expired="no")), ValidationError, "show_expired='no' must be True or False"),
    "asearch expired": (lambda m: AsyncMemory(core=m).search("x", user_id="a", show_expired="no"), ValidationError, "show_expired='no'"),
    # -- one memory
    "update nothing": (on(lambda m: m.update(GONE)), ValidationError, "text"),
    "update unknown": (on(lambda m: m.update(GONE, "x")), MemoryNotFoundError, GONE),
    "delete unknown": (on(lambda m: m.delete(GONE)), MemoryNotFoundError, GONE),
    "update metadata 900 deep": (on(lambda m: m.update(GONE, metadata={"a": deep(900)})), ValidationError, "must not be nested deeper than 8"),
    "update metadata key": (on(lambda m: m.update(GONE, metadata={"\ud800": 1})), ValidationError, "lone surrogate"),
    "update expiry": (on(lambda m: m.update(GONE, expiration_date="soon")), ValidationError, "YYYY-MM-DD format, not 'soon'"),
    "update huge": (on(lambda m: m.update(HUGE, "x")), MemoryNotFoundError, r"Memory with id 'xxx.*… \(5000000 characters\) not found"),
    "delete huge": (on(lambda m: m.delete(HUGE)), MemoryNotFoundError, r"Memory with id 'xxx.*… \(5000000 characters\) not found"),
    "delete deep": (on(lambda m: m.delete(deep(2_000))), MemoryNotFoundError, "Memory with id <list> not found"),
    "delete a list": (on(lambda m: m.delete([GONE])), MemoryNotFoundError, GONE),
    "delete_all of nobody": (on(lambda m: m.delete_all()), ValidationError, "reset"),
    "delete_all wildcard": (on(lambda m: m.delete_all(user_id="*")), ValidationError, "wildcard"),
    "delete_all deep": (on(lambda m: m.delete_all(user_id=deep(2_000))), ValidationError, "user_id=<list>"),
    "delete_all list": (on(lambda m: m.delete_all(user_id=["a"])), ValidationError, "user_id="),
    "flush text": (on(lambda m: m.flush("x")), ValidationError, "timeout='x'"),
    "flush NaN": (on(lambda m: m.flush(NAN)), ValidationError, "timeout=nan"),
    "insides": (on(lambda m: m.vector_store), AttributeError, "Here there is core"),
    # -- import
    "import into a path": (lambda _: import_mem0("./memory", Source(folder="x")), WrongTypeError, "memory=str"),
    "import from a path": (lambda m: import_mem0(m, "./mem0"), WrongTypeError, r"source=str.*Source\(folder="),
    "import from nowhere": (lambda m: import_mem0(m, Source(folder="./nowhere")), ConfigurationError, "nowhere"),
    "import from both": (lambda m: import_mem0(m, Source(folder="x", url="y")), ConfigurationError, "folder or a url"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_misuse_is_refused_with_the_way_out(shared: commonplace.Memory, name: str) -> None:
    check(ROWS[name], shared)


def test_a_closed_memory_says_so(shared: commonplace.Memory) -> None:
    with Memory(core=shared) as memory:
        pass

    with pytest.raises(ClosedError, match="Make a new one"):
        memory.search("x", user_id="alice")
