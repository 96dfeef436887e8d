"""What packages carry for devices: it is used, and what is mutated, cut off or foreign is ignored with a logged reason; runs
are equal to the bit. Packages linked into a program.
labels: ctypes
timeout: 200
"""
import ctypes
import json
import os
import random
import shutil
import struct
import subprocess

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import capi
from packed_file import graph_package, params_records
from tool_case import BUILD, DIGITS, SOURCE, failing, good, heddle

SCALE = float(os.environ.get("HEDDLE_TEST_SCALE", "1"))
MASK = 2**64 - 1
BY = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0xd6e8feb86659fd93


def rotated(x, n):
    return (x << n | x >> (64 - n)) & MASK


def digest(data):
    """As docs/packages.md describes it."""
    lane = [BY[2], BY[3], BY[1], (BY[0] + len(data)) & MASK]
    for at in range(0, len(data), 32):
        for i, word in enumerate(struct.unpack("<4Q", data[at:at + 32].ljust(32, b"\0"))):
            lane[i] = rotated(lane[i] ^ word, 29) * BY[i] & MASK
    for i in range(8):
        lane[i % 4] = rotated(lane[i % 4] ^ lane[(i + 1) % 4] >> 31, 23) * BY[i % 4] & MASK
    return lane[0] ^ lane[2], lane[1] ^ lane[3]


class Parts:
    """A package of version 2: the bytes of the model, and its index."""

    def __init__(self, data):
        version, zero, self.size, text = struct.unpack_from("<IIQQ", data, 8)
        self.at, n, *found = struct.unpack_from("<QQQQ", data, 64)
        assert (version, zero, text) == (2, 0, 128) and data[112:128] == bytes(16)
        self.data, index = bytearray(data), data[self.at:self.at + n]
        assert tuple(found) == digest(index) and self.at + n == len(data)
        self.index = json.loads(index)

    def written(self, index=None):
        """With that index, or the changed one, in the old one's place."""
        index = json.dumps(self.index).encode() if index is None else index
        struct.pack_into("<QQQ", self.data, 72, len(index), *digest(index))
        return bytes(self.data[:self.at]) + index


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """A folder with net.onnx, whose weights of 2 MiB are packed, its input, net.heddle for cpu, and the right output."""
    folder = tmp_path_factory.mktemp("net")
    rng = np.random.default_rng(5)
    w, b = rng.normal(size=(1024, 64, 3, 3)).astype(np.float32), rng.normal(size=1024).astype(np.float32)
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["image"]), helper.make_node("Conv", ["image", "w", "b"], ["t"]),
             helper.make_node("Relu", ["t"], ["y"])]
    tensors = {"w": w, "b": b, "shape": np.array([-1, 64, 4, 4], np.int64)}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [1, 1024])],
                              [helper.make_tensor_value_info("y", 1, [1, 1024, 2, 2])], [numpy_helper.from_array(t, n) for n, t in tensors.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "net.onnx")
    np.save(folder / "x.npy", rng.normal(size=(1, 1024)).astype(np.float32))
    good("pack", folder / "net.onnx", "--for", "cpu", "-o", folder / "net.heddle", TMPDIR=str(folder))
    assert sorted(p.name for p in folder.iterdir()) == ["net.heddle", "net.onnx", "x.npy"]  # nothing is left over
    return folder


def run(net, model, tmp_path, *words, device="cpu"):
    """(output, the log's lines about packages and weights) of a process with empty folders of caches."""
    home = tmp_path / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    r = heddle("run", model, "--device", device, "--input", f"x={net / 'x.npy'}", "--set", "log=info", *words, "--output-dir", tmp_path / "o",
               XDG_CACHE_HOME=str(home))
    assert r.status == 0, r
    kept = sorted(p.name.rsplit(".", 1)[1] for p in (home / "heddle").rglob("*") if p.is_file()) if (home / "heddle").exists() else []
    lines = [line for line in r.err.splitlines() if " prepared: " in line or " weights: " in line]
    return (tmp_path / "o" / "output_0.npy").read_bytes(), "\n".join(lines), kept


USED = "are those of its package"


def test_packed_weights_are_used(net, tmp_path):
    expected, log, kept = run(net, net / "net.onnx", tmp_path)
    assert USED not in log and kept == ["bin"]
    parts = Parts((net / "net.heddle").read_bytes())
    (target,), (file, plan) = parts.index["targets"], sorted(parts.index["files"], key=lambda f: f["name"], reverse=True)
    assert plan["name"].startswith("plan-")
    assert target["for"] == "cpu" and [d["name"] for d in target["devices"]] == ["cpu:0"] and file["name"].startswith("weights-")
    at, n = file["at"], file["bytes"]
    assert at % 4096 == 0 and n > 2 << 20 and [x & MASK for x in file["digest"]] == list(digest(bytes(parts.data[at:at + n])))
    found, log, kept = run(net, net / "net.heddle", tmp_path)
    assert found == expected and USED in log and "ignored" not in log and kept == []
    moved = tmp_path / "elsewhere"
    shutil.copy(net / "net.heddle", moved)
    found, log, kept = run(net, moved, tmp_path, "--set", "weights.cache_dir=off")
    assert found == expected and USED in log
    found, log, kept = run(net, moved, tmp_path, "--set", "prepared=off")
    assert found == expected and USED not in log and kept == ["bin"]
    good("unpack", moved, "-o", tmp_path / "out")
    records = params_records((tmp_path / "out" / "default.params").read_bytes())
    good("pack", net / "net.onnx", "-o", tmp_path / "plain")
    assert list(records) == list(graph_package((tmp_path / "plain").read_bytes())[1])


@pytest.mark.parametrize("words, verified", [((), False), (("--sign",), True), (("--encrypt",), False), (("--sign", "--encrypt"), True)],
                         ids=["plain", "signed", "encrypted", "both"])
def test_signed_and_encrypted_packages(net, tmp_path, words, verified):
    """They are used from a sealed copy. What is prepared in a verified one is used wherever the file lies; in others, where only
    root and the user write."""
    if words and heddle("key", "new", tmp_path / "probe").status != 0:
        pytest.skip("this build has no libsodium")
    good("key", "new", tmp_path / "release")
    good("key", "new", "--encrypt", tmp_path / "site")
    keys = {"--sign": tmp_path / "release", "--encrypt": tmp_path / "site"}
    folder = tmp_path / "folder"
    folder.mkdir()
    good("pack", net / "net.onnx", "--for", "cpu", *(x for w in words for x in (w, keys[w])), "-o", folder / "net.heddle")
    given = [*(("--trust", tmp_path / "release.pub") if verified else ()), *(("--key", keys["--encrypt"]) if "--encrypt" in words else ())]
    expected = run(net, net / "net.onnx", tmp_path)[0]
    for mode, used in ((0o755, True), (0o777, verified)):
        folder.chmod(mode)
        found, log, _ = run(net, folder / "net.heddle", tmp_path, *given)
        assert found == expected and (USED in log) == used and ("is ignored: " in log) != used and "/proc/" not in log, (mode, log)
        assert (": fits" in good("info", folder / "net.heddle", *given)) == used


def check_ignored(net, tmp_path, data, reason, expected, mode=0o644):
    bad = tmp_path / "bad"
    bad.write_bytes(data)
    bad.chmod(mode)
    found, log, _ = run(net, bad, tmp_path)
    assert found == expected and USED not in log and "ignored" in log and reason in log, (log, reason)


def test_what_does_not_fit_is_ignored(net, tmp_path):
    expected = run(net, net / "net.onnx", tmp_path)[0]
    seed = (net / "net.heddle").read_bytes()

    def changed(key, value, device=True):
        parts = Parts(seed)
        (parts.index["targets"][0]["devices"][0] if device else parts.index)[key] = value
        return parts.written()

    file = next(f for f in Parts(seed).index["files"] if f["name"].startswith("weights-"))
    assert USED in run(net, net / "net.heddle", tmp_path)[1]
    (tmp_path / "same").write_bytes(Parts(seed).written())
    assert USED in run(net, tmp_path / "same", tmp_path)[1]  # the digest and the index that are made here are right
    check_ignored(net, tmp_path, changed("driver", "another 9.9"), "the driver of cpu:0 was 'another 9.9', and is '", expected)
    check_ignored(net, tmp_path, changed("about", "another"), "the device of cpu:0 was 'another'", expected)
    check_ignored(net, tmp_path, changed("build", "another"), "the plugin of cpu:0 was 'another'", expected)
    check_ignored(net, tmp_path, changed("heddle", "9.9.9", False), "it is of Heddle 9.9.9", expected)
    check_ignored(net, tmp_path, changed("name", "sim:0"), "the model runs on other devices", expected)
    check_ignored(net, tmp_path, seed, "(mode 0666, owner", expected, mode=0o666)
    for at in file["at"], file["at"] + 4096, file["at"] + file["bytes"] - 1, file["at"] + file["bytes"] // 2:
        data = bytearray(seed)
        data[at] ^= 1
        check_ignored(net, tmp_path, data, f"the bytes of {file['name']} are damaged", expected)
    size = Parts(seed).size
    for n in size, size + 1, file["at"] + 100, len(seed) - 1:
        check_ignored(net, tmp_path, seed[:n], "which is cut off", expected)
    parts = Parts(seed)
    for index, reason in ((b"{", "its index is no JSON text"), (b'{"heddle":"0","targets":[],"files":[{}]}', "malformed")):
        check_ignored(net, tmp_path, parts.written(index), reason, expected)
    parts.index["files"][0]["at"] = len(seed) // 4096 * 4096
    check_ignored(net, tmp_path, parts.written(), "lies outside", expected)


PLANNED = "its plan is that of its package"


def questions(net, model, tmp_path, *words):
    """How often plugins were asked, by the log layer, and the log's lines about the plan."""
    r = heddle("run", model, "--device", "cpu", "--input", f"x={net / 'x.npy'}", "--set", "log=debug", "--set", "layers=log", *words,
               "--output-dir", tmp_path / "o", XDG_CACHE_HOME=str(tmp_path / "home"))
    assert r.status == 0, r
    asked = sum("op.query" in line or "op.partition" in line for line in r.err.splitlines())
    return asked, [line for line in r.err.splitlines() if "its plan" in line], (tmp_path / "o" / "output_0.npy").read_bytes()


def with_plan(seed, change):
    """The package with other bytes in its plan, whose digest is right."""
    parts = Parts(seed)
    file = next(f for f in parts.index["files"] if f["name"].startswith("plan-"))
    at, n = file["at"], file["bytes"]
    words = list(struct.unpack(f"<{n // 8}Q", parts.data[at:at + n]))
    change(words)
    parts.data[at:at + n] = struct.pack(f"<{len(words)}Q", *words)
    file["digest"] = [x - (1 << 64) if x >> 63 else x for x in digest(bytes(parts.data[at:at + n]))]
    return parts.written()


def test_a_packed_plan_asks_no_plugin(net, tmp_path):
    """The questions are those that were asked when it was packed; where one is not, the plan is made by asking."""
    count, lines, expected = questions(net, net / "net.onnx", tmp_path)
    assert count >= 3 and lines == []
    count, lines, found = questions(net, net / "net.heddle", tmp_path)
    assert count == 0 and len(lines) == 1 and PLANNED in lines[0] and found == expected
    for words in (["--set", "prepared=off"], ["--set", "cpu.fuse=0"], ["--threads", "1"]):  # other answers may be right then
        count, lines, found = questions(net, net / "net.heddle", tmp_path, *words)
        assert count >= 2 and lines == [] and found == expected, words
    seed, bad, rng = (net / "net.heddle").read_bytes(), tmp_path / "bad", random.Random(7)
    size = next(f for f in Parts(seed).index["files"] if f["name"].startswith("plan-"))["bytes"] // 8

    def other_question(words):
        words[2] ^= 1

    bad.write_bytes(with_plan(seed, other_question))
    count, lines, found = questions(net, bad, tmp_path)
    assert count >= 3 and "the devices are asked other things than when it was made" in lines[0] and found == expected
    for _ in range(max(8, int(32 * SCALE))):  # whatever its numbers are, the result is right or there is an error
        at, value = rng.randrange(1, size), rng.choice([0, 1, 2, 7, 1 << 31, (1 << 64) - 1, rng.randrange(1 << 64)])
        bad.write_bytes(with_plan(seed, lambda words: words.__setitem__(at, value)))
        r = heddle("run", bad, "--device", "cpu", "--input", f"x={net / 'x.npy'}", "--output-dir", tmp_path / "o")
        assert r.status in (0, 1) and "internal" not in r.err, (at, value, r)
        assert r.status == 1 or (tmp_path / "o" / "output_0.npy").read_bytes() == expected, (at, value)


def test_plans_of_automatic_placement_and_of_limits(net, tmp_path):
    """Each is another plan: measured costs of the package decide the one, the limits that it was packed with the other."""
    mixed, limited = tmp_path / "mixed", tmp_path / "limited"
    good("pack", net / "net.onnx", "--for", "cpu,sim:0", "-o", mixed)
    good("pack", net / "net.onnx", "--for", "cpu,sim:0", "--memory", "sim:0=16MiB", "-o", limited)
    for package in mixed, limited:
        assert sum(f["name"].startswith("plan-") for f in Parts(package.read_bytes()).index["files"]) == 2
    auto, limit = ["--place", "auto"], ["--memory", "sim:0=16MiB"]
    here = ["--device", "cpu,sim:0"]
    _, _, expected = questions(net, net / "net.onnx", tmp_path, *here)
    for package, words, has in [(mixed, [], True), (mixed, auto, True), (mixed, limit, False), (limited, limit, True),
                                (limited, [*limit, *auto], True), (limited, ["--memory", "sim:0=8MiB"], False)]:
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        count, lines, found = questions(net, package, tmp_path, *here, *words)
        assert (count == 0, [PLANNED in line for line in lines]) == (has, [True] * has), (package, words, count, lines)
        np.testing.assert_allclose(np.frombuffer(found[128:], "f4"), np.frombuffer(expected[128:], "f4"), rtol=1e-4)
        if not has:
            r = heddle("run", package, *here, *words, "--input", f"x={net / 'x.npy'}", "--set", "log=info")
            assert "it has no plan for these shapes, devices, settings and limits" in r.err
    assert "go with devices" in failing(1, "pack", net / "net.onnx", "--memory", "sim:0=8MiB", "-o", tmp_path / "p")


def test_dimensions_that_are_open(net, tmp_path):
    """A plan for each number that was given; other shapes are planned as ever."""
    model = onnx.load(net / "net.onnx")
    for value in model.graph.input[0], model.graph.output[0]:
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    onnx.save(model, tmp_path / "open.onnx")
    packed = tmp_path / "open.heddle"
    good("pack", tmp_path / "open.onnx", "--for", "cpu", "--dim", "n=1", "--dim", "n=4", "-o", packed)
    assert sum(f["name"].startswith("plan-") for f in Parts(packed.read_bytes()).index["files"]) == 2
    for n in 1, 4, 5:
        np.save(tmp_path / "x.npy", np.ones((n, 1024), np.float32))
        outputs = []
        for path in packed, tmp_path / "open.onnx":
            r = heddle("run", path, "--device", "cpu", "--input", f"x={tmp_path / 'x.npy'}", "--set", "log=info", "--output-dir", tmp_path / "o")
            assert r.status == 0 and (PLANNED in r.err) == (n != 5 and path == packed), r
            outputs.append((tmp_path / "o" / "output_0.npy").read_bytes())
        assert outputs[0] == outputs[1]
    for words, text in ((["--dim", "m=1"], "no input has a dimension 'm'"), (["--dim", "n=x"], "it needs a number"), ([], "'--dim NAME=NUMBER'")):
        assert text in failing(1, "pack", tmp_path / "open.onnx", "--for", "cpu", *words, "-o", tmp_path / "p")
    assert "go with devices" in failing(1, "pack", tmp_path / "open.onnx", "--dim", "n=1", "-o", tmp_path / "p")


def test_info_shows_what_was_prepared(net, tmp_path):
    def prepared(path, **settings):
        return json.loads(heddle("info", path, "--json", **settings).out)["prepared"]

    seed = (net / "net.heddle").read_bytes()
    found = prepared(net / "net.heddle")
    target, = found["targets"]
    assert found["why"] is None and target["for"] == "cpu" and target["fits"] is True and target["why"] is None
    assert sorted(f["kind"] for f in target["files"]) == ["packed weights", "plan"]
    assert target["bytes"] == sum(f["bytes"] for f in target["files"]) == sum(f["bytes"] for f in Parts(seed).index["files"])
    device, = target["devices"]
    assert device["name"] == "cpu:0" and device["why"] is None and device["driver"] != ""
    text = good("info", net / "net.heddle")
    assert "prepared   for cpu by Heddle" in text and ": fits\n  device   cpu:0: " in text and ": plan, " in text
    parts = Parts(seed)
    parts.index["targets"][0]["devices"][0]["driver"] = "another"
    (tmp_path / "other").write_bytes(parts.written())
    target, = prepared(tmp_path / "other")["targets"]
    assert target["fits"] is False and target["why"].startswith("its driver was 'another', and is '")
    assert "ignored: its driver was 'another'" in good("info", tmp_path / "other")
    assert prepared(net / "net.heddle", HEDDLE_PREPARED="off")["why"] == "the setting 'prepared' is off"
    parts = Parts(seed)
    parts.index["heddle"] = "9.9.9"
    (tmp_path / "other").write_bytes(parts.written())
    found = prepared(tmp_path / "other")
    assert "it is of Heddle 9.9.9" in found["why"] and found["targets"][0]["fits"] is False
    parts = Parts(seed)
    parts.index["targets"][0]["devices"][0]["name"] = "cuda:7"
    (tmp_path / "other").write_bytes(parts.written())
    assert "cuda" in prepared(tmp_path / "other")["targets"][0]["why"]
    (tmp_path / "other").write_bytes(seed[:-1])
    assert "cut off" in prepared(tmp_path / "other")["why"]
    good("pack", net / "net.onnx", "-o", tmp_path / "plain")
    assert prepared(tmp_path / "plain") is None and prepared(net / "net.onnx") is None


def test_mutations_of_the_index_change_no_result(net, tmp_path):
    expected = run(net, net / "net.onnx", tmp_path)[0]
    seed, bad, rng = (net / "net.heddle").read_bytes(), tmp_path / "bad", random.Random(3)
    start = Parts(seed).at
    for k in range(max(6, int(16 * SCALE))):
        at = rng.randrange(64, 112) if k % 2 == 0 else rng.randrange(start, len(seed))
        data = bytearray(seed)
        data[at] ^= 1 << rng.randrange(8)
        bad.write_bytes(data)
        found, log, _ = run(net, bad, tmp_path)
        assert found == expected and (USED not in log), (at, log)
    with pytest.raises(AssertionError):
        Parts(bytes(data))
    bad.write_bytes(seed[:Parts(seed).size - 1])
    assert "cut off" in heddle("run", bad, "--device", "cpu", "--random").err


def test_what_cannot_be_prepared(net, tmp_path):
    assert "no device" in failing(1, "pack", net / "net.onnx", "--for", "nothing:7", "-o", tmp_path / "p")
    assert "without a library" in failing(1, "pack", DIGITS, "--lib", "x.so", "--for", "cpu", "-o", tmp_path / "p")
    model = onnx.load(net / "net.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    onnx.save(model, tmp_path / "open.onnx")
    assert "without a fixed shape" in failing(1, "pack", tmp_path / "open.onnx", "--for", "cpu", "-o", tmp_path / "p")
    assert not (tmp_path / "p").exists()


MAIN = r"""
#include <stdio.h>
#include <string.h>
#include "heddle/heddle.h"
#include "my_net.h"
int main(int argc, char **argv) {
  heddle_error err = {0};
  heddle_context *ctx = NULL;
  heddle_model *m = NULL;
  heddle_executor *ex = NULL;
  heddle_tensor *x = NULL, *y = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = "cpu"};
  heddle_status s = heddle_context_create(NULL, 0, NULL, NULL, &ctx, &err);
  if (s == HEDDLE_OK && heddle_model_load_memory(ctx, my_net + 1, sizeof my_net - 1, NULL, &o, &m, NULL) != HEDDLE_EINVAL) return 3;
  if (s == HEDDLE_OK && heddle_model_load_memory(ctx, my_net, sizeof my_net / 4, NULL, &o, &m, NULL) != HEDDLE_EFORMAT) return 4;
  if (s == HEDDLE_OK) s = heddle_model_load_memory(ctx, my_net, sizeof my_net, "my_net", &o, &m, &err);
  if (s == HEDDLE_OK) s = heddle_executor_create(m, &ex, &err);
  if (s == HEDDLE_OK) s = heddle_tensor_load_npy(argv[argc - 2], &x, &err);
  if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, 0, x, &err);
  if (s == HEDDLE_OK) s = heddle_executor_run(ex, HEDDLE_FOREVER, &err);
  if (s == HEDDLE_OK) s = heddle_executor_view_output(ex, 0, &y, &err);
  if (s == HEDDLE_OK) s = heddle_tensor_save_npy(y, argv[argc - 1], &err);
  if (s != HEDDLE_OK) fprintf(stderr, "%s\n", err.text);
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  heddle_executor_release(ex);
  heddle_model_release(m);
  heddle_context_release(ctx);
  return s == HEDDLE_OK ? 0 : 1;
}
"""


@pytest.mark.skipif(bool(os.environ.get("HEDDLE_SANITIZE")), reason="the program has no sanitizer")
def test_linked_into_a_program(net, tmp_path):
    """Parameters and packed weights are used in the program's own memory."""
    expected = run(net, net / "net.onnx", tmp_path)[0]
    (tmp_path / "main.c").write_text(MAIN)
    for words in ([net / "net.onnx"], [net / "net.onnx", "--for", "cpu"], [net / "net.heddle"]):
        assert "my_net.o" in good("link", *words, "--name", "my_net", "-o", tmp_path / "l")
        sections = subprocess.run(["readelf", "-SWs", tmp_path / "l" / "my_net.o"], capture_output=True, text=True, check=True)
        assert sections.stderr == "" and " 4096\n" in sections.stdout and "OBJECT  GLOBAL DEFAULT    1 my_net" in sections.stdout
        subprocess.run(["cc", "-Wall", "-Werror", "-I", SOURCE / "include", "-I", tmp_path / "l", tmp_path / "main.c", tmp_path / "l" / "my_net.o",
                        f"-L{BUILD / 'lib'}", "-lheddle", f"-Wl,-rpath,{BUILD / 'lib'}", "-Wl,--fatal-warnings", "-o", tmp_path / "main"], check=True)
        done = subprocess.run([tmp_path / "main", net / "x.npy", tmp_path / "y.npy"], capture_output=True, text=True,
                              env={"HEDDLE_CONFIG": "off", "HEDDLE_PROBE": "off", "HEDDLE_LOG": "info", "HEDDLE_WEIGHTS_CACHE_DIR": "off"})
        assert done.returncode == 0 and (tmp_path / "y.npy").read_bytes() == expected, done.stderr
        assert (USED in done.stderr) == (len(words) > 1 or words[0].name == "net.heddle"), done.stderr
    assert sorted(p.name for p in (tmp_path / "l").iterdir()) == ["my_net.h", "my_net.o"]
    for name in ("1x", "int", "class", "main", "a-b"):
        assert "is no name for a symbol of C and C++" in failing(1, "link", net / "net.onnx", "--name", name, "-o", tmp_path / "l")
    large = tmp_path / "large.heddle"
    large.write_bytes((net / "net.heddle").read_bytes()[:64])
    os.truncate(large, (1 << 31) + 1)
    assert "an object file holds a model of 2 GiB at most" in failing(1, "link", large, "-o", tmp_path / "l")
    good("link", net / "net.onnx", "-o", tmp_path / "l")
    assert (tmp_path / "l" / "net.o").exists()


def test_from_c(net, tmp_path):
    """A caller of an older heddle_pack_options is served."""
    class Model(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("path", ctypes.c_char_p), ("rest", ctypes.c_void_p * 4)]

    model = Model(ctypes.sizeof(Model), None, str(net / "net.onnx").encode())
    models = (ctypes.c_void_p * 1)(ctypes.addressof(model))
    old = (ctypes.c_size_t * 9)(72, 0, 0, ctypes.addressof(models), 1, 0, 0, 0, 0)
    capi.call("heddle_pack", str(tmp_path / "p").encode(), old)
    graph_package((tmp_path / "p").read_bytes())
