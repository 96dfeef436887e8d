"""Models behind the Open Inference Protocol, REST and gRPC, by the package kserve (`pip install heddle[kserve]`).

    python -m heddle.kserve --models DIR --devices cuda:0,cpu --http_port 8080     every NAME of DIR/NAME[/VERSION]/model.onnx
    python -m heddle.kserve --model digits=digits.json --devices cpu               one file; more words of kserve: --help

    import heddle.kserve, kserve
    model = heddle.kserve.HeddleModel("digits", "digits.onnx", load={"devices": "cpu"})
    model.load()
    kserve.ModelServer().start([model])

Requests share runs by heddle.Batcher. A wrong request is 400, a full queue 503 (gRPC: UNAVAILABLE). /metrics has the length of
each model's queue beside the figures of kserve. A model that is unloaded, as on SIGTERM, ends the requests that it accepted
first. docs/cluster.md has more.
"""

from __future__ import annotations

import argparse
import os
import uuid
from pathlib import Path
from typing import Any, Mapping

import kserve
import numpy as np
import prometheus_client
from kserve.errors import InferenceError, InvalidInput, ModelNotReady
from kserve.utils.numpy_codec import from_np_dtype

from ._served import NotLoaded, Served
from .errors import BusyError, CanceledError, Error, InvalidError, NotFoundError, RunTimeoutError

__all__ = ["HeddleModel", "Repository", "main"]

_FILES = ("model.onnx", "model.json", "model.so")
_FIGURES = ("queued", "running", "requests", "rejected", "failed", "runs", "items")
_gauges = {name: prometheus_client.Gauge(f"heddle_batcher_{name}", f"{name} of a model's batcher", ["model"]) for name in _FIGURES}


class HeddleModel(kserve.Model):
    """A model for a kserve.ModelServer.

    name, path, load, batch, deadline    the name in addresses, and words of heddle.load and of heddle.Batcher
    version                              what answers say; "" where there is none
    drain                                seconds that the end gives to the requests that were accepted
    """

    def __init__(self, name: str, path: str | os.PathLike[str], load: Mapping[str, Any] | None = None,
                 batch: Mapping[str, Any] | None = None, deadline: float | None = None, version: str = "", drain: float = 30):
        super().__init__(name)
        self._served, self._version, self._drain = Served(path, load, batch, deadline), version, drain
        self.ready = False

    def load(self) -> bool:
        self._served.open()
        self.ready = True
        for figure, gauge in _gauges.items():
            gauge.labels(model=self.name).set_function(lambda figure=figure: self._served.stats.get(figure, 0))
        return self.ready

    def stop(self) -> None:
        self.ready = False
        self._served.close(self._drain)

    async def healthy(self) -> bool:
        try:
            self._served.check()
        except Error:
            return False
        return self.ready

    def stats(self) -> dict[str, int]:
        return self._served.stats

    def get_input_types(self) -> list[dict[str, Any]]:
        return _described(self._served.inputs)

    def get_output_types(self) -> list[dict[str, Any]]:
        return _described(self._served.outputs)

    async def predict(self, payload: Any, headers: dict[str, str] | None = None,
                      response_headers: dict[str, str] | None = None) -> Any:
        is_v1 = isinstance(payload, dict)
        arrays = self._from_v1(payload) if is_v1 else {given.name: _array(given) for given in payload.inputs}
        outputs = await self._call(arrays)
        if is_v1:
            return {"predictions": next(iter(outputs.values())).tolist()}
        wanted = {output.name for output in payload.request_outputs or []}
        if not wanted <= set(outputs):
            raise InvalidInput(f"model {self.name} has no output {sorted(wanted - set(outputs))}: it has {list(outputs)}")
        results = []
        for name, array in outputs.items():
            if wanted and name not in wanted:
                continue
            result = kserve.InferOutput(name=name, shape=list(array.shape), datatype=from_np_dtype(array.dtype))
            result.set_data_from_numpy(np.ascontiguousarray(array), binary_data=True)
            results.append(result)
        return kserve.InferResponse(response_id=payload.id or str(uuid.uuid4()), model_name=self.name, model_version=self._version or None,
                                    infer_outputs=results, from_grpc=payload.from_grpc,
                                    use_binary_outputs=payload.use_binary_outputs, requested_outputs=payload.request_outputs)

    def _from_v1(self, payload: dict[str, Any]) -> dict[str, np.ndarray]:
        """{"instances": [...]}: the only input, a row for each."""
        inputs = self._served.inputs
        if len(inputs) != 1 or "instances" not in payload:
            raise InvalidInput(f"model {self.name} has {len(inputs)} inputs; the first protocol takes \"instances\" for one")
        try:
            return {inputs[0][0]: np.asarray(payload["instances"], dtype=inputs[0][1])}
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidInput(f"instances: {error}") from error

    async def _call(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            return await self._served.call(arrays)
        except (NotLoaded, BusyError, CanceledError) as error:
            raise ModelNotReady(self.name, str(error)) from error
        except RunTimeoutError as error:
            raise InferenceError(str(error), status="DEADLINE_EXCEEDED") from error
        except (InvalidError, NotFoundError, TypeError) as error:
            raise InvalidInput(str(error)) from error
        except Error as error:
            raise InferenceError(str(error)) from error


def _array(given: Any) -> np.ndarray:
    try:
        return np.ascontiguousarray(given.as_numpy())
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"input '{given.name}': {getattr(error, 'reason', error)}") from error


def _described(values: list[Any]) -> list[dict[str, Any]]:
    return [{"name": name, "datatype": from_np_dtype(dtype), "shape": shape} for name, dtype, shape in values]


class Repository(kserve.ModelRepository):
    """A folder of models, NAME/model.onnx or NAME/VERSION/model.onnx (or .json, .so): of several versions the highest number
    is served. Models are loaded and unloaded by the protocol's repository extension too."""

    def __init__(self, folder: str | os.PathLike[str], load: Mapping[str, Any] | None = None,
                 batch: Mapping[str, Any] | None = None, deadline: float | None = None):
        super().__init__(str(folder))
        self._words = (load, batch, deadline)

    def load_model(self, name: str) -> bool:
        return self.load(name)

    def load(self, name: str) -> bool:
        found = self._find(name)
        if found is None:
            return False
        path, version = found
        model = HeddleModel(name, path, *self._words, version=version)
        model.load()
        before = self.get_model(name)
        self.update(model)
        if before is not None:
            before.stop()
        return model.ready

    def _find(self, name: str) -> tuple[Path, str] | None:
        folder = Path(self.models_dir) / name
        if name in ("", ".", "..") or Path(name).name != name or not folder.is_dir():
            return None
        versions = sorted((p for p in folder.iterdir() if p.name.isdecimal() and p.is_dir()), key=lambda p: -int(p.name))
        for place, version in [*((p, p.name) for p in versions), (folder, "")]:
            for file in _FILES:
                if (place / file).is_file():
                    return place / file, version
        return None


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m heddle.kserve", parents=[kserve.model_server.parser], conflict_handler="resolve")
    parser.add_argument("--models", help="a folder of models")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE", help="one model; may be given more often")
    parser.add_argument("--devices", help="as heddle.load takes them")
    parser.add_argument("--max_items", type=int, default=0, help="requests of a run")
    parser.add_argument("--max_delay", type=float, default=0.002, help="seconds that a request waits for others")
    parser.add_argument("--deadline", type=float, help="seconds for a request")
    args = parser.parse_args(words)
    load, batch = {"devices": args.devices}, {"max_items": args.max_items, "max_delay": args.max_delay}
    repository = Repository(args.models or "", load, batch, args.deadline)
    if args.models:
        repository.load_models()
    for pair in args.model:
        name, equals, path = pair.partition("=")
        if not equals:
            parser.error(f"--model {pair}: expected NAME=FILE")
        model = HeddleModel(name, path, load, batch, args.deadline)
        model.load()
        repository.update(model)
    if not repository.get_models():
        parser.error("there is no model to serve: give --models or --model")
    server = kserve.ModelServer(http_port=args.http_port, grpc_port=args.grpc_port, workers=1, enable_grpc=args.enable_grpc,
                                enable_docs_url=args.enable_docs_url, registered_models=repository)
    server.start(list(repository.get_models().values()))


if __name__ == "__main__":
    main()
