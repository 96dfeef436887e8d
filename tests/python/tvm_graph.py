"""Graph JSON as TVM wrote it, from a short description; no TVM is needed for that.

tvm_graph({"x": ("float32", [3, 4])}, [Call("f", ["x"], [("float32", [12])])], ["f"]) -> text. A node's name is its
function's unless it is given; inputs are named by node, "f:1" is output 1.
"""
import dataclasses
import json


@dataclasses.dataclass
class Call:
    function: str
    inputs: list
    outputs: list  # of (dtype, shape)
    name: str = ""
    flatten: int = 0
    device: int = 1


def tvm_graph(inputs, calls, heads, *, device_index=True, **more):
    nodes, entries, first = [], [], {}
    for name, (dtype, shape) in inputs.items():
        first[name] = (len(nodes), len(entries))
        nodes.append({"op": "null", "name": name, "inputs": []})
        entries.append((dtype, shape, 1))

    def entry(text):
        name, _, k = text.partition(":")
        return [first[name][0], int(k or 0), 0]

    for call in calls:
        name = call.name or call.function
        nodes.append({"op": "tvm_op", "name": name, "inputs": [entry(i) for i in call.inputs],
                      "attrs": {"func_name": call.function, "num_inputs": str(len(call.inputs)),
                                "num_outputs": str(len(call.outputs)), "flatten_data": str(call.flatten)}})
        first[name] = (len(nodes) - 1, len(entries))
        entries += [(dtype, shape, call.device) for dtype, shape in call.outputs]
    rows = [0]
    for node in nodes:
        rows.append(rows[-1] + (1 if node["op"] == "null" else int(node["attrs"]["num_outputs"])))
    attrs = {"dltype": ["list_str", [e[0] for e in entries]], "shape": ["list_shape", [list(e[1]) for e in entries]],
             "storage_id": ["list_int", list(range(len(entries)))]}
    if device_index:
        attrs["device_index"] = ["list_int", [e[2] for e in entries]]
    return json.dumps({"nodes": nodes, "arg_nodes": list(range(len(inputs))), "heads": [entry(h) for h in heads],
                       "attrs": attrs, "node_row_ptr": rows, **more})
