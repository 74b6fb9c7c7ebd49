"""The embedded index keeps the contract, and its folder has one owner, one maker and no losses."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace.backends.edge.index import EdgeIndex
from commonplace.errors import SchemaMismatchError, StoreLockedError, StoreUnavailableError
from commonplace.testing.contracts.index import (
    ANNA,
    DIMENSIONS,
    TOKEN_DIMENSIONS,
    VectorIndexContract,
    make_point,
)

META = {"schema": "1", "embedder": "test@1"}

OPEN = f"""
import sys
from commonplace.backends.edge.index import EdgeIndex
from commonplace.testing.contracts.index import make_point
def opened(): return EdgeIndex(sys.argv[1], dimensions={DIMENSIONS}, meta={META!r})
"""
WRITE = (
    OPEN
    + """
index = opened()
for n in range(100_000):
    index.upsert([make_point(f"point {n}", version=n + 1)])
    print(n, flush=True)
"""
)
SECOND = (
    OPEN
    + """
from commonplace.errors import StoreLockedError
try:
    opened()
except StoreLockedError as error:
    print(error)
"""
)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "memory" / "index")


@pytest.fixture
def index(path):
    opened = EdgeIndex(path, dimensions=DIMENSIONS, meta=META)
    yield opened
    opened.close()


def test_a_damaged_description_is_named(index, path):
    index.close()
    (Path(path) / "index.json").write_text("{")

    with pytest.raises(StoreUnavailableError, match=r"index\.json"):
        EdgeIndex(path, dimensions=DIMENSIONS, meta=META)


@pytest.fixture
def token_index(path):
    meta = META | {"tokens": "test@1/tokens"}
    opened = EdgeIndex(path, dimensions=DIMENSIONS, meta=meta, token_dimensions=TOKEN_DIMENSIONS)
    yield opened
    opened.close()


class TestEdgeIndex(VectorIndexContract):
    """The shipped contract."""


def child(code, path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True, env=env
    )


def test_a_second_process_is_told_who_holds_the_folder(index, path):
    told, _ = child(SECOND, path).communicate(timeout=60)

    assert f"process {os.getpid()}" in told
    assert path in told


def test_a_second_handle_of_this_process_is_refused_and_the_first_goes_on(index, path):
    index.upsert([make_point("x")])

    with pytest.raises(StoreLockedError, match="this process"):
        EdgeIndex(path, dimensions=DIMENSIONS, meta=META)
    assert index.count(ANNA) == 1


@pytest.mark.parametrize(
    ("dimensions", "meta", "what"),
    [
        (DIMENSIONS, META | {"embedder": "other"}, "embedder"),
        (DIMENSIONS, {"schema": "1"}, "embedder"),
        (DIMENSIONS + 1, META, "dimensions"),
    ],
)
def test_another_maker_is_refused_before_anything_is_touched(index, path, dimensions, meta, what):
    index.upsert([make_point("x")])
    index.close()

    with pytest.raises(SchemaMismatchError, match=what):
        EdgeIndex(path, dimensions=dimensions, meta=meta)

    again = EdgeIndex(path, dimensions=DIMENSIONS, meta=META)
    assert again.count(ANNA) == 1
    again.close()


def test_a_closed_folder_opens_again_with_all_its_points(index, path):
    index.upsert([make_point(f"p{n}", version=n + 1) for n in range(130)])
    index.close()

    again = EdgeIndex(path, dimensions=DIMENSIONS, meta=META)
    assert set(range(1, 131)) == {version for _, version in again.versions(ANNA)}
    again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes for the owner alone")
def test_the_folder_is_for_its_owner_alone(index, path):
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o700
    held = json.loads((Path(path) / "index.json").read_text())
    assert held == META | {"dimensions": str(DIMENSIONS)}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("last", [0, 40, 400])
def test_a_killed_process_loses_no_acknowledged_point(path, last):
    writer = child(WRITE, path)
    acknowledged = -1
    while acknowledged < last:
        acknowledged = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    rest = writer.communicate(timeout=60)[0].split()
    acknowledged = int(rest[-1]) if rest else acknowledged

    index = EdgeIndex(path, dimensions=DIMENSIONS, meta=META)
    kept = {version for _, version in index.versions(ANNA)}
    index.close()

    assert set(range(1, acknowledged + 2)) <= kept
