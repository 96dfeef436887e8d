"""The C API as Python types, one to one. heddle/*.py is what users see; names here may change."""

from typing import Any, Callable, Iterable, Mapping, Sequence

version: str

# ---- errors (error.c): a class for each status. Error is the base and derives from RuntimeError; where Python has a
# class for the thing, ours derives from it too: InvalidError(ValueError), MemoryError_(MemoryError),
# FileError(OSError) for EIO, FormatError(ValueError), NoDeviceError, NotFoundError(KeyError; str() is the plain words),
# UnsupportedError(NotImplementedError), BusyError, TimeoutError_(TimeoutError), CanceledError, DeviceLostError,
# FailedError, CompileError, AbiError, ForkError, PlanError, InternalError, NeedsOpenError, LimitError.
# heddle/errors.py exports them (OutOfMemoryError, RunTimeoutError are the public names of the two with '_').
class Error(RuntimeError):
    status: str          # "HEDDLE_EINVAL"
    code: int            # its number
    api_code: int        # the driver's number, or 0
    message: str
    node: str | None     # taken from the words: node 'NAME'
    device: str | None   # ... a device's name, such as "sim:0"
    file: str | None     # ... the path that the call was about

def error_of(code: int, words: str) -> Error: ...   # what a call with that status and those words raises

# ---- context.c
class Context:
    """Settings, plugins and devices. Context() without settings is the process's one (heddle_context_process)."""
    def __init__(self, settings: Mapping[str, str] | None = None, log: Callable[[int, str, str], None] | None = None): ...
    def devices(self) -> list[dict[str, Any]]: ...  # name, type, index, product, driver, uuid, memory_bytes, ... health
    def device(self, key: Any) -> dict[str, Any]: ...  # one of them, by name, (type, number) or Device; NoDeviceError
    def plugins(self) -> list[dict[str, Any]]: ...  # name, path, used, reason ...
    def select(self, devices: str | None = None) -> list[str]: ...
    def setting(self, key: str) -> tuple[str, str] | None: ...  # value, origin
    def settings(self) -> dict[str, str]: ...
    def health(self, device: str) -> None: ...
    def reopen(self, device: str) -> None: ...
    def trace_begin(self) -> None: ...
    def trace_write(self, path: str) -> None: ...

# ---- tensor.c, dlpack.c, numpy.c
class Tensor:
    """An array on the host or on a device. Attributes are TVM's NDArray's too: heddle.runtime.NDArray is this class."""
    shape: tuple[int, ...]
    dtype: str
    ndim: int
    nbytes: int
    strides: tuple[int, ...]      # in elements
    is_contiguous: bool
    address: int                  # 0 where the host cannot read it
    device_key: tuple[int, int]   # DLPack's type and number; host memory: (1, 0)
    device_name: str              # "cpu" for host memory
    device: Any                   # device_class(type, number)
    def numpy(self) -> Any: ...   # host memory: an array that shares it (and keeps it); device: a copy
    def copy_from(self, other: Any) -> None: ...   # Tensor, array, buffer, DLPack; equal shape, dtype converted as numpy does
    def copy_to(self, other: "Tensor") -> None: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __len__(self) -> int: ...
    # and the buffer protocol for host memory

def empty(shape: Sequence[int], dtype: Any = "float32", device: tuple[int, int] | str | None = None,
          context: Context | None = None) -> Tensor: ...    # zeroed; device: (DLPack type, number) or a name such as "sim:0"
def as_tensor(value: Any, dtype: Any = None) -> Tensor: ...  # shares memory where it can (core.h: tensor_of)
def from_dlpack(value: Any, device: Any = None, context: Context | None = None) -> Tensor: ...                   # object with __dlpack__, or a capsule
def load_npy(path: str) -> Tensor: ...
def save_npy(tensor: Tensor, path: str) -> None: ...
def set_device_class(cls: type) -> None: ...   # heddle/device.py calls it with Device(device_type, device_id, name)
def set_tensor_class(cls: type) -> None: ...   # a subclass of Tensor that results have from then on

# ---- model.c
class Model:
    """A model and a bounded pool of its executors. Any thread may call it: a call takes a free executor, or makes one
    where there are fewer than `pool`, or waits for one without the GIL."""
    def __init__(self, context: Context, path: str | None = None, *, graph: str | bytes | None = None,
                 params: str | bytes | None = None, library: Any = None, model_name: str | None = None,
                 devices: str | None = None, place: Sequence[str] = (), keep: Sequence[str] = (), flags: int = 0,
                 max_streams: int = 0, max_programs: int = 0, in_flight: int = 0, upload_timeout_ns: int = 0,
                 optimize: str | None = None, dims: Sequence[str] = (), memory: str | None = None,
                 on_failure: str | None = None, pool: int = 0): ...   # pool 0: as many as there are cores
    def __call__(self, *inputs: Any, **named: Any) -> Any: ...  # one output: an array; several: a tuple. call.c, the fast path
    def run(self, inputs: Mapping[str, Any], timeout: float | None = None) -> dict[str, Any]: ...
    def executor(self) -> "Executor": ...     # one of the caller's own, not of the pool
    def explain(self, format: str = "text", inputs: Mapping[str, Any] | None = None) -> str: ...  # "text", "json", "dot"
    def graph_json(self) -> str: ...
    def trim(self) -> int: ...        # frees executors that no call uses; how many
    def close(self) -> None: ...      # later calls: InvalidError
    devices: tuple[str, ...]
    input_names: tuple[str, ...]      # without parameters; these and what follows make an executor the first time
    output_names: tuple[str, ...]
    input_infos: tuple[tuple[str, tuple[int | str | None, ...] | None, str], ...]   # name, shape, dtype
    output_infos: tuple[tuple[str, tuple[int | str | None, ...] | None, str], ...]
    path: str | None
    context: Context
    closed: bool
    pool: int                         # executors at most
    executors: int                    # ... and now

# ---- executor.c
class Executor:
    """One thread at a time; BusyError where another is in a call of it. wait, cancel and done: any thread. What is bound,
    and out, is an array, a Tensor or an object with __dlpack__ whose own memory can be used; else InvalidError."""
    model: Model
    def input_info(self) -> list[tuple[str, tuple[int, ...] | None, str, bool]]: ...   # name, shape, dtype, is_param
    def output_info(self) -> list[tuple[str, tuple[int, ...] | None, str]]: ...
    def set_input(self, key: int | str, value: Any) -> None: ...
    def bind_input(self, key: int | str, value: Any) -> None: ...
    def bind_output(self, key: int | str, value: Any | None) -> None: ...
    def get_input(self, key: int | str) -> Tensor: ...
    def get_output(self, key: int | str = 0, out: Any = None) -> Tensor: ...  # out: copied there and given back
    def view_output(self, key: int | str = 0) -> Tensor: ...
    def run(self, timeout: float | None = None) -> None: ...
    def start(self) -> None: ...
    def wait(self, timeout: float | None = None) -> None: ...
    def cancel(self) -> None: ...
    def done(self) -> bool: ...
    def run_to(self, node: str, output: int = 0) -> Tensor: ...
    def load_params(self, params: bytes) -> None: ...
    def share_params(self, other: "Executor", params: bytes) -> None: ...
    def profile(self) -> list[dict[str, Any]]: ...
    def stats(self) -> dict[str, int]: ...
    def explain(self, format: str = "text") -> str: ...
