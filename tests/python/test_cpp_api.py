"""heddle.hpp and heddle/function.hpp wrap the whole public C API: each function of the C headers is called in one of theirs."""
import re

from tool_case import SOURCE

INCLUDE = SOURCE / "include" / "heddle"


def test_every_function_is_wrapped():
    declared = set()
    for header in INCLUDE.glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        declared |= set(re.findall(r"^HEDDLE_API [^;(]*?\b(heddle_\w+)\(", text, re.M))
    assert len(declared) > 100
    wrapped = "".join(p.read_text() for p in INCLUDE.rglob("*.hpp"))
    wrapped = re.sub(r"//.*", "", wrapped)
    # taken by the calls that also say whose the memory is
    declared -= {"heddle_tensor_from_dlpack", "heddle_tensor_from_dlpack_versioned"}
    declared -= {"heddle_text_format"}  # takes a va_list; C++ has clean_text
    assert {name for name in declared if not re.search(rf"\b{name}\b", wrapped)} == set()
