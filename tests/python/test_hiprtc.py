"""AMD's own hiprtc and HIP, where they are installed, without a GPU: heddle-hiprtc compiles for what hiprtc knows, a crash of
hiprtc ends that process and not the tool's, and a HIP without a device is reported.
timeout: 300"""

import glob
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from gpu_doubles import ENV, HIP, REAL
from tool_case import BUILD, DIGITS, failing, heddle

KERNELS = pathlib.Path(__file__).parents[2] / "plugins" / "common" / "kernels"
HELPER = BUILD / "libexec" / "heddle" / "heddle-hiprtc"
FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/opt/rocm/lib", "/opt/rocm/lib64"]
KERNEL = """
extern "C" __global__ void sums(float *out, const float *in) {
  __shared__ float room[64];
  room[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  for (int span = 32; span > 0; span /= 2) {
    __syncthreads();
    if (threadIdx.x < span) room[threadIdx.x] += room[threadIdx.x + span];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = room[0];
}
"""
# EF_AMDGPU_MACH_* of LLVM's user guide for AMDGPU: wavefronts of 64, 64 and 32.
MACHINES = {"gfx906": 0x2f, "gfx90a:sramecc+:xnack-": 0x3f, "gfx1030": 0x36}


def installed():
    """The library that is hiprtc, and its version's words; skips where there is none."""
    if not HELPER.exists():
        pytest.skip("the plugin rocm is not built")
    for name in ("libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.6", "libamdhip64.so.5"):
        for path in (os.path.join(folder, name) for folder in FOLDERS):
            verdict, words, _ = ask("version", path, "--") if os.path.exists(path) else ("", "", b"")
            if verdict == "version":
                return path, words
    pytest.skip("AMD's hiprtc is not installed")


def ask(verb, *words, source=KERNEL):
    done = subprocess.run([HELPER, verb, *words], input=source.encode(), capture_output=True, timeout=120)
    if not done.stdout:
        return done.returncode, done.stderr.decode(errors="replace"), b""
    line, data = done.stdout.split(b"\n", 1)
    mark, verdict, count, compiler = line.decode().split(" ", 3)
    assert (mark, int(count), done.returncode) == ("heddle-hiprtc", len(data), 0), done
    return verdict, compiler, data


@pytest.mark.parametrize("arch", MACHINES)
def test_compiles(arch):
    path, _ = installed()
    verdict, words, code = ask("compile", path, "--", f"--offload-arch={arch}", "-ffp-contract=on")
    assert verdict == "code", (words, code)
    assert words.startswith("hiprtc ") and words.endswith(f"({os.path.basename(path)})")
    assert code[:5] == b"\x7fELF\x02" and struct.unpack_from("<H", code, 18) == (224,)  # EM_AMDGPU
    assert struct.unpack_from("<I", code, 48)[0] & 0xff == MACHINES[arch]
    assert b"sums.kd" in code


@pytest.mark.parametrize("arch", MACHINES)
def test_large_tiles_stay_in_registers(arch):
    """Kernels say that groups have 64 items: for 1024, which hiprtc takes else, an item has 64 registers, and a tile more."""
    path, _ = installed()
    parts = [(KERNELS / name).read_text() for name in ("prelude.cl", "params.h", "contract.cl")]
    parts[1] = parts[1].replace('#include "portable_params.h"', (KERNELS / "portable_params.h").read_text())
    verdict, _, code = ask("compile", path, "--", f"--offload-arch={arch}", "-ffp-contract=on",
                           source="#define K_contract 1\n#define IDX int\n#define EACH 8\n" + "".join(parts))
    assert verdict == "code", code
    counts = [code[m.end()] for m in re.finditer(rb"\.vgpr_spill_count", code)]  # in MessagePack 0 is a byte of 0
    assert counts and not any(counts)


def test_a_wrong_program_gives_the_log():
    path, _ = installed()
    verdict, _, log = ask("compile", path, "--", "--offload-arch=gfx90a", source="#error made by a test\n")
    assert verdict == "log" and b"made by a test" in log


def test_no_compiler_is_an_answer():
    if not HELPER.exists():
        pytest.skip("the plugin rocm is not built")
    verdict, _, why = ask("version", "/nonexistent/libhiprtc.so", "libc.so.6", "--")
    assert verdict == "missing" and b"/nonexistent/libhiprtc.so" in why and b"libc.so.6: it has no hiprtc" in why


def test_wrong_words_have_status_2():
    if not HELPER.exists():
        pytest.skip("the plugin rocm is not built")
    for words in ([], ["compile", "x"], ["other", "--"]):
        done = subprocess.run([HELPER, *words], input=b"", capture_output=True, timeout=60)
        assert done.returncode == 2 and b"usage" in done.stderr and not done.stdout


def test_a_crash_is_an_error(tmp_path):
    """A device that the installed hiprtc does not know: the double's, with a name from the future."""
    path, _ = installed()
    if REAL or not HIP.exists():
        pytest.skip("the double of HIP is not built")
    arch = "gfx1100"
    if ask("compile", path, "--", f"--offload-arch={arch}")[0] in ("code", "log"):
        pytest.skip(f"this hiprtc does not crash over {arch}")
    env = {**ENV, "HEDDLE_ROCM_HIPRTC": path, "FAKE_GPU_ARCH": arch, "XDG_CACHE_HOME": str(tmp_path)}
    text = failing(1, "run", DIGITS, "--params", DIGITS.with_suffix(".params"), "--random", "--device", "rocm:0",
                   "--place", "*=rocm:0", **env)
    assert "rocm:0: build kernel '" in text, text
    if os.environ.get("HEDDLE_SANITIZE"):  # which turns the signal into an exit status
        assert "hiprtc ended without an answer (exit status 1)" in text
    else:
        assert f"hiprtc crashed with signal 6 (Aborted): most likely this version of it does not know {arch}" in text


def test_hip_without_a_device_is_said():
    """What is installed, or that nothing is."""
    if os.path.exists("/dev/kfd"):
        pytest.skip("there may be a device of AMD's")
    if not (BUILD / "lib" / "heddle" / "plugins" / "libheddle_plugin_rocm.so").exists():
        pytest.skip("the plugin rocm is not built")
    r = heddle("devices", "--all")
    assert "plugin rocm: no HIP device: the driver " in r.out + r.err, r
    if any(glob.glob(os.path.join(folder, "libamdhip64.so.[56]")) for folder in FOLDERS):
        assert "does not start: hipError" in r.out + r.err
        assert "there is no device, or this user may not use it" in r.out + r.err
    else:
        assert "cannot be opened" in r.out + r.err


def test_a_moved_installation_finds_its_helper(tmp_path):
    """Plugin and helper in a prefix of their own."""
    plugin = BUILD / "lib" / "heddle" / "plugins" / "libheddle_plugin_rocm.so"
    if REAL or not plugin.exists() or not HIP.exists():
        pytest.skip("the plugin rocm or the double of HIP is not built")
    plugins = tmp_path / "prefix" / "lib" / "heddle" / "plugins"
    plugins.mkdir(parents=True)
    shutil.copy(plugin, plugins)
    env = {**ENV, "HEDDLE_PLUGINS": str(plugins / plugin.name)}
    assert "no compiler" in heddle("devices", "--all", **env).out
    folder = tmp_path / "prefix" / "libexec" / "heddle"
    folder.mkdir(parents=True)
    shutil.copy(HELPER, folder)
    assert "hiprtc 9.0 (libamdhip64.so)" in heddle("devices", "--all", **env).out
