"""Batchers: requests of one item, or of a few, are gathered into runs of many."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from concurrent.futures import Future
from typing import Any, Generator, Mapping, NamedTuple

from .errors import CanceledError, Error
from .model import Model

__all__ = ["BatchFuture", "BatchPort", "Batcher"]

_EXACT, _KEEP_PADDING, _TOGETHER = 1, 2, 4
_FOREVER = 2**64 - 1
_GIVE_UP = 2_000_000_000  # how long requests may take to end when the interpreter does


class BatchPort(NamedTuple):
    """What differs from the default for an input or an output.

    axis           the batch dimension; None: there is none. Such an input has one value for all requests of a run, and such
                   an output is given whole to each of them
    pad_axes       of an input: dimensions that are padded to the longest of a run; of an output: dimensions that are cut to
                   the request's own length
    pad_value      what inputs are padded with
    pad_multiple   padded lengths are multiples of it
    pad_max        longer requests are refused, and no length is padded past it; 0: no limit
    pad_input      of an output: the input whose length it has; None: the first one that is padded
    """

    axis: int | None = 0
    pad_axes: tuple[int, ...] = ()
    pad_value: float = 0
    pad_multiple: int = 1
    pad_max: int = 0
    pad_input: str | None = None


class BatchFuture(Future[Any]):
    """The result of a request: `await` it, or call result(). cancel() also ends a request that runs; what has ended is not
    cancelled."""

    _request: Any = None
    times: dict[str, Any] | None = None  # with timed=True, when it has ended: heddle_batch_times of heddle/batch.h as a dict
    _is_unwanted = False  # cancel() was called
    _wants_times = False

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()

    def cancel(self) -> bool:
        self._is_unwanted = True
        if self._request is not None and self._request.cancel():
            super().cancel()  # the thread below may have been faster
        return self.cancelled()

    def _resolve(self, request: Any) -> None:
        failure = result = None
        try:
            result = _result(request)
        except Exception as error:  # for who awaits the future
            failure = error
        if self._wants_times:
            self.times = request.times()
        if self._is_unwanted and isinstance(failure, CanceledError):
            super().cancel()
        if not self.set_running_or_notify_cancel():
            return
        if failure is None:
            self.set_result(result)
        else:
            self.set_exception(failure)


class Batcher:
    """Gathers requests of a model into runs along its open batch dimension.

    batcher(x) submits a request and returns a BatchFuture: `y = await batcher(x)` in asyncio, batcher(x).result() elsewhere.
    batcher.run(x) submits one and waits. Inputs are given as to a model, by position or by name, with the batch dimension:
    one image is [1, 3, 224, 224]. The result is a numpy array, or a tuple of them where there are several outputs. Arrays
    that are given must not change before it is there. Any thread may call.

    max_items      of a run; 0: 32, or as many as a model with a fixed batch dimension takes
    max_delay      seconds that a request waits for others; 0: none, while a worker is free
    max_queue      items that may wait; 0: 8 times max_items
    workers        runs at the same time; 0: 1
    run_timeout    seconds for one run; None: no limit
    inputs, outputs   a BatchPort for each name that needs one
    exact          a run has as many items as its requests; else the number is rounded up to a power of two
    keep_padding   outputs keep the padded length
    together       the requests of a failed run are not repeated one by one

    heddle.BusyError: the queue is full. TimeoutError (heddle.errors.RunTimeoutError): the deadline passed. InvalidError and
    NotFoundError: the request does not fit the model, or CanceledError: the batcher is closed; all of these are raised by the
    call itself, without a future. docs/batching.md has more.
    """

    def __init__(self, model: Model, *, max_items: int = 0, max_delay: float = 0, max_queue: int = 0, workers: int = 0,
                 run_timeout: float | None = None, inputs: Mapping[str, BatchPort] | None = None,
                 outputs: Mapping[str, BatchPort] | None = None, exact: bool = False, keep_padding: bool = False,
                 together: bool = False):
        flags = (_EXACT if exact else 0) | (_KEEP_PADDING if keep_padding else 0) | (_TOGETHER if together else 0)
        self._core = model._batcher(max_items, max_queue, workers, flags, _nanoseconds(max_delay), _nanoseconds(run_timeout),
                                    _ports(inputs), _ports(outputs))
        self._names = self._core.input_names
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._end = weakref.finalize(self, _close, self._core, os.getpid())

    def __call__(self, *inputs: Any, priority: int = 0, deadline: float | None = None, timed: bool = False,
                 **named: Any) -> BatchFuture:
        """Submits a request. deadline is in seconds from now; higher priorities run first. With timed, future.times says in
        the end when the request passed what, and what each step of its run took, which slows the run a little."""
        self._start()
        future = BatchFuture()
        future._wants_times = timed
        request = self._core.submit(self._given(inputs, named), priority, _nanoseconds(deadline), 0, future, timed)
        future._request = request
        return future

    def run(self, *inputs: Any, priority: int = 0, deadline: float | None = None, wait: float | None = None, **named: Any) -> Any:
        """Submits a request and waits for its result. wait: seconds for room in the queue; None: without limit."""
        wait_ns = _FOREVER if wait is None else _nanoseconds(wait)
        return _result(self._core.submit(self._given(inputs, named), priority, _nanoseconds(deadline), wait_ns, None))

    def drain(self, timeout: float | None = None) -> None:
        """Waits until every request that was accepted before has its result; they do not wait for others meanwhile."""
        self._core.drain(_FOREVER if timeout is None else _nanoseconds(timeout))

    def close(self, cancel: bool = False, timeout: float | None = None) -> None:
        """Accepts no more requests, and waits for those that were accepted; with cancel they end with CanceledError."""
        self._core.close(cancel, _FOREVER if timeout is None else _nanoseconds(timeout))

    @property
    def stats(self) -> dict[str, int]:
        """requests, succeeded, failed, expired, cancelled, rejected, refused, runs, items, filled, repeated, queued, running,
        most_items. The mean batch is items / runs."""
        return self._core.stats()

    def __enter__(self) -> Batcher:
        return self

    def __exit__(self, *failure: Any) -> None:
        self.close(cancel=failure[0] is not None)

    def __reduce__(self) -> Any:
        raise TypeError("a heddle.Batcher has threads and memory on devices and cannot be pickled")

    def _given(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        names = self._names
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            inputs, names = tuple(inputs[0].values()), tuple(inputs[0])
        if len(inputs) > len(names):
            raise TypeError(f"{len(inputs)} inputs are given; the model has {len(names)}: {', '.join(names)}")
        given = dict(zip(names, inputs))
        twice = given.keys() & named.keys()
        if twice:
            raise TypeError(f"input '{min(twice)}' is given twice")
        given.update(named)
        return given

    def _start(self) -> None:
        """The thread that resolves futures. It holds no Batcher."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=_resolve, args=(self._core,), name="heddle-batch", daemon=True)
                self._thread.start()


def _result(request: Any) -> Any:
    outputs = request.result()
    return outputs[0] if len(outputs) == 1 else outputs


def _resolve(core: Any) -> None:
    while (ended := core.next()) is not None:
        for request in ended:
            future = request.token
            request.token = None
            future._resolve(request)
            del future
        del ended, request


def _close(core: Any, process: int) -> None:
    if process == os.getpid():  # a forked child has none of its threads
        try:
            core.close(True, _GIVE_UP)
        except Error:
            pass  # a device holds a run; its thread is left behind


def _nanoseconds(seconds: float | None) -> int:
    """0 for None."""
    if seconds is None:
        return 0
    if not seconds >= 0:
        raise ValueError(f"a time is a number of seconds, 0 or more, not {seconds!r}")
    return int(min(seconds * 1e9, 2**63))


def _ports(ports: Mapping[str, BatchPort] | None) -> list[tuple[Any, ...]]:
    rows = []
    for name, port in (ports or {}).items():
        axes = 0
        for axis in port.pad_axes:
            if not 0 <= axis < 32:
                raise ValueError(f"'{name}': there is no dimension {axis} to pad")
            axes |= 1 << axis
        rows.append((name, -1 if port.axis is None else port.axis, axes, float(port.pad_value), port.pad_multiple, port.pad_max,
                     port.pad_input))
    return rows
