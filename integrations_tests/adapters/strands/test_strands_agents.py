"""Agents that call one another, in tools, graphs and swarms: whose words are remembered."""

import asyncio
from dataclasses import replace

import pytest
from strands import tool
from strands.hooks import BeforeInvocationEvent, BeforeNodeCallEvent
from strands.memory import ExtractionConfig, InvocationTrigger, MemoryManager
from strands.multiagent import GraphBuilder, Swarm
from strands.session import FileSessionManager

from commonplace import Policy, Scope
from commonplace.agents import WarnOnce
from commonplace.agents.note import FOOTER
from commonplace_strands import CommonplaceMemoryStore, MemoryPlugin, multiagent_turns, store

ALICE = Scope(user_id="alice")
STATIC = Policy(mode="static_control")
TASK = "Find a vet for my cat Miso."


def of(user, **more):
    return {"invocation_state": {"user_id": user, **more}}


def graph(nodes, edges=(), **more):
    builder = GraphBuilder()
    for name, agent in nodes.items():
        builder.add_node(agent, name)
    for one, other in edges:
        builder.add_edge(one, other)
    for name, value in more.items():
        getattr(builder, f"set_{name}")(value)
    return builder.set_max_node_executions(9).build()


@pytest.fixture
def plugin(memory):
    return MemoryPlugin(memory, policy=STATIC)


@pytest.fixture
def line(plugin, make):
    """A graph of three nodes, one after the other."""

    def build(*scripts, **more):
        names = ("a", "b", "c")
        nodes = {
            name: make(plugin, name=name, script=[script])
            for name, script in zip(names, scripts, strict=True)
        }
        return graph(nodes, [("a", "b"), ("b", "c")], **more)

    return build


class TestTools:
    def test_an_inner_agent_recalls_for_the_outer_user_and_writes_nothing(
        self, memory, plugin, make, use, told
    ):
        memory.add("Miso is a black cat.", ALICE)
        clerk = make(plugin, script=["A clerk's word."], name="clerk")
        agent = make(plugin, script=[use("clerk", input="What cat is Miso?")], tools=[clerk])
        agent("Ask the clerk.", **of("alice"))

        assert "Miso is a black cat." in clerk.model.shown()
        assert told("alice") == ["Miso is a black cat.", "Ask the clerk.", "All right."]

    @pytest.mark.parametrize("more", [{"user_id": "alice"}, {}])
    def test_an_outer_agent_without_a_plugin_is_told_by_the_framework_s_tool(
        self, memory, make, use, told, more
    ):
        clerk = make(MemoryPlugin(memory, **more), name="clerk")
        agent = make(script=[use("clerk", input="Look it up.")], tools=[clerk.as_tool()])
        agent("Ask the clerk.", **of("alice"))

        assert told("alice") == []

    def test_a_tool_s_own_coroutine_is_no_user(self, memory, make, use, told):
        clerk = make(MemoryPlugin(memory), name="clerk")

        @tool
        async def ask(question: str) -> str:
            """Ask the clerk."""
            return str(await clerk.invoke_async(question, **of("alice")))

        make(script=[use("ask", question="Look it up.")], tools=[ask])("Ask the clerk.")

        assert told("alice") == []

    def test_a_state_that_a_plain_tool_hands_on_is_no_user_s(self, memory, make, use, told):
        clerk = make(MemoryPlugin(memory), name="clerk")

        @tool(context=True)
        def ask(question: str, tool_context) -> str:
            """Ask the clerk."""
            return str(clerk(question, invocation_state=tool_context.invocation_state))

        script = [use("ask", question="Look it up.")]
        make(script=script, tools=[ask])("Ask the clerk.", **of("alice"))

        assert told("alice") == []

    async def test_a_state_that_users_share_makes_nobody_an_inner_agent(self, memory, make, told):
        plugin = MemoryPlugin(memory, policy=STATIC)
        state = {"user_id": "alice"}
        agents = [make(plugin) for _ in range(3)]
        await agents[0].invoke_async("One.", invocation_state=state)
        await asyncio.gather(
            *(
                agent.invoke_async(text, invocation_state=state)
                for agent, text in zip(agents[1:], ("Two.", "Three."), strict=True)
            )
        )

        assert {"One.", "Two.", "Three."} <= set(told("alice"))

    def test_a_graph_within_a_tool_is_no_user(self, plugin, make, use, line, told):
        inner = line("A.", "B.", "C.")

        @tool
        def ask(question: str) -> str:
            """Ask the graph."""
            return str(inner(question, **of("alice")))

        agent = make(plugin, script=[use("ask", question="Look it up.")], tools=[ask])
        agent("Ask them.", **of("alice"))

        assert told("alice") == ["Ask them.", "All right."]

    def test_a_graph_within_a_tool_of_an_agent_without_a_plugin_is_no_user(
        self, memory, plugin, make, use, line, told
    ):
        inner = line("A.", "B.", "C.")

        @tool
        async def ask(question: str) -> str:
            """Ask the graph."""
            return str(await inner.invoke_async(question, **of("alice")))

        make(script=[use("ask", question="Look it up.")], tools=[ask])("Ask them.", **of("alice"))
        asyncio.run(plugin._agent_memory.wait_for_writes(10))
        memory.flush()

        assert told("alice") == []

    def test_an_answer_that_is_left_to_an_inner_agent_is_remembered(self, plugin, make, use, told):
        clerk = make(plugin, script=["The vet is Dr. Ho."], name="clerk")
        try:
            tools = [clerk.as_tool(delegate=True)]
        except TypeError:
            pytest.skip("this version has no delegation")
        agent = make(plugin, script=[use("clerk", input="Who is the vet?")], tools=tools)
        agent("Ask the clerk.", **of("alice"))

        assert told("alice") == ["Ask the clerk.", "The vet is Dr. Ho."]

    @pytest.mark.parametrize("user", [None, "alice"])
    @pytest.mark.parametrize("has_plugin", [True, False])
    def test_a_manager_extracts_nothing_that_an_inner_agent_is_asked(
        self, memory, plugin, make, use, told, user, has_plugin
    ):
        config = ExtractionConfig(trigger=InvocationTrigger())
        store = CommonplaceMemoryStore(memory, user_id=user, extraction=config)
        manager = MemoryManager([store], injection=False)
        plugins = [plugin] if has_plugin else []
        clerk = make(*plugins, memory_manager=manager, name="clerk")
        tools = [clerk.as_tool(preserve_context=True)]
        agent = make(plugin, script=[use("clerk", input="Look it up.")], tools=tools)
        agent("Ask the clerk.", **of("alice"))
        asyncio.run(manager.flush())
        memory.flush()

        assert told("alice") == ["Ask the clerk.", "All right."]


class TestGraphs:
    def test_the_task_and_the_last_answer_are_stored_once(self, line, told, memory):
        line("A.", "B.", "Dr. Ho is a vet.")(TASK, **of("alice"))

        assert told("alice") == [TASK, "Dr. Ho is a vet."]
        assert [one.role for one in memory.list(ALICE).records].count("user") == 1

    def test_each_task_of_a_graph_is_stored(self, line, told):
        nodes = line("A.", "B.", "One.")
        nodes(TASK, **of("alice"))
        nodes(TASK, **of("alice"))
        nodes("Thank her.", **of("bob"))

        assert told("alice") == [TASK, "One.", TASK, "All right."]
        assert told("bob") == ["Thank her.", "All right."]

    def test_what_reaches_a_node_is_never_shown_as_the_user_s(self, line, plugin, make):
        line("The vets are in Lyon.", "B.", "Dr. Ho.")(TASK, **of("alice"))
        agent = make(plugin)
        agent("Which vet did we find for Miso?", **of("alice"))

        shown = agent.model.shown()
        assert f", today] user: {TASK}" in shown
        assert "Original Task" not in shown
        assert "vets are in Lyon" not in shown

    def test_a_node_recalls_for_the_task(self, memory, line):
        memory.add("Miso is a black cat, afraid of dogs.", ALICE)
        nodes = line("A.", "B.", "C.")
        nodes(TASK, **of("alice"))

        shown = [nodes.nodes[name].executor.model.shown() for name in ("a", "b", "c")]
        assert ["afraid of dogs" in one for one in shown] == [True, True, True]

    def test_several_plugins_of_one_memory_store_it_once(self, memory, make, told):
        nodes = {name: make(MemoryPlugin(memory, policy=STATIC), name=name) for name in "ab"}
        graph(nodes, [("a", "b")])(TASK, **of("alice"))

        assert told("alice") == [TASK, "All right."]

    def test_several_last_answers_are_none(self, plugin, make, told):
        nodes = {name: make(plugin, name=name, script=[f"{name}."]) for name in "abc"}
        graph(nodes, [("a", "b"), ("a", "c")])(TASK, **of("alice"))

        assert told("alice") == [TASK]

    def test_a_node_without_a_plugin_may_answer(self, plugin, make, told):
        nodes = {"a": make(plugin, name="a"), "b": make(name="b", script=["Dr. Ho."])}
        graph(nodes, [("a", "b")])(TASK, **of("alice"))

        assert told("alice") == [TASK, "Dr. Ho."]

    @pytest.mark.parametrize("timeout", [None, 60.0])
    def test_a_graph_within_a_graph_is_one_run(self, plugin, make, told, timeout):
        more = {} if timeout is None else {"node_timeout": timeout}
        first = graph({"x": make(plugin, name="x", script=["X."])}, **more)
        second = graph({"y": make(plugin, name="y", script=["Dr. Ho."])}, **more)
        graph({"first": first, "second": second}, [("first", "second")], **more)(
            TASK, **of("alice")
        )

        assert told("alice") == [TASK, "Dr. Ho."]

    @pytest.fixture
    def nested(self, plugin, make):
        """A graph of two graphs with one agent each, one after the other."""
        graphs = {name: graph({"x": make(plugin, name="x", script=[f"{name}."])}) for name in "ab"}
        return graph(graphs, [("a", "b")])

    def test_a_graph_within_a_graph_recalls_for_the_task(self, memory, nested):
        memory.add("Miso is a black cat, afraid of dogs.", ALICE)
        nested(TASK, **of("alice"))

        models = [nested.nodes[name].executor.nodes["x"].executor.model for name in "ab"]
        assert ["afraid of dogs" in one.shown() for one in models] == [True, True]

    def test_the_runs_of_a_graph_of_graphs_are_one_session(self, nested, memory, told):
        nested(TASK, **of("alice"))
        nested(TASK, **of("alice"))

        assert told("alice") == [TASK, "b.", TASK, "All right."]
        assert len({one.scope.session_id for one in memory.list(ALICE).records}) == 1

    async def test_a_graph_of_graphs_that_is_left_leaves_the_task(self, nested, told, memory):
        async for event in nested.stream_async(TASK, {"user_id": "alice"}):
            if event.get("event", {}).get("type") == "multiagent_node_stream":
                break
        await asyncio.sleep(0.5)
        await memory.aflush()

        assert told("alice") == [TASK]

    def test_a_task_of_blocks_is_the_user_s_text(self, line, told):
        blocks = [{"text": "Find a vet."}, {"text": "For Miso."}]
        line("A.", "B.", "Dr. Ho.")(blocks, **of("alice"))

        assert told("alice") == ["Find a vet.\nFor Miso.", "Dr. Ho."]

    def test_a_task_that_a_hook_redacts_is_not_stored(self, plugin, make, told):
        def redact(event: BeforeInvocationEvent) -> None:
            event.messages = [{"role": "user", "content": [{"text": "[redacted]"}]}]

        agent = make(plugin, name="a")
        agent.add_hook(redact)
        graph({"a": agent})("My number is 4242.", **of("alice"))

        assert told("alice") == []

    def test_a_graph_that_fails_leaves_the_task(self, line, told):
        with pytest.raises(OSError, match="down"):
            line("A.", OSError("down"), "C.")(TASK, **of("alice"))

        assert told("alice") == [TASK]

    async def test_a_graph_that_is_left_leaves_the_task(self, line, told, memory):
        is_left = asyncio.Event()

        async def hang():
            async for event in line("A.", "B.", "C.").stream_async(TASK, {"user_id": "alice"}):
                if event.get("type") == "multiagent_node_stop":
                    is_left.set()
                    await asyncio.sleep(60)

        running = asyncio.create_task(hang())
        await is_left.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.sleep(0.2)
        await memory.aflush()

        assert told("alice") == [TASK]

    def test_an_interrupted_graph_stores_the_task_once(self, plugin, make, use, told):
        @tool(context=True)
        def gate(tool_context) -> str:
            """Ask the person."""
            return str(tool_context.interrupt("gate", reason="May I?"))

        first = make(plugin, name="a", script=[use("gate"), "Dr. Ho."], tools=[gate])
        nodes = graph({"a": first})
        result = nodes(TASK, **of("alice"))
        assert told("alice") == [TASK]
        asked = result.interrupts[0].id
        nodes([{"interruptResponse": {"interruptId": asked, "response": "y"}}], **of("alice"))

        assert told("alice") == [TASK, "Dr. Ho."]

    def test_a_graph_that_waits_between_nodes_stores_the_task_once(self, line, told):
        nodes = line("A.", "B.", "Dr. Ho.")

        def ask(event: BeforeNodeCallEvent) -> None:
            if event.node_id == "b":
                event.interrupt("gate", reason="May I?")

        nodes.hooks.add_callback(BeforeNodeCallEvent, ask)
        result = nodes(TASK, **of("alice"))
        assert told("alice") == [TASK]
        asked = result.interrupts[0].id
        nodes([{"interruptResponse": {"interruptId": asked, "response": "y"}}], **of("alice"))

        assert told("alice") == [TASK, "Dr. Ho."]

    def test_turns_of_a_graph_are_one_session(self, line, memory):
        nodes = line("A.", "B.", "C.")
        nodes(TASK, **of("alice"))
        nodes(TASK, **of("alice", session_id="mine"))

        sessions = [one.scope.session_id for one in memory.list(ALICE).records]
        assert sessions.count("mine") == 2
        assert len(set(sessions)) == 2


class TestSwarms:
    @pytest.fixture
    def swarm(self, plugin, make, use):
        first = make(
            plugin,
            name="first",
            script=[use("handoff_to_agent", agent_name="second", message="Take over.")],
        )
        second = make(plugin, name="second", script=["Dr. Ho is a vet."])
        return Swarm([first, second])

    def test_the_task_and_the_last_answer_are_stored_once(self, swarm, told):
        swarm(TASK, **of("alice"))

        assert told("alice") == [TASK, "Dr. Ho is a vet."]

    def test_what_reaches_an_agent_is_never_shown_as_the_user_s(self, swarm, plugin, make):
        swarm(TASK, **of("alice"))
        agent = make(plugin)
        agent("Which vet did we find for Miso?", **of("alice"))

        note = agent.model.shown().partition("Relevant memories")[2]
        assert FOOTER in note
        assert [one for one in ("Context:", "User Request", "Take over") if one in note] == []

    def test_an_agent_of_a_swarm_that_is_called_itself_has_a_user(self, swarm, told):
        agent = swarm.nodes["second"].executor
        agent("Hello, second.", **of("alice"))

        assert told("alice") == ["Hello, second.", "Dr. Ho is a vet."]

    async def test_an_agent_of_a_swarm_that_was_awaited_here_has_a_user(self, swarm, told):
        await swarm.invoke_async(TASK, **of("alice"))
        await swarm.nodes["second"].executor.invoke_async("Hello, second.", **of("bob"))

        assert told("bob") == ["Hello, second.", "All right."]

    def test_a_swarm_within_a_graph_is_one_run(self, swarm, plugin, make, told):
        nodes = {"a": make(plugin, name="a"), "b": swarm}
        graph(nodes, [("a", "b")])(TASK, **of("alice"))

        assert told("alice") == [TASK, "Dr. Ho is a vet."]


class TestAnotherFramework:
    """What happens if a later release has other names than those that the adapter relies on."""

    @pytest.mark.parametrize(
        "changed", [{"modules": ("strands.tools.runners",)}, {"caller": "strands_core."}]
    )
    def test_nothing_is_taken_for_a_users_words(
        self, plugin, make, told, monkeypatch, caplog, changed
    ):
        monkeypatch.setattr(
            multiagent_turns, "_CALLERS", replace(multiagent_turns._CALLERS, **changed)
        )
        monkeypatch.setattr(multiagent_turns, "_warn", WarnOnce("commonplace_strands"))
        agent = make(plugin)
        for text in ("Hello.", "Hello again."):
            agent(text, **of("alice"))

        assert told("alice") == []
        assert caplog.text.count("It cannot be told who calls") == 1
        assert "Install a release that was tested: strands-agents 1.52 to" in caplog.text

    def test_a_store_follows_no_agent_that_its_manager_names_otherwise(
        self, memory, make, told, monkeypatch, caplog
    ):
        changed = replace(store._SETUP, variables=("self", "given_agent"))
        monkeypatch.setattr(store, "_SETUP", changed)
        config = ExtractionConfig(trigger=InvocationTrigger())
        manager = MemoryManager(
            [CommonplaceMemoryStore(memory, extraction=config)], injection=False
        )
        make(memory_manager=manager)("Hello.", **of("alice"))
        asyncio.run(manager.flush())

        assert told("alice") == []
        assert caplog.text.count("no variable `agent` stands in MemoryManager") == 1


class TestRestoredGraphs:
    def test_an_interrupted_graph_goes_on_in_another_process(
        self, memory, make, use, told, tmp_path
    ):
        @tool(context=True)
        def gate(tool_context) -> str:
            """Ask the person."""
            return str(tool_context.interrupt("gate", reason="May I?"))

        def restored(*script):
            plugin = MemoryPlugin(memory, policy=STATIC)
            agent = make(plugin, name="a", agent_id="a", script=script, tools=[gate])
            session = FileSessionManager(session_id="s", storage_dir=str(tmp_path / "s"))
            return graph({"a": agent}, session_manager=session, graph_id="g")

        (asked,) = restored(use("gate"))(TASK, **of("alice")).interrupts
        response = {"interruptId": asked.id, "response": "y"}
        restored("Dr. Ho.")([{"interruptResponse": response}], **of("alice"))

        assert told("alice") == [TASK, "Dr. Ho."]
        assert {one.scope.session_id for one in memory.list(ALICE).records} == {"s"}
