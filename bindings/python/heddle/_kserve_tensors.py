"""Tensors of heddle.kserve: requests and answers of REST with binary tensors that stay bytes, and with regions of shared memory."""

from __future__ import annotations

from typing import Any

import kserve
import numpy as np
import orjson
from fastapi import Response
from kserve.errors import InvalidInput
from kserve.protocol.infer_type import RequestedOutput, deserialize_bytes_tensor, serialize_byte_tensor
from kserve.utils.numpy_codec import to_np_dtype

from ._shared_memory import Regions, SharedMemoryError, wanted

__all__ = ["LENGTH", "array_of", "decoded", "encoded", "output_of", "regions"]

LENGTH = "inference-header-content-length"
regions = Regions()  # of this process


def decoded(body: bytes, headers: Any, name: str) -> kserve.InferRequest:
    """A request of JSON, with binary tensors behind it where a header says how long the JSON is. InvalidInput."""
    length = headers.get(LENGTH, str(len(body)))
    if not length.isdecimal() or int(length) > len(body):
        raise InvalidInput(f"{LENGTH} is {length!r}, and the request has {len(body)} bytes")
    try:
        given = orjson.loads(body[:int(length)])
        rest = memoryview(body)[int(length):]
        inputs = []
        for one in given["inputs"]:
            data, rest = _data_of(one, rest)
            inputs.append(kserve.InferInput(one["name"], one["shape"], one["datatype"], data, one.get("parameters")))
        outputs = [RequestedOutput(one["name"], one.get("parameters")) for one in given.get("outputs") or []]
        return kserve.InferRequest(name, inputs, given.get("id"), parameters=given.get("parameters"), request_outputs=outputs)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"the request is not JSON: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"the request is no inference request: {error!r}") from error


def _data_of(one: dict[str, Any], rest: memoryview) -> tuple[Any, memoryview]:
    """The elements of an input, and what is left of the binary data."""
    name, parameters = one["name"], one.get("parameters") or {}
    if "data" in one:
        return one["data"], rest
    if wanted(parameters) is not None:
        return None, rest
    size = parameters.get("binary_data_size")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(rest):
        raise InvalidInput(f"input '{name}' has neither data, nor a region of shared memory, nor binary_data_size of the "
                           f"{len(rest)} bytes that follow")
    return _elements(name, str(one["datatype"]), bytes(rest[:size])), rest[size:]


def _elements(name: str, datatype: str, data: Any) -> np.ndarray:
    """The elements of binary data, flat. InvalidInput."""
    dtype = to_np_dtype(datatype.upper())
    if dtype is None:
        raise InvalidInput(f"input '{name}': there is no datatype {datatype}")
    try:
        return deserialize_bytes_tensor(bytes(data)) if datatype.upper() == "BYTES" else np.frombuffer(data, dtype)
    except (ValueError, IndexError) as error:
        raise InvalidInput(f"input '{name}': {error}") from error
    except Exception as error:  # struct.error
        raise InvalidInput(f"input '{name}': its strings do not fit into {len(data)} bytes") from error


def array_of(given: kserve.InferInput) -> np.ndarray:
    """The array of an input, from a region where it names one. InvalidInput."""
    try:
        place = wanted(given.parameters)
        if place is not None:
            name, size, offset = place
            flat = _elements(given.name, given.datatype, regions.read(f"input '{given.name}'", name, size, offset))
        elif isinstance(given.data, np.ndarray):
            flat = given.data
        else:
            return np.ascontiguousarray(given.as_numpy())
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in given.shape):
            raise InvalidInput(f"input '{given.name}': {given.shape} is no shape")
        return flat.reshape(given.shape)
    except InvalidInput:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"input '{given.name}': {getattr(error, 'reason', error)}") from error


class _InRegion(kserve.InferOutput):
    """An output that lies in shared memory: the answer has no bytes of it."""

    def __init__(self, name: str, array: np.ndarray, datatype: str, place: dict[str, Any]):
        super().__init__(name=name, shape=list(array.shape), datatype=datatype, parameters=place)
        self._raw_data = b""


def output_of(name: str, array: np.ndarray, datatype: str, asked: RequestedOutput | None) -> kserve.InferOutput:
    """An output for the answer; it is written to the region that was asked for. InvalidInput."""
    try:
        place = wanted(asked.parameters if asked else None)
        if place is None:
            result = kserve.InferOutput(name=name, shape=list(array.shape), datatype=datatype)
            result.set_data_from_numpy(np.ascontiguousarray(array), binary_data=True)
            return result
        region, size, offset = place
        data = array if datatype != "BYTES" else serialize_byte_tensor(array).item() if array.size else b""
        used = regions.write(f"output '{name}'", region, size, offset, data)
        return _InRegion(name, array, datatype, {"shared_memory_region": region, "shared_memory_byte_size": used,
                                                 "shared_memory_offset": offset})
    except SharedMemoryError as error:
        raise InvalidInput(str(error)) from error


def encoded(answer: kserve.InferResponse, request: kserve.InferRequest) -> Response:
    """An answer as JSON, with the outputs behind it that are wanted as bytes."""
    asked = {one.name: one.parameters or {} for one in request.request_outputs or []}
    rows, tail = [], []
    for one in answer.outputs:
        row: dict[str, Any] = {"name": one.name, "shape": one.shape, "datatype": one.datatype}
        if isinstance(one, _InRegion):
            row["parameters"] = one.parameters
        elif asked.get(one.name, {}).get("binary_data", (request.parameters or {}).get("binary_data_output", False)):
            raw = one._raw_data
            if raw is None:
                one.set_data_from_numpy(one.as_numpy(), binary_data=True)
                raw = one._raw_data
            row["parameters"] = {"binary_data_size": len(raw)}
            tail.append(raw)
        else:
            array = one.as_numpy().ravel()
            row["data"] = [text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in array.tolist()]
        rows.append(row)
    head = orjson.dumps({"id": answer.id, "model_name": answer.model_name, "model_version": answer.model_version, "outputs": rows})
    if not tail:
        return Response(head, media_type="application/json")
    return Response(b"".join([head, *tail]), headers={LENGTH: str(len(head))}, media_type="application/octet-stream")
