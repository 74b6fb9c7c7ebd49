"""A stand-in for a Qdrant server: both protocols in front of Qdrant's own engine.

It fails on request, counts what it is asked and notes under which shard key.
"""

import json
import re
import socket
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import grpc
from qdrant_client import QdrantClient, models
from qdrant_client import grpc as pb
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc
from qdrant_client.grpc.collections_service_pb2_grpc import add_CollectionsServicer_to_server
from qdrant_client.grpc.points_service_pb2_grpc import add_PointsServicer_to_server
from qdrant_client.grpc.qdrant_pb2_grpc import add_QdrantServicer_to_server

Where = Literal["request", "answer", "hold", "status"]


@dataclass
class Fault:
    """What goes wrong with one request.

    `request`: the connection is cut before anything is done. `answer`: it is done, and the
    connection is cut in the answer. `hold`: no answer. `status`: this code, headers and body.
    """

    kind: Where
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)


class Imitation(QdrantClient):
    """The driver's own imitation of a server, with any number of collections, in memory."""

    def __init__(self) -> None:
        super().__init__(":memory:")

    def create_index(self, field: str, params: Any) -> None:
        """Do nothing: it looks at every point."""


class LocalQdrant:
    """Serves on loopback until it is closed; `faults` are used up one a request, first to last."""

    def __init__(self, engine: Any, version: str = "1.19.0") -> None:
        self.client = engine
        self.version = version
        self.faults: deque[Fault] = deque()
        self.outcome = models.UpdateStatus.COMPLETED
        self.asked: list[str] = []
        self.keys: list[Any] = []
        self.seen: list[dict[str, str]] = []
        self.indexes: dict[str, Any] = {}
        self.shard_keys: list[str] = []
        self.has_buckets = False
        self.created: dict[str, Any] = {}
        self.lock = threading.RLock()
        self._over = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        unlimited = [("grpc.max_receive_message_length", -1)]  # as the server
        self._grpc = grpc.server(ThreadPoolExecutor(12), options=unlimited)
        services = _Services(self)
        add_PointsServicer_to_server(_Face(services, "points"), self._grpc)
        add_CollectionsServicer_to_server(_Face(services, "collections"), self._grpc)
        add_QdrantServicer_to_server(_Face(services, "root"), self._grpc)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self.grpc_port = self._grpc.add_insecure_port("127.0.0.1:0")
        self._grpc.start()

    def fault(self, name: str) -> Fault | None:
        """Note a request and take the next fault."""
        self.asked.append(name)
        return self.faults.popleft() if self.faults else None

    def done(self) -> dict[str, Any]:
        """Answer a write."""
        return {"status": self.became().value, "operation_id": 0}

    def became(self) -> models.UpdateStatus:
        """Tell what became of a write: as on a server, none is applied where no shard is."""
        is_bare = self.has_buckets and not self.shard_keys
        return models.UpdateStatus.ACKNOWLEDGED if is_bare else self.outcome

    def hold(self) -> None:
        """Wait until everything is over."""
        self._over.wait(30)

    def release(self) -> None:
        """Let go of what is held."""
        self._over.set()

    def info(self, name: str) -> models.CollectionInfo:
        """Describe a collection, with the indexes that a real server would have."""
        info = self.client.get_collection(name)
        return info.model_copy(update={"payload_schema": dict(self.indexes)})

    def close(self) -> None:
        """Stop serving; what is behind stays open."""
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
        self._grpc.stop(None)

    def add_shard_key(self, key: str) -> None:
        """Make a shard key, once."""
        if key in self.shard_keys:
            raise ValueError(f"shard key {key} exists")
        self.shard_keys.append(key)

    def add_index(self, name: str, params: Any) -> None:
        """Make an index."""
        self.client.create_index(name, params)
        self.indexes[name] = models.PayloadIndexInfo(
            data_type=models.PayloadSchemaType(params.type.value), params=params, points=0
        )


# -- HTTP ------------------------------------------------------------------------------------------

_ROUTES = [
    ("GET", r"/", "info"),
    ("GET", r"/collections/(\w+)/exists", "exists"),
    ("GET", r"/collections/(\w+)", "collection"),
    ("PUT", r"/collections/(\w+)", "create"),
    ("DELETE", r"/collections/(\w+)", "drop"),
    ("PUT", r"/collections/(\w+)/index", "index"),
    ("GET", r"/collections/(\w+)/shards", "shards"),
    ("PUT", r"/collections/(\w+)/shards", "shard"),
    ("PUT", r"/collections/(\w+)/points", "upsert"),
    ("POST", r"/collections/(\w+)/points", "retrieve"),
    ("POST", r"/collections/(\w+)/points/batch", "batch"),
    ("POST", r"/collections/(\w+)/points/delete", "delete"),
    ("POST", r"/collections/(\w+)/points/count", "count"),
    ("POST", r"/collections/(\w+)/points/scroll", "scroll"),
    ("POST", r"/collections/(\w+)/points/query/batch", "query"),
]


def _handler(place: LocalQdrant) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536  # headers and body in one packet

        def log_message(self, *args):
            pass

        def handle_any(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            path = self.path.partition("?")[0]
            place.seen.append(dict(self.headers))
            call, name = next(
                (call, found.groups()[0] if found.groups() else "")
                for verb, pattern, call in _ROUTES
                if verb == self.command and (found := re.fullmatch(pattern, path))
            )
            fault = place.fault(call)
            kind = fault.kind if fault else None
            if kind == "hold":
                place.hold()
            if kind in ("hold", "request"):
                self.cut()
                return
            if kind == "status":
                self.say(fault.status, fault.body, fault.headers)
                return
            try:
                with place.lock:
                    answer = getattr(_Http, call)(place, name, body)
            except Exception as error:  # noqa: BLE001 -- as a server would
                status = 404 if "not found" in str(error) else 400
                self.say(status, {"status": {"error": str(error)}, "result": None}, {})
                return
            whole = answer if call == "info" else {"result": answer, "status": "ok", "time": 0.0}
            self.say(200, whole, {}, cut=kind == "answer")

        do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 -- names of the base class

        def cut(self):
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def say(self, status, body, headers, *, cut=False):
            data = json.dumps(body, default=lambda one: one.model_dump(mode="json")).encode()
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if cut else data)
            if cut:
                self.cut()

    return Handler


class _Http:
    """One function a route."""

    @staticmethod
    def info(place, _name, _body):
        return {"title": "qdrant", "version": place.version}

    @staticmethod
    def exists(place, name, _body):
        return {"exists": place.client.collection_exists(name)}

    @staticmethod
    def collection(place, name, _body):
        return place.info(name)

    @staticmethod
    def create(place, name, body):
        made = models.CreateCollection.model_validate(body)
        place.created = body
        place.has_buckets = made.sharding_method == models.ShardingMethod.CUSTOM
        place.client.create_collection(
            name, made.vectors, sparse_vectors_config=made.sparse_vectors, metadata=made.metadata
        )
        return True

    @staticmethod
    def drop(place, name, _body):
        return place.client.delete_collection(name)

    @staticmethod
    def index(place, _name, body):
        made = models.CreateFieldIndex.model_validate(body)
        place.add_index(made.field_name, made.field_schema)
        return place.done()

    @staticmethod
    def shards(place, _name, _body):
        return {"shard_keys": [{"key": one} for one in place.shard_keys]}

    @staticmethod
    def shard(place, _name, body):
        place.add_shard_key(body["shard_key"])
        return True

    @staticmethod
    def upsert(place, name, body):
        asked = models.PointsList.model_validate(body)
        place.keys.append(asked.shard_key)
        place.client.upsert(name, asked.points, update_filter=asked.update_filter)
        return place.done()

    @staticmethod
    def retrieve(place, name, body):
        asked = models.PointRequest.model_validate(body)
        place.keys.append(asked.shard_key)
        return place.client.retrieve(
            name, asked.ids, with_payload=asked.with_payload, with_vectors=asked.with_vector
        )

    @staticmethod
    def batch(place, name, body):
        asked = models.UpdateOperations.model_validate(body).operations
        place.keys += [one.overwrite_payload.shard_key for one in asked]
        place.client.batch_update_points(name, asked)
        return [place.done() for _ in asked]

    @staticmethod
    def delete(place, name, body):
        asked = models.FilterSelector.model_validate(body)
        place.keys.append(asked.shard_key)
        place.client.delete(name, models.FilterSelector(filter=asked.filter))
        return place.done()

    @staticmethod
    def count(place, name, body):
        asked = models.CountRequest.model_validate(body)
        place.keys.append(asked.shard_key)
        return place.client.count(name, asked.filter)

    @staticmethod
    def scroll(place, name, body):
        asked = models.ScrollRequest.model_validate(body)
        place.keys.append(asked.shard_key)
        points, after = place.client.scroll(
            name, asked.filter, asked.limit, offset=asked.offset, with_payload=asked.with_payload
        )
        return {"points": points, "next_page_offset": after}

    @staticmethod
    def query(place, name, body):
        asked = models.QueryRequestBatch.model_validate(body).searches
        place.keys += [one.shard_key for one in asked]
        return place.client.query_batch_points(name, asked)


# -- gRPC ------------------------------------------------------------------------------------------


class _Face:
    """A service whose methods are those of `_Services`, with faults in front."""

    def __init__(self, services: "_Services", kind: str) -> None:
        self._services = services
        self._kind = kind

    def __getattr__(self, method: str) -> Any:
        place = self._services.location
        call = self._kind + re.sub("([A-Z])", r"_\1", method).lower()
        act = getattr(self._services, call, None)

        def serve(request, context):
            fault = place.fault(call)
            kind = fault.kind if fault else None
            if kind == "hold":
                place.hold()
            if kind == "status":
                context.set_trailing_metadata(tuple(fault.headers.items()))
                context.abort(list(grpc.StatusCode)[fault.status], str(fault.body))
            if kind in ("hold", "request"):
                context.abort(grpc.StatusCode.UNAVAILABLE, "cut in the request")
            if act is None:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, call)
            try:
                with place.lock:
                    answer = act(request)
            except Exception as error:  # noqa: BLE001 -- as a server would
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            if kind == "answer":
                context.abort(grpc.StatusCode.UNAVAILABLE, "cut in the answer")
            return answer

        return serve


def _key(request):
    if not request.HasField("shard_key_selector"):
        return None
    (key,) = request.shard_key_selector.shard_keys
    return key.keyword


class _Services:
    """One method a call."""

    def __init__(self, place: LocalQdrant) -> None:
        self.location = place

    def _changed(self):
        result = models.UpdateResult(status=self.location.became())
        return pb.PointsOperationResponse(result=RestToGrpc.convert_update_result(result))

    def root_health_check(self, _request):
        return pb.HealthCheckReply(title="qdrant", version=self.location.version)

    def collections_collection_exists(self, request):
        exists = self.location.client.collection_exists(request.collection_name)
        return pb.CollectionExistsResponse(result=pb.CollectionExists(exists=exists))

    def collections_get(self, request):
        info = self.location.info(request.collection_name)
        return pb.GetCollectionInfoResponse(result=RestToGrpc.convert_collection_info(info))

    def collections_create(self, request):
        self.location.has_buckets = request.sharding_method == pb.ShardingMethod.Custom
        self.location.client.create_collection(
            request.collection_name,
            GrpcToRest.convert_vectors_config(request.vectors_config),
            sparse_vectors_config={
                name: GrpcToRest.convert_sparse_vector_params(one)
                for name, one in request.sparse_vectors_config.map.items()
            },
            metadata=GrpcToRest.convert_payload(request.metadata),
        )
        return pb.CollectionOperationResponse(result=True)

    def collections_delete(self, request):
        return pb.CollectionOperationResponse(
            result=self.location.client.delete_collection(request.collection_name)
        )

    def collections_list_shard_keys(self, _request):
        keys = [
            pb.ShardKeyDescription(key=pb.ShardKey(keyword=one)) for one in self.location.shard_keys
        ]
        return pb.ListShardKeysResponse(shard_keys=keys)

    def collections_create_shard_key(self, request):
        self.location.add_shard_key(request.request.shard_key.keyword)
        return pb.CreateShardKeyResponse(result=True)

    def points_create_field_index(self, request):
        params = GrpcToRest.convert_payload_schema_params(request.field_index_params)
        self.location.add_index(request.field_name, params)
        return self._changed()

    def points_upsert(self, request):
        self.location.keys.append(_key(request))
        self.location.client.upsert(
            request.collection_name,
            [GrpcToRest.convert_point_struct(one) for one in request.points],
            update_filter=GrpcToRest.convert_filter(request.update_filter),
        )
        return self._changed()

    def points_get(self, request):
        self.location.keys.append(_key(request))
        found = self.location.client.retrieve(
            request.collection_name,
            [GrpcToRest.convert_point_id(one) for one in request.ids],
            with_payload=GrpcToRest.convert_with_payload_interface(request.with_payload),
            with_vectors=GrpcToRest.convert_with_vectors_selector(request.with_vectors),
        )
        return pb.GetResponse(result=[RestToGrpc.convert_retrieved_point(one) for one in found])

    def points_update_batch(self, request):
        self.location.keys += [_key(one.overwrite_payload) for one in request.operations]
        operations = []
        for one in request.operations:
            one.overwrite_payload.ClearField("shard_key_selector")
            operations.append(GrpcToRest.convert_points_update_operation(one))
        self.location.client.batch_update_points(request.collection_name, operations)
        return pb.UpdateBatchResponse(result=[self._changed().result] * len(operations))

    def points_delete(self, request):
        self.location.keys.append(_key(request))
        chosen = GrpcToRest.convert_points_selector(request.points)
        self.location.client.delete(request.collection_name, chosen)
        return self._changed()

    def points_count(self, request):
        self.location.keys.append(_key(request))
        within = GrpcToRest.convert_filter(request.filter)
        held = self.location.client.count(request.collection_name, within).count
        return pb.CountResponse(result=pb.CountResult(count=held))

    def points_scroll(self, request):
        self.location.keys.append(_key(request))
        points, after = self.location.client.scroll(
            request.collection_name,
            GrpcToRest.convert_filter(request.filter),
            request.limit,
            offset=GrpcToRest.convert_point_id(request.offset)
            if request.HasField("offset")
            else None,
            with_payload=GrpcToRest.convert_with_payload_interface(request.with_payload),
        )
        return pb.ScrollResponse(
            result=[RestToGrpc.convert_retrieved_point(one) for one in points],
            next_page_offset=RestToGrpc.convert_extended_point_id(after) if after else None,
        )

    def points_query_batch(self, request):
        self.location.keys += [_key(one) for one in request.query_points]
        asked = [GrpcToRest.convert_query_points(one) for one in request.query_points]
        answers = self.location.client.query_batch_points(request.collection_name, asked)
        return pb.QueryBatchResponse(
            result=[
                pb.BatchResult(result=[RestToGrpc.convert_scored_point(p) for p in one.points])
                for one in answers
            ]
        )
