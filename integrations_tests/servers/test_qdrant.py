"""The Qdrant index keeps the contract on every way to a server, and outlives faults on the way."""

import contextlib
import os
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import pytest
from qdrant_client import QdrantClient, models

from commonplace.backends.qdrant import client as qdrant_client_module
from commonplace.backends.qdrant import collection
from commonplace.backends.qdrant.index import QdrantIndex
from commonplace.backends.qdrant.query import scorers, union_requests, visible
from commonplace.errors import (
    InvalidRecordError,
    MemoryClosedError,
    SchemaMismatchError,
    StoreRefusedError,
    StoreUnavailableError,
)
from commonplace.filters import parse_filter
from commonplace.testing.contracts.index import (
    ANNA,
    BEN,
    DIMENSIONS,
    NOW,
    TOKEN_DIMENSIONS,
    VectorIndexContract,
    make_passages,
    make_point,
    make_query,
    make_tokens,
    make_vector,
    texts,
)
from commonplace.types import Scope

from .fixtures import HOW_QDRANT, has_qdrant
from .local_qdrant import Fault, LocalQdrant
from .processes import kill_among, open_together
from .qdrant_engine import Engine

REAL = has_qdrant()
META = {"schema": "1", "embedder": "test@1"}
TOKENS = {"token_dimensions": TOKEN_DIMENSIONS, "meta": META | {"tokens": "test@1/tokens"}}
PROTOCOLS = ("http", "grpc")
# The codes of both protocols for one and the same trouble.
BUSY = {"http": 429, "grpc": list(grpc.StatusCode).index(grpc.StatusCode.RESOURCE_EXHAUSTED)}
DOWN = {"http": 503, "grpc": list(grpc.StatusCode).index(grpc.StatusCode.UNAVAILABLE)}
WRONG = {"http": 400, "grpc": list(grpc.StatusCode).index(grpc.StatusCode.INVALID_ARGUMENT)}
UNKNOWN = {"http": 401, "grpc": list(grpc.StatusCode).index(grpc.StatusCode.UNAUTHENTICATED)}
LOCKED = {"http": 403, "grpc": list(grpc.StatusCode).index(grpc.StatusCode.PERMISSION_DENIED)}
GONE = {"http": 404, "grpc": list(grpc.StatusCode).index(grpc.StatusCode.NOT_FOUND)}


@pytest.fixture(scope="module")
def engine():
    """What stands behind it."""
    opened = Engine()
    yield opened
    opened.close()


@pytest.fixture
def place(engine):
    """A stand-in for a server, on loopback, with nothing in it."""
    server = LocalQdrant(engine)
    yield server
    server.close()
    engine.clear()


@pytest.fixture(params=PROTOCOLS)
def protocol(request):
    """How to speak to it."""
    return request.param


@pytest.fixture
def connect(place, protocol):
    """Open an index on it, as often as asked."""
    opened = []

    def connect(**more):
        known = {"dimensions": DIMENSIONS, "meta": META, "prefer_grpc": protocol == "grpc"}
        opened.append(QdrantIndex(place.url, grpc_port=place.grpc_port, **{**known, **more}))
        return opened[-1]

    yield connect
    for index in opened:
        index.close()


@pytest.fixture
def wired(connect):
    """An index on it."""
    return connect()


@pytest.fixture
def pauses(monkeypatch):
    """The pauses before repeated calls, which take no time."""
    taken = []
    monkeypatch.setattr(qdrant_client_module, "sleep", taken.append)
    return taken


class TestQdrantInMemory(VectorIndexContract):
    """The shipped contract, on the driver's own imitation of a server."""

    @pytest.fixture
    def index(self):
        opened = QdrantIndex(":memory:", dimensions=DIMENSIONS, meta=META)
        yield opened
        opened.close()

    @pytest.fixture
    def token_index(self):
        opened = QdrantIndex(":memory:", dimensions=DIMENSIONS, **TOKENS)
        yield opened
        opened.close()


def test_a_collection_from_before_there_were_passages_has_a_mean_of_them(monkeypatch):
    monkeypatch.setattr(collection.m, "MultiVectorConfig", lambda **_: None)
    index = QdrantIndex(":memory:", dimensions=DIMENSIONS, **TOKENS)
    tokens = make_tokens((1, 0))
    following = make_passages((0.0, 1.0))
    index.upsert([make_point("long", ANNA, 1.0, tokens=tokens, following=following)])
    index.upsert([make_point("short", ANNA, 0.5, 0.5, tokens=tokens)])

    hits = index.search(make_query(tokens=tokens), 5)

    assert [hit.dense for hit in hits] == pytest.approx([0.5**0.5] * 2, abs=1e-6)
    assert [(hit.passages, hit.late) for hit in hits] == [((), (1.0,))] * 2
    assert index.vectors([hits[0].record])[hits[0].record.id].following == ()
    index.close()


class TestQdrantOverTheWire(VectorIndexContract):
    """The shipped contract, over both protocols, on Qdrant's engine behind a server of ours."""

    @pytest.fixture
    def index(self, wired):
        return wired

    @pytest.fixture
    def token_index(self, connect):
        return connect(**TOKENS)


@pytest.fixture
def anew(qdrant_place):
    """Open a collection that was not there before, as often as asked; drop it in the end."""
    opened = []
    url, key = qdrant_place.url, qdrant_place.key
    name = f"test_{uuid.uuid4().hex}"

    def anew(**more):
        known = {"grpc_port": qdrant_place.grpc_port, "api_key": key, "collection": name}
        known |= {"dimensions": DIMENSIONS, "meta": META}
        opened.append(QdrantIndex(url, **{**known, **more}))
        return opened[-1]

    yield anew
    for index in opened:
        index.close()
    client = QdrantClient(url, api_key=key, check_compatibility=False)
    with contextlib.closing(client):
        client.delete_collection(name)


@pytest.mark.external_service
@pytest.mark.skipif(not REAL, reason=HOW_QDRANT)
def test_a_real_server_answers(qdrant_place, anew):
    assert qdrant_place.is_real
    assert anew().count(ANNA) == 0


@pytest.mark.external_service
class TestQdrantServer(VectorIndexContract):
    """The shipped contract, on a real server, over both protocols; not collected without one."""

    __test__ = REAL

    @pytest.fixture(params=PROTOCOLS)
    def index(self, anew, request):
        return anew(prefer_grpc=request.param == "grpc")

    @pytest.fixture(params=PROTOCOLS)
    def token_index(self, anew, request):
        return anew(prefer_grpc=request.param == "grpc", **TOKENS)


@pytest.mark.external_service
class TestQdrantServerQuantized(VectorIndexContract):
    """The shipped contract, on a real server, with shortened vectors beside the full ones."""

    __test__ = REAL

    @pytest.fixture
    def index(self, anew):
        return anew(quantize=True)

    @pytest.fixture
    def token_index(self, anew):
        return anew(quantize=True, **TOKENS)


@pytest.mark.external_service
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_killed_among_1000_writes_has_lost_none_and_a_retry_doubles_none(
    qdrant_place, anew, protocol
):
    if qdrant_place.process is None:
        pytest.skip("the server is not ours to kill")
    index = anew(prefer_grpc=protocol == "grpc", timeout=2)
    points = [make_point(f"p{n}", version=n + 1, terms={n: 1.0}) for n in range(1000)]
    writes = [partial(index.upsert, points[start : start + 10]) for start in range(0, 1000, 10)]
    acknowledged = 10 * kill_among(qdrant_place.process, writes, after=30)
    found = dict(index.versions(ANNA))
    index.upsert(points)

    assert found.items() >= {(p.record.id, p.record.version) for p in points[:acknowledged]}
    assert index.count(ANNA) == 1000
    assert sorted(index.versions(ANNA)) == sorted((p.record.id, p.record.version) for p in points)
    (hit,) = [one for one in index.search(make_query(terms=(7,)), 1) if one.lexical > 0]
    assert hit.record.text == points[7].record.text


def test_processes_that_make_the_same_collection_at_once_share_it(qdrant_place, anew):
    here = {"url": qdrant_place.url, "grpc_port": qdrant_place.grpc_port}
    name = anew()._name
    shared = {"api_key": qdrant_place.key, "collection": name, "meta": META}
    asked = {"api_key": qdrant_place.key, "check_compatibility": False}
    with contextlib.closing(QdrantClient(qdrant_place.url, **asked)) as client:
        client.delete_collection(name)

    open_together("qdrant", 3, **here, **shared)

    assert sorted(texts(anew(), make_query())) == ["k0", "k1", "k2"]


def test_the_missing_driver_is_named():
    code = (
        "import sys; sys.modules['qdrant_client'] = None\n"
        "from commonplace.errors import MissingExtraError\n"
        "try:\n    import commonplace.backends.qdrant.index\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=True)

    assert b"commonplace-memory[qdrant]" in told.stdout


@pytest.mark.parametrize("key", ["schl\u00fcssel", "hush\n"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key):
    with pytest.raises(InvalidRecordError, match="printable ASCII") as caught:
        QdrantIndex("http://127.0.0.1:1", dimensions=DIMENSIONS, meta=META, api_key=key)
    assert key.strip() not in str(caught.value)


@pytest.mark.usefixtures("pauses")
def test_a_server_that_is_no_qdrant_is_told():
    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>welcome</html>")

        def log_message(self, *_given):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(StoreUnavailableError, match="no Qdrant"):
            QdrantIndex(url, dimensions=DIMENSIONS, meta=META, prefer_grpc=False)
        server.shutdown()


@pytest.mark.usefixtures("pauses")
def test_a_grpc_port_where_nothing_is_is_told_with_the_way_out(place):
    place._grpc.stop(None).wait()

    with pytest.raises(StoreUnavailableError, match="prefer_grpc=false"):
        QdrantIndex(place.url, grpc_port=place.grpc_port, dimensions=DIMENSIONS, meta=META)


class TestFaultsOnTheWay:
    """What happens between us and the server."""

    @pytest.mark.parametrize("where", ["request", "answer"])
    def test_a_question_outlives_a_cut_connection(self, place, wired, pauses, where):
        wired.upsert([make_point("tea")])
        place.asked.clear()
        place.faults.append(Fault(where))

        assert texts(wired, make_query()) == ["tea"]
        assert len(place.asked) == 2

    @pytest.mark.parametrize("where", ["request", "answer"])
    def test_a_write_that_is_sent_twice_is_there_once(self, place, wired, pauses, where):
        place.asked.clear()
        place.faults.append(Fault(where))
        wired.upsert([make_point("tea", version=3)])

        assert len(place.asked) == 2
        assert list(wired.versions(ANNA)) == [(make_point("tea").record.id, 3)]

    def test_a_busy_server_is_asked_again_when_it_says_so(self, place, wired, pauses, protocol):
        place.asked.clear()
        place.faults.append(Fault("status", BUSY[protocol], {"retry-after": "3"}))

        assert wired.count(ANNA) == 0
        assert pauses == [3.0]
        assert len(place.asked) == 2

    def test_a_busy_server_that_does_not_say_when_is_asked_soon(
        self, place, wired, pauses, protocol
    ):
        place.faults.append(Fault("status", BUSY[protocol]))

        assert wired.count(ANNA) == 0
        assert 0 <= pauses[0] < 1

    def test_a_later_moment_than_the_deadline_is_not_waited_for(
        self, place, wired, pauses, protocol
    ):
        place.asked.clear()
        place.faults.append(Fault("status", BUSY[protocol], {"retry-after": "60"}))

        with pytest.raises(StoreUnavailableError, match="too often"):
            wired.count(ANNA)
        assert pauses == []
        assert len(place.asked) == 1

    def test_a_date_as_retry_after_is_understood_as_soon(self, place, connect, pauses, protocol):
        date = "Wed, 21 Oct 2026 07:28:00 GMT"
        index = connect()
        place.faults.append(Fault("status", BUSY[protocol], {"retry-after": date}))

        assert index.count(ANNA) == 0
        assert 0 <= pauses[0] < 1

    def test_a_server_that_comes_back_is_found_again(self, place, wired, pauses, protocol):
        place.faults += [Fault("status", DOWN[protocol])] * 3

        wired.upsert([make_point("tea")])

        assert texts(wired, make_query()) == ["tea"]

    def test_a_server_that_stays_down_is_named(self, place, wired, pauses, protocol):
        place.asked.clear()
        place.faults += [Fault("status", DOWN[protocol], body={"status": {"error": "asleep"}})] * 9

        with pytest.raises(StoreUnavailableError, match="asleep") as caught:
            wired.upsert([make_point("tea")])
        assert place.url in str(caught.value)
        assert len(place.asked) == 4

    def test_a_silent_server_is_left_at_the_deadline(self, place, connect):
        index = connect(timeout=1)
        place.asked.clear()
        place.faults.append(Fault("hold"))

        with pytest.raises(StoreUnavailableError):
            index.search(make_query(), 5)
        assert len(place.asked) == 1

    def test_a_request_that_is_wrong_is_not_repeated(self, place, wired, pauses, protocol):
        place.asked.clear()
        place.faults.append(Fault("status", WRONG[protocol], body={"status": {"error": "odd"}}))

        with pytest.raises(InvalidRecordError, match="odd"):
            wired.upsert([make_point("tea")])
        assert len(place.asked) == 1

    @pytest.mark.parametrize(
        ("code", "error"),
        [(UNKNOWN, StoreRefusedError), (LOCKED, StoreRefusedError), (GONE, StoreUnavailableError)],
        ids=["unknown", "locked", "gone"],
    )
    def test_what_an_operator_can_mend_loses_no_write(
        self, place, wired, pauses, protocol, code, error
    ):
        place.asked.clear()
        place.faults.append(Fault("status", code[protocol]))

        with pytest.raises(error):
            wired.upsert([make_point("tea")])
        assert len(place.asked) == 1

    def test_a_wrong_key_is_told_at_the_opening(self, place, connect, pauses, protocol):
        place.faults.append(Fault("status", UNKNOWN[protocol]))

        with pytest.raises(StoreRefusedError, match=place.url):
            connect()
        assert len(place.asked) == 1

    @pytest.mark.parametrize("outcome", ["wait_timeout", "acknowledged"])
    def test_an_accepted_write_that_is_not_applied_is_no_success(self, place, wired, outcome):
        wired.upsert([make_point("tea")])
        place.outcome = models.UpdateStatus(outcome)

        for write in (
            lambda: wired.upsert([make_point("milk")]),
            lambda: wired.amend([make_point("tea").record]),
            lambda: wired.delete(ANNA, [make_point("tea").record.id]),
            lambda: wired.erase(ANNA),
        ):
            with pytest.raises(StoreUnavailableError, match="not applied"):
                write()

    def test_no_server_is_told_at_the_opening(self, connect, place, pauses):
        place.close()

        with pytest.raises(StoreUnavailableError, match=place.url):
            connect()

    @pytest.mark.parametrize("error", [ValueError, RuntimeError])
    def test_a_call_that_closing_overtakes_says_so(self, wired, error):
        def call():
            wired.close()
            raise error("Cannot invoke RPC on closed channel!")

        with pytest.raises(MemoryClosedError):
            wired._client.call(call)

    def test_closing_while_a_call_waits_ends_the_call(self, place, wired):
        ended = []

        def ask():
            try:
                wired.count(ANNA)
            except MemoryClosedError as error:
                ended.append(error)

        place.asked.clear()
        place.faults.append(Fault("hold"))
        thread = threading.Thread(target=ask)
        thread.start()
        while not place.asked:
            thread.join(0.01)
        wired.close()
        place.release()
        thread.join(10)

        assert len(ended) == 1


class TestOneServerForMany:
    """What several processes have in common."""

    def test_two_clients_see_each_others_writes(self, connect):
        one, other = connect(), connect()
        one.upsert([make_point("tea", version=2)])
        other.upsert([make_point("milk"), make_point("tea", version=1, metadata={"old": True})])
        other.delete(ANNA, [make_point("milk").record.id])

        assert texts(one, make_query()) == texts(other, make_query()) == ["tea"]
        assert one.search(make_query(), 5)[0].record.metadata == {}

    def test_the_greatest_version_of_many_writers_wins(self, connect):
        index = connect()
        versions = [n * 7 % 40 for n in range(40)]
        made = [make_point("tea", version=version, metadata={"n": version}) for version in versions]

        with ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda point: index.upsert([point]), made))

        assert index.search(make_query(), 5)[0].record.metadata == {"n": 39}

    def test_ten_processes_may_open_a_new_place_at_once(self, connect):
        with ThreadPoolExecutor(10) as pool:
            opened = list(pool.map(lambda _: connect(buckets=3), range(10)))

        opened[0].upsert([make_point("tea")])
        assert [index.count(ANNA) for index in opened] == [1] * 10

    def test_the_second_opening_makes_nothing(self, place, connect):
        connect()
        place.asked.clear()
        connect()

        assert len(place.asked) == 3  # version, is it there, how is it

    def test_an_interrupted_making_is_finished(self, place, connect, pauses, protocol):
        place.faults += [None] * 5 + [Fault("status", WRONG[protocol])]
        with pytest.raises(InvalidRecordError):
            connect()
        held = set(place.indexes)

        connect()

        assert len(held) < len(place.indexes) == 11

    def test_a_collection_of_another_program_is_refused(self, place, connect):
        vectors = {"dense": models.VectorParams(size=8, distance=models.Distance.COSINE)}
        place.client.create_collection(
            "commonplace", vectors, sparse_vectors_config={}, metadata={"commonplace": "no"}
        )
        place.asked.clear()

        with pytest.raises(SchemaMismatchError, match="another program"):
            connect()
        assert len(place.asked) == 3
        assert connect(collection="mine").count(ANNA) == 0

    @pytest.mark.parametrize(
        ("given", "what"),
        [
            ({"meta": META | {"embedder": "other"}}, "embedder"),
            ({"meta": {"schema": "1"}}, "embedder"),
            ({"dimensions": DIMENSIONS + 1}, "dimensions"),
            ({"buckets": 4}, "buckets"),
        ],
    )
    def test_another_maker_is_refused(self, connect, given, what):
        connect().upsert([make_point("x")])

        with pytest.raises(SchemaMismatchError, match=what):
            connect(**given)
        assert connect().count(ANNA) == 1

    def test_an_old_server_is_refused_and_an_older_one_is_warned_of(self, place, connect, caplog):
        place.version = "1.15.4"
        with pytest.raises(InvalidRecordError, match=r"1\.15\.4"):
            connect()
        assert not caplog.records

        place.version = "1.18.3"
        connect()
        (told,) = caplog.records
        assert "1.18.3" in told.getMessage()


class TestRoundTrips:
    """What a call costs on the way."""

    def test_a_search_is_one(self, place, wired):
        points = [make_point(f"p{n}", ANNA, 1.0, float(n), terms={n: 1.0}) for n in range(60)]
        wired.upsert(points)
        place.asked.clear()

        found = wired.search(make_query(ANNA, terms=(3, 9)), 5)

        assert len(found) == 6  # five by vector, two by terms, one of them in both
        assert sum(hit.lexical > 0 for hit in found) == 2
        assert len(place.asked) == 1

    def test_scoring_named_records_is_one(self, place, wired):
        points = [make_point(f"p{n}", terms={n: 1.0}) for n in range(9)]
        wired.upsert(points)
        place.asked.clear()

        found = wired.score(make_query(terms=(3,)), [], [point.record.id for point in points])

        assert len(found) == 9
        assert len(place.asked) == 1

    def test_64_points_are_one(self, place, wired):
        points = [make_point(f"p{n}", version=n + 1) for n in range(130)]
        place.asked.clear()

        wired.upsert(points)
        assert len(place.asked) == 3

        later = [replace(point.record, version=500) for point in points[:64]]
        wired.amend(later)
        assert len(place.asked) == 5
        assert {version for _, version in wired.versions(ANNA)} == {*range(65, 131), 500}

    def test_every_shard_has_room_in_the_answer(self):
        query = make_query(terms=(1,))
        both = scorers(query, make_vector(), None)

        requests = union_requests(both, both, visible(query, ranges=True), 10, 3, None, ["row"])

        assert [request.limit for request in requests] == [60, 60]


class TestLayout:
    """How a collection is laid out."""

    def test_a_user_is_whole_in_one_bucket(self, place, connect):
        index = connect(buckets=4)
        users = [Scope(user_id=f"user {n}", session_id=str(n)) for n in range(12)]
        assert sorted(place.shard_keys) == [f"bucket-{n}" for n in range(4)]
        index.upsert([make_point(f"of {user.user_id}", user) for user in users])
        assert set(place.keys) == set(place.shard_keys)

        asked = set()
        for user in users:
            place.keys.clear()
            whole = Scope(user_id=user.user_id)
            (hit,) = index.search(make_query(whole), 5)
            index.score(make_query(user), [], [hit.record.id])
            index.upsert([make_point("more", user)])
            index.amend([hit.record])
            assert index.count(whole) == len(list(index.versions(whole))) == 2
            index.delete(user, [hit.record.id])
            assert index.erase(user) == 1
            (key,) = set(map(str, place.keys))
            asked.add(key)

        assert len(asked) > 1
        place.asked.clear()
        connect(buckets=4)
        assert len(place.asked) == 4

    @pytest.mark.parametrize("protocol", ["http"])  # only its requests are kept as they came
    def test_a_new_collection_is_made_as_asked(self, place, connect):
        connect(quantize=True, shards=6, replicas=3)

        made = place.created
        assert (made["shard_number"], made["replication_factor"]) == (6, 3)
        assert made["write_consistency_factor"] == 2
        assert made["quantization_config"]["scalar"]["type"] == "int8"
        assert made["vectors"]["dense"]["on_disk"] is True
        assert (made["hnsw_config"]["m"], made["hnsw_config"]["payload_m"]) == (0, 16)
        assert made["sparse_vectors"]["terms"]["modifier"] == "idf"
        tenants = [name for name, one in place.indexes.items() if _is_tenant(one)]
        assert tenants == ["user_id"]

    @pytest.mark.parametrize("protocol", ["http"])  # only its headers are kept
    def test_the_key_is_sent_with_every_request(self, place, connect):
        with pytest.warns(UserWarning, match="insecure"):
            connect(api_key="secret").count(ANNA)

        assert {headers.get("api-key") for headers in place.seen} == {"secret"}

    def test_the_key_and_the_password_stay_out_of_messages(self, place, pauses):
        place.close()
        url = place.url.replace("//", "//me:hidden@")

        with (
            pytest.warns(UserWarning, match="insecure"),
            pytest.raises(StoreUnavailableError) as caught,
        ):
            QdrantIndex(url, api_key="secret", dimensions=8, meta=META, prefer_grpc=False)
        assert "hidden" not in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_numbers_without_an_index_are_not_asked_for_where_that_is_forbidden(self):
        where = parse_filter({"year": {"gte": 2020}, "created_at": {"lt": "2026-01-01T00:00:00Z"}})
        query = make_query(where=where)

        allowed, strict = (
            visible(query, ranges=given).model_dump_json() for given in (True, False)
        )

        assert "year" in allowed
        assert "year" not in strict
        assert "numbers.created_at" in strict

    @pytest.mark.parametrize("protocol", ["http"])  # the engine is looked at directly
    def test_the_server_is_asked_for_one_scope_only(self, place, wired):
        later = NOW + timedelta(days=1)
        ends = [{}, {"valid_to": later}, {"expires_at": later}, {"valid_to": NOW}]
        wired.upsert([make_point(f"his {n}", BEN, **end) for n, end in enumerate(ends)])
        given = [None, {"OR": [{"a": 1}, {"a": {"ne": 1}}]}, {"NOT": [{"a": 1}]}]

        for where in map(parse_filter, given):
            for more in ({}, {"include_superseded": True}, {"as_of": NOW}, {"kinds": ("fact",)}):
                query = make_query(where=where, **more)
                asked = visible(query, ranges=True)
                assert place.client.count("commonplace", asked).count == 0
                own = visible(replace(query, scope=BEN), ranges=True)
                assert place.client.count("commonplace", own).count > 0 or where

    def test_nobody_sees_through_a_filter_for_another_users_field(self, wired):
        wired.upsert([make_point("his", BEN)])

        given = parse_filter({"OR": [{"NOT": [{"a": 1}]}, {"a": {"gt": 0}}]})

        assert texts(wired, make_query(where=given)) == []


def _is_tenant(index):
    return bool(getattr(index.params, "is_tenant", None))
