"""Calls that are not waited for: threads that run a model's submitted calls, as many as its pool has executors.

They are daemons: a program that ends does not wait for calls whose results are not taken.
"""

from __future__ import annotations

import os
import queue
import threading
from concurrent.futures import Future
from typing import Any, Callable

__all__ = ["Workers"]


class Workers:
    """At most `limit` threads, started when calls come. They hold no model, but through the calls that they were given."""

    def __init__(self, limit: int):
        self._limit = limit
        self._lock = threading.Lock()
        self._renew()

    def _renew(self) -> None:
        self._process = os.getpid()
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0

    def submit(self, call: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Future[Any]:
        """The result of call(*args, **named) to come. A future that is cancelled before its turn is not run."""
        future: Future[Any] = Future()
        with self._lock:
            if self._process != os.getpid():
                self._renew()  # the threads are the parent's
            self._jobs.put((future, call, args, named))
            if not self._idle.acquire(blocking=False) and self._started < self._limit:
                self._started += 1
                threading.Thread(target=_work, args=(self._jobs, self._idle), name="heddle-call", daemon=True).start()
        return future

    def stop(self) -> None:
        """Lets the threads end once they have done what was submitted before."""
        with self._lock:
            for _ in range(self._started):
                self._jobs.put(None)
            self._started = 0
            self._jobs = queue.SimpleQueue()
            self._idle = threading.Semaphore(0)


def _work(jobs: queue.SimpleQueue[Any], idle: threading.Semaphore) -> None:
    while (job := jobs.get()) is not None:
        future, call, args, named = job
        if future.set_running_or_notify_cancel():
            try:
                result = call(*args, **named)
            except BaseException as failure:  # for the caller, which awaits the future
                future.set_exception(failure)
            else:
                future.set_result(result)
                del result
        del job, future, call, args, named  # a thread that waits keeps nothing alive
        idle.release()
