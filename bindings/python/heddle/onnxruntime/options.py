"""SessionOptions, RunOptions and their enumerations. Options that Heddle has no counterpart of are kept and have no effect:
docs/coming-from-onnxruntime.md lists them."""

from __future__ import annotations

import enum
from typing import Any


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_DISABLE_ALL leaves the graph as it is; all others optimise."""
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Without effect."""
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Without effect."""
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(enum.IntEnum):
    """Without effect."""
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    """Without effect."""
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0


class OrtDevice:
    """A device, by ONNX Runtime's name of its kind and a number."""

    def __init__(self, kind: str, device_id: int = 0):
        self._kind, self._id = kind, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int = 0) -> OrtDevice:
        """OrtDevice.make("cpu", 0)."""
        return OrtDevice(ort_device_name, device_id)

    def device_id(self) -> int:
        """Its number."""
        return self._id

    def device_type(self) -> str:
        """"cpu", "cuda"."""
        return self._kind


class _Options:
    """Attributes with fixed names and types, as those of ONNX Runtime's classes."""

    _members: dict[str, Any] = {}

    def __init__(self) -> None:
        self.__dict__.update(self._members)
        self.__dict__["_entries"] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._members:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        kind = type(self._members[name])
        if kind is bool and isinstance(value, bool):
            self.__dict__[name] = value
        elif issubclass(kind, int) and kind is not bool and hasattr(value, "__index__") and not isinstance(value, str):
            self.__dict__[name] = kind(value)
        elif kind is str and isinstance(value, str):
            self.__dict__[name] = value
        else:
            raise TypeError(f"{type(self).__name__}.{name} is of type {kind.__name__}, not {type(value).__name__}")

    def _add(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("a configuration entry is a str with a str")
        self._entries[key] = value


class SessionOptions(_Options):
    """What a session is made with."""

    _members = {
        "enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True, "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL, "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL, "inter_op_num_threads": 0,
        "intra_op_num_threads": 0, "log_severity_level": -1, "log_verbosity_level": 0, "logid": "",
        "optimized_model_filepath": "", "profile_file_prefix": "onnxruntime_profile_", "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["_dims"] = {}
        self.__dict__["_providers"] = []

    def add_session_config_entry(self, config_key: str, config_value: str) -> None:
        """Kept; "session.model_external_initializers_file_folder_path" is where weights outside of a model in memory lie."""
        self._add(config_key, config_value)

    def get_session_config_entry(self, config_key: str) -> str:
        """RuntimeError where there is none."""
        if config_key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {config_key}")
        return self._entries[config_key]

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """A number for a dimension that the model names."""
        self._dims[dim_name] = int(dim_value)

    def add_provider(self, provider_name: str, provider_options: dict[str, str] | None = None) -> None:
        """A provider behind those that were added before; the argument providers of a session goes before all."""
        self._providers.append((provider_name, dict(provider_options or {})))

    def has_providers(self) -> bool:
        """Whether add_provider was called."""
        return bool(self._providers)

    def register_custom_ops_library(self, library_path: str) -> None:
        """Not supported: a device plugin has operators of its own (docs/plugin-guide.md)."""
        from .capi.onnxruntime_pybind11_state import NotImplemented as Unsupported  # pylint: disable=import-outside-toplevel
        raise Unsupported.of(f"{library_path}: libraries of operators for ONNX Runtime are not supported; a device plugin of "
                             "Heddle may have operators")


class RunOptions(_Options):
    """What one run is made with. terminate may be set by another thread while the run is under way, and ends it."""

    _members = {"log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "only_execute_path_to_fetches": False,
                "terminate": False}

    def add_run_config_entry(self, config_key: str, config_value: str) -> None:
        """Kept, without effect."""
        self._add(config_key, config_value)

    def get_run_config_entry(self, config_key: str) -> str:
        """RuntimeError where there is none."""
        if config_key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {config_key}")
        return self._entries[config_key]


_default_severity = 2


def set_default_logger_severity(severity: int) -> None:
    """0 (verbose) to 4 (fatal): for sessions that are made from now on and do not say otherwise."""
    global _default_severity  # pylint: disable=global-statement
    if severity not in range(5):
        raise RuntimeError(f"Invalid logging severity. Range must be from 0 to 4, got {severity}")
    _default_severity = int(severity)


def log_setting(options: SessionOptions) -> str | None:
    """The setting log of a session; None: Heddle's own."""
    level = options.log_severity_level if options.log_severity_level >= 0 else _default_severity
    return {0: "debug", 1: "info", 2: None, 3: "error", 4: "off"}.get(level)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Without effect."""
    int(verbosity)


def set_seed(seed: int) -> None:
    """Without effect."""
    int(seed)


def enable_telemetry_events() -> None:
    """Without effect: nothing is sent anywhere."""


def disable_telemetry_events() -> None:
    """Without effect: nothing is sent anywhere."""
