package heddle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestEveryKindThere(t *testing.T) {
	same := ok[*Function](t)(ConvertFunction(func(args ...*Value) (interface{}, error) { return args[0], nil }))
	long := strings.Repeat("äb", 100000)
	for _, c := range []struct{ in, out interface{} }{
		{nil, nil}, {3, int64(3)}, {int8(-3), int64(-3)}, {uint16(9), int64(9)}, {int64(-1 << 63), int64(-1 << 63)},
		{uint64(7), int64(7)}, {1.5, 1.5}, {float32(0.5), 0.5}, {true, int64(1)}, {"text", "text"}, {"", ""}, {long, long},
		{[]byte{1, 0, 2}, []byte{1, 0, 2}}, {OpenCL(1), OpenCL(1)}, {DType{2, 32, 4}, DType{2, 32, 4}},
	} {
		v := ok[*Value](t)(same.Invoke(c.in))
		if !reflect.DeepEqual(v.Interface(), c.out) {
			t.Fatalf("%v (%T) came back as %v (%T)", c.in, c.in, v.Interface(), v.Interface())
		}
		again := ok[*Value](t)(same.Invoke(v))
		if !reflect.DeepEqual(again.Interface(), c.out) {
			t.Fatalf("as a *Value %v came back as %v", c.in, again.Interface())
		}
	}
	if v := ok[*Value](t)(same.Invoke([]byte{})); len(v.AsBytes()) != 0 {
		t.Fatal(v)
	}
	for _, bad := range []interface{}{uint64(1) << 63, "a\x00b", struct{}{}, []float32{1}, (*Array)(nil), func() {}} {
		if _, err := same.Invoke(bad); !errors.Is(err, ErrInvalid) {
			t.Fatalf("%T: %v", bad, err)
		}
	}
}

func TestManyArguments(t *testing.T) {
	sum := ok[*Function](t)(ConvertFunction(func(args ...*Value) (interface{}, error) {
		n := 0.0
		for _, a := range args {
			n += a.AsFloat64()
		}
		return n, nil
	}))
	if v := ok[*Value](t)(sum.Invoke(1, 2.5, 3, 4, 5, 6, 7, true)); v.AsFloat64() != 29.5 {
		t.Fatal(v.AsFloat64())
	}
}

func TestValuesOfAnotherKind(t *testing.T) {
	v := &Value{KindString, "3"}
	if _, err := v.Int64(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "a string, not an int") {
		t.Fatal(err)
	}
	call := ok[*Function](t)(ConvertFunction(addOne))
	_, err := call.Invoke("three")
	var p *PanicError
	if !errors.As(err, &p) || !errors.Is(err, ErrInvalid) || !bytes.Contains(p.Stack, []byte("addOne")) {
		t.Fatalf("%#v", err)
	}
}

func TestGlobalFunctions(t *testing.T) {
	noError(t, RegisterFunction(addOne, "go.add_one"))
	f := ok[*Function](t)(GetGlobalFunction("go.add_one"))
	if v := ok[*Value](t)(f.Invoke(41)); v.AsInt64() != 42 {
		t.Fatal(v.AsInt64())
	}
	if err := RegisterFunction(addOne, "go.add_one"); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a name that is taken: %v", err)
	}
	noError(t, RegisterFunction(func(...*Value) (interface{}, error) { return "other", nil }, true, "go.add_one"))
	if v := ok[*Value](t)(ok[*Function](t)(GetGlobalFunction("go.add_one")).Invoke(1)); v.AsStr() != "other" {
		t.Fatal(v.Interface())
	}
	if v := ok[*Value](t)(f.Invoke(1)); v.AsInt64() != 2 { // who has the old one keeps it
		t.Fatal(v.Interface())
	}
	names := ok[[]string](t)(FuncListGlobalNames())
	found := false
	for i, name := range names {
		found = found || name == "go.add_one"
		if i > 0 && names[i-1] >= name {
			t.Fatalf("'%s' stands before '%s'", names[i-1], name)
		}
	}
	if !found {
		t.Fatal(names)
	}
	noError(t, RemoveFunction("go.add_one"))
	if _, err := GetGlobalFunction("go.add_one"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if err := RemoveFunction("go.add_one"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	noError(t, RegisterFunction(addOne)) // under Go's own name
	noError(t, RemoveFunction("heddle.internal/heddle.addOne"))
}

type wordless struct{ words string }

func (w *wordless) Error() string { return w.words }

func TestErrorWhoseMethodPanics(t *testing.T) {
	f := ok[*Function](t)(ConvertFunction(func(...*Value) (interface{}, error) {
		var none *wordless
		return nil, none
	}))
	_, err := f.Invoke()
	var p *PanicError
	if !errors.As(err, &p) || !strings.Contains(err.Error(), "nil pointer") {
		t.Fatalf("%v", err)
	}
}

func TestErrorsComeBackAsTheyWere(t *testing.T) {
	calls := ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so")))
	apply := ok[*Function](t)(calls.GetFunction("apply"))
	direct := ok[*Function](t)(ConvertFunction(func(args ...*Value) (interface{}, error) {
		v, err := args[0].AsFunction().Invoke()
		if err != nil {
			return nil, err
		}
		return v, nil
	}))
	deep := fmt.Errorf("deep\nwithin: %w", errOurs)
	for _, f := range []*Function{apply, direct} {
		_, err := f.Invoke(func(...*Value) (interface{}, error) { return nil, deep })
		var e *Error
		if !errors.Is(err, errOurs) || !errors.As(err, &e) || !strings.Contains(e.Message, "deep within: an error of ours") {
			t.Fatalf("%v", err)
		}
		_, err = f.Invoke(func(...*Value) (interface{}, error) { return nil, ErrLimit })
		if !errors.Is(err, ErrLimit) {
			t.Fatalf("%v", err)
		}
		_, err = f.Invoke(func(...*Value) (interface{}, error) { panic("at the disco") })
		var p *PanicError
		if !errors.As(err, &p) || p.Value != "at the disco" {
			t.Fatalf("%v", err)
		}
		_, err = f.Invoke(func(...*Value) (interface{}, error) { return nil, context.Canceled })
		if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrCanceled) {
			t.Fatalf("%v", err)
		}
		var nothing map[string]int
		_, err = f.Invoke(func(...*Value) (interface{}, error) { nothing["x"] = 1; return nil, nil })
		if err == nil || !strings.Contains(err.Error(), "nil map") {
			t.Fatalf("%v", err)
		}
	}
	_, err := apply.Invoke(3)
	if err == nil || !strings.Contains(err.Error(), "apply: expected a function") {
		t.Fatalf("%v", err)
	}
}

func TestAFailureThatWasHandledIsNotTheNextOnes(t *testing.T) {
	apply := ok[*Function](t)(ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so"))).GetFunction("apply"))
	_, err := apply.Invoke(func(...*Value) (interface{}, error) {
		if _, err := apply.Invoke(func(...*Value) (interface{}, error) { return nil, errOurs }); err == nil {
			t.Error("no error")
		}
		return nil, errors.New("something else")
	})
	if errors.Is(err, errOurs) || !strings.Contains(err.Error(), "something else") {
		t.Fatal(err)
	}
}

// The number of an error identifies the Go error, not its text.
func TestTheSameTextIsNotTheSameError(t *testing.T) {
	calls := ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so")))
	apply, reword := ok[*Function](t)(calls.GetFunction("apply")), ok[*Function](t)(calls.GetFunction("reword"))
	same := errors.New("reword: it did not work")
	_, err := reword.Invoke(func(...*Value) (interface{}, error) { return nil, same })
	if err == nil || !strings.Contains(err.Error(), same.Error()) || errors.Is(err, same) {
		t.Fatalf("%v", err)
	}
	first, second := errors.New("same"), errors.New("same")
	_, err = apply.Invoke(func(...*Value) (interface{}, error) {
		if _, err := apply.Invoke(func(...*Value) (interface{}, error) { return nil, first }); !errors.Is(err, first) {
			t.Errorf("%v", err)
		}
		return nil, second
	})
	if errors.Is(err, first) || !errors.Is(err, second) {
		t.Fatalf("%v", err)
	}
}

func TestTheSameTextInSeveralThreads(t *testing.T) {
	apply := ok[*Function](t)(ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so"))).GetFunction("apply"))
	const n = 4
	var all sync.WaitGroup
	for i := 0; i < n; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := 0; k < 50; k++ {
				mine := errors.New("same")
				_, err := apply.Invoke(func(...*Value) (interface{}, error) {
					return apply.Invoke(func(...*Value) (interface{}, error) { return nil, mine })
				})
				if !errors.Is(err, mine) {
					t.Errorf("%v", err)
				}
			}
		}()
	}
	all.Wait()
}

type ofTask struct{ task int64 }

func (e *ofTask) Error() string { return "same" }

// The error of a parallel loop names its task, and is that of the same task.
func TestTheSameTextInSeveralTasks(t *testing.T) {
	parts := ok[*Function](t)(ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so"))).GetFunction("parts"))
	setFunction(t, "go.part", func(args ...*Value) (interface{}, error) { return nil, &ofTask{args[0].AsInt64()} })
	for i := 0; i < 50; i++ {
		_, err := parts.Invoke()
		var cause *ofTask
		if !errors.As(err, &cause) || !strings.Contains(err.Error(), fmt.Sprintf("task %d of a parallel loop", cause.task)) {
			t.Fatalf("%v, of %v", err, cause)
		}
	}
}

func TestCompiledCodeCallsAFunctionByName(t *testing.T) {
	calls := ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so"), "so"))
	byName := ok[*Function](t)(calls.GetFunction("by_name"))
	setFunction(t, "go.seen", func(args ...*Value) (interface{}, error) {
		return fmt.Sprintf("%d %d %s %s", len(args), args[0].AsInt64(), args[1].AsStr(), args[2].AsBytes()), nil
	})
	if v := ok[*Value](t)(byName.Invoke(5, "five", []byte("bytes"))); v.AsStr() != "3 5 five bytes" {
		t.Fatal(v.Interface())
	}
}

func TestThreadsOfCompiledCode(t *testing.T) {
	parts := ok[*Function](t)(ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so"))).GetFunction("parts"))
	var mu sync.Mutex
	seen, failing := map[int64]int{}, int64(-1)
	setFunction(t, "go.part", func(args ...*Value) (interface{}, error) {
		mu.Lock()
		defer mu.Unlock()
		task := args[0].AsInt64()
		if seen[task]++; task == failing {
			return nil, fmt.Errorf("task %d: %w", task, errOurs)
		}
		return nil, nil
	})
	for i := 1; i <= 20; i++ {
		ok[*Value](t)(parts.Invoke())
		for task, n := range seen {
			if n != i || task >= int64(len(seen)) {
				t.Fatalf("after %d calls the tasks were called %v times", i, seen)
			}
		}
	}
	failing = int64(len(seen)) - 1
	if _, err := parts.Invoke(); err == nil || !strings.Contains(err.Error(), "an error of ours") {
		t.Fatal(err)
	}
}

func TestClosuresThereAndBack(t *testing.T) {
	apply := ok[*Function](t)(ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so"))).GetFunction("apply"))
	adder := func(args ...*Value) (interface{}, error) {
		n := args[0].AsInt64()
		return func(args ...*Value) (interface{}, error) { return n + args[0].AsInt64(), nil }, nil
	}
	made := ok[*Value](t)(apply.Invoke(adder, 10)).AsFunction()
	defer made.Close()
	if v := ok[*Value](t)(apply.Invoke(made, 32)); v.AsInt64() != 42 {
		t.Fatal(v.Interface())
	}
}

func TestArraysOfArguments(t *testing.T) {
	apply := ok[*Function](t)(ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so"))).GetFunction("apply"))
	a := ok[*Array](t)(NewArray([]float32{1, 2, 3}))
	var kept *Array
	back := ok[*Value](t)(apply.Invoke(func(args ...*Value) (interface{}, error) {
		kept = args[0].AsArray()
		kept.Close() // it is not ours
		s, err := Copy[float32](kept)
		if err != nil {
			return nil, err
		}
		return kept, kept.CopyFrom([]float32{s[2], s[1], s[0]})
	}, a)).AsArray()
	near(t, ok[[]float32](t)(Copy[float32](a)), []float32{3, 2, 1}, 0)
	a.Close()
	near(t, ok[[]float32](t)(Copy[float32](back)), []float32{3, 2, 1}, 0)
	if _, err := kept.AsSlice(); err != ErrClosed {
		t.Fatalf("an argument after its call: %v", err)
	}
}

func TestCompiledFunctions(t *testing.T) {
	m := ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so")))
	add := ok[*Function](t)(m.GetFunction("add"))
	m.Close() // the function holds it
	a, b := ok[*Array](t)(NewArray([]float32{1, 2, 3, 4})), ok[*Array](t)(NewArray([]float32{10, 20, 30, 40}))
	c := ok[*Array](t)(Empty([]int64{4}))
	ok[*Value](t)(add.Invoke(a, b, c))
	near(t, ok[[]float32](t)(Copy[float32](c)), []float32{11, 22, 33, 44}, 0)
	_, err := add.Invoke(a, b)
	var e *Error
	if !errors.As(err, &e) || e.File != prepared(t, "calls.so") {
		t.Fatalf("%#v", err)
	}
	if _, err := m.GetFunction("add"); err != ErrClosed {
		t.Fatal(err)
	}
}

func TestQueryImports(t *testing.T) {
	m := ok[*Module](t)(LoadModuleFromFile(prepared(t, "outer.so")))
	if kind := ok[string](t)(m.Kind()); kind != "GraphExecutorFactory" {
		t.Fatal(kind)
	}
	for _, imports := range [][]bool{{}, {false}} {
		if _, err := m.GetFunction("scale", imports...); !errors.Is(err, ErrNotFound) {
			t.Fatalf("%v: %v", imports, err)
		}
	}
	scale := ok[*Function](t)(m.GetFunction("scale", true))
	x, y := ok[*Array](t)(NewArray([]float32{1, 2, 3, 4})), ok[*Array](t)(Empty([]int64{4}))
	ok[*Value](t)(scale.Invoke(x, y))
	near(t, ok[[]float32](t)(Copy[float32](y)), []float32{3, 6, 9, 12}, 0)

	other := ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so")))
	noError(t, other.Import(m))
	ok[*Function](t)(other.GetFunction("scale", true))
	if err := m.Import(other); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a circle: %v", err)
	}
}

// A library that today's TVM compiled; the full run has it made.
func TestALibraryOfTVM(t *testing.T) {
	path := prepared(t, "cpu.so")
	if _, err := os.Stat(path); err != nil {
		t.Skip("prepare.py FOLDER tvm has not been run")
	}
	m := ok[*Module](t)(LoadModuleFromFile(path))
	a, b := make([]float32, 16*32), make([]float32, 32*8)
	for i := range a {
		a[i] = float32(i%7) - 3
	}
	for i := range b {
		b[i] = float32(i%5) - 2
	}
	want := make([]float32, 16*8)
	for i := 0; i < 16; i++ {
		for j := 0; j < 8; j++ {
			for k := 0; k < 32; k++ {
				want[i*8+j] += a[i*32+k] * b[k*8+j]
			}
		}
	}
	x, y := ok[*Array](t)(NewArray(a, 16, 32)), ok[*Array](t)(NewArray(b, 32, 8))
	z := ok[*Array](t)(Empty([]int64{16, 8}))
	ok[*Value](t)(ok[*Function](t)(m.GetFunction("matmul")).Invoke(x, y, z))
	near(t, ok[[]float32](t)(Copy[float32](z)), want, 0)
	wrong := ok[*Array](t)(Empty([]int64{16, 9}))
	if _, err := ok[*Function](t)(m.GetFunction("matmul")).Invoke(x, y, wrong); !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
}

func TestModulesAsValues(t *testing.T) {
	load := ok[*Function](t)(GetGlobalFunction("runtime.ModuleLoadFromFile"))
	m := ok[*Value](t)(load.Invoke(prepared(t, "calls.so"), "")).AsModule()
	ok[*Function](t)(m.GetFunction("add"))
	same := ok[*Function](t)(ConvertFunction(func(args ...*Value) (interface{}, error) { return args[0].AsModule(), nil }))
	ok[*Function](t)(ok[*Value](t)(same.Invoke(m)).AsModule().GetFunction("add"))
	for _, path := range []string{"no_such.so", "no_such.hexagon", ""} {
		_, err := LoadModuleFromFile(path)
		var e *Error
		if !errors.As(err, &e) || e.File != path {
			t.Fatalf("%s: %#v", path, err)
		}
	}
}

func TestALoaderInGo(t *testing.T) {
	noError(t, RegisterFunction(func(args ...*Value) (interface{}, error) {
		return LoadModuleFromFile(strings.TrimSuffix(args[0].AsStr(), ".mine"))
	}, "runtime.module.loadfile_mine", true))
	m := ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so") + ".mine"))
	ok[*Function](t)(m.GetFunction("add"))
}

func TestFunctionsFromManyGoroutines(t *testing.T) {
	apply := ok[*Function](t)(ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so"))).GetFunction("apply"))
	var all sync.WaitGroup
	for g := 0; g < 16; g++ {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			mine := fmt.Errorf("error %d of its goroutine", g)
			for i := 0; i < 100; i++ {
				want := fmt.Sprint(g, "-", i)
				v, err := apply.Invoke(func(args ...*Value) (interface{}, error) {
					if args[1].AsInt64()%3 == 0 {
						return nil, mine
					}
					return args[0].AsStr() + "!", nil
				}, want, i)
				if i%3 == 0 && !errors.Is(err, mine) || i%3 != 0 && (err != nil || v.AsStr() != want+"!") {
					t.Errorf("%s: %v %v", want, v, err)
					return
				}
			}
		}(g)
	}
	all.Wait()
}
