"""examples/plugin-npu, built outside the tree against an installation: its layers against integers in numpy, a quantised
network on it and cpu, how it is split, its cycles, and what a fault of it looks like.
labels: slow installed
timeout: 900
"""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from installed import exports, project, tool
from numpy.lib.stride_tricks import sliding_window_view
from onnx import helper, numpy_helper
from tool_case import BUILD, SOURCE

if os.environ.get("HEDDLE_SANITIZE"):
    pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks", allow_module_level=True)

EXAMPLE = SOURCE / "examples" / "plugin-npu"
DIGITS = SOURCE / "examples" / "digits"


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    return project(EXAMPLE, tmp_path_factory.mktemp("npu") / "source", C_FLAGS="-Werror")


def test_it_is_listed_with_its_manifest(plugins):
    assert exports(plugins / "libheddle_plugin_npu.so") == ["heddle_plugin_entry"]
    assert json.loads((plugins / "npu.json").read_text()) == {
        "format": 1, "name": "npu", "abi": "1.2", "library": "libheddle_plugin_npu.so", "priority": 0}
    listed = json.loads(tool("devices", "--all", "--json", plugins=plugins))
    assert "npu:0" in [d["name"] for d in listed["devices"]]


# ---------------------------------------------------------------- layers against numpy

class Model:
    """Independent nodes side by side in one graph, each with what it has to give."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.wanted = [], {}, {}, {}

    def constant(self, value):
        self.constants[name := f"c{len(self.constants)}"] = value
        return name

    def operand(self, shape, dtype):
        self.inputs[name := f"x{len(self.inputs)}"] = self.bytes(shape, dtype)
        return name, self.inputs[name].astype(np.int64)

    def bytes(self, shape, dtype):
        limits = np.iinfo(dtype)
        return self.rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    def add(self, op, inputs, result, dtype, **attrs):
        name = f"y{len(self.wanted)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        self.wanted[name] = result.astype(dtype)
        return name

    def save(self, folder):
        """layers.onnx and its inputs; gives the words that name them."""
        tensor = lambda n, a: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        graph = helper.make_graph(self.nodes, "layers", [tensor(n, a) for n, a in self.inputs.items()],
                                  [tensor(n, a) for n, a in self.wanted.items()],
                                  [numpy_helper.from_array(a, n) for n, a in self.constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, folder / "layers.onnx")
        words = []
        for name, value in self.inputs.items():
            np.save(folder / f"{name}.npy", value)
            words += ["--input", f"{name}={name}.npy"]
        return words

    def run(self, folder, plugins):
        words = self.save(folder)
        tool("run", "layers.onnx", "--device", "npu", "--output-dir", ".", *words, plugins=plugins, cwd=folder,
             HEDDLE_LAYERS="check")
        for i, (name, wanted) in enumerate(self.wanted.items()):
            np.testing.assert_array_equal(np.load(folder / f"output_{i}.npy"), wanted, err_msg=name)


def windows(x, kernel, strides, dilations, pads, fill):
    """[n, c, oh, ow, kh, kw] of an image."""
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    every = sliding_window_view(x, reach, axis=(2, 3))
    return every[:, :, ::strides[0], ::strides[1], ::dilations[0], ::dilations[1]]


def requantise(sums, scale_x, scale_w, scale_y, zero_y, dtype):
    """Integers and one float32 ratio a channel: exact in float64, halves to the even."""
    ratio = (np.float32(scale_x) * scale_w.astype(np.float32) / np.float32(scale_y)).astype(np.float64)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(sums * ratio) + zero_y, limits.min, limits.max)


def add_conv(m, n, c, h, w, out, kernel, strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), x_type=np.uint8,
             w_type=np.int8, channels=True, bias=True, group=1):
    zero = int(np.iinfo(x_type).min + m.rng.integers(0, 200))
    x, values = m.operand((n, c, h, w), x_type)
    weights = m.bytes((out, c // group, *kernel), w_type)
    centre = 0 if w_type == np.int8 else 128
    scales = m.rng.uniform(0.002, 0.02, out if channels else ()).astype(np.float32)
    scale_y, zero_y = np.float32(scales.max() * 0.02 * 40 * np.sqrt(c // group * kernel[0] * kernel[1])), zero + 3
    numbers = m.rng.integers(-5000, 5000, out).astype(np.int32)
    columns = windows(values - zero, kernel, strides, dilations, pads, 0)
    each = zip(np.split(columns, group, axis=1), np.split(weights.astype(np.int64) - centre, group))
    sums = np.concatenate([np.einsum("nchwij,ocij->nohw", x, w) for x, w in each], axis=1)
    if bias:
        sums += numbers[:, None, None]
    result = requantise(sums, 0.02, np.broadcast_to(scales, out)[:, None, None], scale_y, zero_y, x_type)
    inputs = [x, m.constant(np.float32(0.02)), m.constant(x_type(zero)), m.constant(weights), m.constant(scales),
              m.constant(np.full(scales.shape, centre, w_type)), m.constant(scale_y), m.constant(x_type(zero_y))]
    m.add("QLinearConv", inputs + ([m.constant(numbers)] if bias else []), result, x_type, strides=list(strides),
          dilations=list(dilations), pads=list(pads), group=group)


def add_matmul(m, lead, k, n, x_type=np.int8, centred=False):
    x, values = m.operand((*lead, k), x_type)
    weights, centre = m.bytes((k, n), np.int8), m.bytes((n,), np.int8) if centred else np.zeros(n, np.int8)
    zero = np.iinfo(x_type).min + 77
    scales = m.rng.uniform(0.002, 0.02, n).astype(np.float32)
    scale_y = np.float32(0.3 * np.sqrt(k))
    zero_y = -4 if x_type == np.int8 else 9
    result = requantise((values - zero) @ (weights.astype(np.int64) - centre), 0.05, scales, scale_y, zero_y, x_type)
    m.add("QLinearMatMul", [x, m.constant(np.float32(0.05)), m.constant(x_type(zero)), m.constant(weights),
                            m.constant(scales), m.constant(centre), m.constant(scale_y),
                            m.constant(x_type(zero_y))], result, x_type)


def add_pool(m, shape, kernel, strides, pads=(0, 0, 0, 0), dilations=(1, 1), dtype=np.uint8):
    x, values = m.operand(shape, dtype)
    result = windows(values, kernel, strides, dilations, pads, np.iinfo(dtype).min).max(axis=(4, 5))
    m.add("MaxPool", [x], result, dtype, kernel_shape=list(kernel), strides=list(strides), pads=list(pads),
          dilations=list(dilations))


def test_layers_are_those_of_numpy_to_the_bit(plugins, tmp_path):
    m = Model(1)
    add_conv(m, 1, 1, 1, 1, 1, (1, 1))
    add_conv(m, 2, 16, 8, 8, 16, (3, 3), pads=(1, 1, 1, 1))
    add_conv(m, 1, 19, 9, 14, 33, (3, 2), strides=(2, 1), pads=(0, 1, 2, 0))
    add_conv(m, 1, 40, 12, 11, 5, (5, 5), pads=(2, 2, 2, 2), x_type=np.int8)
    add_conv(m, 2, 3, 17, 16, 20, (3, 3), dilations=(2, 3), pads=(2, 3, 2, 3), w_type=np.uint8, bias=False)
    add_conv(m, 1, 8, 60, 70, 24, (3, 3), strides=(1, 2), pads=(1, 1, 1, 1), channels=False)  # of several tiles
    add_conv(m, 1, 2, 1, 1500, 3, (1, 7), pads=(0, 3, 0, 3), x_type=np.int8)  # a row of several tiles
    add_conv(m, 1, 36, 6, 7, 72, (3, 3), group=3)
    add_conv(m, 1, 40, 9, 9, 40, (3, 3), pads=(1, 1, 1, 1), group=40)  # depthwise
    for lead, k, n in (((1,), 16, 16), ((5,), 100, 7), ((2, 3, 4), 31, 50), ((1100,), 20, 17)):
        add_matmul(m, lead, k, n)
    add_matmul(m, (3,), 33, 12, np.uint8)
    add_matmul(m, (40,), 50, 21, centred=True)  # weights of two bytes, less their zero points
    add_pool(m, (2, 20, 8, 8), (2, 2), (2, 2))
    add_pool(m, (1, 5, 30, 33), (3, 3), (1, 2), (1, 1, 1, 1), dtype=np.int8)
    add_pool(m, (1, 17, 12, 13), (2, 3), (1, 1), (0, 1, 1, 0), (2, 2))
    m.run(tmp_path, plugins)


def conv1d(length):
    """A model of one convolution over a row, which is constant but for its operand."""
    m = Model(2)
    x, values = m.operand((2, 6, length), np.uint8)
    weights = m.bytes((9, 6, 3), np.int8)
    columns = windows((values - 9)[:, :, None], (1, 3), (1, 1), (1, 1), (0, 1, 0, 1), 0)
    sums = np.einsum("nchwij,ocij->nohw", columns, weights.astype(np.int64)[:, :, None])[:, :, 0]
    m.add("QLinearConv", [x, m.constant(np.float32(0.5)), m.constant(np.uint8(9)), m.constant(weights),
                          m.constant(np.float32(0.25)), m.constant(np.int8(0)), m.constant(np.float32(8)),
                          m.constant(np.uint8(100))], requantise(sums, 0.5, np.float32(0.25), 8, 100, np.uint8), np.uint8,
          pads=[1, 1])
    return m


def test_halves_go_to_the_even(plugins, tmp_path):
    """The ratio of the scales is 1/64, so that many results lie half way between two bytes."""
    conv1d(40).run(tmp_path, plugins)


def test_what_it_cannot_run_is_refused_by_name(plugins, tmp_path):
    m = conv1d(8)
    m.nodes[0].attribute.append(helper.make_attribute("auto_pad", "SAME_UPPER"))
    del m.nodes[0].attribute[0]
    words = tool("run", "layers.onnx", "--device", "npu", *m.save(tmp_path), plugins=plugins, cwd=tmp_path, status=1)
    assert "'y0'" in words and "QLinearConv: npu takes pads as numbers" in words


def test_its_time_is_its_cycle_count(plugins, tmp_path):
    """One tile of 16 x 16 times 16 x 16, counted by hand from isa.h: 356 cycles of 10 ns. Both loads, 48 each; the
    product waits for them, 24; numbers of the block, 44; five operations of the ALU, 24 each; the store, 48; and three
    instructions of tokens alone that follow, 8 each."""
    m = Model(3)
    add_matmul(m, (16,), 16, 16)
    tool("run", "layers.onnx", "--device", "npu", *m.save(tmp_path), "--profile-json", "profile.json", plugins=plugins,
         cwd=tmp_path)
    steps = json.loads((tmp_path / "profile.json").read_text())["steps"]
    product = [s for s in steps if s["op"] == "QLinearMatMul"]
    assert len(product) == 1 and product[0]["median_ns"] == 3560


# ---------------------------------------------------------------- the network

@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The quantised digits network for all images at once, as the example's script makes it."""
    folder = tmp_path_factory.mktemp("network")
    words = [sys.executable, str(EXAMPLE / "quantise.py"), str(DIGITS), str(folder / "digits.onnx"), "--batch", "360"]
    subprocess.run(words, check=True, timeout=300, capture_output=True)
    np.save(folder / "images.npy", np.load(DIGITS / "images.npy").astype(np.float32))
    return folder


def accuracy(probabilities):
    return float((probabilities.argmax(axis=1) == np.load(DIGITS / "labels.npy")).mean())


def test_a_quantised_network_is_as_right_as_floats(plugins, network):
    """Within one point of float32, on all images and on those that calibration has not seen."""
    tool("run", "digits.onnx", "--device", "npu,cpu", "--input", "image=images.npy", "--output-dir", ".", plugins=plugins,
         cwd=network)
    got, floats = np.load(network / "output_0.npy"), np.load(DIGITS / "expected.npy")
    labels = np.load(DIGITS / "labels.npy")
    assert abs(accuracy(got) - accuracy(floats)) <= 0.01
    unseen = slice(60, None)
    right = lambda p: (p[unseen].argmax(axis=1) == labels[unseen]).mean()
    assert right(got) >= right(floats) - 0.01
    assert not np.array_equal(got, floats)


def test_the_plan_shows_the_split(plugins, network):
    plan = json.loads(tool("plan", "digits.onnx", "--device", "npu,cpu", "--json", plugins=plugins, cwd=network))
    where = {}
    for node in plan["nodes"]:
        where.setdefault(node["op"], set()).add(plan["devices"][node["device"]]["name"])
    assert where["QLinearConv"] == {"npu:0"} and where["MaxPool"] == {"npu:0"}
    assert where["Softmax"] == where["Concat"] == where["QuantizeLinear"] == {"cpu:0"}
    text = tool("plan", "digits.onnx", "--device", "npu,cpu", plugins=plugins, cwd=network)
    assert "one step with wide1.relu.y.q+wide2.relu.y.q+wide.pool.y.q" in text
    assert "on npu:0" in text and "on cpu:0" in text


def test_a_lost_device_is_an_error_in_words(plugins, network):
    """The third program of the machine ends in a bus error."""
    words = tool("run", "digits.onnx", "--device", "npu,cpu", "--input", "image=images.npy", plugins=plugins, cwd=network,
                 status=1, HEDDLE_NPU_FAULT_AT="3")
    assert "npu:0: device lost: instruction" in words and "an address outside the memory" in words


def test_a_device_that_hangs_is_reset(plugins, tmp_path):
    """The first program of the machine does not end: the device is reset, so that a retry can open it again, and nothing
    that it may use is kept. It hangs there again, which failover avoids."""
    m = Model(4)
    add_matmul(m, (4,), 16, 16)
    words = ("run", "layers.onnx", "--device", "npu,cpu", *m.save(tmp_path), "--on-failure")
    hangs = {"HEDDLE_NPU_HANG_AT": "1", "HEDDLE_NPU_WATCHDOG_MS": "1000", "HEDDLE_LOG": "info"}
    said = tool(*words, "retry", plugins=plugins, cwd=tmp_path, status=1, **hangs)
    assert "npu:0 was reset" in said and "it was tried 1 time more" in said and "is kept" not in said, said
    assert "1 new plans" in tool(*words, "failover", plugins=plugins, cwd=tmp_path, **hangs)


HANGS = '''
import json, os, sys, time
import numpy as np
import heddle
threads, milliseconds = set(), []
wanted, feed = np.load("wanted.npy"), {"x0": np.load("x0.npy")}
for _ in range(int(sys.argv[1])):
    context = heddle.Context({"log": "off", "npu.hang_at": "2", "npu.watchdog_ms": "100"})
    model = heddle.load("layers.onnx", devices="npu,cpu", context=context, on_failure="failover")
    assert np.array_equal(model.run(None, feed)[0], wanted)
    start = time.monotonic()
    assert np.array_equal(model.run(None, feed)[0], wanted)
    milliseconds.append((time.monotonic() - start) * 1000)
    del model, context
    threads.add(len(os.listdir("/proc/self/task")))
print(json.dumps({"threads": len(threads), "milliseconds": milliseconds}))
'''


def test_a_failover_from_a_hang_takes_the_watchdogs_time(plugins, tmp_path):
    """Some rounds, or HEDDLE_TEST_ROUNDS; the time is printed, and decides nothing but that the watchdog was waited for."""
    m = Model(4)
    add_matmul(m, (4,), 16, 16)
    m.save(tmp_path)
    np.save(tmp_path / "x0.npy", m.inputs["x0"])
    np.save(tmp_path / "wanted.npy", m.wanted["y0"])
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "HEDDLE_PLUGIN_PATH": f"{plugins}:{BUILD / 'lib' / 'heddle' / 'plugins'}"}
    done = subprocess.run([sys.executable, "-c", HANGS, os.environ.get("HEDDLE_TEST_ROUNDS", "3")], cwd=tmp_path, env=env,
                          capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    times = seen["milliseconds"]
    print(f"{len(times)} failovers took {min(times):.0f} to {max(times):.0f} ms, 100 of them the watchdog's")
    assert seen["threads"] == 1 and min(times) >= 100


def test_memory_that_does_not_suffice_is_an_error_in_words(plugins, tmp_path):
    m = Model(4)
    add_matmul(m, (70000,), 16, 16)
    words = tool("run", "layers.onnx", "--device", "npu", *m.save(tmp_path), plugins=plugins, cwd=tmp_path, status=1,
                 HEDDLE_NPU_DRAM_MB="1")
    assert "npu:0" in words and "1048576" in words
