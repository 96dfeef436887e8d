"""Models: loaded from a file or from text, called from any thread, explained, profiled and timed."""

from __future__ import annotations

import os
import time
import weakref
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

from . import _core
from ._core import Executor
from .device import Device
from .errors import InvalidError

# Methods import the rest when they are called: that takes longer than a small model's first run.
# pylint: disable=import-outside-toplevel
if TYPE_CHECKING:
    from concurrent.futures import Future

    from .aio import Workers
    from .benchmark import BenchmarkResult
    from .plan import Plan
    from .profile import Profile

__all__ = ["Executor", "Model", "TensorInfo", "load", "loads"]

_NO_CAPTURE, _IGNORE_ANNOTATIONS, _NO_REUSE, _SLOTS, _FAST, _STRICT = 1, 2, 4, 8, 16, 32
_PRECISION = {None: 0, "fast": _FAST, "strict": _STRICT}


class TensorInfo(NamedTuple):
    """An input or an output: its name, its shape and its dtype, such as "float32".

    A dimension that is not known before a run is its name in the file, or None; the shape is None where not even the number
    of dimensions is known.
    """

    name: str
    shape: tuple[int | str | None, ...] | None
    dtype: str


class Model(_core.Model):
    """A model, and a bounded pool of executors that its calls share. `load` makes one.

    model(x), model(x, y), model(x=x, y=y) and model({"x": x, "y": y}) run it: inputs by position, by name or as one mapping;
    parameters are none of them. model.run takes a mapping and gives one, or is called as ONNX Runtime's. Values are
    numpy arrays, Tensors, objects with __dlpack__ (on devices too), numbers or nested lists. An array of another dtype is
    converted where numpy does so with casting "same_kind", which costs a copy; a row-major array of the right dtype costs
    least. The result is a fresh numpy array, or a tuple of them where there are several outputs; nothing else writes to
    it.

    Any thread may call a model at any time. A call takes an executor of the pool, or makes one while there are fewer than
    `pool`, or waits until another call has ended, in order of arrival. The GIL is released meanwhile, and Ctrl-C ends the
    call with KeyboardInterrupt.

    heddle.InvalidError: a missing input, a wrong shape or dtype (node is the input's name), or a closed model.
    heddle.NotFoundError: an input that does not exist. heddle.DeviceLostError, OutOfMemoryError, ...: what a run can fail
    with; a later call may succeed.
    """

    _workers: Workers | None = None
    _end: Any = None

    def __reduce__(self) -> Any:
        raise TypeError("a heddle.Model has memory on devices and cannot be pickled; load it where it is to run")

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *failure: Any) -> None:
        self.close()

    def close(self) -> None:
        """Frees the executors and the model, those in use when their calls end. Later calls raise InvalidError."""
        super().close()
        if self._workers is not None:
            self._workers.stop()

    def __repr__(self) -> str:
        what = "graph" if self.path is None else repr(self.path)
        if self.closed:
            return f"<heddle.Model {what}, closed>"
        return f"<heddle.Model {what} on {', '.join(self.devices)}; {self.executors} of {self.pool} executors>"

    # ---- what it is

    @property
    def inputs(self) -> list[TensorInfo]:
        """The inputs that a call gives, in order. The first time an executor is made, which opens devices."""
        return [TensorInfo(*info) for info in self.input_infos]

    @property
    def outputs(self) -> list[TensorInfo]:
        """The outputs, in order; after them the nodes that `keep` named. The first time an executor is made."""
        return [TensorInfo(*info) for info in self.output_infos]

    @property
    def plan(self) -> Plan:
        """Where each node runs and why; a picture in a notebook. Of a model with open shapes it is the plan of the last
        call, and before the first it is InvalidError, which names the inputs and their dimensions: see plan_for."""
        from .plan import Plan
        return Plan(self._explain_last)

    def _explain_last(self, form: str) -> str:
        try:
            return self.explain(form)
        except InvalidError as error:
            wanted = [info for info in self.inputs if info.shape is None or not all(isinstance(n, int) for n in info.shape)]
            if self.closed or not wanted:
                raise
            shown = "; ".join(f"input '{info.name}' is {_shape_text(info.shape)}" for info in wanted)
            names = sorted({n for info in wanted for n in info.shape or () if isinstance(n, str)})
            sizes = ", ".join(f'"{name}": ...' for name in names)
            raise InvalidError(f"a plan is for known shapes, and {shown}: call the model, or use model.plan_for(...) with "
                               "arrays of the shapes" + (f", or load it with dims={{{sizes}}}" if names else "")) from error

    def plan_for(self, *inputs: Any, **named: Any) -> Plan:
        """The plan for inputs of these shapes; values matter only where they decide shapes."""
        from .plan import Plan
        given = self._named(inputs, named)
        return Plan(lambda form: self.explain(form, given))

    # ---- calls that are not waited for

    def submit(self, *inputs: Any, **named: Any) -> Future[Any]:
        """Calls the model in another thread and returns at once; the future has what the call would give or raise.

        As many as the pool has executors run at once, the rest in order. A future that is cancelled before its turn is not
        run. Arrays that are given must not change before the result is there.
        """
        if self._workers is None:
            from .aio import Workers
            self._workers = Workers(self.pool)
            self._end = weakref.finalize(self, self._workers.stop)
        return self._workers.submit(self, inputs, named)

    async def call_async(self, *inputs: Any, **named: Any) -> Any:
        """Calls the model without blocking the event loop: `y = await model.call_async(x)`.

        Calls run at once, as many as the pool has executors. Cancelling the task drops a call that has not begun; one that
        runs is finished, and its result dropped.
        """
        import asyncio
        return await asyncio.wrap_future(self.submit(*inputs, **named))

    # ---- measured

    def profile(self, *inputs: Any, runs: int = 5, **named: Any) -> Profile:
        """Runs some times with each step timed, on an executor of its own, after one run to warm up.

        Inputs that are not given are zeros; one whose shape is open has to be given (ValueError). Of a model in stages (If,
        Loop, Scan, shapes that only a run gives) a step is listed each time that it ran.
        """
        if runs < 1:
            raise ValueError("a profile needs a run at least")
        from .profile import Profile
        executor = self._prepared(inputs, named)
        executor.run()
        return Profile([executor.profile() for _ in range(runs)])

    def benchmark(self, *inputs: Any, repeat: int = 5, number: int = 5, min_repeat_ms: float = 0,
                  limit_zero_time_iterations: int = 100, end_to_end: bool = False, cooldown_interval_ms: float = 0,
                  repeats_to_cooldown: int = 1, **named: Any) -> BenchmarkResult:
        """Times runs, and gives `repeat` results, each the mean of `number` runs in seconds; one run goes before, untimed.

        Inputs are set before the clock starts, unless `end_to_end`: then calls with these inputs are timed, with arrays out.
        Those that are not given are zeros; one whose shape is open has to be given (ValueError).
        With min_repeat_ms, `number` grows until a repeat takes so long, and stays so for later repeats. After
        `limit_zero_time_iterations` repeats in a row in which the clock stood still it goes on as it is. Between every
        `repeats_to_cooldown` repeats it sleeps for cooldown_interval_ms.
        """
        if repeat < 1 or number < 1 or repeats_to_cooldown < 1:
            raise ValueError("repeat, number and repeats_to_cooldown are 1 or more")
        if end_to_end:
            given = self._filled(self._named(inputs, named))

            def once() -> Any:
                return self.run(given)
        else:
            once = self._prepared(inputs, named).run
        once()
        results = []
        for i in range(repeat):
            took, stood_still = 0.0, 0
            while True:
                took = _time(once, number)
                stood_still += took <= 0
                if took * 1e3 >= min_repeat_ms or stood_still >= limit_zero_time_iterations:
                    break
                per_run = max(took / number, 1e-12)
                number = int(max(min_repeat_ms / 1e3 / per_run + 1, number * 1.618)) if took > 0 else number * 2
            results.append(took / number)
            if cooldown_interval_ms > 0 and (i + 1) % repeats_to_cooldown == 0 and i + 1 < repeat:
                time.sleep(cooldown_interval_ms / 1e3)
        from .benchmark import BenchmarkResult
        return BenchmarkResult(results)

    def _named(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        names = self.input_names
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            inputs, names = tuple(inputs[0].values()), tuple(inputs[0])
        if len(inputs) > len(names):
            raise TypeError(f"{len(inputs)} inputs are given; the model has {len(names)}: {', '.join(names)}")
        given = dict(zip(names, inputs))
        twice = given.keys() & named.keys()
        if twice:
            raise TypeError(f"input '{min(twice)}' is given twice")
        return {**given, **named}

    def _prepared(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> Executor:
        executor = self.executor()
        for name, value in self._filled(self._named(inputs, named)).items():
            executor.set_input(name, value)
        return executor

    def _filled(self, given: dict[str, Any]) -> dict[str, Any]:
        """With zeros for inputs that are not given."""
        for info in self.inputs:
            if info.name not in given:
                if info.shape is None or not all(isinstance(size, int) and size >= 0 for size in info.shape):
                    raise ValueError(f"input '{info.name}' has no shape to make zeros of; give it")
                given[info.name] = _core.empty(info.shape, info.dtype)
        return given


def _shape_text(shape: tuple[int | str | None, ...] | None) -> str:
    """"[batch, 4, ?]"; "of any shape"."""
    return "of any shape" if shape is None else f"[{', '.join('?' if n is None else str(n) for n in shape)}]"


def _time(once: Any, number: int) -> float:
    runs = range(number)
    start = time.perf_counter()
    for _ in runs:
        once()
    return time.perf_counter() - start


# ---- loading


def _device_list(devices: str | Device | Iterable[str | Device] | None) -> str | None:
    if devices is None or isinstance(devices, str):
        return devices
    if isinstance(devices, Device):
        return devices.name
    return ",".join(device.name if isinstance(device, Device) else device for device in devices)


def _rules(rules: str | Mapping[str, Any] | Sequence[str] | None) -> list[str]:
    """"NAME=VALUE" for each: of a mapping, a sequence of such words, or one word."""
    if rules is None:
        return []
    if isinstance(rules, str):
        return [rules]
    if isinstance(rules, Mapping):
        return [f"{name}={value.name if isinstance(value, Device) else value}" for name, value in rules.items()]
    return list(rules)


def _nanoseconds(seconds: float | None) -> int:
    """A limit for the C API: 0 for None, which is what settings say; a limit too large for a number is none."""
    if seconds is None:
        return 0
    if not seconds >= 0:
        raise ValueError(f"a limit is a number of seconds, not {seconds!r}")
    return max(1, int(min(seconds * 1e9, 2**64 - 1)))


def _options(devices: Any, library: Any, name: str | None, place: Any, keep: Any, dims: Any, optimize: Any,
             precision: str | None, memory: Any, on_failure: str | None, pool: int | None, in_flight: int,
             max_streams: int, max_programs: int, upload_timeout: float | None,
             plan_timeout: float | None, capture: bool, annotations: bool, reuse: bool, slots: bool,
             trust: Any, key: Any, state: str | Mapping[str, str] | Sequence[str] | None, seed: int) -> dict[str, Any]:
    if precision not in _PRECISION:
        raise ValueError(f"precision is 'fast' or 'strict', not {precision!r}")
    if pool is not None and pool < 1:
        raise ValueError("a pool has an executor at least")
    rules = ",".join(_rules(state)) or None
    if rules not in (None, "off"):
        if pool not in (None, 1):
            raise ValueError("the calls of a model with state values share one executor: pool is 1")
        pool = 1
    if isinstance(optimize, bool):
        optimize = "on" if optimize else "off"
    elif optimize is not None and not isinstance(optimize, str):
        optimize = ",".join(optimize)
    flags = _PRECISION[precision] | (0 if capture else _NO_CAPTURE) | (0 if annotations else _IGNORE_ANNOTATIONS)
    return {
        "devices": _device_list(devices), "library": library, "model_name": name, "place": _rules(place),
        "keep": [keep] if isinstance(keep, str) else list(keep), "dims": [rule.replace("=<=", "<=", 1) for rule in _rules(dims)], "optimize": optimize,
        "flags": flags | (0 if reuse else _NO_REUSE) | (_SLOTS if slots else 0),
        "memory": ",".join(_rules(memory)) or None, "on_failure": on_failure, "pool": pool or 0, "in_flight": in_flight,
        "max_streams": max_streams, "max_programs": max_programs,
        "upload_timeout_ns": _nanoseconds(upload_timeout), "plan_timeout_ns": _nanoseconds(plan_timeout),
        "trust": None if trust is None else os.fspath(trust), "key": None if key is None else os.fspath(key),
        "state": rules, "seed": seed,
    }


def _in_memory(model: Any) -> Any:
    """The bytes of a model that is no path: bytes, bytearray, memoryview, or a message of protobuf, as onnx.ModelProto.
    None for a path; TypeError for what is neither."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return model
    if isinstance(model, (str, os.PathLike)):
        return None
    if hasattr(model, "SerializeToString") and hasattr(model, "opset_import"):
        return model.SerializeToString()
    raise TypeError(f"a model is a path, bytes, or an onnx.ModelProto, not {type(model).__module__}.{type(model).__qualname__}")


def load(path: str | os.PathLike[str] | bytes | bytearray | memoryview | Any, params: str | os.PathLike[str] | None = None, *,
         devices: str | Device | Iterable[str | Device] | None = None, library: str | os.PathLike[str] | None = None,
         name: str | None = None, place: str | Mapping[str, str | Device] | Sequence[str] | None = None,
         keep: str | Sequence[str] = (), dims: Mapping[str, int | str] | Sequence[str] | None = None,
         optimize: bool | str | Sequence[str] | None = None, precision: str | None = None,
         memory: str | Mapping[str, str] | None = None, on_failure: str | None = None, pool: int | None = None,
         in_flight: int = 1, max_streams: int = 0, max_programs: int = 0, upload_timeout: float | None = None,
         plan_timeout: float | None = None, capture: bool = True, annotations: bool = True, reuse: bool = True, slots: bool = False,
         folder: str | os.PathLike[str] | None = None, trust: str | os.PathLike[str] | None = None,
         key: str | os.PathLike[str] | None = None, state: str | Mapping[str, str] | Sequence[str] | None = None, seed: int = 0,
         context: _core.Context | None = None) -> Model:
    """Loads a model: an .onnx file, a graph's .json, or a TVM library that holds all of a model. Plans nothing yet.

    path            or the model itself: an ONNX model or a graph's JSON as bytes, bytearray or memoryview, or an
                    onnx.ModelProto. It is copied where it is needed later
    folder          where weights outside of such a model lie; None: it has to hold all of them
    params          a file in place of the parameters inside or beside it (graph.params beside graph.json)
    devices         which may be used, in order of preference: "vulkan:0,cpu", ["cuda:1?", "cpu"] ('?': may be missing),
                    a Device or several; None: as settings say (HEDDLE_DEVICES), else accelerators first, then cpu
    library         the TVM library whose functions a graph's nodes call; name: which of the models in a library
    place           rules for nodes, {"conv*": "vulkan:0"}, or "auto": where a run is predicted to be shortest
    keep            nodes whose values are outputs too, behind the model's: "relu3", or "split:1"
    dims            numbers for dimensions that the file names, {"batch": 4}: shapes known early are planned early; or the
                    most that one can be, {"length": "<=512"}: programs are laid out for that from the start
    optimize        which optimisations rewrite the graph: True, False, or names; None: as settings or the graph say
    precision       "fast": float32 may be computed in bfloat16 or the like; "strict": it may not
    memory          limits for devices, {"sim:0": "64MiB"}
    on_failure      what becomes of a run that a device failed: "error", "retry", "retry:3", "failover"
    pool            executors that calls share, at most; None: as many as there are cores
    in_flight       runs that may be pending at once on one executor of executor()
    max_streams     compute streams a device; max_programs: plans for different shapes that are kept; 0: the default
    upload_timeout  seconds for the parameters to reach their devices; None: as settings say, else 60
    plan_timeout    seconds for a plan, and for loading the model: TimeoutError names the node; None: as settings say, else
                    no limit
    capture, annotations, reuse, slots   False: steps are not recorded and replayed; annotations of the graph's nodes are
                    ignored; each value has memory of its own. slots True: a buffer for each value instead of an arena
    trust, key      a trust file, by whose keys every file must be signed (DeniedError), and the file of the key of encrypted
                    files; None: as settings say (heddle.signing)
    state           outputs that are inputs of the next run and stay on their device (docs/state.md): "past*:present*",
                    {"past_key_values.*": "present.*"}, or "auto": by the names that exporters use. Calls then share one
                    executor
    seed            of random operators that have no seed of their own, from 0 to 2**64 - 1; 0: from the nodes' names
    context         whose settings, plugins and devices; None: the process's

    Blocks while files are read and drivers are loaded, without the GIL; devices are opened by the first call. FileError,
    FormatError (a malformed file, with the place in it), UnsupportedError (operators that are not known, with their nodes),
    NoDeviceError, LimitError, InvalidError; file is the path. TypeError: neither a path nor a model.
    """
    if isinstance(params, (bytes, bytearray)):
        raise TypeError("params is the path of a file; heddle.loads takes a graph's text and its parameters as bytes")
    options = _options(devices, library, name, place, keep, dims, optimize, precision, memory, on_failure, pool, in_flight,
                       max_streams, max_programs, upload_timeout, plan_timeout, capture, annotations, reuse, slots, trust, key,
                       state, seed)
    memory_of = _in_memory(path)
    if memory_of is not None:
        if params is not None:
            raise TypeError("params is for a model's path; heddle.loads takes a graph's text with its parameters")
        return _with_texts(Model(_core.Context() if context is None else context, bytes=memory_of,
                                 folder=None if folder is None else os.fspath(folder), **options))
    if folder is not None:
        raise TypeError("folder is for a model in memory; that of a file is its own")
    return _with_texts(Model(_core.Context() if context is None else context, os.fspath(path),
                             params=None if params is None else os.fspath(params), **options))


def _with_texts(model: Model) -> Model:
    """The model, which takes and gives texts and maps where it has such."""
    if model.has_strings:
        from . import text  # pylint: disable=cyclic-import
        model.__class__ = text.ObjectModel if model.has_objects else text.TextModel
    return model


def loads(graph: str | bytes, params: bytes | bytearray | memoryview | None = None, *,
          context: _core.Context | None = None, **options: Any) -> Model:
    """Makes a model of a graph's JSON text. params: a blob as TVM's save_param_dict writes it. Options and errors are
    load's, without a file."""
    blob = memoryview(params).tobytes() if params is not None else None
    return _with_texts(Model(_core.Context() if context is None else context, graph=graph, params=blob,
                             **_options(**{**_DEFAULTS, **options})))


_DEFAULTS: dict[str, Any] = {
    "devices": None, "library": None, "name": None, "place": None, "keep": (), "dims": None, "optimize": None,
    "precision": None, "memory": None, "on_failure": None, "pool": None, "in_flight": 1, "max_streams": 0,
    "max_programs": 0, "upload_timeout": None, "plan_timeout": None, "capture": True, "annotations": True,
    "reuse": True, "slots": False, "trust": None, "key": None, "state": None, "seed": 0,
}
