"""Every call that sim makes fail, in the making and the runs of the digits net and of three random graphs, under each
policy; scripts/soak runs this too.
labels: slow soak
timeout: 7200"""
import pytest
from survive_case import FAULTS, POLICIES, sweep, write_graphs


@pytest.mark.parametrize("model", range(4))
@pytest.mark.parametrize("policy", POLICIES)
def test_every_call(policy, model, tmp_path):
    path = write_graphs(tmp_path)[model]
    sums = [0, 0, 0, 0]
    for fault in FAULTS:
        counts = sweep(path, policy, fault, 1)
        sums = [a + b for a, b in zip(sums, counts)]
    print(f"{path.name}, {policy}: {sums[0]} calls, {sums[1]} errors, {sums[2]} saved, {sums[3]} not noticed")
    assert sums[0] > 100
    assert sums[1] > 100 if policy == "error" else sums[2] > 100
