"""Models behind the Open Inference Protocol, REST and gRPC, by the package kserve (`pip install heddle[kserve]`).

    python -m heddle.kserve --models DIR --devices cuda:0,cpu --http_port 8080     every NAME of DIR/NAME[/VERSION]/model.onnx
    python -m heddle.kserve --model digits=digits.json --devices cpu               one file; more words of kserve: --help

    import heddle.kserve
    model = heddle.kserve.HeddleModel("digits", "digits.onnx", load={"devices": "cpu"})
    model.load()
    heddle.kserve.Server().start([model])

Requests share runs by heddle.Batcher. A wrong request is 400, a full queue 503 (gRPC: UNAVAILABLE). /metrics has the length of
each model's queue beside the figures of kserve. A model that is unloaded, as on SIGTERM, ends the requests that it accepted
first. heddle.kserve.Server is a kserve.ModelServer that also knows versions and shared memory. docs/cluster.md has more.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import uuid
from pathlib import Path
from typing import Any, Mapping, Sequence

import kserve
import numpy as np
import prometheus_client
from grpc_interceptor.exceptions import DeadlineExceeded, Internal
from kserve.errors import InferenceError, InvalidInput, ModelNotFound, ModelNotReady
from kserve.utils.numpy_codec import from_np_dtype

from ._kserve_server import SHARED_MEMORY, VERSION, Server
from ._kserve_tensors import array_of, output_of
from ._served import NotLoaded, Served
from ._traces import Recorded, export, request_span
from .errors import BusyError, CanceledError, Error, InvalidError, NotFoundError, RunTimeoutError

__all__ = ["HeddleModel", "Repository", "Server", "main"]

_FILES = ("model.onnx", "model.json", "model.so")
_FIGURES = ("queued", "running", "requests", "rejected", "failed", "runs", "items")
_gauges = {name: prometheus_client.Gauge(f"heddle_batcher_{name}", f"{name} of a model's batcher", ["model", "version"])
           for name in _FIGURES}


class HeddleModel(kserve.Model):
    """A model for a kserve.ModelServer.

    name, path, load, batch, deadline    the name in addresses, and words of heddle.load and of heddle.Batcher
    version                              what answers say; "" where there is none
    others                               more versions of it, which requests may name
    drain                                seconds that the end gives to the requests that were accepted
    """

    def __init__(self, name: str, path: str | os.PathLike[str], load: Mapping[str, Any] | None = None,
                 batch: Mapping[str, Any] | None = None, deadline: float | None = None, version: str = "", drain: float = 30,
                 others: Sequence[HeddleModel] = ()):
        super().__init__(name)
        self._served, self._version, self._drain = Served(path, load, batch, deadline), version, drain
        self._others = {other._version: other for other in others}
        self.ready = False

    def load(self) -> bool:
        for other in self._others.values():
            other.load()
        self._served.open()
        self.ready = True
        for figure, gauge in _gauges.items():
            gauge.labels(self.name, self._version).set_function(lambda figure=figure: self._served.stats.get(figure, 0))
        return self.ready

    def stop(self) -> None:
        self.ready = False
        for figure in _FIGURES:  # of the one that took its place, if there is one, load() sets them again
            with contextlib.suppress(KeyError):
                _gauges[figure].remove(self.name, self._version)
        self._served.close(self._drain)
        for other in self._others.values():
            other.stop()

    @property
    def versions(self) -> list[str]:
        """Those that are loaded; the one that is served by default is the first."""
        return [version for version in (self._version, *self._others) if version]

    def of_version(self, version: str) -> HeddleModel:
        """"": the one that is served by default. ModelNotFound."""
        found = self if version in ("", self._version) else self._others.get(version)
        if found is None:
            error = ModelNotFound(self.name)
            error.reason = f"Model {self.name} has no version {version} that is loaded; it has {', '.join(self.versions) or 'none'}."
            raise error
        return found

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
        chosen = self.of_version(getattr(payload, "model_version", None) or VERSION.get())
        with request_span(f"heddle.kserve {self.name}", headers) as recorded:
            recorded.say(model=self.name, version=chosen._version)
            return await chosen._predict(payload, recorded)

    async def _predict(self, payload: Any, recorded: Recorded) -> Any:
        if isinstance(payload, dict):
            outputs = await self._call(self._from_v1(payload), False, recorded)
            return {"predictions": next(iter(outputs.values())).tolist()}
        asked = {output.name: output for output in payload.request_outputs or []}
        if self._served.output_names and not set(asked) <= set(self._served.output_names):
            raise InvalidInput(f"model {self.name} has no output {sorted(set(asked) - set(self._served.output_names))}: it has "
                               f"{self._served.output_names}")
        outputs = await self._call({given.name: array_of(given) for given in payload.inputs}, payload.from_grpc, recorded)
        results = [output_of(name, array, from_np_dtype(array.dtype), asked.get(name)) for name, array in outputs.items()
                   if not asked or name in asked]
        return kserve.InferResponse(response_id=payload.id or str(uuid.uuid4()), model_name=self.name,
                                    model_version=self._version or None, infer_outputs=results, from_grpc=payload.from_grpc,
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

    async def _call(self, arrays: dict[str, np.ndarray], is_grpc: bool, recorded: Recorded) -> dict[str, np.ndarray]:
        try:
            return await self._served.call(arrays, recorded)
        except (NotLoaded, BusyError, CanceledError) as error:
            raise _not_ready(self.name, str(error)) from error
        except RunTimeoutError as error:
            raise DeadlineExceeded(str(error)) if is_grpc else InferenceError(str(error), status="DEADLINE_EXCEEDED") from error
        except (InvalidError, NotFoundError, TypeError) as error:
            raise InvalidInput(str(error)) from error
        except Error as error:
            raise Internal(str(error)) if is_grpc else InferenceError(str(error)) from error


def _not_ready(name: str, why: str) -> ModelNotReady:
    error = ModelNotReady(name, why)
    error.reason = str(error)  # kserve reads it over gRPC
    return error


def _described(values: list[Any]) -> list[dict[str, Any]]:
    return [{"name": name, "datatype": from_np_dtype(dtype), "shape": shape} for name, dtype, shape in values]


class Repository(kserve.ModelRepository):
    """A folder of models, NAME/model.onnx or NAME/VERSION/model.onnx (or .json, .so): of several versions the highest number
    is served to requests that name none. Models are loaded and unloaded by the protocol's repository extension too.

    versions    how many of a model's versions are loaded, the highest numbers first; 0: all of them
    """

    def __init__(self, folder: str | os.PathLike[str], load: Mapping[str, Any] | None = None,
                 batch: Mapping[str, Any] | None = None, deadline: float | None = None, versions: int = 1):
        super().__init__(str(folder))
        self._words, self._versions = (load, batch, deadline), versions

    def load_model(self, name: str) -> bool:
        return self.load(name)

    def load(self, name: str) -> bool:
        found = self._find(name)
        if not found:
            return False
        chosen = found[:self._versions] if self._versions else found
        (path, version), *more = chosen
        others = [HeddleModel(name, other, *self._words, version=number) for other, number in more]
        model = HeddleModel(name, path, *self._words, version=version, others=others)
        model.load()
        before = self.get_model(name)
        self.update(model)
        if before is not None:
            before.stop()
            model.load()  # its figures, which have the names of those before
        return model.ready

    def found(self) -> list[tuple[str, str]]:
        """Name and version of what the folder has."""
        if not self.models_dir:
            return []
        return [(name, version) for name in sorted(os.listdir(self.models_dir)) for _, version in self._find(name)]

    def _find(self, name: str) -> list[tuple[Path, str]]:
        """The files of a model and their versions, the highest first."""
        folder = Path(self.models_dir) / name
        if not self.models_dir or name in ("", ".", "..") or Path(name).name != name or not folder.is_dir():
            return []
        versions = sorted((p for p in folder.iterdir() if p.name.isdecimal() and p.is_dir()), key=lambda p: -int(p.name))
        places = [*((p, p.name) for p in versions), (folder, "")]
        files = [(next((p / file for file in _FILES if (p / file).is_file()), None), version) for p, version in places]
        return [(path, version) for path, version in files if path is not None]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m heddle.kserve", parents=[kserve.model_server.parser], conflict_handler="resolve")
    parser.add_argument("--models", help="a folder of models")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE", help="one model; may be given more often")
    parser.add_argument("--devices", help="as heddle.load takes them")
    parser.add_argument("--max_items", type=int, default=0, help="requests of a run")
    parser.add_argument("--max_delay", type=float, default=0.002, help="seconds that a request waits for others")
    parser.add_argument("--deadline", type=float, help="seconds for a request")
    parser.add_argument("--versions", type=int, default=1, help="how many versions of a model are loaded, highest first; 0: all")
    parser.add_argument("--shared_memory", choices=SHARED_MEMORY, default="local",
                        help="who may register regions: clients of this machine, all, or none")
    parser.add_argument("--traces", choices=("otlp", "console"), help="where spans of OpenTelemetry go")
    args = parser.parse_args(words)
    if args.traces:
        try:
            export(args.traces)
        except ImportError as error:
            parser.error(f"--traces {args.traces}: {error}; pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http")
    load, batch = {"devices": args.devices}, {"max_items": args.max_items, "max_delay": args.max_delay}
    repository = Repository(args.models or "", load, batch, args.deadline, args.versions)
    try:
        if args.models:
            repository.load_models()
        for pair in args.model:
            name, equals, path = pair.partition("=")
            if not equals:
                parser.error(f"--model {pair}: expected NAME=FILE")
            model = HeddleModel(name, path, load, batch, args.deadline)
            model.load()
            repository.update(model)
    except (Error, OSError, ValueError) as error:
        parser.error(str(error))
    if not repository.get_models():
        parser.error("there is no model to serve: give --models or --model")
    server = Server(http_port=args.http_port, grpc_port=args.grpc_port, workers=1, enable_grpc=args.enable_grpc,
                    enable_docs_url=args.enable_docs_url, registered_models=repository, shared_memory=args.shared_memory)
    server.start(list(repository.get_models().values()))


if __name__ == "__main__":
    main()
