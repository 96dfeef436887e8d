"""What heddle.kserve adds to the server of the package kserve: versions in addresses, binary tensors that stay bytes, the index of
the repository, shared memory; over REST and gRPC."""

from __future__ import annotations

import contextvars
import ipaddress
from concurrent import futures
from http import HTTPStatus
from typing import Any, Awaitable, Callable

import grpc
import kserve
import kserve.model_server
import orjson
from fastapi import Request, Response
from kserve.errors import InvalidInput
from kserve.protocol.dataplane import DataPlane
from kserve.protocol.grpc import grpc_predict_v2_pb2_grpc
from kserve.protocol.grpc.interceptors import ExceptionToStatusInterceptor, LoggingInterceptor
from kserve.protocol.grpc.server import GRPCServer
from kserve.protocol.grpc.servicer import InferenceServicer

from . import _kserve_messages as messages
from ._kserve_tensors import decoded, encoded, regions
from ._shared_memory import ALLOWED, SharedMemoryError

__all__ = ["SHARED_MEMORY", "VERSION", "Server"]

VERSION = contextvars.ContextVar("heddle_model_version", default="")  # that the address of a request names
SHARED_MEMORY = ("local", "all", "none")
_EXTENSIONS = ["model_repository_extension", "model_repository", "binary_tensor_data", "system_shared_memory"]


class _DataPlane(DataPlane):
    def metadata(self) -> dict[str, Any]:
        return {**super().metadata(), "extensions": _EXTENSIONS}

    def of_version(self, name: str, version: str | None) -> Any:
        """The model as a version is; "" is the one that is served by default. ModelNotFound."""
        model = self.get_model_from_registry(name)
        return model.of_version(version or "") if hasattr(model, "of_version") else model

    async def model_metadata(self, model_name: str, version: str = "") -> dict[str, Any]:
        model = self.of_version(model_name, version)
        versions = getattr(self.get_model_from_registry(model_name), "versions", [])
        return {"name": model_name, "versions": versions, "platform": "heddle", "inputs": model.get_input_types(),
                "outputs": model.get_output_types()}

    async def index(self, only_ready: bool = False) -> list[dict[str, str]]:
        """Every model and version that is loaded, and what the repository's folder has beside them."""
        rows = []
        for name, model in self.model_registry.get_models().items():
            for version in getattr(model, "versions", [""]) or [""]:
                ready = await self.of_version(name, version).healthy()
                rows.append({"name": name, "version": version, "state": "READY" if ready else "UNAVAILABLE", "reason": ""})
        loaded = {(row["name"], row["version"]) for row in rows}
        for name, version in getattr(self.model_registry, "found", list)():
            if (name, version) not in loaded:
                rows.append({"name": name, "version": version, "state": "UNAVAILABLE", "reason": "unloaded"})
        return [row for row in rows if row["state"] == "READY" or not only_ready]


# ---- REST


class _Rest:
    """Routes that come before those of kserve."""

    def __init__(self, plane: _DataPlane, memory: str):
        self._plane, self._memory = plane, memory

    def add(self, app: Any) -> None:
        model, memory = "/v2/models/{model}", "/v2/systemsharedmemory"
        for version in "", "/versions/{version}":
            self._route(app, f"{model}{version}/infer", self._infer, "POST")
            self._route(app, f"{model}{version}/ready", self._ready)
            self._route(app, f"{model}{version}", self._describe)
        self._route(app, "/v2/repository/index", self._index, "POST")
        for region in "", "/region/{region}":
            self._route(app, f"{memory}{region}/status", self._status)
            self._route(app, f"{memory}{region}/unregister", self._unregister, "POST")
            self._route(app, f"/v2/cudasharedmemory{region}/status", self._none)
            self._route(app, f"/v2/cudasharedmemory{region}/unregister", self._nothing, "POST")
        self._route(app, memory + "/region/{region}/register", self._register, "POST")

    def _route(self, app: Any, path: str, call: Callable[[Request], Awaitable[Response]], method: str = "GET") -> None:
        async def run(request: Request) -> Response:
            ALLOWED.set(_allows(self._memory, request.client is None or _is_here(request.client.host)))
            VERSION.set(request.path_params.get("version", ""))
            try:
                return await call(request)
            except SharedMemoryError as error:
                return _json({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        app.add_route(path, run, methods=[method])

    async def _infer(self, request: Request) -> Response:
        name, version = request.path_params["model"], VERSION.get()
        self._plane.of_version(name, version)
        asked = decoded(await request.body(), request.headers, name)
        answer, headers = await self._plane.infer(name, asked, dict(request.headers))
        response = encoded(answer, asked) if isinstance(answer, kserve.InferResponse) else _json(answer)
        response.headers.update(headers)
        return response

    async def _ready(self, request: Request) -> Response:
        name = request.path_params["model"]
        ready = await self._plane.of_version(name, VERSION.get()).healthy()
        return _json({"name": name, "ready": ready}, HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)

    async def _describe(self, request: Request) -> Response:
        return _json(await self._plane.model_metadata(request.path_params["model"], VERSION.get()))

    async def _index(self, request: Request) -> Response:
        return _json(await self._plane.index((await _object(request)).get("ready") is True))

    async def _register(self, request: Request) -> Response:
        words = await _object(request)
        regions.register(request.path_params["region"], words.get("key"), words.get("offset", 0), words.get("byte_size"))
        return Response()

    async def _unregister(self, request: Request) -> Response:
        regions.unregister(request.path_params.get("region"))
        return Response()

    async def _status(self, request: Request) -> Response:
        return _json([region._asdict() for region in regions.status(request.path_params.get("region"))])

    async def _none(self, request: Request) -> Response:
        return _json([])

    async def _nothing(self, request: Request) -> Response:
        return Response()


def _json(content: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


async def _object(request: Request) -> dict[str, Any]:
    try:
        found = orjson.loads(await request.body() or b"{}")
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"the request is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInput("the request is no JSON object")
    return found


def _allows(memory: str, is_here: bool) -> bool:
    return memory == "all" or (memory == "local" and is_here)


def _is_here(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


# ---- gRPC


class _Servicer(InferenceServicer):
    async def ModelReady(self, request: Any, context: Any) -> Any:
        ready = await self._data_plane.of_version(request.name, request.version).healthy()
        return messages.PB.ModelReadyResponse(ready=ready)

    async def ModelMetadata(self, request: Any, context: Any) -> Any:
        return messages.PB.ModelMetadataResponse(**await self._data_plane.model_metadata(request.name, request.version))

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        self._data_plane.of_version(request.model_name, request.model_version)
        if request.raw_input_contents:  # inputs in shared memory have no place among them
            raw = iter(list(request.raw_input_contents))
            spread = [b"" if "shared_memory_region" in one.parameters else next(raw, None) for one in request.inputs]
            if None in spread or next(raw, None) is not None:
                raise InvalidInput(f"{len(request.raw_input_contents)} raw contents are given for {len(request.inputs)} inputs")
            request.raw_input_contents[:] = spread
        return await super().ModelInfer(request, context)


class _Calls(grpc.aio.ServerInterceptor):
    """Says of each call whether its client is on this machine, and has methods that come before those of kserve."""

    def __init__(self, memory: str, methods: grpc.GenericRpcHandler):
        self._memory, self._methods = memory, methods

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = self._methods.service(details) or await continuation(details)
        if handler is None or not handler.unary_unary:
            return handler
        inner = handler.unary_unary

        async def call(request: Any, context: Any) -> Any:
            kind, _, rest = context.peer().partition(":")
            host = rest.rpartition(":")[0].replace("%5B", "").replace("%5D", "").strip("[]")
            ALLOWED.set(_allows(self._memory, kind == "unix" or _is_here(host)))
            return await inner(request, context)
        return grpc.unary_unary_rpc_method_handler(call, handler.request_deserializer, handler.response_serializer)


class _Grpc(GRPCServer):
    def __init__(self, memory: str, *words: Any, **named: Any):
        super().__init__(*words, **named)
        self._memory = memory

    async def start(self, max_workers: int) -> None:
        limits = [(f"grpc.max_{way}_message_length", self._kwargs.get(f"grpc_max_{way}_message_length")) for way in ("send", "receive")]
        calls = _Calls(self._memory, messages.handlers(self._data_plane, self._model_repository_extension, regions))
        self._server = grpc.aio.server(futures.ThreadPoolExecutor(max_workers=max_workers), options=limits,
                                       interceptors=(LoggingInterceptor(), ExceptionToStatusInterceptor(), calls))
        grpc_predict_v2_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(
            _Servicer(self._data_plane, self._model_repository_extension), self._server)
        self._server.add_insecure_port(f"[::]:{self._port}")
        await self._server.start()
        await self._server.wait_for_termination()


class Server(kserve.ModelServer):
    """A kserve.ModelServer with versions and shared memory. shared_memory: "local", for clients of this machine's loopback;
    "all", where the address does not tell (a container beside this one); "none"."""

    def __init__(self, *words: Any, shared_memory: str = "local", enable_grpc: bool = True, **named: Any):
        super().__init__(*words, enable_grpc=False, **named)
        if shared_memory not in SHARED_MEMORY:
            raise ValueError(f"shared_memory is one of {', '.join(SHARED_MEMORY)}, not {shared_memory!r}")
        self._memory, self._with_grpc = shared_memory, enable_grpc
        self.dataplane = _DataPlane(model_registry=self.registered_models)
        _Rest(self.dataplane, shared_memory).add(kserve.model_server.app)

    async def _serve(self) -> None:
        if self._with_grpc:
            self._grpc_server = _Grpc(self._memory, self.grpc_port, self.dataplane, self.model_repository_extension,
                                      kwargs=vars(kserve.model_server.args), grace_period=self.grace_period)
            self.servers.append(self._grpc_server.start(self.max_threads))
        await super()._serve()
