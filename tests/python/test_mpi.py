"""One graph over the ranks of MPI: the results of one process, runs in flight, plans that an oracle checks, and bad input, which
every rank reports.
timeout: 300
"""
import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import message_oracle
from mpi_case import layers, mpirun, need
from tool_case import BUILD, SOURCE, TOOL, good, heddle

pytestmark = need()
FOUR = ["--place", "*0=0/cpu", "--place", "*1=1/cpu", "--place", "*2=2/sim:0", "--place", "*3=3/cpu", "--place", "last=1/cpu"]
LIST = "0/cpu,1/cpu,2/sim:0,3/cpu"


def output(folder):
    return numpy.load(folder / "output_0.npy")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return layers(tmp_path_factory.mktemp("mpi") / "m.onnx")


@pytest.fixture(scope="module")
def expected(model, tmp_path_factory):
    """Of one process with the same devices."""
    folder = tmp_path_factory.mktemp("one")
    rules = [word.replace("0/", "").replace("1/", "").replace("2/", "").replace("3/", "") for word in FOUR]
    good("run", model, "--random", "--device", "cpu,sim:0", *rules, "--output-dir", folder)
    return output(folder)


def test_four_ranks_compute_what_one_process_does(model, expected, tmp_path):
    r = mpirun(4, "run", model, "--random", "--device", LIST, *FOUR, "--in-flight", 3, "--output-dir", tmp_path)
    assert r.status == 0 and not r.errors, r
    assert r.out.count("output 0") == 1 and "3 runs in flight gave the same bits" in r.out, r
    assert (output(tmp_path) == expected).all()


def test_a_communicator_of_one(model, expected, tmp_path):
    rules = [w.replace("1/", "0/").replace("2/", "0/").replace("3/", "0/") for w in FOUR]
    r = mpirun(1, "run", model, "--random", "--device", "0/cpu,0/sim:0", *rules, "--output-dir", tmp_path)
    assert r.status == 0 and not r.errors, r
    assert (output(tmp_path) == expected).all()


def test_the_oracle_agrees_with_the_proof(model):
    r = mpirun(4, "plan", model, "--device", LIST, *FOUR, "--in-flight", 2, "--json")
    assert r.status == 0, r
    ranks = json.loads(r.out)["ranks"]
    assert ranks["count"] == 4 and {s["rank"] for s in ranks["stages"]} == {0, 1, 2, 3}
    message_oracle.check(ranks)
    rng, caught = random.Random(1), 0
    for _ in range(60):  # mutants: a message dropped, or re-tagged
        mutant = copy.deepcopy(ranks)
        acts = rng.choice([acts for acts in mutant["acts"] if any(a["act"] != "stage" for a in acts)])
        act = rng.choice([a for a in acts if a["act"] != "stage"])
        if rng.random() < 0.5:
            acts.remove(act)
        else:
            act["tag"] += 1
        with pytest.raises(message_oracle.Wrong):
            message_oracle.check(mutant, 3)
        caught += 1
    assert caught == 60


def test_the_plan_names_ranks_and_links(model):
    r = mpirun(2, "plan", model, "--device", "*/cpu", "--place", "auto", "--all")
    assert r.status == 0, r
    assert "ranks     2, this is rank 0" in r.out and "rank 0 -> rank 1" in r.out and "rank 1  1 stage on cpu:0" in r.out, r


def all_say(r, n, words):
    """n ranks end with these words; what ranks write at the same time may be mixed, a whole message is not."""
    assert r.status != 0 and r.err.count(words) == n, r


def test_ranks_that_differ(model, tmp_path):
    changed = onnx.load(str(model))
    w = numpy_helper.to_array(changed.graph.initializer[0]).copy()
    w[0, 0] += 1
    changed.graph.initializer[0].CopyFrom(numpy_helper.from_array(w, "w0"))
    onnx.save(changed, str(tmp_path / "weights.onnx"))
    layers(tmp_path / "larger.onnx", n=5)
    run = ["--random", "--device", "*/cpu"]
    r = mpirun(2, "run", model, *run, ":", "run", tmp_path / "weights.onnx", *run)
    all_say(r, 2, "rank 1 differs from rank 0 in its model's parameters")
    r = mpirun(2, "run", model, *run, ":", "run", tmp_path / "larger.onnx", *run)
    all_say(r, 2, "rank 1 differs from rank 0 in its model's graph")
    r = mpirun(2, "run", model, *run, ":", "run", model, "--random", "--device", "0/cpu,1/cpu")
    all_say(r, 2, "rank 1 differs from rank 0 in its list of devices")
    r = mpirun(2, "run", model, *run, ":", "run", model, *run, "--memory", "1/cpu=1GiB")
    all_say(r, 2, "rank 1 differs from rank 0 in its limits on memory: '1/cpu=1GiB' is not ''")
    r = mpirun(2, "run", model, *run, ":", "run", tmp_path / "nothing.onnx", *run)
    all_say(r, 2, f"heddle run: rank 1: {tmp_path}/nothing.onnx: No such file")


def test_a_rank_that_cannot_begin_says_why_on_all(model, tmp_path):
    """What the library does not see: files of the command line. Both ranks name the rank and the cause, in whole lines."""
    numpy.save(tmp_path / "x.npy", numpy.zeros((8, 64), numpy.float32))
    numpy.save(tmp_path / "other.npy", numpy.zeros((7, 64), numpy.float32))
    (tmp_path / "cut.onnx").write_bytes(model.read_bytes()[:1000])
    good_words = [model, "--input", f"x={tmp_path}/x.npy", "--device", "*/cpu"]

    def other(words, count, text, rank=1):
        ranks = [words, good_words] if rank == 0 else [good_words, words]
        r = mpirun(2, "run", *ranks[0], ":", "run", *ranks[1])
        all_say(r, count, f"rank {rank}: {text}")
        assert len(r.errors) == count and all(line.startswith("heddle run: ") for line in r.errors), r
    other([model, "--input", f"x={tmp_path}/none.npy", "--device", "*/cpu"], 2, f"{tmp_path}/none.npy: No such file")
    other([tmp_path / "none.onnx", *good_words[1:]], 2, f"{tmp_path}/none.onnx: No such file", rank=0)
    other([tmp_path / "cut.onnx", *good_words[1:]], 2, f"{tmp_path}/cut.onnx: byte 2")
    r = mpirun(2, "run", model, "--input", f"x={tmp_path}/other.npy", "--device", "*/cpu")
    assert r.status == 1 and "has shape [8, 64]; a tensor of shape [7, 64]" in r.err, r
    assert all(line.startswith("heddle run: rank ") for line in r.errors), r
    r = mpirun(2, "run", model, "--random", "--device", "*/cpu", "--place", "nothing*=0/cpu")
    assert r.status == 0 and r.err.count("no node has such a name") == 1, r


def test_devices_and_rules_that_are_not_there(model):
    all_say(mpirun(2, "run", model, "--random", "--device", "0/cpu,1/sim:77"), 2, "rank 1: no device 'sim:77'")
    all_say(mpirun(2, "run", model, "--random", "--device", "0/cpu,4/cpu"), 2, "no such rank; there are 2")
    all_say(mpirun(2, "run", model, "--random", "--device", "*/cpu", "--place", "last=3/cpu"), 2, "'last=3/cpu'")
    all_say(mpirun(2, "run", model, "--random", "--device", "*/cpu", "--memory", "7/cpu=1MiB"), 2,
            "limit on memory '7/cpu=1MiB': there is no such rank; there are 2")
    r = heddle("run", model, "--random", "--device", "remote:board/cpu:0")
    assert r.status == 1 and "before '/' is a rank" in r.err and "remote:0" in r.err, r
    r = heddle("run", model, "--random", "--device", "0/cpu,1/cpu")  # without mpirun there is one rank
    assert r.status == 1 and "there is no such rank; there is 1" in r.err, r


def test_a_device_that_fails_on_one_rank(model):
    r = mpirun(4, "run", model, "--random", "--device", LIST, *FOUR, "--set", "sim.fail=run:1", "--set", "sim.capture=0")
    all_say(r, 4, "node 'mat2' on sim:0")
    all_say(r, 4, "rank 2: ")


def test_a_rank_that_hangs_is_named_within_the_time_limit(model):
    r = mpirun(4, "run", model, "--random", "--device", LIST, *FOUR, "--set", "sim.hang=3", "--timeout", 2, timeout=30)
    assert r.status != 0 and r.err.count("it waits for rank ") >= 1, r
    said = [line for line in r.err.splitlines() if "waits for rank" in line or "rank 2 runs stage 3" in line]
    assert all("rank 2" in line for line in said), r  # whoever is first, waits for it or knows who does


WRAPPER = """
import os, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print("rank", os.environ["OMPI_COMM_WORLD_RANK"], resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


def test_a_rank_holds_its_own_weights_alone(tmp_path):
    """Four layers of 36 MiB in a sparse file: one process packs 144 MiB, a rank of four 36."""
    n = 3072
    (tmp_path / "weights.bin").touch()
    os.truncate(tmp_path / "weights.bin", 4 * n * n * 4)
    weights = []
    for i in range(4):
        w = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[n, n], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "weights.bin"), ("offset", str(i * n * n * 4)), ("length", str(n * n * 4))):
            w.external_data.add(key=key, value=value)
        weights.append(w)
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"], name=f"mat{i}") for i in range(4)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n]) for name in ("x0", "x4")]
    model = helper.make_model(helper.make_graph(nodes, "large", ends[:1], ends[1:], weights),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "large.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "wrap.py").write_text(WRAPPER)
    program = (sys.executable, str(tmp_path / "wrap.py"), str(TOOL))
    rules = [word for i in range(4) for word in ("--place", f"mat{i}={i}/cpu")]
    one = mpirun(1, "run", tmp_path / "large.onnx", "--random", "--device", "*/cpu", program=program)
    four = mpirun(4, "run", tmp_path / "large.onnx", "--random", "--device", "*/cpu", *rules, program=program)
    assert one.status == 0 and four.status == 0, (one, four)
    alone = int(one.out.split()[-1])
    peaks = [int(peak) for peak in re.findall(r"rank \d (\d+)", four.out)]  # lines may be mixed
    assert len(peaks) == 4 and max(peaks) <= alone - 50, (alone, peaks)


def test_limits_of_memory_are_of_one_rank(model):
    r = mpirun(2, "run", model, "--random", "--device", "*/cpu", "--place", "*1=1/cpu", "--memory", "1/cpu=1KiB")
    assert r.status != 0 and "rank 1: " in r.err and "limit" in r.err, r
    r = mpirun(2, "run", model, "--random", "--device", "*/cpu", "--place", "*1=1/cpu", "--memory", "1/cpu=64MiB,0/cpu=64MiB")
    assert r.status == 0, r


PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include "heddle/heddle.h"
#include "heddle/mpi.h"
#define MUST(x) do { if ((x) != HEDDLE_OK) { fprintf(stderr, "line %d: %s\n", __LINE__, err.text); return 1; } } while (0)
int main(int argc, char **argv) {
  int level, rank, world;
  heddle_error err = {0};
  heddle_context *ctx = NULL;
  heddle_model *model = NULL;
  heddle_executor *ex = NULL;
  heddle_tensor *x = NULL, *y = NULL;
  MPI_Comm half, nothing = MPI_COMM_NULL;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  MPI_Comm_split(MPI_COMM_WORLD, world / 2, 0, &half);
  if (heddle_context_create_mpi(&nothing, NULL, 0, NULL, NULL, &ctx, &err) != HEDDLE_EINVAL) return 1;
  const char *place[] = {"*=0/cpu", "*1=1/cpu", "*3=1/cpu"};
  const heddle_model_options o = {.struct_size = sizeof o, .devices = "*/cpu", .place = place, .n_place = 3};
  for (int turn = 0; turn < 2; turn++) { /* one context after another on the same communicator */
    uint32_t own = 9, size = 9;
    MUST(heddle_context_create_mpi(&half, NULL, 0, NULL, NULL, &ctx, &err));
    heddle_context_rank(ctx, &own, &size);
    MPI_Comm_rank(half, &rank);
    if ((int)own != rank || size != 2) return 1;
    MUST(heddle_model_load(ctx, argv[1], NULL, &o, &model, &err));
    MUST(heddle_executor_create(model, &ex, &err));
    MUST(heddle_tensor_create(NULL, (heddle_dtype){2, 32, 1}, (const int64_t[]){8, 64}, 2, &x, &err));
    for (int i = 0; i < 8 * 64; i++) ((float *)heddle_tensor_data(x))[i] = (float)(i % 7) - 3 + (float)(world / 2);
    if (rank == 0) MUST(heddle_executor_set_input(ex, 0, x, &err)); /* rank 1 does not read it */
    for (int k = 0; k < 20; k++) MUST(heddle_executor_run(ex, UINT64_C(60000000000), &err));
    heddle_status s = heddle_executor_view_output(ex, 0, &y, &err);
    if (s != (rank == 0 ? HEDDLE_OK : HEDDLE_EINVAL)) return 1;
    if (rank == 0) printf("half %d: %a\n", world / 2, ((const float *)heddle_tensor_data(y))[5]);
    heddle_tensor_release(y);
    heddle_tensor_release(x);
    heddle_executor_release(ex);
    heddle_model_release(model);
    heddle_context_release(ctx);
    y = NULL;
  }
  MPI_Comm_free(&half);
  return MPI_Finalize();
}
"""


def test_a_program_with_a_communicator_of_its_own(model, tmp_path):
    """Two halves of the world run the model at the same time; MPI belongs to the program."""
    mpicc = shutil.which("mpicc")
    if mpicc is None:
        pytest.skip("there is no mpicc")
    (tmp_path / "program.c").write_text(PROGRAM)
    built = subprocess.run([mpicc, "-std=c11", f"-I{SOURCE}/include", str(tmp_path / "program.c"), f"-L{BUILD}/lib", "-lheddle_mpi",
                            "-lheddle", f"-Wl,-rpath,{BUILD}/lib", "-o", str(tmp_path / "program")], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    r = mpirun(4, model, program=(str(tmp_path / "program"),))
    assert r.status == 0 and r.out.count("half 0: ") == 2 and r.out.count("half 1: ") == 2, r
    assert len(set(r.out.split("\n"))) == 3, r  # each half gives the same twice, and an empty line ends it
