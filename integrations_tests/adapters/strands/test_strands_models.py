import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from commonplace import Memory, ModelFailedError, Policy, Scope
from commonplace.testing.fakes import HashEmbedder
from commonplace_strands import MemoryPlugin, StrandsChat

FACTS = json.dumps(
    {"facts": [{"text": "Alice owns a cat called Miso.", "kind": "fact", "relations": []}]}
)


def test_an_answer_is_one_text_without_its_fence(model):
    scripted = model([["```json\n{", '"facts": []}\n```']])

    assert StrandsChat(scripted).complete("Extract.", "Hi.", schema={"x": 1}) == '{"facts": []}'
    assert scripted.prompts[0].startswith("Extract.")
    assert '{"x": 1}' in scripted.prompts[0]
    assert scripted.seen == [[{"role": "user", "content": [{"text": "Hi."}]}]]


def test_an_answer_that_was_cut_off_is_none(model, monkeypatch):
    async def cut(self, *_args, **_options):
        yield {"contentBlockDelta": {"delta": {"text": '{"facts": ['}}}
        yield {"messageStop": {"stopReason": "max_tokens"}}

    monkeypatch.setattr(model, "stream", cut)
    with pytest.raises(ModelFailedError, match="max_tokens"):
        StrandsChat(model()).complete("Extract.", "Hi.", schema={})


def test_a_model_is_known_by_its_class_and_name(model):
    assert StrandsChat(model()).id == "ScriptedModel:scripted"


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="must be a strands"):
        StrandsChat("gpt")


@pytest.mark.parametrize("await_write", [True, False])
@pytest.mark.parametrize("call", ["sync", "async"])
def test_a_turn_s_facts_are_extracted_on_whatever_loop_it_runs(
    tmp_path, make, model, told, await_write, call
):
    chat = StrandsChat(model([FACTS]))
    with Memory.open(str(tmp_path / "own"), embedder=HashEmbedder(), chat=chat) as memory:
        agent = make(MemoryPlugin(memory, policy=Policy(await_write=await_write)))
        state = {"user_id": "alice"}
        if call == "sync":
            agent("My cat is called Miso.", invocation_state=state)
        else:
            asyncio.run(agent.invoke_async("My cat is called Miso.", invocation_state=state))
        memory.flush()

        found = {one.text for one in memory.list(Scope(user_id="alice")).records}
        assert found == {"My cat is called Miso.", "All right.", "Alice owns a cat called Miso."}


LEAVES_AT_ONCE = """
    import importlib.util, sys
    from strands import Agent
    from commonplace import Memory, Policy
    from commonplace.testing.fakes import HashEmbedder
    from commonplace_strands import MemoryPlugin, StrandsChat

    spec = importlib.util.spec_from_file_location("shared", sys.argv[2])
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)

    chat = StrandsChat(shared.ScriptedModel([sys.argv[3]]))
    memory = Memory.open(sys.argv[1], embedder=HashEmbedder(), chat=chat)
    plugin = MemoryPlugin(memory, policy=Policy(await_write=False), user_id="alice")
    agent = Agent(model=shared.ScriptedModel(), plugins=[plugin], callback_handler=None)
    agent("My cat is called Miso.")
"""


def test_facts_are_extracted_though_the_program_ends_right_after_the_turn(tmp_path):
    folder, script = str(tmp_path / "own"), tmp_path / "leaves.py"
    script.write_text(textwrap.dedent(LEAVES_AT_ONCE), "utf-8")
    shared = str(Path(__file__).with_name("conftest.py"))
    subprocess.run([sys.executable, script, folder, shared, FACTS], check=True, timeout=120)

    with Memory.open(folder, embedder=HashEmbedder()) as memory:
        found = {one.text for one in memory.list(Scope(user_id="alice")).records}
        assert found == {"My cat is called Miso.", "All right.", "Alice owns a cat called Miso."}


def test_a_model_that_fails_leaves_the_words(tmp_path, make, model):
    chat = StrandsChat(model([ValueError("no model")]))
    with Memory.open(str(tmp_path / "own"), embedder=HashEmbedder(), chat=chat) as memory:
        make(MemoryPlugin(memory, user_id="alice"))("My cat is called Miso.")

        found = {one.text for one in memory.list(Scope(user_id="alice")).records}
        assert found == {"My cat is called Miso.", "All right."}
