"""The lines RESULT and SCALAR of operators/: what the ONNX reader knows of the types and ranks of results before a graph is
inferred. by_case compares a model of one node with them, by the types and shapes that the model declares itself."""
import re

from onnx import helper
from tool_case import SOURCE

TEXT = "\n".join(path.read_text() for path in sorted((SOURCE / "operators").glob("*.def")))
OPERATORS = set(re.findall(r"^OPERATOR\(ONNX, (\w+),", TEXT, re.M)) | {"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}
RESULTS = {}
for op, number, *rest in re.findall(r"^ *RESULT\((\w+), (\w+), (\w+), (\w+), (\w+)\)", TEXT, re.M):
    assert (op, number) not in RESULTS, (op, number)
    RESULTS[op, number] = rest
for op, kind, operands in re.findall(r"^ *SCALAR\((\w+?)(?:_\w+)?, (\w+), (\w+),", TEXT, re.M):
    RESULTS.setdefault((op, "0"), ["BOOL" if kind.startswith(("TEST", "LOGIC")) else "OF_0", "none",
                                   "SAME" if operands == "1" else "MOST"])
TYPES = {"tensor(bool)": "BOOL", "tensor(float)": "F32", "tensor(int32)": "I32", "tensor(int64)": "I64", "tensor(uint8)": "U8",
         "tensor(string)": "TEXT"}
NUMBERS = {"BOOL": 9, "F32": 1, "I32": 6, "I64": 7, "U8": 2, "TEXT": 8}
GRAPHS = {"If", "Loop", "Scan"}


def result(op, number):
    first = ["OF_0" if number == 0 else "ANY", "none", "ANY"]
    return RESULTS.get((op, str(number)), RESULTS.get((op, "EACH"), first))


def by_case(name, proto, seen):
    """What is wrong; seen counts types and ranks that were known."""
    g = proto.graph
    known = {v.name: v.type.tensor_type for v in [*g.input, *g.output] if v.type.HasField("tensor_type")}
    if len(g.node) != 1 or g.node[0].domain != "" or g.node[0].op_type not in OPERATORS - GRAPHS:
        return
    node = g.node[0]
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    inputs = [known.get(one) for one in node.input]
    rank = [len(t.shape.dim) if t is not None and t.HasField("shape") else None for t in inputs] + [None]
    for number, output in enumerate(node.output):
        if output not in known:
            continue
        kind, attribute, rule = result(node.op_type, number)
        want = given.get(attribute, 0)
        if want == 0 and kind.startswith("OF_"):
            at = int(kind[3:])
            want = inputs[at].elem_type if at < len(inputs) and inputs[at] is not None else 0
        elif want == 0 and kind != "ANY":
            want = NUMBERS[kind]
        seen["types"] += want != 0
        if want not in (0, known[output].elem_type):
            yield f"{name}: result {number} is of type {known[output].elem_type}, by {kind} {want}"
        keeps = given.get("keepdims", 1) != 0
        want = {"SAME": rank[0], "MOST": max(rank[:-1]) if rule == "MOST" and None not in rank[:-1] else None,
                "PRODUCT": max(rank[:2]) if rule == "PRODUCT" and min(rank[:2]) >= 2 else None,
                "REDUCED": rank[0] if keeps else None,
                "LESS_ONE": rank[0] - (not keeps) if rule == "LESS_ONE" else None,
                "GATHERED": rank[0] + rank[1] - 1 if rule == "GATHERED" else None,
                }.get(rule, int(rule[3:]) if rule.startswith("IS_") else None)
        if want is not None and known[output].HasField("shape"):
            seen["ranks"] += 1
            if want != len(known[output].shape.dim):
                yield f"{name}: result {number} has {len(known[output].shape.dim)} dimensions, by {rule} {want}"
