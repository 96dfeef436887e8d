"""The cache of packed weights as a user meets it: the same bits from it, where it is, its limit and its switch, damaged,
cut and foreign files, folders that cannot be used, a model that was changed, many processes at once.

timeout: 600
"""
import fcntl
import os
import resource
import subprocess
import time

import numpy as np
import onnx_files as files
import pytest
from onnx import helper
from tool_case import TOOL, environment, heddle

if "oneDNN" not in heddle("devices", "--all").out:
    pytest.skip("without oneDNN the plugin cpu packs nothing", allow_module_level=True)

SHAPE = (1, 64, 12, 12)


def write(path, seed=1):
    """Three convolutions, 3 MB of weights; as old as files are that are not being written any more."""
    rng = np.random.default_rng(seed)
    tensors = {f"w{i}": rng.standard_normal(s).astype(np.float32) / 24
               for i, s in enumerate([(256, 64, 3, 3), (256, 256, 3, 3), (64, 256, 1, 1)])}
    nodes = [helper.make_node("Conv", [a, w], [b], pads=[p] * 4)
             for a, w, b, p in (("x", "w0", "a", 1), ("a", "w1", "b", 1), ("b", "w2", "y", 0))]
    proto = files.model(nodes, {"x": (np.float32, SHAPE)}, ["y"], tensors)
    path.write_bytes(proto.SerializeToString())
    return proto


INPUT = np.random.default_rng(7).standard_normal(SHAPE).astype(np.float32)


@pytest.fixture(scope="module")
def settled(tmp_path_factory):
    """A model whose file has been left alone for longer than clocks of file systems are coarse."""
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    proto = write(path)
    time.sleep(4)
    return path, proto


@pytest.fixture
def place(settled, tmp_path):
    return settled[0], tmp_path / "cache"


def run(path, cache, *more, **env):
    """The output, and what was said."""
    folder = cache.parent / "out"
    folder.mkdir(exist_ok=True)
    np.save(folder / "in.npy", INPUT)
    words = ["run", path, "--device", "cpu", "--input", f"x={folder / 'in.npy'}", "--output-dir", folder, "--set", "log=info"]
    if "XDG_CACHE_HOME" not in env:
        words += ["--set", f"weights.cache_dir={cache}"]
    r = heddle(*words, *more, **env)
    assert r.status == 0, r
    return np.load(folder / "output_0.npy"), "\n".join(line for line in r.err.splitlines() if "weights:" in line)


def entries(cache):
    return sorted(cache.glob("weights-*.bin"))


def test_a_second_start_gives_the_same_bits(settled, place):
    plain, said = run(settled[0], place[1], "--set", "weights.cache_dir=off")
    assert said == "" and not place[1].exists()
    first, said = run(*place)
    assert "are kept in" in said and len(entries(place[1])) == 1
    inode = entries(place[1])[0].stat().st_ino
    second, said = run(*place)
    assert "are those in" in said and entries(place[1])[0].stat().st_ino == inode
    np.testing.assert_array_equal(plain, first)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(second, files.expected(settled[1], {"x": INPUT})[0], rtol=1e-4, atol=1e-4)


def test_it_is_in_the_user_s_cache_folder(place, tmp_path):
    run(*place, XDG_CACHE_HOME=str(tmp_path / "x"))
    folder = tmp_path / "x/heddle/weights"
    assert len(entries(folder)) == 1
    assert folder.stat().st_mode & 0o777 == 0o700 and entries(folder)[0].stat().st_mode & 0o777 == 0o600
    assert not list(folder.glob("*.bin.*"))


@pytest.mark.parametrize("how", ["cut", "longer", "empty", "head", "magic", "key", "bytes", "last"])
def test_a_damaged_file_is_made_anew(place, how):
    want, _ = run(*place)
    entry = entries(place[1])[0]
    data = bytearray(entry.read_bytes())
    kept = bytes(data)
    if how in ("cut", "longer", "empty"):
        data = {"cut": data[:-100], "longer": data + b"\0", "empty": b""}[how]
    else:
        data[{"head": 60, "magic": 0, "key": 9, "bytes": 4096 + 100001, "last": len(data) - 70}[how]] ^= 4
    entry.write_bytes(data)
    got, said = run(*place)
    assert "is damaged" in said and "are kept in" in said
    np.testing.assert_array_equal(got, want)
    assert entry.read_bytes()[4096:] == kept[4096:]
    assert "are those in" in run(*place)[1]


def test_what_nobody_makes_any_more_is_removed(place):
    """A maker holds a lock; a process that was killed holds none."""
    place[1].mkdir(mode=0o700)
    left, held = (place[1] / f"weights-0123456789abcdef0123456789abcdef.bin.{i}-1" for i in range(2))
    left.write_bytes(bytes(5000))
    with open(held, "wb") as maker:
        fcntl.flock(maker, fcntl.LOCK_EX)
        run(*place)
        assert held.exists() and not left.exists() and len(entries(place[1])) == 1
    assert "are those in" in run(*place)[1]


def test_a_limit_of_file_sizes_is_kept_to(place):
    """Beyond it the system would end the process."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, resource.RLIM_INFINITY))
    try:
        said = run(*place)[1]
        assert said.count("\n") == 0 and "RLIMIT_FSIZE" in said and not entries(place[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_one_that_was_touched_is_compared_and_taken(place):
    want, _ = run(*place)
    os.utime(entries(place[1])[0])
    for _ in range(2):
        got, said = run(*place)
        assert "are those in" in said
        np.testing.assert_array_equal(got, want)


def test_a_changed_model_has_other_weights(tmp_path):
    """At once, with the same size and the old time of change, and after a while."""
    path, cache = tmp_path / "model.onnx", tmp_path / "cache"
    write(path)
    time.sleep(4)
    before = path.stat()
    run(path, cache)
    assert "are those in" in run(path, cache)[1]
    proto = write(path, seed=2)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size and path.stat().st_ino == before.st_ino
    want = files.expected(proto, {"x": INPUT})[0]
    for _ in range(2):
        np.testing.assert_allclose(run(path, cache)[0], want, rtol=1e-4, atol=1e-4)
    proto = write(path, seed=3)
    np.testing.assert_allclose(run(path, cache)[0], files.expected(proto, {"x": INPUT})[0], rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_read(place):
    run(*place)
    place[1].chmod(0o500)
    try:
        assert "are those in" in run(*place)[1]
        assert "no file can be made there" in run(*place, "--threads", "1", "--set", "optimize=off")[1]
    finally:
        place[1].chmod(0o700)


@pytest.mark.parametrize("what", ["file", "open", "missing", "relative"])
def test_folders_that_cannot_be_used(place, what):
    want, _ = run(*place, "--set", "weights.cache_dir=off")
    path, cache = place
    if what == "file":
        cache.write_text("")
    elif what == "open":
        cache.mkdir()
        cache.chmod(0o777)
    elif what == "missing":
        cache = "/proc/self/nowhere"
    else:
        cache = "here"
    got, said = run(path, place[1], "--set", f"weights.cache_dir={cache}")
    assert "packed weights are not kept" in said
    np.testing.assert_array_equal(got, want)
    if what == "open":
        assert not entries(place[1])


def test_the_limit_removes_what_was_used_least_lately(tmp_path):
    cache = tmp_path / "cache"
    paths = [tmp_path / f"model{i}.onnx" for i in range(3)]
    for i, path in enumerate(paths):
        write(path, seed=10 + i)
    time.sleep(4)
    run(paths[0], cache)
    size = entries(cache)[0].stat().st_size
    limit = ["--set", f"weights.cache_bytes={2 * size + 10}"]
    run(paths[1], cache, *limit)
    run(paths[0], cache, *limit)
    said = run(paths[2], cache, *limit)[1]
    assert "removed" in said and len(entries(cache)) == 2
    assert "are those in" in run(paths[0], cache, *limit)[1]
    assert "are kept in" in run(paths[1], cache, *limit)[1]
    small = run(paths[1], tmp_path / "other", "--set", f"weights.cache_bytes={size - 1}")[1]
    assert small == "" and not entries(tmp_path / "other")
    assert run(paths[1], tmp_path / "other", "--set", "weights.cache_bytes=0")[1] == ""


def test_processes_at_once(place, tmp_path):
    want, _ = run(*place, "--set", "weights.cache_dir=off")
    np.save(tmp_path / "in.npy", INPUT)
    procs = []
    for i in range(6):
        out = tmp_path / f"out{i}"
        out.mkdir()
        words = ["run", place[0], "--device", "cpu", "--input", f"x={tmp_path / 'in.npy'}", "--output-dir", out, "--set",
                 f"weights.cache_dir={place[1]}"]
        procs.append((out, subprocess.Popen([str(TOOL), *map(str, words)], env=environment(), stderr=subprocess.PIPE)))
    for out, proc in procs:
        assert proc.communicate(timeout=120)[1] == b"" and proc.returncode == 0
        np.testing.assert_array_equal(np.load(out / "output_0.npy"), want)
    assert len(list(place[1].iterdir())) == 1
    assert "are those in" in run(*place)[1]
