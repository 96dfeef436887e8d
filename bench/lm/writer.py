"""A graph that is being written: nodes with names, and tensors, the large ones into a file beside the model."""
import numpy as np
import onnx
from onnx import TensorProto, helper

MS = "com.microsoft"
INLINE = 1024  # bytes; what is larger goes into the data file, where there is one


class Writer:
    def __init__(self, folder, data_name=None):
        self.nodes, self.tensors, self.known = [], [], {}
        self.names = {}
        self.folder, self.data_name = folder, data_name
        self.data = open(folder / data_name, "wb") if data_name else None

    def fresh(self, text):
        self.names[text] = self.names.get(text, 0) + 1
        return text if self.names[text] == 1 else f"{text}_{self.names[text] - 1}"

    def node(self, op, inputs, scope="", outputs=1, domain="", **attrs):
        """The name of its result, or a list of names. outputs: a number, or names."""
        name = self.fresh(f"{scope}/{op}")
        out = outputs if isinstance(outputs, list) else [f"{name}/output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), out, name=name, domain=domain,
                                           **{k: v for k, v in attrs.items() if v is not None}))
        return out[0] if outputs == 1 else out

    def _store(self, tensor, raw):
        if self.data is None or len(raw) <= INLINE:
            tensor.raw_data = raw
        else:
            self.data.write(b"\0" * (-self.data.tell() % 4096))
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", self.data_name), ("offset", self.data.tell()), ("length", len(raw))):
                tensor.external_data.add(key=key, value=str(value))
            self.data.write(raw)
        self.tensors.append(tensor)
        return tensor.name

    def tensor(self, name, array):
        array = np.ascontiguousarray(array)
        return self._store(TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype)),
                           array.tobytes())

    def int4(self, name, numbers):
        """Numbers from -8 to 7 of any shape, two a byte."""
        flat = (numbers.reshape(-1) & 15).astype(np.uint8)
        flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
        return self._store(TensorProto(name=name, dims=numbers.shape, data_type=TensorProto.INT4),
                           (flat[0::2] | flat[1::2] << 4).astype(np.uint8).tobytes())

    def constant(self, value, dtype=np.int64):
        """A small tensor, once for each value."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.known:
            self.known[key] = self.tensor(f"constant_{len(self.known)}", array)
        return self.known[key]

    def save(self, path, inputs, outputs, opset, with_ms):
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.tensors)
        opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(MS, 1)] if with_ms else [])
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="heddle-make-model")
        if self.data:
            self.data.close()
        path.write_bytes(model.SerializeToString())
        check(model, path)


def check(model, path):
    """onnx.checker, for which the operators that only ONNX Runtime has in domain "" go to another domain."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if node.op_type in ("SimplifiedLayerNormalization",):
            node.domain = MS
    beside = path.with_name(path.name + ".check")
    try:
        beside.write_bytes(copy.SerializeToString())
        onnx.checker.check_model(str(beside))
    finally:
        beside.unlink(missing_ok=True)
