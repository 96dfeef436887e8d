"""Sessions of heddle.rpc with a program that is started for them: the loop of the real TVM's server."""
import os
import subprocess
import sys

import pytest

from heddle import rpc

pytest.importorskip("tvm.rpc", reason="this TVM has no RPC")
pytestmark = pytest.mark.skipif(bool(os.environ.get("HEDDLE_SANITIZE")), reason="TVM's own code is not run under sanitizers")


def test_sessions_of_programs(tmp_path):
    """PopenSession with a program of the real TVM's loop, which begins without a handshake."""
    code = "import sys, tvm.rpc, tvm.rpc.server\nfrom tvm.rpc import _ffi_api\n_ffi_api.ServerLoop(int(sys.argv[-2]))\n"
    session = rpc.PopenSession([sys.executable, "-c", code])
    process = session._process
    assert session.get_function("runtime.GetDeviceAttr") is not None
    session.close()
    assert process.poll() is not None
    with pytest.raises(rpc.RPCConnectionError, match="cannot start"):
        rpc.PopenSession(str(tmp_path / "missing"))
    with pytest.raises(rpc.RPCConnectionError):
        rpc.PopenSession(b"#!/bin/sh\nexit 3\n")
    assert subprocess.run(["pgrep", "-f", "heddle-popen-"], capture_output=True, check=False).returncode == 1
