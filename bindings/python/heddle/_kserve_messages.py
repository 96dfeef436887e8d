"""Messages of the Open Inference Protocol's extensions over gRPC, which the package kserve does not have: shared memory, the
repository's index; and its load and unload as Triton's clients number the fields."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from kserve.errors import ModelNotReady
from kserve.protocol.grpc import grpc_predict_v2_pb2 as PB

from ._shared_memory import SharedMemoryError

__all__ = ["PB", "handlers"]

_SERVICE = "inference.GRPCInferenceService"
_TEXT, _SIZE, _BOOL = "string", "uint64", "bool"
# Name of a message: its fields by number. A name of a message as a field's type: a list of them.
_MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "SystemSharedMemoryRegisterRequest": {1: ("name", _TEXT), 2: ("key", _TEXT), 3: ("offset", _SIZE), 4: ("byte_size", _SIZE)},
    "SystemSharedMemoryUnregisterRequest": {1: ("name", _TEXT)},
    "SystemSharedMemoryStatusRequest": {1: ("name", _TEXT)},
    "RegionStatus": {1: ("name", _TEXT), 2: ("key", _TEXT), 3: ("offset", _SIZE), 4: ("byte_size", _SIZE)},
    "RegionsEntry": {1: ("key", _TEXT), 2: ("value", "!RegionStatus")},  # a map on the wire
    "SystemSharedMemoryStatusResponse": {1: ("regions", "RegionsEntry")},
    "RepositoryIndexRequest": {1: ("repository_name", _TEXT), 2: ("ready", _BOOL)},
    "ModelIndex": {1: ("name", _TEXT), 2: ("version", _TEXT), 3: ("state", _TEXT), 4: ("reason", _TEXT)},
    "RepositoryIndexResponse": {1: ("models", "ModelIndex")},
    # kserve: model_name is 1; Triton: repository_name is 1, model_name 2
    "RepositoryModelRequest": {1: ("first", _TEXT), 2: ("second", _TEXT)},
    "RepositoryModelResponse": {1: ("model_name", _TEXT), 2: ("done", _BOOL)},
    "Empty": {},
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="heddle_inference.proto", package="heddle.inference", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    kinds = {_TEXT: field.TYPE_STRING, _SIZE: field.TYPE_UINT64, _BOOL: field.TYPE_BOOL}
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (label, kind) in fields.items():
            one = message.field.add(name=label, number=number, label=field.LABEL_OPTIONAL)
            if kind in kinds:
                one.type = kinds[kind]
            else:
                one.type, one.type_name = field.TYPE_MESSAGE, f".heddle.inference.{kind.lstrip('!')}"
                one.label = field.LABEL_OPTIONAL if kind.startswith("!") else field.LABEL_REPEATED
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"heddle.inference.{name}")) for name in _MESSAGES}


_M = _classes()


def handlers(plane: Any, repository: Any, regions: Any) -> grpc.GenericRpcHandler:
    """The methods that kserve lacks, and those that it numbers in another way."""

    async def register(request: Any, context: Any) -> Any:
        regions.register(request.name, request.key, request.offset, request.byte_size)
        return _M["Empty"]()

    async def unregister(request: Any, context: Any) -> Any:
        regions.unregister(request.name or None)
        return _M["Empty"]()

    async def status(request: Any, context: Any) -> Any:
        found = [_M["RegionStatus"](**region._asdict()) for region in regions.status(request.name or None)]
        return _M["SystemSharedMemoryStatusResponse"](regions=[_M["RegionsEntry"](key=one.name, value=one) for one in found])

    async def index(request: Any, context: Any) -> Any:
        return _M["RepositoryIndexResponse"](models=[_M["ModelIndex"](**row) for row in await plane.index(request.ready)])

    async def load(request: Any, context: Any) -> Any:
        name = request.second or request.first
        await repository.load(name)
        return _M["RepositoryModelResponse"](model_name=name, done=True)

    async def unload(request: Any, context: Any) -> Any:
        name = request.second or request.first
        await repository.unload(name)
        return _M["RepositoryModelResponse"](model_name=name, done=True)

    async def nothing(request: Any, context: Any) -> Any:
        return _M["Empty"]()

    methods = {"SystemSharedMemoryRegister": (register, "SystemSharedMemoryRegisterRequest"),
               "SystemSharedMemoryUnregister": (unregister, "SystemSharedMemoryUnregisterRequest"),
               "SystemSharedMemoryStatus": (status, "SystemSharedMemoryStatusRequest"),
               "CudaSharedMemoryUnregister": (nothing, "Empty"), "CudaSharedMemoryStatus": (nothing, "Empty"),
               "RepositoryIndex": (index, "RepositoryIndexRequest"), "RepositoryModelLoad": (load, "RepositoryModelRequest"),
               "RepositoryModelUnload": (unload, "RepositoryModelRequest")}
    return grpc.method_handlers_generic_handler(_SERVICE, {
        name: grpc.unary_unary_rpc_method_handler(_said(call), _M[request].FromString, lambda answer: answer.SerializeToString())
        for name, (call, request) in methods.items()})


def _said(call: Any) -> Any:
    async def run(request: Any, context: Any) -> Any:
        try:
            return await call(request, context)
        except SharedMemoryError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except ModelNotReady as error:  # kserve's own has no reason, which its interceptor reads
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
    return run
