"""Builds and tests the Go package against a build of libheddle: run_tests.py BUILD package|samples|full|mutants

package: gofmt, and go test with all of go vet under the race detector. samples: those of examples/go, and the program of
docs/go.md, built and run, and the server asked. full: vet of the samples, and go test with the issue's real numbers of
rounds, some minutes. mutants: untrusted models, with Go's code and a build of ours under AddressSanitizer, for
HEDDLE_GO_MUTANTS seconds (5). Exit status 77: something is missing, and a message names it. Go's caches are in BUILD/go,
nothing is fetched.
"""
import http.client
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import threading

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGE, SAMPLES, DIGITS = SOURCE / "bindings/go", SOURCE / "examples/go", SOURCE / "examples/digits"


def skip(words):
    print(f"skipped: {words}")
    sys.exit(77)


def go_environment(build):
    """Variables with which cgo finds the headers of the source tree and the libraries of a build. All of it is said in a
    file for pkg-config: CGO_CFLAGS would have Go compile its own packages anew."""
    own = build / "go"
    own.mkdir(exist_ok=True)
    (own / "heddle.pc").write_text(f"Name: heddle\nDescription: a build of it\nVersion: 0\nCflags: -I{SOURCE / 'include'}\n"
                                   f"Libs: -L{build / 'lib'} -Wl,-rpath,{build / 'lib'} -lheddle\n")
    (own / "heddle_tvm.pc").write_text("Name: heddle_tvm\nDescription: its other library\nVersion: 0\nRequires: heddle\n"
                                       "Libs: -lheddle_tvm\n")
    (own / "heddle_rpc.pc").write_text("Name: heddle_rpc\nDescription: the client of TVM's RPC\nVersion: 0\n"
                                       "Requires: heddle\nLibs: -lheddle_rpc\n")
    fakes = build / "tests" / "fakes" / "cuda"
    double = {"HEDDLE_CUDA_DRIVER": str(fakes / "libcuda.so.1"), "HEDDLE_CUDA_NVRTC": str(fakes / "libnvrtc.so.13"),
              "HEDDLE_CUDA_LIBRARIES": "0"} if fakes.exists() else {}
    return {**os.environ, **double, "PKG_CONFIG_PATH": str(own), "GOCACHE": str(own / "cache"), "GOPATH": str(own / "path"),
            "GOENV": "off", "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "1",
            "HEDDLE_GO_FILES": str(own / "files")}


class Runner:
    def __init__(self, build):
        self.env = go_environment(build)
        self.bin = build / "go" / "bin"

    def run(self, *words, folder=PACKAGE, quiet=False, seconds=900):
        done = subprocess.run([str(w) for w in words], cwd=folder, env=self.env, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE if quiet else None, timeout=seconds)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout or ''}")
        return done.stdout

    def style(self):
        unformatted = self.run("gofmt", "-l", PACKAGE, SAMPLES, quiet=True)
        if unformatted:
            sys.exit(f"gofmt would change:\n{unformatted}")

    def samples(self):
        self.bin.mkdir(parents=True, exist_ok=True)
        self.run("go", "build", "-o", f"{self.bin}/", "./...", folder=SAMPLES)
        files = self.env["HEDDLE_GO_FILES"]
        for name, words, expected in SAMPLES_SAY:
            said = self.run(self.bin / name, *(w.format(files=files) for w in words), quiet=True)
            if not re.search(expected(files) if callable(expected) else expected, said):
                sys.exit(f"{name} said\n{said}")
            print(f"{name}: ok")
        for path in SAMPLES.glob("*/main.go"):
            lines = len(path.read_text().splitlines())
            if lines >= 100:
                sys.exit(f"{path}: {lines} lines; an example has fewer than 100")
        self.page()
        check_server(self)

    def page(self):
        """The first program of docs/go.md, as a module of its own."""
        folder = self.bin.parent / "page"
        folder.mkdir(exist_ok=True)
        text = (SOURCE / "docs/go.md").read_text()
        (folder / "main.go").write_text(re.search(r"```go\n(package main.*?)```", text, re.DOTALL)[1])
        (folder / "go.mod").write_text(f"module page\n\ngo 1.19\n\nrequire heddle.internal/heddle v0.1.0\n\nreplace heddle.internal/heddle => {PACKAGE}\n")
        self.run("go", "build", "-o", self.bin / "page", ".", folder=folder)
        said = self.run(self.bin / "page", folder=DIGITS, quiet=True)
        if len(said.split()) != 10:
            sys.exit(f"the program of docs/go.md said\n{said}")
        print("docs/go.md: ok")


def best_class(files):
    import numpy as np
    scores = np.load(pathlib.Path(files) / "scores.npy")
    return f"class {scores.argmax()}, score {scores.max():.3f}"


SAMPLES_SAY = [
    ("simple", ["{files}/calls.so"], r"sum: \[11 22 33 44\]"), ("complex", ["{files}"], best_class),
    ("pack_func_convert", [], "result: 42 calls: 1"), ("pack_func_register", [], "result: 7\nerror: .* ours: true"),
    ("pack_func_handle_arg", ["{files}/calls.so"], r"doubled: \[2 4 6 8\]"), ("pack_func_closure_arg", [], "sum: 45"),
    ("pack_func_closure_return", [], "value: 41\nvalue: 42"),
    ("digits", [str(DIGITS)], r"digits right on \[cpu:0\]"), ("digits", [str(DIGITS), "sim:0,cpu"], r"\[sim:0 cpu:0\]")]


def check_server(runner):
    """Digits from several clients at once; one request too many; a body that is none; an end with a request under way."""
    import numpy as np
    images, expected = np.load(DIGITS / "images.npy").reshape(-1, 64), np.load(DIGITS / "expected.npy")
    process = subprocess.Popen([runner.bin / "server", "-model", DIGITS / "digits.json", "-listen", "127.0.0.1:0",
                                "-queue", "3", "-patience", "10m"], env=runner.env, stdout=subprocess.PIPE, text=True)
    try:
        host, port = process.stdout.readline().split()[-1].rsplit(":", 1)

        def connect():
            return http.client.HTTPConnection(host, int(port), timeout=120)

        def ask(body):
            client = connect()
            client.request("POST", "/classify", body)
            answer = client.getresponse()
            text = answer.read().decode()
            client.close()
            return answer.status, answer.getheader("Retry-After"), text

        def begin(body):
            """A request that takes a seat, and sends the end of its body later."""
            client = connect()
            client.putrequest("POST", "/classify")
            client.putheader("Content-Length", str(len(body)))
            client.endheaders()
            client.send(body[:5])
            return client

        def right(k, text):
            answer = json.loads(text)
            np.testing.assert_allclose(answer["scores"], expected[k], atol=1e-4)
            assert answer["digit"] == expected[k].argmax()

        failures = []

        def client(first):
            for k in range(first, 60, 3):
                status, _, text = ask(json.dumps(images[k].tolist()))
                try:
                    assert status == 200, (status, text)
                    right(k, text)
                except AssertionError as failure:
                    failures.append(failure)

        clients = [threading.Thread(target=client, args=(i,)) for i in range(3)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        assert not failures, failures
        assert ask("no json")[0] == 400 and ask("[1, 2]")[0] == 400

        body = json.dumps(images[7].tolist()).encode()
        held = [begin(body) for _ in range(3)]
        while (refused := ask(body))[0] == 200:  # it had a seat, for which one of the three may have been refused
            for k, one in enumerate(held):
                if select.select([one.sock], [], [], 0)[0]:
                    one.close()
                    held[k] = begin(body)
        assert refused[0] == 503 and refused[1] == "1", refused
        process.send_signal(signal.SIGTERM)
        for one in held:
            one.send(body[5:])
            answer = one.getresponse()
            assert answer.status == 200, answer.status
            right(7, answer.read())
            one.close()
        rest = process.communicate(timeout=120)[0]
        assert process.returncode == 0 and "all answered" in rest, (process.returncode, rest)
        print("server: ok")
    finally:
        process.kill()


def main():
    build, part = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    if shutil.which("go") is None or shutil.which("gofmt") is None:
        skip("there is no go; Debian's package is golang-go")
    if shutil.which("pkg-config") is None:
        skip("there is no pkg-config, by which cgo finds libheddle")
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        skip("there is no C compiler, which cgo needs")
    runner = Runner(build)
    files = pathlib.Path(runner.env["HEDDLE_GO_FILES"])
    if part in ("package", "full") or not (files / "node.json").exists():
        prepare = [sys.executable, str(PACKAGE / "prepare.py"), str(files)]
        subprocess.run(prepare + (["tvm"] if part == "full" else []), check=True, timeout=600)
    if part == "package":
        runner.style()
        runner.run("go", "test", "-count=1", "-race", "-vet=all", "./...")  # go vet would build all a second time
    elif part == "mutants":
        runner.env["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=512"
        runner.run("go", "test", "-asan", "-count=1", "-v", "-timeout=30m", "-run=TestMutants", ".", seconds=1800)
    elif part == "samples":
        runner.samples()
    elif part == "full":
        runner.env["HEDDLE_GO_FULL"] = "1"
        runner.run("go", "vet", "./...", folder=SAMPLES)
        runner.run("go", "test", "-count=1", "-v", "-timeout=30m", "./...", seconds=1800)
    else:
        sys.exit(f"run_tests.py: there is no part '{part}'")


if __name__ == "__main__":
    main()
