"""The values that code takes where a node lacks an attribute are ONNX's defaults. In the functions that the columns of operators/
name, each is that of the operator; elsewhere, where the operator is not known, that of some operator with the attribute.

labels: ctypes
timeout: 60
"""
import math
import re

from onnx import defs, helper
from tool_case import SOURCE

CALLS = (r"more_int|more_float|more_choice|more_string|region_attr_int|region_attr_float|region_attr_string|heddle__attr_int|"
         r"heddle__attr_string|opt_get_int|opt_get_float|heddle__onnx_attr_int|heddle__onnx_attr_float")
READS = re.compile(rf'\b(?:{CALLS})\(\w+(?:, \w+)?, "(\w+)",\s*(-?[\d.]+(?:e-?\d+)?F?|"[^"]*")[,)]')
NAMED = ("plugins/common/more", "plugins/common/ref", "graph")
OTHERS = ("graph/optimize", "plugins/common/kernels", "plugins/cpu", "plugins/sim", "frontends/onnx", "executor")


def columns():
    """Operators and the functions that compute or infer them."""
    text = "\n".join(path.read_text() for path in sorted((SOURCE / "operators").glob("*.def")))
    for op, kernel, general in re.findall(r"^OPERATOR\(ONNX, (\w+), \w+, (\w+), \w+, (\w+),", text, re.M):
        yield op, f"ref_plan_{kernel}"
        yield op, f"more_setup_{general}"
    for op, infer in re.findall(r"^ *SINCE\(ONNX, (\w+),(?: \w+,){8} (\w+),", text, re.M):
        yield op, f"heddle__infer_{infer}"


def defaults():
    """By operator and attribute, those of all versions."""
    found = {}
    for s in defs.get_all_schemas_with_history():
        for name, a in s.attributes.items() if s.domain == "" else ():
            values = found.setdefault((s.name, name), [])
            if a.default_value.name:
                values.append(helper.get_attribute_value(a.default_value))
    return found


def is_one(text, values):
    if text.startswith('"'):  # "": that it is absent
        return text == '""' or text.strip('"').encode() in values
    return any(math.isclose(float(text.rstrip("F")), v, rel_tol=1e-6) for v in values if not isinstance(v, (bytes, list)))


def test_of_the_operator():
    of, known, wrong, seen = {}, defaults(), set(), 0
    for op, function in columns():
        of.setdefault(function, set()).add(op)
    for folder in NAMED:
        for path in sorted((SOURCE / folder).glob("*.c")):
            for function, body in re.findall(r"^(?:\w+ )+\*?(\w+)\([^;{]*\) \{\n(.*?)^\}", path.read_text(), re.M | re.S):
                for attribute, text in READS.findall(body):
                    values = [known[op, attribute] for op in of.get(function, ()) if known.get((op, attribute))]
                    seen += len(values)
                    wrong |= {f"{path.name}: {function} takes {attribute} {text}, and ONNX {one}" for one in values if not is_one(text, one)}
    assert seen > 120 and not wrong, f"{seen}: " + "\n".join(sorted(wrong))


def test_of_some_operator():
    known, wrong, seen = {}, set(), 0
    for (_, attribute), values in defaults().items():
        known.setdefault(attribute, []).extend(values)
    for folder in OTHERS:
        for path in sorted((SOURCE / folder).glob("*.c")):
            for attribute, text in READS.findall(path.read_text()):
                if known.get(attribute):
                    seen += 1
                    wrong |= {f"{path.name} takes {attribute} {text}"} if not is_one(text, known[attribute]) else set()
    assert seen > 25 and not wrong, f"{seen}: " + "\n".join(sorted(wrong))
