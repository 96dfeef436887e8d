#!/usr/bin/env python3
"""An HTTP service that reads handwritten digits: serve.py [--port N] [--devices LIST]

    curl -H 'Content-Type: application/json' -d '{"images": [[[0, 0, 5, ...], ...]]}' localhost:8000/digits
    curl --data-binary @images.npy localhost:8000/digits        # [n, 8, 8] or [n, 1, 8, 8], values 0 to 16
The answer is {"digits": [n], "probabilities": [n][10]}; for what is wrong with a request, too many at once (503) and what
fails in here (500) it is {"error": "..."}. GET /health says whether it works. SIGTERM lets requests that were begun end.
"""

import argparse
import contextlib
import http.server
import io
import json
import signal
import threading
from pathlib import Path

import heddle
import numpy as np

NETWORK = Path(__file__).resolve().parents[1] / "digits" / "digits.json"
NO_SUCH = 404, {"error": "there are POST /digits and GET /health"}
MOST_BYTES = 1 << 20  # of a body
MOST_REQUESTS = 64  # that are read or computed at once; the others are told to come again


class Refused(Exception):
    """HTTP's number, and why."""


def images_of(body: bytes, kind: str) -> np.ndarray:  # float32 [n, 1, 8, 8]
    try:
        array = json.loads(body)["images"] if kind == "application/json" else np.lib.format.read_array(io.BytesIO(body))
        images = np.array(array, dtype=np.float32)
    except (ValueError, TypeError, KeyError, MemoryError, RecursionError, OverflowError) as error:
        raise Refused(400, f'the body is neither .npy nor JSON as {{"images": [[8 rows of 8]]}}: {error!r}') from error
    if images.ndim < 3 or images.shape[1:] not in ((8, 8), (1, 8, 8)) or not np.isfinite(images).all():
        raise Refused(400, f"images are [n, 8, 8] or [n, 1, 8, 8], 0 to 16, and these are {list(images.shape)}")
    return images.reshape(-1, 1, 8, 8)


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 20  # seconds for a client that sends nothing

    def answer(self, status: int, value: dict) -> None:
        with contextlib.suppress(OSError):  # the client has gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

    def do_GET(self) -> None:
        self.answer(*(200, {"status": "ok", "devices": self.server.model.devices}) if self.path == "/health" else NO_SUCH)

    def do_POST(self) -> None:
        if self.path != "/digits":
            return self.answer(*NO_SUCH)
        if not self.server.free.acquire(blocking=False):
            return self.answer(503, {"error": f"{MOST_REQUESTS} requests are being answered; come again"})
        try:
            status, value = 200, self.digits()
        except Refused as refused:
            status, value = refused.args[0], {"error": refused.args[1]}
        except heddle.Error as error:
            status, value = 500, {"error": str(error)}
        finally:
            self.server.free.release()
        return self.answer(status, value)

    def digits(self) -> dict:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > MOST_BYTES:
            raise Refused(413, f"a body needs its Content-Length, which is at most {MOST_BYTES}")
        body, kind = self.rfile.read(int(length)), self.headers.get_content_type()
        rows = [self.server.model(image[None])[0] for image in images_of(body, kind)]
        return {"digits": [int(row.argmax()) for row in rows], "probabilities": [row.tolist() for row in rows]}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False  # its end waits for them
    request_queue_size = 2 * MOST_REQUESTS
    free = threading.Semaphore(MOST_REQUESTS)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--port", type=int, default=8000, help="0: any that is free")
    words.add_argument("--devices", default="cpu,sim:0", help="where the network runs")
    args = words.parse_args()
    with Server(("127.0.0.1", args.port), Handler) as server, heddle.load(NETWORK, devices=args.devices) as server.model:
        for number in signal.SIGTERM, signal.SIGINT:
            signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
        print(f"http://127.0.0.1:{server.server_port}/digits", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
