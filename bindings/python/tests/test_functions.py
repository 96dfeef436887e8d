"""Functions: values both ways, names, closures through code of both generations, exceptions, threads.
timeout: 300
"""
import copy
import ctypes
import gc
import pathlib
import pickle
import re
import threading
import weakref

import numpy as np
import pytest

import calls_libraries as libraries
import heddle.runtime as runtime
from heddle.errors import CanceledError, Error, FailedError, InvalidError, NotFoundError


pytestmark = pytest.mark.skipif(libraries.legacy.compiler() is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def same():
    return runtime.PackedFunc(lambda *args: args[0] if args else None)


@pytest.fixture(scope="module", params=["packed", "ffi"])
def apply(request, tmp_path_factory):
    """A compiled function that calls its first argument with the others."""
    path = getattr(libraries, request.param)(tmp_path_factory.mktemp("calls"))
    return runtime.load_module(path)["apply"]


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return runtime.load_module(libraries.packed(tmp_path_factory.mktemp("packed")))


# ---- values

VALUES = [None, 0, -5, 2**63 - 1, -2**63, 1.5, float("inf"), "", "text", "ünïcödé", "a text that is longer than eight bytes",
          np.int8(-3), np.uint16(9), np.float32(0.5), np.float64(2.25), True, False, np.bool_(True)]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back(same, apply, value):
    for result in (same(value), apply(lambda x: x, value)):
        assert result == value
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            assert type(result) is type(value) or isinstance(value, np.float64)


@pytest.mark.parametrize("value", [b"", b"a\0b", bytearray(b"xyz"), b"long " * 1000], ids=len)
def test_bytes_come_back(same, apply, value):
    assert same(value) == value and type(same(value)) is bytearray
    assert apply(lambda x: bytes(x), value) == value


def test_nan(same):
    assert np.isnan(same(float("nan")))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64", "bool", "float16"])
def test_arrays_are_shared(same, dtype):
    x = np.zeros((3, 4), dtype)
    result = same(x)
    assert isinstance(result, runtime.NDArray) and result.shape == (3, 4) and result.dtype == dtype
    x[1, 2] = 1
    np.testing.assert_array_equal(result.numpy(), x)
    for given in (runtime.nd.array(x), memoryview(x)):
        np.testing.assert_array_equal(same(given).numpy(), x)


def test_a_callback_writes_to_its_arrays(apply):
    y = runtime.nd.empty((2, 2))
    assert apply(lambda out, value: out.copyfrom(np.full((2, 2), value)) and None, y, 4.0) is None
    np.testing.assert_array_equal(y.numpy(), np.full((2, 2), 4, "float32"))


def test_an_array_outlives_who_made_it(apply):
    result = apply(lambda: runtime.nd.array(np.arange(1000)))
    gc.collect()
    np.testing.assert_array_equal(result.numpy(), np.arange(1000))


def test_devices_dtypes_and_pointers(same):
    assert same(runtime.opencl(1)) == runtime.opencl(1)
    assert [same(np.dtype("int16")), same(np.float32), same(runtime.DataType("int8x4"))] == ["int16", "float32", "int8x4"]
    number = ctypes.c_int(5)
    assert same(ctypes.c_void_p(4096)).value == 4096 and same(ctypes.c_void_p()).value is None
    assert same(ctypes.pointer(number)).value == ctypes.addressof(number)


def test_modules_and_functions_come_back(same, packed):
    assert same(packed) == packed and isinstance(same(packed), runtime.Module)
    assert same(same) == same and hash(same(same)) == hash(same)
    assert same(packed["apply"])(lambda a, b: a + b, 2, 3) == 5


@pytest.mark.parametrize("value, error, words", [
    (2**63, OverflowError, "argument 0: .*64 bits"), (-2**63 - 1, OverflowError, "64 bits"), ("a\0b", ValueError, "NUL"),
    ([1, 2], TypeError, "'list' cannot"), ({}, TypeError, "'dict' cannot"), (object(), TypeError, "'object' cannot")])
def test_what_is_no_value(same, value, error, words):
    with pytest.raises(error, match=words):
        same(value)
    with pytest.raises(error):
        runtime.PackedFunc(lambda: value)()


def test_many_arguments():
    join = runtime.PackedFunc(lambda *args: ",".join(map(str, args)))
    for n in (0, 1, 8, 9, 16, 17, 200):
        assert join(*range(n)) == ",".join(map(str, range(n)))
    with pytest.raises(TypeError, match="by position"):
        join(a=1)
    with pytest.raises(TypeError, match="callable"):
        runtime.PackedFunc(3)


def test_objects_that_nobody_made(same, packed):
    """There is no Module or PackedFunc without what it names."""
    for make in (runtime.Module, runtime.PackedFunc, lambda: copy.copy(packed), lambda: pickle.dumps(same),
                 lambda: object.__new__(runtime.Module), lambda: type("Own", (runtime.Module,), {})()):
        with pytest.raises(TypeError):
            make()


# ---- closures

def test_closures(apply):
    kept = []
    assert apply(lambda f: kept.append(f) or f(20), lambda x: x + 1) == 21
    assert kept[0](1) == 2  # an argument may be kept
    adder = apply(lambda n: lambda x: x + n, 5)
    assert isinstance(adder, runtime.PackedFunc) and adder(3) == 8
    assert apply(adder, 4) == 9


def test_a_function_is_dropped_with_its_last_user(apply):
    class Callable:
        def __call__(self, x):
            return x
    made = Callable()
    gone = weakref.ref(made)
    f = runtime.PackedFunc(made)
    assert apply(f, 1) == 1 and apply(made, 2) == 2
    del made
    assert gone() is not None and f(3) == 3
    del f
    gc.collect()
    assert gone() is None


def test_recursion(apply):
    def count(n):
        return 0 if n == 0 else 1 + apply(count, n - 1)
    assert count(50) == 50


# ---- exceptions

class Unusual(Exception):
    def __init__(self, words, extra):
        super().__init__(words)
        self.extra = extra


def raises(error):
    def f(*args):
        raise error
    return f


ERRORS = [Unusual("bad", [1]), ValueError(""), KeyError("key"), ZeroDivisionError("of two\nlines"), SystemExit(3),
          KeyboardInterrupt(), StopIteration(4), ValueError("long " * 400), ValueError("ünïcödé"), NotFoundError("of ours")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_the_same_exception_comes_out(apply, error):
    for call in (lambda: runtime.PackedFunc(raises(error))(), lambda: apply(raises(error), 1),
                 lambda: apply(lambda: apply(lambda: apply(raises(error))))):
        with pytest.raises(type(error)) as caught:
            call()
        assert caught.value is error
        assert caught.traceback[-1].name == "f"  # where it was raised


def test_an_exception_is_let_go(apply):
    error = Unusual("bad", object())
    gone = weakref.ref(error)
    f = raises(error)
    del error
    with pytest.raises(Unusual):
        apply(f)
    del f
    gc.collect()
    assert gone() is None


def test_a_callback_may_catch(apply):
    def careful():
        try:
            apply(raises(ValueError("inner")))
        except ValueError as error:
            return f"caught {error}"
    assert apply(careful) == "caught inner"
    with pytest.raises(FailedError, match="apply|function"):
        apply("no function")


def test_code_that_swallows_or_rewords(packed):
    error = Unusual("bad", 1)
    assert packed["swallow"](raises(error)) == 7
    with pytest.raises(FailedError, match="reword: it did not work") as caught:
        packed["reword"](raises(error))
    assert caught.value.__cause__ is None
    gone = weakref.ref(error)
    del error, caught
    gc.collect()
    assert gone() is None


def test_the_same_text_is_not_the_same_error(packed, apply):
    """The number of the error identifies the exception, not its text."""
    error = FailedError("reword: it did not work")
    with pytest.raises(FailedError, match="reword: it did not work") as caught:
        packed["reword"](raises(error))
    assert caught.value is not error and caught.value.__cause__ is None
    first, second = Unusual("same", 1), Unusual("same", 2)

    def fails_twice():
        with pytest.raises(Unusual) as inner:
            apply(raises(first))
        assert inner.value is first
        packed["swallow"](raises(first))
        raise second

    with pytest.raises(Unusual) as caught:
        apply(fails_twice)
    assert caught.value is second
    gone = [weakref.ref(first), weakref.ref(second)]
    del first, second, fails_twice, caught, error
    gc.collect()
    assert [g() for g in gone] == [None, None]


def test_the_same_text_in_several_threads(apply):
    """Every call fails with its own exception, all of them at the same time."""
    n, wrong = 4, []
    meet = threading.Barrier(n, timeout=60)

    def fails(error):
        meet.wait()
        raise error

    def calls():
        for _ in range(50):
            mine = Unusual("same", [])
            try:
                apply(lambda: apply(lambda: fails(mine)))
            except Exception as error:  # noqa: BLE001
                if error is not mine:
                    wrong.append(error)
            else:
                wrong.append("nothing was raised")

    threads = [threading.Thread(target=calls) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_same_text_in_several_tasks(tmp_path):
    """Tasks of a loop fail on the library's threads; one of the exceptions comes out, and the others are let go."""
    packed = runtime.load_module(libraries.packed(tmp_path))  # which keeps the first "test.part" that it finds
    made, lock = [], threading.Lock()

    def part(task):
        error = Unusual("same", task)
        with lock:
            made.append(weakref.ref(error))
        raise error

    runtime.register_func("test.part", part, override=True)
    for _ in range(5):
        with pytest.raises(Unusual) as caught:
            packed["parts"]()
        assert any(caught.value is error() for error in made)
        del caught
    runtime.remove_global_func("test.part")
    gc.collect()
    assert made and not any(error() for error in made)


def test_the_status_of_an_error_is_kept(apply):
    with pytest.raises(NotFoundError) as caught:
        apply(raises(NotFoundError("of ours")))
    assert caught.value.status == "HEDDLE_ENOTFOUND"
    assert issubclass(CanceledError, runtime.TVMError) and runtime.TVMError is Error


# ---- names

def test_names():
    @runtime.register_func("test.named")
    def named(x):
        return x + 1

    assert isinstance(named, runtime.PackedFunc) and named(1) == 2
    assert runtime.get_global_func("test.named")(4) == 5 and "test.named" in runtime.list_global_func_names()
    del named
    gc.collect()
    assert runtime.get_global_func("test.named")(4) == 5  # the name stays
    with pytest.raises(InvalidError, match="'test.named' is registered already"):
        runtime.register_func("test.named", lambda x: x)
    before = runtime.get_global_func("test.named")
    runtime.register_func("test.named", lambda x: -x, override=True)
    assert runtime.get_global_func("test.named")(4) == -4 and before(4) == 5
    runtime.remove_global_func("test.named")
    assert runtime.get_global_func("test.named", allow_missing=True) is None
    for error in (ValueError, NotFoundError):
        with pytest.raises(error, match="test.named"):
            runtime.get_global_func("test.named")
    with pytest.raises(NotFoundError):
        runtime.remove_global_func("test.named")


def test_decorators():
    @runtime.register_func
    def test_plain_decorator(x):
        return x * 2

    @runtime.register_func("test.override", override=True)
    def other():
        return "text"

    assert runtime.get_global_func("test_plain_decorator")(4) == 8
    assert runtime.get_global_func("test.override")() == "text"
    with pytest.raises(ValueError):
        runtime.register_func(3, lambda: None)


def test_convert(same):
    assert runtime.convert(lambda x: x + 1)(2) == 3 and runtime.convert("s") == "s" and runtime.convert(same) is same
    assert runtime.convert([1, (2.0, None)]) == [1, [2.0, None]]
    with pytest.raises(TypeError):
        runtime.convert(object())


# ---- threads

def test_threads_call_at_once(apply):
    failures = []

    def work(number):
        try:
            for i in range(60):
                if apply(lambda x: x * 2, i) != 2 * i or apply(lambda s: s + "!", f"{number}:{i}") != f"{number}:{i}!":
                    failures.append("a wrong value")
                error = Unusual("the same words in all threads", number)
                try:
                    apply(raises(error))
                except Unusual as caught:
                    if caught is not error:
                        failures.append("another thread's exception")
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_threads_that_are_not_pythons(packed):
    """A parallel loop of compiled code calls Python from the library's threads; an exception there comes out as it is."""
    seen, error = set(), None
    lock = threading.Lock()

    def part(task):
        with lock:
            seen.add((task, threading.get_ident()))
        if error is not None and task == max(t for t, _ in seen):
            raise error
        return None

    runtime.register_func("test.part", part, override=True)
    for _ in range(5):
        packed["parts"]()
    tasks = {t for t, _ in seen}
    assert tasks == set(range(len(tasks)))
    error = Unusual("in a task", 1)
    with pytest.raises(Unusual) as caught:
        packed["parts"]()
    assert caught.value is error
    error = None
    packed["parts"]()
    runtime.remove_global_func("test.part")


def test_the_gil_is_free_in_a_call(apply):
    """Two functions wait for one another, each in a call."""
    meet = threading.Barrier(2, timeout=60)
    thread = threading.Thread(target=lambda: apply(lambda: meet.wait() and None))
    thread.start()
    apply(lambda: meet.wait() and None)
    thread.join()


# ---- the page

def test_the_page(tmp_path, monkeypatch):
    """docs/python-functions.md: its blocks run, from first to last."""
    page = pathlib.Path(__file__).resolve().parents[3] / "docs/python-functions.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 3
    add = libraries.legacy.kernel("add", [(n, "float32", (4,)) for n in "abc"],
                                  "for (int i = 0; i < 4; i++) c[i] = a[i] + b[i];")
    libraries.legacy.library(tmp_path / "lib.so", "v0.14", [libraries.PACKED, add])
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), str(page), "exec"), {})
    runtime.remove_global_func("app.scale")
