"""Models on Ray Serve (`pip install heddle[ray]`): each replica loads the model, and gathers its requests into runs.

    import heddle.ray
    from ray import serve

    app = heddle.ray.deployment("model.onnx", devices="cuda:0,cpu", batch={"max_items": 16},
                                num_replicas=2).bind()
    handle = serve.run(app, name="model", route_prefix="/model")
    y = await handle.predict.remote(x=array)     # {"y": array}

Over HTTP a POST of {"inputs": {"x": [[...]]}} gives {"outputs": {"y": [[...]]}}; GET gives the batcher's figures. A wrong
request is 400, a full queue 503, a deadline that passed 504. docs/cluster.md has more.
"""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping

import numpy as np
from ray import serve
from starlette.responses import JSONResponse

from ._served import NotLoaded, Served
from .errors import BusyError, CanceledError, Error, InvalidError, NotFoundError, RunTimeoutError

__all__ = ["Replica", "deployment", "resources"]

_HOST = ("cpu", "sim")  # devices that compute on the host's cores
_GPU = ("gpu", "cuda", "rocm", "vulkan", "opencl")


class Replica:
    """What a replica runs; deployment() makes a Ray Serve deployment of it."""

    def __init__(self, path: Any, load: Mapping[str, Any] | None = None, batch: Mapping[str, Any] | None = None,
                 deadline: float | None = None, drain: float = 30):
        self._served, self._drain = Served(path, load, batch, deadline), drain
        self._served.open()

    async def predict(self, **arrays: Any) -> dict[str, np.ndarray]:
        """The outputs by name, for a handle: `await handle.predict.remote(x=array)`."""
        return await self._served.call(arrays)

    def stats(self) -> dict[str, int]:
        return self._served.stats

    def check_health(self) -> None:
        """Asked by Ray, which replaces a replica whose device is lost."""
        self._served.check()

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Asked by Ray where an autoscaling policy of its user's wants it."""
        stats = self._served.stats
        return {"queue_length": float(stats.get("queued", 0)), "running": float(stats.get("running", 0))}

    async def __call__(self, request: Any) -> Any:
        if request.method == "GET":
            return JSONResponse({"ready": self._served.is_open, **self._served.stats})
        try:
            body = json.loads(await request.body())
            types = {name: dtype for name, dtype, _ in self._served.inputs}
            given = {name: np.asarray(value, dtype=types.get(name)) for name, value in body["inputs"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
            return JSONResponse({"error": f'the body is no JSON as {{"inputs": {{"NAME": [...]}}}}: {error!r}'}, 400)
        try:
            outputs = await self._served.call(given)
        except (Error, NotLoaded, TypeError, ValueError) as error:
            return JSONResponse({"error": str(error)}, _status(error))
        return JSONResponse({"outputs": {name: array.tolist() for name, array in outputs.items()}})

    def __del__(self) -> None:
        """Called by Ray when the replica ends, after the requests that it knows of."""
        served = getattr(self, "_served", None)
        if served is not None:
            served.close(self._drain)


def _status(error: BaseException) -> int:
    if isinstance(error, (BusyError, NotLoaded, CanceledError)):
        return 503
    if isinstance(error, RunTimeoutError):
        return 504
    wrong = (InvalidError, NotFoundError)
    return 400 if isinstance(error, wrong) or not isinstance(error, Error) else 500


def resources(devices: str | Iterable[str] | None, share: float = 1) -> dict[str, Any]:
    """What a replica with these devices asks Ray for, as options of an actor: a share of a GPU for each, the custom resource
    heddle_NAME for the device NAME of another plugin (nodes have to offer it), and a core.

        resources("cuda:0,cpu", 0.5) == {"num_cpus": 1, "num_gpus": 0.5}
    """
    names = devices.split(",") if isinstance(devices, str) else list(devices or ())
    plugins = [name.strip().rstrip("?").split(":")[0] for name in names]
    out: dict[str, Any] = {"num_cpus": 1}
    gpus = sum(plugin in _GPU for plugin in plugins)
    if gpus:
        out["num_gpus"] = gpus * share
    own: dict[str, float] = {}
    for plugin in plugins:
        if plugin and plugin not in _GPU + _HOST:
            own[f"heddle_{plugin}"] = own.get(f"heddle_{plugin}", 0) + share
    if own:
        out["resources"] = own
    return out


def deployment(path: Any, *, devices: str | Iterable[str] | None = None, share: float = 1, load: Mapping[str, Any] | None = None,
               batch: Mapping[str, Any] | None = None, deadline: float | None = None, drain: float = 30,
               ray_actor_options: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """A Ray Serve deployment of a model; `.bind()` makes an application of it.

    path, devices, load   as heddle.load takes them; the path is one that every node has
    share                 of each accelerator, for one replica
    batch, deadline       words of heddle.Batcher, and seconds for a request
    drain                 seconds that a replica which ends gives to the requests that it accepted
    ray_actor_options     in place of resources(devices, share)
    options               of serve.deployment (num_replicas, autoscaling_config, max_ongoing_requests, name, ...)
    """
    words = {**(load or {}), **({} if devices is None else {"devices": devices})}
    actor = dict(ray_actor_options) if ray_actor_options is not None else resources(devices, share)
    settings = {"name": "heddle", "graceful_shutdown_timeout_s": drain + 5, "max_ongoing_requests": 256, **options}

    class Bound(Replica):
        def __init__(self) -> None:
            super().__init__(path, words, batch, deadline, drain)

    Bound.__name__ = settings["name"]
    return serve.deployment(ray_actor_options=actor, **settings)(Bound)
