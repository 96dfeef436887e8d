"""Special values, empty and 0-d operands, absent operands and results, of every operator that is listed, in every type, on
every device here, against onnx.reference (value_cases.py, value_checks.py, value_compare.py).

labels: slow ctypes
timeout: 900

A part of the cases is run, the same each time; HEDDLE_VALUES=1 runs all (scripts/soak), HEDDLE_VALUES_OP those of one
operator.
"""
import os

import lavapipe
import pocl

pocl.in_process()
lavapipe.in_process()

import value_cases as vc  # noqa: E402
import value_checks  # noqa: E402
from reference import sizes  # noqa: E402

TABLE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "operators.md")
ALL, ONLY = os.environ.get("HEDDLE_VALUES") == "1", os.environ.get("HEDDLE_VALUES_OP")
# Of a million: PoCL takes 100 ms and more for each kernel that it has not met.
PART = 1_000_000 if ALL or ONLY else int(22_000 * sizes.SCALE)
PART_OPENCL = 60_000 if ALL or ONLY else int(2_000 * sizes.SCALE)


def test_values():
    table, templates = vc.table(TABLE), vc.templates()
    assert len(table) > 150
    cases = [case for op, listed in table.items() if ONLY in (None, op)
             for case in vc.cases(listed, templates.get(op) or vc.plain_template(op), lambda key: key % 1_000_000 < PART)]
    judged = [value_checks.Judged(case) for case in cases]

    def listed(case):
        x = next((x for x in case.inputs if x is not None), None)
        return x is not None and vc.name_of(x.dtype) in table[case.op].accelerated

    def some(case):
        return listed(case) and vc.number_of(str(case)) % 1_000_000 < PART_OPENCL * 1_000_000 // PART

    devices = [("cpu", value_checks.Device("cpu", cpu__onednn="off"), lambda case: True),
               ("cpu with oneDNN", value_checks.Device("cpu", cpu__onednn="always"), listed),
               ("sim:0", value_checks.Device("sim:0"), lambda case: True)]
    if lavapipe.there():
        devices.append(("vulkan:0", value_checks.Device("vulkan:0"), listed))
    if pocl.there():
        devices.append(("opencl:0", value_checks.Device("opencl:0"), some))
    print(f"\n{len(cases)} cases of {len({c.op for c in cases})} operators, "
          f"{sum(j.want is None for j in judged)} without a reference")
    assert not value_checks.check(devices, judged)
