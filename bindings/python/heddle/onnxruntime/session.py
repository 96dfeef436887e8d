"""InferenceSession: a model of Heddle behind ONNX Runtime's methods."""

from __future__ import annotations

import collections
import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Mapping, NamedTuple, Sequence

import numpy as np

from .. import _core, errors
from ..model import Model, load
from ..text import TextModel
from .binding import IOBinding
from .capi import onnxruntime_pybind11_state as state
from .metadata import ModelMetadata, read_metadata
from .options import GraphOptimizationLevel, RunOptions, SessionOptions, log_setting
from .providers import resolve
from .types import type_word
from .value import OrtValue

_FOLDER = "session.model_external_initializers_file_folder_path"
_SLICE_S = 0.02  # how soon a run sees that it is to end


class NodeArg(NamedTuple):
    """An input or an output: its name, its shape (numbers, names, None) and its type, "tensor(float)"."""

    name: str
    shape: list[Any]
    type: str

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def _args(infos: Any) -> list[NodeArg]:
    return [NodeArg(name, list(shape) if shape is not None else [], type_word(dtype)) for name, shape, dtype in infos]


class InferenceSession:
    """A model and the devices that run it. path_or_bytes: a file's path, or the bytes of an ONNX model."""

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None, **kwargs: Any):
        del kwargs  # of ONNX Runtime's own: disabled_optimizers, enable_fallback
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._path: str | None = os.fspath(path_or_bytes)
            self._bytes: bytes | None = None
        elif isinstance(path_or_bytes, bytes):
            self._path, self._bytes = None, path_or_bytes
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._options = SessionOptions() if sess_options is None else sess_options
        self._lock = threading.Lock()
        self._workers: ThreadPoolExecutor | None = None
        self._last_feed: dict[str, Any] | None = None
        self._start_ns = time.time_ns()
        if providers is None and self._options.has_providers():
            providers = self._options._providers  # pylint: disable=protected-access
        try:
            self._open(providers, provider_options)
        except ValueError as error:  # of the lists themselves: as ONNX Runtime does
            warnings.warn(f"EP Error {error} when using {providers}; falling back to ['CPUExecutionProvider']", stacklevel=2)
            self._open(None, None)

    def _open(self, providers: Sequence[Any] | None, provider_options: Sequence[Any] | None) -> None:
        self._providers, devices = resolve(providers, provider_options)
        if self._path is not None and not os.path.exists(self._path):
            raise state.NoSuchFile.of(f"Load model from {self._path} failed:Load model {self._path} failed. File doesn't exist")
        if self._bytes == b"":
            raise state.InvalidArgument.of("No graph was found in the protobuf.")
        meta = read_metadata(self._bytes if self._path is None else self._path)
        with state.loading(self._path, meta is not None or (self._path or "").endswith((".json", ".so"))):
            self._model = self._load(devices)
            self._inputs, self._outputs = _args(self._model.inputs), _args(self._model.outputs)
        self._meta = meta if meta is not None else ModelMetadata()
        self._by_name = {info.name: info for info in self._inputs}
        given = self._meta._graph_inputs  # pylint: disable=protected-access
        self._overridable = [] if len(given) == len(self._inputs) else _args(
            row[:3] for row in self._model.executor().input_info() if row[3] and row[0] in given)

    def _load(self, devices: str) -> Model:
        options = self._options
        settings = {"threads": str(options.intra_op_num_threads)} if options.intra_op_num_threads > 0 else {}
        log = log_setting(options)
        if log is not None:
            settings["log"] = log
        if options.optimized_model_filepath:
            warnings.warn("optimized_model_filepath has no effect: Heddle writes no optimised model", stacklevel=5)
        off = options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL
        source: Any = self._path if self._bytes is None else self._bytes
        folder = options._entries.get(_FOLDER) if self._path is None else None  # pylint: disable=protected-access
        return load(source, devices=devices, optimize=False if off else None, folder=folder,
                    dims=options._dims or None,  # pylint: disable=protected-access
                    context=_core.Context(settings) if settings else None)

    # ---- what it is

    def get_session_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._options

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a run needs."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have a value in the model, and may be given."""
        return self._overridable

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says about itself."""
        return self._meta

    def get_providers(self) -> list[str]:
        """The providers that it uses, in order."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each."""
        return {name: dict(options) for name, options in self._providers.items()}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None) -> None:
        """Loads the model again, for other devices."""
        self._open(providers, provider_options)

    def disable_fallback(self) -> None:
        """Without effect: there is none."""

    def enable_fallback(self) -> None:
        """Without effect: heddle.load(..., on_failure="failover") is the counterpart."""

    @property
    def model(self) -> Model:
        """Heddle's model: its plan, its profile, its devices."""
        return self._model

    # ---- runs

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: RunOptions | None = None) -> list[np.ndarray]:
        """Runs, and gives the outputs that are named; None or an empty list: all."""
        self._need_all(list(input_feed.keys()))
        feed = {name: self._checked(name, value) for name, value in input_feed.items()}
        names = self._wanted(output_names)
        if self._options.enable_profiling:
            self._last_feed = feed
        if run_options is None and not (feed.keys() - self._by_name.keys()):
            with state.running():
                return self._model.run(names, feed)
        executor = self._model.executor()
        texts = self._model.texts if isinstance(self._model, TextModel) else None
        others: dict[str, int] = {}
        with state.running():
            for name, value in feed.items():
                executor.set_input(name, texts.encode(name, value, others) if texts else value)
        self.drive(executor, run_options)
        results = [np.array(executor.get_output(name).numpy()) for name in names]
        return [texts.decode(name, result, others) for name, result in zip(names, results)] if texts else results

    def drive(self, executor: Any, run_options: RunOptions | None) -> None:
        """Runs an executor, and ends the run when the options say so."""
        if run_options is None:
            with state.running():
                executor.run()
            return
        if not isinstance(run_options, RunOptions):
            raise TypeError("run_options is a RunOptions")
        with state.running():
            if not run_options.terminate:
                executor.start()
            while not run_options.terminate:
                try:
                    executor.wait(_SLICE_S)
                    return
                except errors.RunTimeoutError:
                    if executor.done():
                        executor.wait()
                        return
            executor.cancel()
        raise state.Fail.of("Exiting due to terminate flag being set to true.")

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], callback: Callable[..., Any],
                  user_data: Any, run_options: RunOptions | None = None) -> None:
        """Runs in another thread, which then calls callback(results, user_data, error): error is "" where it went well."""
        self._need_all(list(input_feed.keys()))
        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(self._model.pool, "heddle-session")

        def work() -> None:
            try:
                results, words = self.run(output_names, input_feed, run_options), ""
            except Exception as error:  # pylint: disable=broad-exception-caught
                results, words = [], str(error)
            callback(results, user_data, words)

        self._workers.submit(work)

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """As run, with OrtValues."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """Memory for inputs and outputs that runs use in place."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs with what is bound."""
        iobinding.run(run_options)

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                            device_id: int = 0) -> OrtValue:
        """Memory for io_binding."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id)

    # ---- profiling

    def end_profiling(self) -> str:
        """With enable_profiling: times the last run's inputs once more, writes a trace of it, and gives the file's name."""
        if not self._options.enable_profiling:
            return ""
        name = f"{self._options.profile_file_prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        if self._last_feed is not None:
            self._model.profile(self._last_feed, runs=1).save_trace(name)
        else:
            with open(name, "w", encoding="utf-8") as file:
                file.write('{"traceEvents": []}')
        return name

    def get_profiling_start_time_ns(self) -> int:
        """When the session was made."""
        return self._start_ns

    # ---- checks

    def _need_all(self, names: list[str]) -> None:
        missing = [info.name for info in self._inputs if info.name not in names]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({names}).")

    def _wanted(self, output_names: Sequence[str] | None) -> list[str]:
        known = [info.name for info in self._outputs]
        if not output_names:
            return known
        if isinstance(output_names, str):
            raise TypeError("run(): output_names is a sequence of str, not one str")
        for name in output_names:
            if name not in known:
                raise state.InvalidArgument.of(f"Invalid output name:{name}")
        return list(output_names)

    def arg_of(self, name: str) -> NodeArg:
        """The input of that name; InvalidArgument where there is none."""
        info = self._by_name.get(name)
        for one in self._overridable if info is None else ():
            if one.name == name:
                info = one
        if info is None:
            raise state.InvalidArgument.of(f"Invalid input name: {name}")
        return info

    def _checked(self, name: str, value: Any) -> Any:
        """A value as it is given to the model: the right type, rank and sizes."""
        info = self.arg_of(name)
        if info.type.startswith(("seq(", "optional(")):
            return value  # a list or None, which heddle.text looks at
        if isinstance(value, OrtValue):
            value = value.tensor
        elif isinstance(value, list):
            kind = _NUMPY.get(info.type)
            try:
                value = np.array(value, kind)
            except (ValueError, TypeError) as error:
                raise state.InvalidArgument.of(f"input '{name}' is no {info.type}: {error}") from error
        elif not isinstance(value, (np.ndarray, np.generic, _core.Tensor)):
            raise RuntimeError(f"Unable to handle object of type {type(value)}")
        actual = type_word(value.dtype)
        if actual != info.type:
            raise state.InvalidArgument.of(f"Unexpected input data type. Actual: ({actual}) , expected: ({info.type})")
        self._check_shape(info, value.shape)
        return value

    @staticmethod
    def _check_shape(info: NodeArg, shape: Sequence[int]) -> None:
        wanted = info.shape
        if len(shape) != len(wanted):
            raise state.InvalidArgument.of(f"Invalid rank for input: {info.name} Got: {len(shape)} Expected: {len(wanted)} "
                                           "Please fix either the inputs/outputs or the model.")
        wrong = [(d, got, want) for d, (got, want) in enumerate(zip(shape, wanted)) if isinstance(want, int) and got != want]
        if wrong:
            lines = "".join(f"\n index: {d} Got: {got} Expected: {want}" for d, got, want in wrong)
            raise state.InvalidArgument.of(f"Got invalid dimensions for input: {info.name} for the following indices{lines}\n"
                                           " Please fix either the inputs/outputs or the model.")


_NUMPY = collections.ChainMap({"tensor(float)": "float32", "tensor(double)": "float64"},
                              {"tensor(string)": "object"},
                              {f"tensor({name})": name for name in ("uint8", "int8", "uint16", "int16", "int32", "int64",
                                                                    "bool", "float16", "uint32", "uint64")})
