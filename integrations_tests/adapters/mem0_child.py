"""Run by a test in a process of its own: strands_tools' `mem0_memory` on our `Memory`.

Every action of the tool is called once; what each answers is printed as JSON.
"""

import json
import os
import sys

from commonplace_mem0 import install_as_mem0

os.environ |= {
    "MEM0_EMBEDDER_PROVIDER": "commonplace",
    "MEM0_EMBEDDER_MODEL": "",
    "MEM0_LLM_PROVIDER": "scripted",
    "MEM0_LLM_MODEL": "none",
    "MEM0_USER_ID": "alice",
    "BYPASS_TOOL_CONSENT": "true",
    "AWS_REGION": "us-west-2",
}
install_as_mem0()

from mem0.configs.llms.base import BaseLlmConfig  # mem0 is ours from here on
from mem0.utils.factory import LlmFactory
from strands_tools import mem0_memory as tool


class Scripted:
    """A model that mem0's factory makes; it takes every text as one fact."""

    def __init__(self, config=None) -> None:
        self.config = config

    def generate_response(self, messages, response_format=None, **_):
        said = messages[-1]["content"].rpartition("user: ")[2]
        relation = {"subject": "Alice", "predicate": "likes", "object": "Tea"}
        return json.dumps({"facts": [{"text": said, "relations": [relation]}]})


LlmFactory.provider_to_class["scripted"] = (f"{__name__}.Scripted", BaseLlmConfig)


def main(folder: str, *, graph: bool) -> None:
    """Call every action, on memories in a folder."""
    unmoved = tool.Mem0ServiceClient._append_faiss_config

    def moved(self, config=None):
        merged = unmoved(self, config)  # its folder is the same for all who run it
        merged["vector_store"]["config"]["path"] = folder
        return merged | ({"graph_store": {"provider": "embedded", "config": {}}} if graph else {})

    tool.Mem0ServiceClient._append_faiss_config = moved

    def call(action, **given):
        answer = tool.mem0_memory({"toolUseId": "t", "input": {"action": action, **given}})
        text = answer["content"][0]["text"]
        return answer["status"], json.loads(text) if text.startswith(("[", "{")) else text

    answers = {"store": call("store", content="Alice likes tea.", metadata={"k": 1})}
    memory_id = answers["store"][1][0]["id"]
    answers["list"] = call("list")
    answers["retrieve"] = call("retrieve", query="What does Alice like?")
    answers["get"] = call("get", memory_id=memory_id)
    answers["history"] = call("history", memory_id=memory_id)
    answers["delete"] = call("delete", memory_id=memory_id)
    answers["left"] = call("list")
    sys.__stdout__.write("\n" + json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1], graph=sys.argv[2] == "graph")
