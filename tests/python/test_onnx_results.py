"""What the lines RESULT and SCALAR of operators/ say of the types of results is what onnx.defs says. What they say of types and
ranks is compared with ONNX's node cases by test_onnx_file_nodes.py.

labels: ctypes
timeout: 60
"""
import onnx_results as rows
from onnx import defs


def newest():
    found = {}
    for s in defs.get_all_schemas_with_history():
        if s.domain == "" and s.name in rows.OPERATORS - rows.GRAPHS:
            found[s.name] = max(s, found.get(s.name, s), key=lambda one: one.since_version)
    return found


def test_types():
    wrong, seen = [], 0
    for op, s in newest().items():
        allowed = {c.type_param_str: c.allowed_type_strs for c in s.type_constraints}
        for number, output in enumerate(s.outputs):
            kind, attribute, _ = rows.result(op, number)
            inputs = [i for i, one in enumerate(s.inputs) if one.type_str == output.type_str]
            one = allowed.get(output.type_str, [output.type_str])
            seen += kind != "ANY"
            if attribute != "none" and attribute not in s.attributes:
                wrong.append((op, number, attribute))
            if kind.startswith("OF_"):  # or the type that stands where the attribute is not given, or of two that agree
                type_of = s.inputs[int(kind[3:])].type_str if int(kind[3:]) < len(s.inputs) else None  # else of no operands
                if type_of != output.type_str and attribute == "none" and not (len(inputs) == 0 and len(one) > 1):
                    wrong.append((op, number, kind, output.type_str))
            elif kind != "ANY" and kind not in [rows.TYPES.get(name) for name in one]:
                wrong.append((op, number, kind, one))
            elif kind == "ANY" and number == 0 and attribute == "none" and (len(one) == 1 or inputs):
                wrong.append((op, number, kind, one))
    assert seen > 190 and not wrong, wrong
