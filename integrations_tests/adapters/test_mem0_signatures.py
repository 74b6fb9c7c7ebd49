"""Our methods beside mem0's own: what one takes that the other does not, each with its reason."""

import inspect
import os

import pytest

import commonplace_mem0

ONLY_OURS = {
    "limit": "its name in 0.1 and 1.x",
    "user_id": "where 0.1 and 1.x have it",
    "agent_id": "where 0.1 and 1.x have it",
    "run_id": "where 0.1 and 1.x have it",
    "filters": "ids stood there in 0.1",
    "wait": "False returns as soon as nothing can be lost",
    "cursor": "the next page",
    "metadata_filters": "in 1.x",
    "llm": "a model for this call, which mem0's awaited class takes",
    "compat": "forces an era",
    "core": "an open memory of ours",
    "on_event": "is called with what became of each search and addition",
}
ONLY_THEIRS = {"kwargs": "swallows whatever is misspelt"}
# mem0's default, and why ours is another value.
OTHER_DEFAULTS = {
    ("search", "top_k"): "20, or 100 for ids as arguments",
    (
        "search",
        "threshold",
    ): "0.1 of a cosine; 0.001 of our scores, none for ids as arguments",
    ("search", "rerank"): "False, or True for ids as arguments",
    ("get_all", "top_k"): "20, or 100 for ids as arguments",
    ("add", "infer"): "True, but without a model texts are kept as they are",
    ("update", "expiration_date"): "that it was not given, by our own name",
    ("__init__", "config"): "None, which needs no key and no server",
    ("from_config", "config_dict"): "none in both",
}
METHODS = (
    "__init__", "from_config", "add", "search", "get", "get_all", "update", "delete", "delete_all",
    "history", "reset", "chat", "close",
)  # fmt: skip


@pytest.fixture(scope="module")
def mem0(tmp_path_factory):
    """The real package, silent and away from home."""
    pytest.importorskip("mem0", reason="pip install mem0ai")
    return pytest.importorskip("mem0")


@pytest.fixture(scope="module", autouse=True)
def _alone(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEM0_TELEMETRY", "False")
        patch.setenv("MEM0_DIR", str(tmp_path_factory.mktemp("mem0")))
        yield


def parameters(owner, name):
    found = dict(inspect.signature(getattr(owner, name)).parameters)
    found.pop("self", None)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("face", ["Memory", "AsyncMemory"])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_takes_what_mem0s_takes_but_for_what_is_listed(mem0, face, method):
    ours = parameters(getattr(commonplace_mem0, face), method)
    theirs = parameters(getattr(mem0, face), method)

    assert set(theirs) - set(ours) <= set(ONLY_THEIRS)
    assert set(ours) - set(theirs) <= set(ONLY_OURS)
    for name in set(ours) & set(theirs):
        if ours[name].default != theirs[name].default:
            assert (method, name) in OTHER_DEFAULTS, f"{method}({name}=) differs"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("face", ["Memory", "AsyncMemory"])
def test_a_method_is_awaited_where_mem0s_is(mem0, face):
    # mem0's AsyncMemory closes without being awaited; ours may be awaited and need not be.
    for method in METHODS[2:-1]:
        ours = inspect.iscoroutinefunction(getattr(getattr(commonplace_mem0, face), method))

        assert ours == inspect.iscoroutinefunction(getattr(getattr(mem0, face), method)), method


@pytest.mark.filterwarnings("ignore")
def test_every_public_method_of_mem0_is_there(mem0):
    for face in ("Memory", "AsyncMemory"):
        theirs = {name for name, _ in inspect.getmembers(getattr(mem0, face), inspect.isfunction)}
        public = {name for name in theirs if not name.startswith("_")}

        assert public - set(dir(getattr(commonplace_mem0, face))) == set()


def test_the_places_of_the_first_version_are_kept():
    first = ["self", "messages", "user_id", "agent_id", "run_id", "metadata", "filters"]
    found = ["self", "query", "user_id", "agent_id", "run_id", "limit", "filters"]

    for face in (commonplace_mem0.Memory, commonplace_mem0.AsyncMemory):
        assert first == list(inspect.signature(face.add).parameters)[:7]
        assert found == list(inspect.signature(face.search).parameters)[:7]
    assert os.environ["MEM0_TELEMETRY"] == "False"
