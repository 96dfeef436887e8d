"""ncnn on Vulkan, driven from Python as its users do, and the digits network as ONNX, which it reads through pnnx."""
import importlib.util
import json
import os
import struct
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# What ncnn computes in: what it takes by itself (float16 where the device has it), and float32 alone.
SETTINGS = {"ncnn": (), "ncnn_float32": ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic",
                                         "use_bf16_packed", "use_bf16_storage")}
DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "digits")


def missing():
    """Why there is nothing to compare with; None where there is."""
    for name in ("ncnn", "pnnx"):
        if importlib.util.find_spec(name) is None:
            return f"the Python package {name} is not here (scripts/bench installs it where the package registry has it)"
    import ncnn
    ncnn.create_gpu_instance()
    return None if ncnn.get_gpu_count() > 0 else "ncnn finds no Vulkan device"


def device_name():
    import ncnn
    return ncnn.get_gpu_info(ncnn.get_default_gpu_index()).device_name()


def convert(path, shape):
    """FILE.onnx as FILE.ncnn.param and .bin, in float32, by pnnx's program: its Python package would need torch."""
    base = os.path.splitext(path)[0]
    folder = importlib.util.find_spec("pnnx").submodule_search_locations[0]
    dims = ",".join(map(str, shape))
    done = subprocess.run([os.path.join(folder, "pnnx"), path, f"inputshape=[{dims}]", "fp16=0"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0 or not os.path.exists(f"{base}.ncnn.param"):
        raise SystemExit(f"pnnx could not convert {path}:\n{done.stdout}{done.stderr}")
    return base


class Ncnn:
    """A network on ncnn's default Vulkan device. A run sends the input and fetches the output."""

    def __init__(self, base, data, off):
        import ncnn
        self.net = ncnn.Net()
        self.net.opt.use_vulkan_compute = True
        for name in off:
            setattr(self.net.opt, name, False)
        if self.net.load_param(f"{base}.ncnn.param") != 0 or self.net.load_model(f"{base}.ncnn.bin") != 0:
            raise SystemExit(f"ncnn could not load {base}")
        self.data = ncnn.Mat(data[0]).clone()  # ncnn has no batches

    def run(self):
        extractor = self.net.create_extractor()
        extractor.input("in0", self.data)
        status, self.result = extractor.extract("out0")
        if status != 0:
            raise SystemExit(f"a run of ncnn failed: {status}")

    def output(self):
        self.run()
        return np.array(self.result).ravel()


def parameters(path):
    """The arrays of a parameter file by name: header, names, then one record a tensor."""
    with open(path, "rb") as file:
        raw = file.read()
    at = 16

    def take(form):
        nonlocal at
        values = struct.unpack_from(form, raw, at)
        at += struct.calcsize(form)
        return values

    names = [take(f"<{take('<Q')[0]}s")[0].decode() for _ in range(take("<Q")[0])]
    take("<Q")
    arrays = {}
    for name in names:
        ndim, code, bits = take("<QQiiiBBH")[4:7]
        shape, size = take(f"<{ndim}q"), take("<q")[0]
        arrays[name] = np.frombuffer(raw, f"<{'iuf'[code]}{bits // 8}", size * 8 // bits, at).reshape(shape)
        at += size
    return arrays


def write_digits(path):
    """The digits network of examples/digits, and PATH.input beside it with its first image."""
    with open(os.path.join(DIGITS, "digits.json")) as file:
        graph = json.load(file)
    names = [n["name"] for n in graph["nodes"]]
    nodes = [helper.make_node(n["op"], [names[i[0]] for i in n["inputs"]], [n["name"]], name=n["name"],
                              **n.get("attrs", {})) for n in graph["nodes"] if n["op"] != "null"]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in (("image", [1, 1, 8, 8]), (names[graph["heads"][0][0]], [1, 10]))]
    weights = [numpy_helper.from_array(array, name)
               for name, array in parameters(os.path.join(DIGITS, "digits.params")).items()]
    made = helper.make_graph(nodes, "digits", ends[:1], ends[1:], weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    np.load(os.path.join(DIGITS, "images.npy"))[:1].astype(np.float32).tofile(f"{path}.input")
