"""io_binding: an executor whose inputs and outputs are memory of the caller's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from .capi import onnxruntime_pybind11_state as state
from .types import dtype_of
from .value import OrtValue, at_address, device_name, is_host

if TYPE_CHECKING:
    from .options import RunOptions
    from .session import InferenceSession


class IOBinding:
    """What a session's runs read and write in place. One thread at a time."""

    def __init__(self, session: InferenceSession):
        self._session = session
        self._executor = session.model.executor()
        self._inputs: dict[str, Any] = {}  # what is bound, which has to live
        self._outputs: dict[str, tuple[str, OrtValue | None]] = {}  # device, and memory where it is given
        self._results: list[OrtValue] = []
        self._stale: set[str] = set()  # what the executor was not given yet
        self._stale_outputs: set[str] = set()

    # ---- inputs

    def _bind(self, name: str, value: Any, keep: Any = None) -> None:
        try:
            self._session.arg_of(name)
        except state.InvalidArgument as error:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list") from error
        self._inputs[name] = (value, keep)
        self._stale.add(name)

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """An array of the host."""
        self._bind(name, np.ascontiguousarray(arr_on_cpu))

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """Memory at an address of a device."""
        self._bind(name, *at_address(buffer_ptr, device_type, device_id, shape, dtype_of(element_type)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """An OrtValue."""
        self._bind(name, ortvalue.tensor, ortvalue)

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: a run waits for what it reads."""

    def clear_binding_inputs(self) -> None:
        """No input is bound any more."""
        self._inputs.clear()
        self._stale.clear()
        self._executor = self._session.model.executor()
        self._stale_outputs = set(self._outputs)

    # ---- outputs

    def _bind_result(self, name: str, device: str, value: OrtValue | None) -> None:
        if name not in [info.name for info in self._session.get_outputs()]:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        self._outputs[name] = (device, value)
        self._stale_outputs.add(name)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Memory at an address; without one, memory that each run makes."""
        if buffer_ptr is None:
            self._bind_result(name, device_name(device_type, device_id), None)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        value, keep = at_address(buffer_ptr, device_type, device_id, shape, dtype_of(element_type))
        self._bind_result(name, device_name(device_type, device_id), OrtValue(value, keep))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """An OrtValue."""
        self._bind_result(name, ortvalue.device_name(), ortvalue)

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: a run has ended when its call returns."""

    def clear_binding_outputs(self) -> None:
        """No output is bound any more."""
        for name in self._outputs:
            self._executor.bind_output(name, None)
        self._outputs.clear()
        self._stale_outputs.clear()
        self._results = []

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The same as arrays of the host."""
        return [value.numpy() for value in self._results]

    # ---- runs

    def run(self, run_options: RunOptions | None = None) -> None:
        """Of InferenceSession.run_with_iobinding."""
        missing = [info.name for info in self._session.get_inputs() if info.name not in self._inputs]
        if missing:
            raise RuntimeError(f"Error in execution: inputs are not bound: {', '.join(missing)}")
        with state.running():
            for name in self._stale:
                self._executor.bind_input(name, self._inputs[name][0])
            for name in self._stale_outputs:
                value = self._outputs[name][1]
                self._executor.bind_output(name, None if value is None else value.tensor)
        self._stale.clear()
        self._stale_outputs.clear()
        self._session.drive(self._executor, run_options)
        self._results = [self._result(name, device, value) for name, (device, value) in self._outputs.items()]

    def _result(self, name: str, device: str, value: OrtValue | None) -> OrtValue:
        if value is not None:
            return value
        tensor = self._executor.get_output(name)
        if is_host(device):
            return OrtValue(np.array(tensor.numpy()))
        kind, _, number = device.partition(":")
        return OrtValue.ortvalue_from_numpy(tensor.numpy(), kind, int(number or 0))


SessionIOBinding = IOBinding
