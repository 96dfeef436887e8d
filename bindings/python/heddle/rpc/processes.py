"""A server, a tracker, a proxy and a tunnel as processes of this machine: heddle rpc-server, rpc-tracker, rpc-proxy and
rpc-tunnel."""
from __future__ import annotations

import contextlib
import subprocess
from typing import Any

from .. import _tool
from ..errors import FailedError


class _Process:
    def __init__(self, command: str, host: str, *words: str):
        self._process = subprocess.Popen([_tool.path(), command, *words], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            self.terminate()
            raise FailedError(f"heddle {command} did not start: see what it wrote")
        self.host, self.port = host, int(line.rsplit(":", 1)[1])

    def terminate(self) -> None:
        """Ends the process and all its sessions."""
        process, self._process = getattr(self, "_process", None), None  # type: ignore[assignment]
        if process is not None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()  # type: ignore[union-attr]

    def __del__(self) -> None:
        self.terminate()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *why: Any) -> None:
        self.terminate()


def _place(host: str, port: int, port_end: int) -> list[str]:
    return ["--host", host, *(["--port-range", f"{port}-{port_end - 1}"] if port_end > port else ["--port", str(port)])]


class Server(_Process):
    """heddle rpc-server on this machine: host, port, terminate(). The first free port of [port, port_end) is taken. With
    is_proxy, host and port are those of a proxy, which brings the clients."""

    def __init__(self, host: str = "127.0.0.1", port: int = 9091, port_end: int = 9199,
                 tracker_addr: tuple[str, int] | None = None, key: str = "", custom_addr: str | None = None,
                 silent: bool = False, is_proxy: bool = False):
        words = []
        if is_proxy:
            words += ["--proxy", f"{host}:{port}"]
            host, port, port_end = "127.0.0.1", 0, 0
        if tracker_addr is not None:
            words += ["--tracker", "{}:{}".format(*tracker_addr)]
        if key:
            words += ["--key", key]
        if custom_addr is not None:
            words += ["--address", custom_addr]
        del silent
        super().__init__("rpc-server", host, *_place(host, port, port_end), *words)


class Tracker(_Process):
    """heddle rpc-tracker on this machine: host, port, terminate(). The first free port of [port, port_end) is taken."""

    def __init__(self, host: str = "127.0.0.1", port: int = 9190, port_end: int = 9199, silent: bool = False):
        del silent
        super().__init__("rpc-tracker", host, *_place(host, port, port_end))


class Proxy(_Process):
    """heddle rpc-proxy on this machine: host, port, terminate(). The first free port of [port, port_end) is taken."""

    def __init__(self, host: str = "127.0.0.1", port: int = 9090, port_end: int = 9199,
                 tracker_addr: tuple[str, int] | None = None, custom_addr: str | None = None):
        words = []
        if tracker_addr is not None:
            words += ["--tracker", "{}:{}".format(*tracker_addr)]
        if custom_addr is not None:
            words += ["--address", custom_addr]
        super().__init__("rpc-proxy", host, *_place(host, port, port_end), *words)


class Tunnel(_Process):
    """heddle rpc-tunnel on this machine: host, port, terminate(). What connects there is carried to a device server that was started
    with --tvm-rpc, inside an authenticated connection: connect(tunnel.host, tunnel.port). address is as of the setting
    remote.servers, such as "tls:board:9300"; a key of heddle keys, or certificates. What is not given is that of HEDDLE_REMOTE_*."""

    def __init__(self, address: str | None = None, port: int = 0, *, psk: str | None = None, tls_cert: str | None = None,
                 tls_key: str | None = None, tls_ca: str | None = None, tls_name: str | None = None):
        given = {"server": address, "psk": psk, "tls-cert": tls_cert, "tls-key": tls_key, "tls-ca": tls_ca, "tls-name": tls_name}
        words = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
        super().__init__("rpc-tunnel", "127.0.0.1", "--port", str(port), *words)
