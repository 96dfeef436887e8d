"""Execution providers as devices of Heddle: NAMEExecutionProvider is the plugin that is called name."""

from __future__ import annotations

import collections.abc
import warnings
from typing import Any, Sequence

from ..device import devices as list_devices

_CPU = "CPUExecutionProvider"
_OWN = "HeddleExecutionProvider"  # the option "devices" is a list as heddle.load takes it
_SUFFIX = "ExecutionProvider"
_NAMES = {"cuda": "CUDA", "rocm": "ROCM", "opencl": "OpenCL", "vulkan": "Vulkan", "cpu": "CPU", "sim": "Sim"}
_ALIASES = {"tensorrt": "cuda", "nvtensorrtrtx": "cuda", "migraphx": "rocm", "hip": "rocm"}


def kind_of(provider: str) -> str:
    """The plugin that a provider stands for: "cuda"; "" for a name of another form."""
    if not provider.endswith(_SUFFIX):
        return ""
    kind = provider[:-len(_SUFFIX)].lower()
    return _ALIASES.get(kind, kind)


def _kinds() -> list[str]:
    """The plugins that have devices, accelerators first."""
    found = list(dict.fromkeys(str(device["name"]).split(":")[0] for device in list_devices()))
    return [kind for kind in found if kind not in ("cpu", "null")]


def _name(kind: str) -> str:
    return _NAMES.get(kind, kind) + _SUFFIX


def get_all_providers() -> list[str]:
    """The providers that a device may be found for."""
    return [_name(kind) for kind in _NAMES if kind != "cpu"] + [_OWN, _CPU]


def get_available_providers() -> list[str]:
    """The providers that there is a device for, in order of preference; drivers are loaded for it."""
    return [_name(kind) for kind in _kinds()] + [_OWN, _CPU]


def get_device() -> str:
    """"GPU" where there is a device of CUDA or ROCm, else "CPU"."""
    return "GPU" if {"cuda", "rocm"} & set(_kinds()) else "CPU"


def _pairs(providers: Any, options: Any) -> list[tuple[str, dict[str, str]]]:
    if not isinstance(providers, collections.abc.Sequence) or isinstance(providers, str):
        raise ValueError("'providers' should be a sequence.")
    if options is not None:
        if not isinstance(options, collections.abc.Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(options) != len(providers):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(one, str) for one in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(one, dict) for one in options):
            raise ValueError("'provider_options' values must be dicts.")
        return list(zip(providers, options))
    pairs = []
    for one in providers:
        if isinstance(one, str):
            pairs.append((one, {}))
        elif isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], dict):
            pairs.append(one)
        else:
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    return pairs


def resolve(providers: Sequence[Any] | None, options: Sequence[Any] | None) -> tuple[dict[str, dict[str, str]], str]:
    """The providers that are used, with their options, and Heddle's list of devices. A provider without a device is passed
    over with a warning, as ONNX Runtime does; the CPU is always the last."""
    used: dict[str, dict[str, str]] = {}
    names: list[str] = []
    available: list[str] | None = None
    for provider, given in _pairs(providers or [], options):
        if provider in used:
            warnings.warn(f"Duplicate provider '{provider}' encountered, ignoring.", stacklevel=4)
            continue
        kind = kind_of(provider)
        if provider not in (_CPU, _OWN):
            if available is None:
                available = get_available_providers()
            if _name(kind) not in available:
                warnings.warn(f"Specified provider '{provider}' is not in available provider names.Available providers: "
                              f"'{', '.join(available)}'", stacklevel=4)
                continue
        used[provider] = {str(key): str(value) for key, value in given.items()}
        if provider == _OWN:
            names += [one for one in used[provider].get("devices", "").split(",") if one]
        else:
            names.append("cpu" if provider == _CPU else f"{kind}:{used[provider].get('device_id', '0')}")
    used.setdefault(_CPU, {})
    if not any(name.split(":")[0] == "cpu" for name in names):
        names.append("cpu")
    return used, ",".join(dict.fromkeys(names))
