"""Modules: compiled libraries, models inside of them, executors; functions by name."""

from __future__ import annotations

import os
import struct
import tempfile
from typing import Any, Callable, NoReturn

from .. import _core, _functions, _pack
from .._tvm_methods import adapt
from ..benchmark import BenchmarkResult
from ..errors import FileError, NotFoundError, UnsupportedError
from .ndarray import Device, NDArray, device
from .packed_func import PackedFunc


class MissingFunctionError(NotFoundError, AttributeError):
    """TVM raises AttributeError here."""


class MissingFileError(FileError, ValueError):
    """TVM raises ValueError here."""


def _cannot(what: str) -> NoReturn:
    raise UnsupportedError(f"{what}: modules that are loaded are run, not written; keep the file that TVM exported")


class _Facts:
    """What TVM asks of every module, and is the same for all of ours."""

    is_runnable = True
    is_device_module = False
    is_dso_exportable = False
    is_binary_serializable = False

    def save(self, file_name: str, fmt: str = "") -> NoReturn:
        """UnsupportedError: Heddle runs modules, and writes none."""
        _cannot("save")

    def export_library(self, file_name: str, fcompile: Any = None, addons: Any = None, workspace_dir: Any = None,
                       **kwargs: Any) -> Any:
        """UnsupportedError: a module of this kind is not written by itself; the library that carries it is."""
        _cannot("export_library")


class DeviceCode(_Facts):
    """Code for a device that a library carries, as an item of Module.imported_modules: what it is and its kernels. Its
    kernels are launched by the library's functions, and have none of their own here."""

    is_runnable = False
    is_device_module = True
    imported_modules: list["Module"] = []

    def __init__(self, info: dict[str, Any], path: str):
        self.type_key = info["kind"]
        self.format = info["format"]
        self.kernels = tuple(info["kernels"])
        self._code, self._path = info["code"], path

    def get_function(self, name: str, query_imports: bool = False) -> NoReturn:
        """AttributeError: the library's functions launch the kernels."""
        raise MissingFunctionError(f"Module has no function '{name}': code of kind '{self.type_key}' of {self._path} is "
                                   "launched by the library's functions")

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """False: see get_function."""
        return False

    def __getitem__(self, name: str) -> NoReturn:
        self.get_function(name)

    def get_source(self, fmt: str = "") -> str:
        """The code, where it is text, as OpenCL's, CUDA's and PTX are; of other code a list of its kernels, as a comment."""
        try:
            text = self._code.decode()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" not in text:
            return text
        lines = [f"// {self.type_key} ({self.format or 'binary'}), {len(self._code)} bytes, of {self._path}"]
        return "\n".join(lines + [f"// kernel {name}" for name in self.kernels]) + "\n"

    def __repr__(self) -> str:
        return f"Module({self.type_key}, {self._path})"


class Module(_Facts, _functions.Module):
    """A module: a compiled library, a model inside of one (whose function "default" makes executors), an executor.

    module["name"] is a function; a call of the module calls its entry, `entry_name`. Modules are found by load_module and
    system_lib, and given by functions; there is no constructor.
    """

    entry_name = "__tvm_main__"
    _entry: PackedFunc | None = None

    @property
    def type_key(self) -> str:
        """The kind: "library", "GraphExecutorFactory", "GraphExecutor" (the debug executor, too), ... TVM calls a library
        that was just built "llvm" or "c", and one that was loaded "library", as here."""
        return self.kind

    @property
    def format(self) -> str:
        """The format of its file: "so" for a library, else ""."""
        return "so" if self.kind == "library" else ""

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """The function of a name; query_imports: or of the first module that this one imports which has one.

        AttributeError, which is heddle.errors.NotFoundError too, where there is none.
        """
        try:
            return adapt(self.kind, name, self.function(name, bool(query_imports)))
        except NotFoundError as error:
            raise MissingFunctionError(f"Module has no function '{name}': {error}") from None

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether get_function gives one."""
        try:
            self.function(name, bool(query_imports))
        except NotFoundError:
            return False
        return True

    @property
    def entry_func(self) -> PackedFunc:
        """The function `entry_name`. AttributeError where there is none."""
        if self._entry is None:
            self._entry = self.get_function(self.entry_name)
        return self._entry

    def __getitem__(self, name: str) -> PackedFunc:
        if not isinstance(name, str):
            raise ValueError("Can only take string as function name")
        return self.get_function(name)

    def __call__(self, *args: Any) -> Any:
        return self.entry_func(*args)

    @property
    def imported_modules(self) -> list[Any]:
        """The modules that this one imports: Modules, and DeviceCode for what a library carries for devices."""
        library = self.library()
        carried = library["modules"] if library is not None else []
        hosts = ("_lib", "GraphExecutorFactory", "GraphRuntimeFactory")
        codes = [m for m in carried if not m["is_model"] and m["kind"] not in hosts]
        kinds = {m["kind"] for m in codes}
        return [m for m in self.imports() if m.kind not in kinds] + [DeviceCode(m, library["path"]) for m in codes]

    def import_module(self, module: "Module") -> None:
        """Adds an import: functions are found there with query_imports, and by this module's own code. ValueError for a
        circle."""
        self.add_import(module)

    def export_library(self, file_name: str, fcompile: Any = None, addons: Any = None, workspace_dir: Any = None,
                       **kwargs: Any) -> None:
        """Writes the module and all that it imports as one library (.so): of a library its code and the device code that
        it carries; of a model (GraphExecutorFactory) its graph and parameters too, those of remove_params without. The
        code is linked already: fcompile is not called. UnsupportedError for other suffixes, addons, and modules that come
        from no file."""
        _pack.export(self, os.fspath(file_name), addons)

    def get_graph_json(self) -> str:
        """Of a model: its graph."""
        return self._of_model("get_graph_json")()

    def save_graph_json(self, file_name: str | os.PathLike[str]) -> None:
        """Writes get_graph_json into a file."""
        with open(file_name, "w", encoding="utf-8") as file:
            file.write(self.get_graph_json())

    def get_params(self) -> dict[str, NDArray]:
        """Of a model: its parameters by name."""
        return self._of_model("get_graph_params")()

    def get_lib(self) -> "Module":
        """Of a model: the library that it runs."""
        self._of_model("get_graph_json")
        return next(m for m in _pack.below(self) if m.kind == "library")

    def _of_model(self, name: str) -> PackedFunc:
        if self.kind != "GraphExecutorFactory":
            raise AttributeError(f"a module of kind '{self.type_key}' is no model inside of a library")
        return self.get_function(name)

    def get_source(self, fmt: str = "") -> str:
        """UnsupportedError: a library holds machine code. Device code (imported_modules) has one."""
        raise UnsupportedError(f"a module of kind '{self.type_key}' has no source; imported_modules has the device code")

    def time_evaluator(self, func_name: str, dev: Device, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0,
                       limit_zero_time_iterations: int = 100, cooldown_interval_ms: int = 0,
                       repeats_to_cooldown: int = 1, cache_flush_bytes: int = 0,
                       f_preproc: str = "") -> Callable[..., BenchmarkResult]:
        """A function that calls the named one with its own arguments and gives a BenchmarkResult of `repeat` times.

        Each is the mean of `number` calls, or of more where they take less than min_repeat_ms in all; one untimed call comes
        first. Calls wait for what they launch, so the host's clock is right for all devices; dev is ignored.
        A clock that shows 0 is read again at most limit_zero_time_iterations times. After each repeats_to_cooldown
        repeats but the last the thread sleeps for cooldown_interval_ms (TVM sleeps after the first one too).
        cache_flush_bytes of memory are written before each repeat, so that the caches are cold.
        f_preproc names a registered function that is called with the arguments before each repeat, outside of the clock.
        """
        make = _functions.find("runtime.RPCTimeEvaluator")
        timed = make(self, func_name, int(dev.device_type), int(dev.device_id), int(number), int(repeat),
                     int(min_repeat_ms), int(limit_zero_time_iterations), int(cooldown_interval_ms),
                     int(repeats_to_cooldown), int(cache_flush_bytes), f_preproc)

        def evaluator(*args: Any) -> BenchmarkResult:
            blob = timed(*args)
            return BenchmarkResult(struct.unpack(f"={len(blob) // 8}d", blob))

        return evaluator

    def __repr__(self) -> str:
        return f"Module({self.type_key}, {self.address:x})"


def _linked(name: str) -> str:
    """The shared library beside objects, NAME.so, as TVM makes it."""
    from ..contrib import cc, tar
    with tempfile.TemporaryDirectory(prefix="heddle_") as folder:
        cc.create_shared(name + ".so", tar.untar(name, folder) if name.endswith(".tar") else [name])
    return name + ".so"


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Module:
    """The module of a file: a shared library that TVM v0.3 to v0.27 compiled, whose model (GraphExecutorFactory) is the
    module where it holds one; or what the function "runtime.module.loadfile_FORMAT" that is registered makes of it.

    fmt "": the file's suffix. Objects (.o, or a .tar of them, as export_library writes) are linked first with the C compiler
    of the machine, to a library beside them (lib.tar.so). The library is code, and runs with the rights of this process.
    ValueError (which is an OSError too) where there is no such file; UnsupportedError where there is no compiler.
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        error = MissingFileError(f"cannot find file {name}")
        error.file = name
        raise error
    if name.endswith((".o", ".tar")) and not fmt:
        name = _linked(name)
    return _functions.load_module(name, fmt)


def load_static_library(path: str, func_names: Any) -> NoReturn:
    """UnsupportedError: static libraries are for the compiler."""
    _cannot("load_static_library")


def system_lib(symbol_prefix: str = "") -> Module:
    """The module of what objects linked into this process, compiled with system_lib, registered."""
    return _functions.find("runtime.SystemLib")(symbol_prefix)


def num_threads() -> int:
    """How many threads a parallel loop uses at most: the setting "threads" (HEDDLE_THREADS), else the cores of this
    process."""
    found = _core.Context().setting("threads")
    try:
        set_to = int(found[0]) if found else 0
    except ValueError:
        set_to = 0
    return set_to if set_to > 0 else len(os.sched_getaffinity(0))


def enabled(target: str) -> bool:
    """Whether code for a target such as "llvm", "cpu", "opencl" or "cuda -arch=sm_80" runs here: the host's always, others'
    where there is such a device. False for a name that is none."""
    name = target.split()[0] if target.split() else ""
    if name in ("llvm", "c", "cpu", "stackvm"):
        return name != "stackvm"
    try:
        return bool(device(name).exist)
    except ValueError:
        return False


_functions.set_classes(PackedFunc, Module, NDArray)
