"""What heddle.kserve and heddle.ray share: a model with a batcher, as a server holds it."""

from __future__ import annotations

import threading
from typing import Any, Mapping

import numpy as np

from ._traces import Recorded
from .batching import Batcher
from .errors import DeviceLostError, Error, InvalidError
from .model import Model, load

__all__ = ["NotLoaded", "Served"]


class NotLoaded(RuntimeError):
    """The model is not loaded yet, or not any more."""


class Served:
    """A model of any form that heddle.load takes, whose requests share runs.

    path, load      the model, and words of heddle.load ({"devices": "cuda:0,cpu"})
    batch           words of heddle.Batcher ({"max_items": 16, "max_delay": 0.005}); None: 2 ms of delay
    deadline        seconds for a request, from its arrival; None: no limit
    """

    def __init__(self, path: Any, load: Mapping[str, Any] | None = None, batch: Mapping[str, Any] | None = None,
                 deadline: float | None = None):
        self._path, self._load = path, dict(load or {})
        self._batch = {"max_delay": 0.002} if batch is None else dict(batch)
        self._deadline = deadline
        self._lock = threading.Lock()
        self._model: Model | None = None
        self._batcher: Batcher | None = None
        self._failed: Error | None = None
        self.inputs: list[tuple[str, np.dtype[Any], list[int]]] = []  # name, type, shape with -1 for what is open
        self.outputs: list[tuple[str, np.dtype[Any], list[int]]] = []
        self.output_names: list[str] = []

    def _warm(self, model: Model) -> None:
        """Runs the model once on zeros, one item: it is planned, and types that its file does not have are known. A model that
        takes no zeros, or other lengths, is served all the same."""
        self.inputs = [(info.name, np.dtype(info.dtype), _sizes(info.shape)) for info in model.inputs]
        names = [info.name for info in model.outputs]
        shapes = [_sizes(info.shape) for info in model.outputs]
        try:
            result = model(**{name: np.zeros([max(n, 1) for n in shape], dtype) for name, dtype, shape in self.inputs})
        except InvalidError:
            result = ()
        results = result if isinstance(result, tuple) else (result,)
        self.output_names = names
        self.outputs = [(name, array.dtype, shape or [-1] * array.ndim) for name, array, shape in zip(names, results, shapes)]

    def open(self) -> None:
        """Loads the model and plans it. A second call does nothing."""
        with self._lock:
            if self._batcher is not None:
                return
            model = load(self._path, **self._load)
            self._warm(model)
            self._batcher, self._model = Batcher(model, **self._batch), model

    def close(self, timeout: float | None = 30) -> None:
        """Takes no more requests, waits for those that were accepted, at most timeout seconds, and ends the rest."""
        with self._lock:
            batcher, self._batcher = self._batcher, None
            model, self._model = self._model, None
        if batcher is None:
            return
        try:
            batcher.close(timeout=timeout)
        except TimeoutError:
            batcher.close(cancel=True, timeout=timeout)
        if model is not None:
            model.close()

    @property
    def is_open(self) -> bool:
        return self._batcher is not None

    @property
    def model(self) -> Model:
        if self._model is None:
            raise NotLoaded("the model is not loaded")
        return self._model

    @property
    def stats(self) -> dict[str, int]:
        """Of heddle.Batcher; empty before the model is loaded."""
        batcher = self._batcher
        return dict(batcher.stats) if batcher is not None else {}

    def check(self) -> None:
        """Raises the error of a device that is lost, so that the server can be replaced."""
        if self._failed is not None:
            raise self._failed

    async def call(self, arrays: Mapping[str, Any], recorded: Recorded | None = None) -> dict[str, np.ndarray]:
        """The outputs by name. recorded: the request's span, which gets those of its run. Errors are those of heddle.Batcher;
        NotLoaded."""
        recorded = recorded or Recorded()
        batcher = self._batcher
        if batcher is None:
            raise NotLoaded("the model is not loaded")
        future = batcher(arrays, deadline=self._deadline, timed=recorded.is_on)
        try:
            result = await future
        except DeviceLostError as error:
            self._failed = error
            raise
        finally:
            recorded.add(future.times)
        results = result if isinstance(result, tuple) else (result,)
        return dict(zip(self.output_names, results))


def _sizes(shape: Any) -> list[int]:
    """A shape with -1 for open dimensions; [] where nothing is known."""
    return [n if isinstance(n, int) else -1 for n in shape or ()]
