"""A rank that is killed, or stopped, in the middle of a run: the others name it and end.
timeout: 120
"""
import os
import signal

import pytest

from mpi_case import RECOVERY, layers, mpirun, need
from test_mpi import FOUR, LIST
from tool_case import TOOL

pytestmark = need()

RANK = r'''#!/bin/sh
if [ "$OMPI_COMM_WORLD_RANK" = 2 ]; then
  echo $$ > "$PID_FILE"
  ( sleep 1.5; kill -$SIGNAL_OF_2 $$; sleep 8; kill -KILL $$ 2>/dev/null ) >/dev/null 2>&1 &
fi
exec "$@"
'''


@pytest.mark.parametrize("name", ["KILL", "STOP"])
def test_a_lost_rank_is_named_by_all_others(name, tmp_path):
    model = layers(tmp_path / "m.onnx")
    script, pid = tmp_path / "rank.sh", tmp_path / "pid"
    script.write_text(RANK)
    script.chmod(0o755)
    try:
        r = mpirun(4, "run", model, "--random", "--device", LIST, *FOUR, "--set", "sim.hang=3", "--set",
                   "ranks.silence_seconds=1", program=(str(script), str(TOOL)),
                   options=[*RECOVERY, "-x", "SIGNAL_OF_2", "-x", "PID_FILE"], timeout=40, SIGNAL_OF_2=name, PID_FILE=str(pid))
    finally:
        if pid.exists():
            try:
                os.kill(int(pid.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                pass
    said = r.err.count("rank 2 has given no sign of life for 1 s: it has died, or hangs")
    assert said == 3 and "output 0" not in r.out, r  # with these options mpirun itself may end with 0
