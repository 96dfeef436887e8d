"""examples/tvm-c-api as C and as C++, and the headers that it is written against: the numbers of TVM's, and DLPack's as
its own header has them.
timeout: 300
"""
import importlib.util
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from tool_case import BUILD, SOURCE, environment

EXAMPLE = SOURCE / "examples" / "tvm-c-api"
SANITIZED = bool(os.environ.get("HEDDLE_SANITIZE"))
spec = importlib.util.spec_from_file_location("net", EXAMPLE / "net.py")
net = importlib.util.module_from_spec(spec)
spec.loader.exec_module(net)
FLAGS = ["-I", SOURCE / "include", "-I", SOURCE / "modules" / "include", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("net")
    net.write(made)
    return made


def run(program, *words):
    return subprocess.run([str(w) for w in (program, *words)], capture_output=True, text=True, timeout=120,
                          env=environment())


def files(folder):
    return folder / "net.so", folder / "net.json", folder / "net.params"


def check(program, folder):
    random = np.random.default_rng(3)
    slope = np.broadcast_to((np.arange(224) / 224).astype(np.float32), (1, 3, 224, 224))
    image = random.random((1, 3, 224, 224), np.float32)
    image[0, 1, :112, 112:] += 3
    image.tofile(folder / "image.bin")
    for pixels, more in ((slope, []), (image, [folder / "image.bin"])):
        done = run(program, *files(folder), *more)
        assert done.returncode == 0, done.stderr
        expected = net.scores(pixels, net.parameters())
        found = re.fullmatch(r"class (\d+), score (\S+)\n", done.stdout)
        assert int(found[1]) == expected.argmax()
        np.testing.assert_allclose(float(found[2]), expected.max(), rtol=1e-5)


def test_the_example(folder):
    check(BUILD / "examples" / "tvm-c-api", folder)


@pytest.mark.skipif(SANITIZED, reason="the library is built with a sanitizer, whose run time a plain program lacks")
@pytest.mark.parametrize("compiler,standard", [("cc", "c11"), ("c++", "c++17"), ("c++", "c++20"), ("clang", "c11")])
def test_the_example_compiles_without_a_change(folder, tmp_path, compiler, standard):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    language = ["-x", "c++"] if "++" in compiler else []
    program = tmp_path / "program"
    subprocess.run([str(w) for w in (compiler, f"-std={standard}", *language, *FLAGS, EXAMPLE / "main.c", "-o", program,
                                     "-L", BUILD / "lib", "-lheddle_tvm", f"-Wl,-rpath,{BUILD / 'lib'}")], check=True)
    check(program, folder)


def test_what_goes_wrong_is_said(folder, tmp_path):
    program = BUILD / "examples" / "tvm-c-api"
    library, graph, params = files(folder)
    (tmp_path / "cut.params").write_bytes(params.read_bytes()[:1000])
    (tmp_path / "cut.json").write_text(graph.read_text()[:300])
    (tmp_path / "other.json").write_text(graph.read_text().replace("fused_nn_dense_add", "fused_nn_none"))
    for words, reason in (((tmp_path / "none.so", graph, params), r"none.so: .*cannot be opened"),
                          ((graph, graph, params), r"no loader for files of format 'json'"),
                          ((library, tmp_path / "cut.json", params), "tvm.graph_executor.create: .+"),
                          ((library, tmp_path / "other.json", params), "'dense'.*tvmgen_default_fused_nn_none"),
                          ((library, graph, tmp_path / "cut.params"), "load_params: .+"),
                          ((library, graph, params, params), "bytes, and 1 x 3 x 224 x 224 numbers")):
        done = run(program, *words)
        assert done.returncode == 1 and done.stdout == "" and re.search(reason, done.stderr), (words, done.stderr)
    assert run(program).returncode == 2


# ---- headers

def numbers(tmp_path, include, lines):
    """What a C program prints of the expressions."""
    text = "".join(f'printf("{line} %lld\\n", (long long)({line}));\n' for line in lines)
    (tmp_path / "probe.c").write_text("#include <stddef.h>\n#include <stdio.h>\n" + include +
                                      "\nint main(void) {\n" + text + "return 0; }\n")
    return tmp_path / "probe.c"


def printed(source, *flags):
    program = source.with_suffix("")
    subprocess.run(["cc", "-std=c11", *map(str, flags), str(source), "-o", str(program)], check=True)
    text = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}


def test_dlpack_is_as_dlpack_has_it(tmp_path):
    real = sorted((SOURCE / ".venv" / "lib").glob("python3*/site-packages/tvm_ffi/include"))
    if not real:
        pytest.skip("DLPack's own header is not here")
    ours = SOURCE / "modules" / "include"
    text = (ours / "dlpack" / "dlpack.h").read_text()
    lines = sorted(set(re.findall(r"\bkDL\w+(?= =)|DLPACK_FLAG_\w+", text)))
    structs = {"DLTensor": "data device ndim dtype shape strides byte_offset", "DLDataType": "code bits lanes",
               "DLDevice": "device_type device_id", "DLManagedTensor": "dl_tensor manager_ctx deleter",
               "DLManagedTensorVersioned": "version manager_ctx deleter flags dl_tensor"}
    for name, members in structs.items():
        lines += [f"sizeof({name})", *(f"offsetof({name}, {m})" for m in members.split())]
    assert len(lines) > 60
    probe = numbers(tmp_path, "#include <dlpack/dlpack.h>", lines)
    assert printed(probe, "-I", ours) == printed(probe, "-I", real[0])
    old = numbers(tmp_path, "#define HEDDLE_DLPACK_CTX\n#include <dlpack/dlpack.h>",
                  ["offsetof(DLTensor, ctx)", "offsetof(DLTensor, device)", "sizeof(DLTensor)", "sizeof(DLContext)", "kDLGPU",
                   "kDLCPUPinned"])
    assert list(printed(old, "-I", ours).values()) == [8, 8, 48, 8, 2, 3]


def test_the_numbers_of_tvm_s_header(tmp_path):
    """By TVM's own list of type codes and devices."""
    wanted = {"kTVMArgInt": 0, "kTVMArgFloat": 2, "kTVMOpaqueHandle": 3, "kTVMNullptr": 4, "kTVMDataType": 5, "kDLDevice": 6,
              "kTVMContext": 6, "kTVMDLTensorHandle": 7, "kTVMObjectHandle": 8, "kTVMModuleHandle": 9,
              "kTVMPackedFuncHandle": 10, "kTVMStr": 11, "kTVMBytes": 12, "kTVMNDArrayHandle": 13,
              "kTVMObjectRValueRefArg": 14, "kTVMExtBegin": 15, "kTVMNNVMFirst": 16, "kTVMNNVMLast": 20,
              "kTVMExtReserveEnd": 64, "kTVMExtEnd": 128, "kDLAOCL": 32, "kDLSDAccel": 33, "kOpenGL": 34, "kDLMicroDev": 35,
              "sizeof(TVMValue)": 8, "sizeof(TVMByteArray)": 16, "sizeof(tvm_index_t)": 8,
              "sizeof(TVMParallelGroupEnv)": 16, "offsetof(TVMParallelGroupEnv, num_task)": 8}
    probe = numbers(tmp_path, "#include <tvm/runtime/c_backend_api.h>", list(wanted))
    assert printed(probe, *FLAGS) == wanted


def test_every_function_of_the_headers_is_there_and_described():
    """What the headers declare is what the library exports, and what the documentation lists."""
    declared = set()
    for name in ("c_runtime_api.h", "c_backend_api.h"):
        text = (SOURCE / "include" / "tvm" / "runtime" / name).read_text()
        declared |= set(re.findall(r"\b(TVM\w+)\(", re.sub(r"/\*.*?\*/|typedef[^;]*;", "", text, flags=re.S)))
    listed = set((SOURCE / "tests" / "abi" / "tvm-symbols.txt").read_text().split())
    assert len(declared) >= 49 and declared - listed == set()
    table = (SOURCE / "docs" / "tvm-c-api.md").read_text()
    assert {n for n in declared if f"`{n}`" not in table} == set()
