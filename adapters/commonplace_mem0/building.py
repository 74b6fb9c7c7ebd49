"""From a configuration to what a memory works with."""

from typing import TYPE_CHECKING, Any

from .calls import Compat, check_compat
from .config import MemoryConfig, Unknown, read_config, section
from .embedders import to_embedder
from .exceptions import ConfigurationError
from .llms import AsyncChat, Chat, is_async, to_model
from .opening import Opening
from .places import has_graph, places
from .rerank import to_reranker
from .setup import Setup

if TYPE_CHECKING:
    from commonplace import Memory


def build(
    config: object, compat: Compat, core: "Memory | None", *, awaits: bool
) -> tuple[Setup, Opening]:
    """Read a configuration and make what it names; nothing is opened and nothing is sent.

    Args:
        core: an open memory to use instead; then no store and no embedder may be configured.
        awaits: the models will be awaited.

    Raises:
        ConfigurationError: the configuration contradicts itself, or names what is not there.
    """
    check_compat(compat)
    unknown = Unknown()
    read = read_config(config, unknown)
    if core is not None and (read.vector_store or read.embedder or read.llm):
        raise ConfigurationError("core= is open already: leave out vector_store, embedder and llm.")
    graph = section("graph_store", read.graph_store)
    where = places(section("vector_store", read.vector_store), graph, unknown)
    model = to_model(section("llm", _llm_of(read, graph)), unknown)
    if model is not None and is_async(model) and not awaits:
        raise ConfigurationError(
            "llm is asynchronous and Memory is not. Use AsyncMemory, or a synchronous model."
        )
    embedder = to_embedder(section("embedder", read.embedder), unknown)
    setup = Setup(
        compat=compat,
        shows_relations=has_graph(graph, enabled=read.enable_graph),
        bare_lists=read.version == "v1.0",
        instructions=_instructions(read, graph),
        model=model,
        is_given=core is not None,
        reranker=to_reranker(section("reranker", read.reranker)),
    )
    unknown.tell(strict=read.strict)
    chat = None if model is None else AsyncChat(model) if awaits else Chat(model)
    falls_back = read.fallback == "embedded"
    if read.fallback is not None and not falls_back:
        raise ConfigurationError(f"fallback={read.fallback!r} is not 'embedded'. Leave it out.")
    return setup, Opening(where, embedder, chat, falls_back=falls_back, given=core)


def _llm_of(read: MemoryConfig, graph: Any) -> Any:
    """Choose the model of the one call: the graph's own where there is one."""
    return read.llm if graph is None else graph.more.get("llm", read.llm)


def _instructions(read: MemoryConfig, graph: Any) -> str | None:
    said = [read.instructions, None if graph is None else graph.more.get("custom_prompt")]
    return "\n".join(one for one in said if one) or None
