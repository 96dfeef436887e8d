"""`tvm.rpc` on Heddle: sessions with servers of TVM v0.14 to v0.27 and of Heddle, their trackers, and a session for this machine.

    remote = heddle.rpc.connect("127.0.0.1", 9091, key="board")
    remote.upload("lib.so")
    lib = remote.load_module("lib.so")
    x = heddle.nd.array(values, remote.cpu())
    lib["add1"](x, y)

Arrays, functions and modules of a session stay on the server and are freed with the Python objects. TVM's protocol has no
authentication and no encryption: see docs/rpc.md.
"""
from ._connection import RPCConnectionError, RPCError, RPCSessionTimeoutError
from .graph import RemoteGraphModule
from .local import LocalSession
from .popen import PopenSession
from .processes import Proxy, Server, Tracker, Tunnel
from .remote import RemoteArray, RemoteDevice, RemoteFunction, RemoteModule, RemoteObject
from .session import RPCSession, TrackerSession, connect, connect_tracker

__all__ = ["LocalSession", "PopenSession", "Proxy", "RPCConnectionError", "RPCError", "RPCSession", "RPCSessionTimeoutError", "RemoteArray",
           "RemoteDevice", "RemoteFunction", "RemoteGraphModule", "RemoteModule", "RemoteObject", "Server", "Tracker",
           "TrackerSession", "Tunnel", "connect", "connect_tracker"]
