"""libheddle_rpc by heddle/rpc.hpp, and with it heddle/rpc.h: a program in C++ against our server, TVM's server, both by our
tracker, and servers that end in the midst of things.
timeout: 300
"""
import os
import shutil
import signal
import subprocess
import importlib.util

import pytest

import rpc_theirs
from fixtures import tvm_legacy as legacy
from rpc_case import server, tracker, wait_for
from tool_case import BUILD, SOURCE, environment

CXX = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
F32 = "float32"
pytestmark = [pytest.mark.skipif(CXX is None, reason="there is no C++ compiler"),
              pytest.mark.skipif(not (BUILD / "lib" / "libheddle_rpc.so").exists(), reason="libheddle_rpc is not built")]

PROGRAM = r'''
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include "heddle/rpc.hpp"

#define MUST(x) do { if (!(x)) { std::fprintf(stderr, "line %d: %s\n", __LINE__, #x); return 1; } } while (0)
namespace rpc = heddle::rpc;
static const heddle_dtype F32 = {2, 32, 1};

template <class F> static heddle::Error error_of(F f) {
  try { f(); } catch (const heddle::Error &e) { return e; }
  return {};
}

static rpc::Session open(int argc, char **argv) {
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[2]));
  rpc::Options options;
  options.session_seconds = 60;
  return argc > 4 && std::strcmp(argv[4], "tracker") == 0 ? rpc::Session::request("127.0.0.1", port, argv[3], 2, options)
                                                         : rpc::Session::connect("127.0.0.1", port, argv[3], options);
}

static int common(rpc::Session &s) {
  const unsigned char bytes[] = {0, 1, 2, 255};
  s.upload("a.bin", bytes, sizeof bytes);
  MUST(s.download("a.bin") == std::vector<unsigned char>(bytes, bytes + 4));
  MUST(error_of([&] { s.download("nothing"); }).status() == HEDDLE_EFAILED);
  auto workpath = s.function("tvm.rpc.server.workpath");
  std::string path = s.call(workpath, {rpc::value("x")}).of.s;
  MUST(path.size() > 2 && path.substr(path.size() - 2) == "/x");
  MUST(error_of([&] { s.function("no.such.function"); }).status() == HEDDLE_ENOTFOUND);
  MUST(s.device_exists(1, 0) && !s.device_exists(8, 5));
  float in[6] = {1, 2, 3, 4, 5, 6}, out[6] = {};
  auto t = s.tensor(1, 0, F32, {2, 3});
  s.write(t, in, sizeof in);
  s.read(t, out, sizeof out);
  MUST(std::memcmp(in, out, sizeof in) == 0);
  MUST(error_of([&] { s.read(t, out, 4); }).status() == HEDDLE_EINVAL);
  MUST(error_of([&] { (void)s.tensor(8, 5, F32, {2}); }).status() == HEDDLE_EFAILED);
  MUST(error_of([&] { (void)s.tensor(1, 0, F32, {-2}); }).status() == HEDDLE_EINVAL);
  s.free_tensor(t);
  s.free(workpath);
  s.free(0);
  return 0;
}

static int ours(rpc::Session &s, const char *library) {
  std::ifstream file(library, std::ios::binary);
  std::vector<char> data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  s.upload("lib.so", data.data(), data.size());
  auto m = s.load("lib.so");
  auto f = s.function("add1", m);
  float in[4] = {0, 1, 2, 3}, out[4] = {};
  auto x = s.tensor(1, 0, F32, {4}), y = s.tensor(1, 0, F32, {4});
  s.write(x, in, sizeof in);
  MUST(s.call(f, {rpc::value(x), rpc::value(y)}).kind == HEDDLE_RPC_NONE);
  s.read(y, out, sizeof out);
  for (int i = 0; i < 4; i++) MUST(out[i] == in[i] + 1);
  auto e = error_of([&] { s.call(f, {rpc::value(x)}); });
  MUST(e.status() == HEDDLE_EFAILED && std::string(e.what()).find("num_args") != std::string::npos);
  MUST(error_of([&] { s.function("nothing", m); }).status() == HEDDLE_ENOTFOUND);
  auto times = s.time("add1", m, 1, 0, {rpc::value(x), rpc::value(y)}, 2, 3);
  MUST(times.size() == 3 && times[0] > 0 && times[0] < 1);
  s.free(f);
  MUST(error_of([&] { s.call(f, {}); }).status() == HEDDLE_EFAILED);
  auto crash = s.function("crash", m);
  MUST(error_of([&] { s.call(crash, {}); }).status() == HEDDLE_EIO);
  MUST(error_of([&] { s.call(crash, {}); }).status() == HEDDLE_EIO);
  return 0;
}

static int theirs(rpc::Session &s) {
  auto strcat = s.function("rpc.test.strcat"), addone = s.function("rpc.test.addone");
  MUST(std::string(s.call(strcat, {rpc::value("ab"), rpc::value(11)}).of.s) == "ab:11");
  MUST(s.call(addone, {rpc::value(41)}).of.i == 42);
  MUST(s.call(addone, {rpc::value(0.5)}).of.f == 1.5);
  auto e = error_of([&] { s.call(s.function("rpc.test.except"), {rpc::value("boom")}); });
  MUST(e.status() == HEDDLE_EFAILED && std::string(e.what()).find("boom") != std::string::npos);
  auto add = s.call(s.function("rpc.test.add_to_lhs"), {rpc::value(10)});
  MUST(add.kind == HEDDLE_RPC_FUNCTION && s.call(add.of.handle, {rpc::value(5)}).of.i == 15);
  auto made = s.call(s.function("rpc.test.remote_return_nd"), {rpc::value("get_arr")});
  rpc::Tensor t = *s.call(made.of.handle, {}).of.tensor;
  float values[10];
  MUST(t.ndim == 1 && t.shape[0] == 10 && t.object != 0);
  s.read(t, values, sizeof values);
  s.free_tensor(t);
  MUST(s.call(addone, {rpc::value(1)}).of.i == 2);
  return 0;
}

int main(int argc, char **argv) {
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[2]));
  if (std::strcmp(argv[1], "summary") == 0) {
    std::puts(rpc::summary("127.0.0.1", port).c_str());
    return 0;
  }
  if (std::strcmp(argv[1], "wrong") == 0) {
    MUST(error_of([&] { rpc::Session::connect("127.0.0.1", port, "wrong"); }).status() == HEDDLE_EDENIED);
    MUST(error_of([&] { rpc::Session::connect("127.0.0.1", 1, "k"); }).status() == HEDDLE_EIO);
    MUST(error_of([&] { rpc::Session::connect("127.0.0.1", port, "a b"); }).status() == HEDDLE_EINVAL);
    MUST(error_of([&] { rpc::Session::connect("no-such-host.invalid", port, "k"); }).status() == HEDDLE_EIO);
    MUST(!rpc::Session::try_request("127.0.0.1", port, "k"));
    MUST(heddle_rpc_connect(nullptr, port, "k", nullptr, nullptr, nullptr) == HEDDLE_EINVAL);
    heddle_rpc_close(nullptr);
    return 0;
  }
  if (std::strcmp(argv[1], "expired") == 0) {
    rpc::Options options;
    options.session_seconds = 1;
    auto s = rpc::Session::connect("127.0.0.1", port, argv[3], options);
    std::ifstream file(argv[4], std::ios::binary);
    std::vector<char> data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    s.upload("lib.so", data.data(), data.size());
    auto hang = s.function("hang", s.load("lib.so"));
    MUST(error_of([&] { s.call(hang, {}); }).status() == HEDDLE_ETIMEOUT);
    MUST(error_of([&] { s.call(hang, {}); }).status() == HEDDLE_EIO);
    return 0;
  }
  auto s = open(argc, argv);
  if (common(s) != 0) return 1;
  return std::strcmp(argv[1], "ours") == 0 ? ours(s, argv[argc - 1]) : theirs(s);
}
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    (folder / "p.cpp").write_text(PROGRAM)
    words = ["-fsanitize=" + os.environ["HEDDLE_SANITIZE"]] if os.environ.get("HEDDLE_SANITIZE") else []
    subprocess.run([CXX, "-std=c++17", "-Wall", "-Wextra", "-Werror", *words, "-I", SOURCE / "include", folder / "p.cpp", "-o",
                    folder / "p", "-L", BUILD / "lib", "-lheddle_rpc", "-lheddle", f"-Wl,-rpath,{BUILD / 'lib'}"], check=True)

    def run(*words):
        done = subprocess.run([str(folder / "p"), *map(str, words)], capture_output=True, text=True, timeout=60,
                              env=environment())
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if legacy.compiler() is None:
        pytest.skip("there is no C compiler to write libraries with")
    return legacy.library(tmp_path_factory.mktemp("library") / "lib.so", "v0.14", [
        "#include <unistd.h>\n",
        legacy.kernel("add1", [("x", F32, (4,)), ("y", F32, (4,))], "for (int i = 0; i < 4; i++) y[i] = x[i] + 1;"),
        "FUNCTION(crash) { (void)args_; (void)codes; (void)num_args; *(volatile int *)8 = 1; return 0; }\n",
        "FUNCTION(hang) { (void)args_; (void)codes; (void)num_args; for (;;) sleep(1); return 0; }\n"])


def test_our_server(program, library):
    with tracker() as t, server("--tracker", f"127.0.0.1:{t.port}", "--key", "k"), server("--key", "k") as direct:
        program("ours", direct.port, "k", library)
        wait_for(lambda: '"free":1' in program("summary", t.port))
        program("ours", t.port, "k", "tracker", library)
        program("wrong", direct.port)
        program("expired", direct.port, "k", library)


def test_tvms_server(program):
    if importlib.util.find_spec("tvm") is None:
        pytest.skip("the TVM of this environment is not there")
    with tracker() as t, rpc_theirs.running("server", "k", t.port):
        wait_for(lambda: '"free":1' in program("summary", t.port))
        program("theirs", t.port, "k", "tracker")


def test_a_server_that_is_killed(program):
    with server("--key", "k") as s:
        pass
    assert s.port and signal.SIGKILL  # nobody listens there any more
    with pytest.raises(AssertionError):
        program("ours", s.port, "k", "x")
