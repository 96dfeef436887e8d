"""Packed files: graphs, parameters and the libraries that they run, written as one library in TVM's form, and back."""
from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Iterator, Mapping, Sequence

from . import _functions
from ._core import Context
from .errors import UnsupportedError

_NO_PARAMS, _NO_MODELS = 1, 2
_FACTORY = "GraphExecutorFactory"

Path = str | os.PathLike[str]


def _row(name: str | None, graph: Path | bytes, params: Any) -> tuple[str | None, bytes | None, bytes | None, str | None]:
    """JSON text as it is, or the path of a file."""
    if isinstance(graph, str) and graph.lstrip().startswith("{"):
        graph = graph.encode()
    text, path = (graph, None) if isinstance(graph, bytes) else (None, os.fspath(graph))
    return name, text, _params(params), path


def _params(params: Any) -> bytes | None:
    if params is None or isinstance(params, (bytes, bytearray)):
        return None if params is None else bytes(params)
    if isinstance(params, Mapping):
        from .runtime.params import save_param_dict
        return bytes(save_param_dict(params))
    return pathlib.Path(params).read_bytes()


def pack(path: Path, graph: Path | bytes | None = None, *, library: Path | Sequence[Path] = (), params: Any = None,
         name: str | None = None, models: Mapping[str, Any] | None = None, imports: Mapping[str, bytes] | None = None,
         remove_params: bool = False, compiler: str | None = None, devices: str | Sequence[str] = (),
         dims: Mapping[str, int | Sequence[int]] | None = None, sign: Path | None = None,
         encrypt: Path | None = None, sequence: int = 0, memory: str | None = None) -> None:
    """Writes one library (.so) with models and the libraries that they run; or, without a library, one file of Heddle's own
    with a graph of operators, which is mapped when it is loaded.

    graph: JSON text, or the path of a .json file, or, without a library, of an .onnx file; params: a blob, a mapping of arrays, or the path of a file. models: more
    of them, by name: a graph, or a pair (graph, params). library: .so files, whose code is written as it is and whose
    models stay, or objects (.o, .a, .tar), which the C compiler links (compiler, else the variable CC). imports: modules of
    other kinds that are put in, as their loaders read them. remove_params: no model has parameters. devices: without a library, lists
    of devices ("opencl:0,cpu") for which the file also holds what was prepared: the model is run once on each; dims: then numbers
    for dimensions that have names, or lists of numbers, each of which is prepared for; memory: then the limits on devices' memory that
    models of the file will have. sign, encrypt: the
    files of the keys that sign and encrypt what is written, with a sequence number (heddle.signing). FormatError,
    UnsupportedError (no libelf, no compiler), ValueError (two models of one name, code of two finished libraries).
    """
    libraries = [library] if isinstance(library, (str, os.PathLike)) else list(library)
    rows = [] if graph is None else [_row(name, graph, params)]
    for key, value in (models or {}).items():
        pair = value if isinstance(value, tuple) else (value, None)
        rows.append(_row(key, pair[0], pair[1]))
    _functions.pack(os.fspath(path), [os.fspath(p) for p in libraries], rows, [*(imports or {}).items()],
                    _NO_PARAMS if remove_params else 0, compiler, [devices] if isinstance(devices, str) else list(devices),
                    [f"{key}={int(n)}" for key, value in (dims or {}).items() for n in (value if isinstance(value, Sequence) else [value])],
                    None if sign is None else os.fspath(sign), None if encrypt is None else os.fspath(encrypt), sequence, memory)


def link(folder: Path, name: str, graph: Path | bytes, *, params: Any = None, devices: str | Sequence[str] = ()) -> None:
    """Writes FOLDER/NAME.o, an object file with a packed graph of operators, and FOLDER/NAME.h, which declares it as NAME for
    heddle_model_load_memory. graph may also be the path of a file that pack wrote; the rest as of pack."""
    _functions.link(os.fspath(folder), name, [_row(None, graph, params)], [devices] if isinstance(devices, str) else list(devices))


def unpack(path: Path, folder: Path) -> None:
    """Writes what a packed file holds to a folder: NAME.json and NAME.params of each model, and lib.so."""
    _functions.unpack(os.fspath(path), os.fspath(folder))


def prepared(path: Path, *, context: Any = None, trust: Path | None = None, key: Path | None = None) -> dict[str, Any] | None:
    """What a packed graph carries that was prepared for devices, compared with those that are here; None where nothing was.

    heddle: the version that wrote it; why: why nothing of it is used here, or None; targets: for each list of devices for
    (the list), fits, why, bytes, devices (name, about, driver, build, why) and files (name, kind, bytes). trust, key: a trust
    file that the file must be signed by, the file of its encryption key. The plugins of the devices are loaded."""
    found = (Context() if context is None else context).prepared(
        os.fspath(path), None if trust is None else os.fspath(trust), None if key is None else os.fspath(key))
    return json.loads(found)


# ---- modules that are loaded

def below(module: Any) -> Iterator[Any]:
    """The module and all that it imports, each once, those that import before those that are imported."""
    seen, waiting = set(), [module]
    while waiting:
        m = waiting.pop(0)
        if m.address not in seen:
            seen.add(m.address)
            yield m
            waiting += m.imports()


def export(module: Any, path: str, addons: Any) -> None:
    """Module.export_library."""
    if not path.endswith((".so", ".dylib", ".dll")):
        raise UnsupportedError(f"{path}: a module that was loaded is written as a library, .so; its objects are not kept")
    if addons:
        raise UnsupportedError("export_library(addons=): objects are added with heddle.pack(library=[...])")
    found = list(below(module))
    facts = {m.address: m.library() for m in found if m.kind == "library"}
    names = [c["name"] for info in facts.values() for c in info["modules"] if c["is_model"]]
    rows = []
    for m in found:
        if m.kind == _FACTORY:
            name = next(n for n in names if m.implements_function(n))
            rows.append((name, m.function("get_graph_json")().encode(), bytes(m.function("get_graph_params")()), None))
    if not facts or any(m.kind == "GraphExecutor" for m in found):
        raise UnsupportedError(f"a module of kind '{module.kind}' is not written; the model or the library that it is made of is")
    _functions.pack(path, [info["path"] for info in facts.values()], rows, [], _NO_MODELS, None, [], [])
