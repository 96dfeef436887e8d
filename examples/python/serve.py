#!/usr/bin/env python3
"""An HTTP service that reads handwritten digits: serve.py [--port N] [--devices LIST]

    curl -H 'Content-Type: application/json' -d '{"images": [[[0, 0, 5, ...], ...]]}' localhost:8000/digits
    curl --data-binary @images.npy localhost:8000/digits        # [n, 8, 8] or [n, 1, 8, 8], values 0 to 16
The answer is {"digits": [n], "probabilities": [n][10]}, or {"error": "..."} for a bad request (400 to 413), too many at
once (503) and what fails in here (500). Requests share runs. GET /health says how many. SIGTERM lets what was begun end.
"""

import argparse
import contextlib
import http.server
import io
import json
import signal
import socket
import threading
from pathlib import Path

import heddle
import numpy as np

NETWORK = Path(__file__).resolve().parents[1] / "digits" / "digits.json"
NO_SUCH = 404, {"error": "there are POST /digits and GET /health"}
MOST_BYTES, MOST_REQUESTS, RUN = 1 << 20, 64, 32  # of a body; that are read or computed at once; images of a run


class Refused(Exception):
    """HTTP's number, and why."""


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 10  # seconds for a client that sends nothing

    def answer(self, status: int, value: dict) -> None:
        with contextlib.suppress(OSError):  # the client has gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())
            self.connection.shutdown(socket.SHUT_WR)
            self.rfile.read(MOST_BYTES)  # till the client ends: a close before that would take the answer from it

    def do_GET(self) -> None:
        self.answer(*(200, {"devices": self.server.model.devices, **self.server.batcher.stats}) if self.path == "/health" else NO_SUCH)

    def do_POST(self) -> None:
        if self.path != "/digits":
            return self.answer(*NO_SUCH)
        if not self.server.free.acquire(blocking=False):
            return self.answer(503, {"error": f"{MOST_REQUESTS} requests are being answered; come again"})
        try:
            status, value = 200, self.digits()
        except (Refused, heddle.Error, OSError) as error:  # an OSError: the body did not come
            status = error.args[0] if isinstance(error, Refused) else 500 if isinstance(error, heddle.Error) else 408
            value = {"error": error.args[1] if isinstance(error, Refused) else str(error)}
        finally:
            self.server.free.release()
        return self.answer(status, value)

    def digits(self) -> dict:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > MOST_BYTES:
            raise Refused(413, f"a body needs its Content-Length, which is at most {MOST_BYTES}")
        body, is_json = self.rfile.read(int(length)), self.headers.get_content_type() == "application/json"
        try:
            array = json.loads(body)["images"] if is_json else np.lib.format.read_array(io.BytesIO(body))
            images = np.array(array, dtype=np.float32)
        except (ValueError, TypeError, KeyError, MemoryError, RecursionError, OverflowError) as error:
            raise Refused(400, f'the body is no .npy, nor JSON as {{"images": [[8 rows of 8]]}}: {error!r}') from error
        if images.ndim < 3 or images.shape[1:] not in ((8, 8), (1, 8, 8)) or not np.isfinite(images).all():
            raise Refused(400, f"images are [n, 8, 8] or [n, 1, 8, 8], 0 to 16, and these are {list(images.shape)}")
        images, run = images.reshape(-1, 1, 8, 8), self.server.batcher.run
        rows = [row for i in range(0, len(images), RUN) for row in run(images[i:i + RUN])]
        return {"digits": [int(row.argmax()) for row in rows], "probabilities": [row.tolist() for row in rows]}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = False, 2 * MOST_REQUESTS  # its end waits for the threads
    free = threading.Semaphore(MOST_REQUESTS)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--port", type=int, default=8000, help="0: any that is free")
    words.add_argument("--devices", default="cpu,sim:0", help="where the network runs")
    args = words.parse_args()
    server = Server(("127.0.0.1", args.port), Handler)
    graph = NETWORK.read_text().replace("[1, 1, 8, 8]", '["n", 1, 8, 8]', 1)  # of any number of images
    server.model = heddle.loads(graph, NETWORK.with_suffix(".params").read_bytes(), devices=args.devices)
    with server.model, heddle.Batcher(server.model, max_items=RUN, max_delay=0.002) as server.batcher, server:
        for number in signal.SIGTERM, signal.SIGINT:
            signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
        print(f"http://127.0.0.1:{server.server_port}/digits", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
