package heddle

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"
)

func TestEmptyTakesDtypeAndContextInAnyOrder(t *testing.T) {
	for _, args := range [][]interface{}{{}, {"float32"}, {CPU(0)}, {"float32", CPU(0)}, {CPU(0), "float32"}} {
		a := ok[*Array](t)(Empty([]int64{2, 3}, args...))
		if a.GetDType() != "float32" || a.GetNdim() != 2 || !reflect.DeepEqual(a.GetShape(), []int64{2, 3}) ||
			a.GetCtx() != CPU(0) || a.Bytes() != 24 {
			t.Fatalf("%v gave %s of %v on %v", args, a.GetDType(), a.GetShape(), a.GetCtx())
		}
	}
	for _, args := range [][]interface{}{{"float33x"}, {"text"}, {1}, {Metal(0)}, {CPU(7)}} {
		if _, err := Empty([]int64{2}, args...); err == nil {
			t.Fatalf("Empty took %v", args)
		}
	}
	if _, err := Empty([]int64{-1}); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a negative dimension: %v", err)
	}
	if _, err := Empty([]int64{1}, OpenGL(0)); !errors.Is(err, ErrNoDevice) {
		t.Fatalf("a device that nobody has: %v", err)
	}
}

func roundTrip[T Element](t *testing.T, dtype string, data ...T) {
	t.Helper()
	a := ok[*Array](t)(Empty([]int64{int64(len(data))}, dtype))
	noError(t, a.CopyFrom(data))
	data2 := append([]T{}, data...)
	data[0] = data[1] // what was copied is not ours any more
	if back := ok[interface{}](t)(a.AsSlice()); !reflect.DeepEqual(back, data2) {
		t.Fatalf("%s: %v came back as %v", dtype, data2, back)
	}
	view := ok[[]T](t)(View[T](a))
	view[0] = data2[2]
	if back := ok[[]T](t)(Copy[T](a)); back[0] != data2[2] {
		t.Fatalf("%s: what was written to the view is not in the array", dtype)
	}
	runtime.KeepAlive(a)
}

func TestEveryDtype(t *testing.T) {
	roundTrip[int8](t, "int8", -128, 1, 127)
	roundTrip[int16](t, "int16", -32768, 1, 5)
	roundTrip[int32](t, "int32", math.MinInt32, 1, 5)
	roundTrip[int64](t, "int64", math.MinInt64, 1, 5)
	roundTrip[uint8](t, "uint8", 255, 1, 5)
	roundTrip[uint16](t, "uint16", 65535, 1, 5)
	roundTrip[uint32](t, "uint32", math.MaxUint32, 1, 5)
	roundTrip[uint64](t, "uint64", math.MaxUint64, 1, 5)
	roundTrip[float32](t, "float32", 1.5, -2, 5)
	roundTrip[float64](t, "float64", math.Pi, -2, 5)
	roundTrip(t, "bool", true, false, true)
	roundTrip[uint16](t, "float16", 0x3c00, 1, 2)
	roundTrip[uint16](t, "bfloat16", 0x3f80, 1, 2)
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	a := ok[*Array](t)(Empty([]int64{3}))
	for _, bad := range []interface{}{[]float32{1, 2}, []float64{1, 2, 3}, []string{"a"}, 3, nil, (*Array)(nil)} {
		if err := a.CopyFrom(bad); !errors.Is(err, ErrInvalid) {
			t.Fatalf("CopyFrom(%v): %v", bad, err)
		}
	}
	if _, err := View[int32](a); err == nil {
		t.Fatal("a view of another type")
	}
	if _, err := NewArray([]int32{1, 2, 3}, 2, 2); !errors.Is(err, ErrInvalid) {
		t.Fatalf("three elements in four places: %v", err)
	}
}

func TestEdgesOfShapes(t *testing.T) {
	scalar := ok[*Array](t)(Empty([]int64{}))
	noError(t, scalar.CopyFrom([]float32{7}))
	if s := ok[[]float32](t)(Copy[float32](scalar)); len(s) != 1 || s[0] != 7 {
		t.Fatal(s)
	}
	none := ok[*Array](t)(Empty([]int64{0, 4}))
	noError(t, none.CopyFrom([]float32{}))
	if s := ok[interface{}](t)(none.AsSlice()); len(s.([]float32)) != 0 {
		t.Fatal(s)
	}
}

func TestArraysOfAnotherDevice(t *testing.T) {
	a := ok[*Array](t)(Empty([]int64{2, 2}, ExtDev(0), "int32"))
	sim := ok[DeviceInfo](t)(DeviceByName("sim"))
	if a.GetCtx() != sim.Device || sim.Device != PluginDevice("sim", 0) || PluginDevice("mine", 0) == sim.Device {
		t.Fatal(a.GetCtx(), sim)
	}
	noError(t, a.CopyFrom([]int32{1, 2, 3, 4}))
	b := ok[*Array](t)(a.Clone())
	if s := ok[[]int32](t)(Copy[int32](b)); !reflect.DeepEqual(s, []int32{1, 2, 3, 4}) || b.GetCtx() != CPU(0) {
		t.Fatal(s, b.GetCtx())
	}
	noError(t, b.CopyFrom([]int32{9, 8, 7, 6}))
	noError(t, a.CopyFrom(b))
	if s := ok[[]int32](t)(Copy[int32](a)); s[3] != 6 {
		t.Fatal(s)
	}
	if _, err := View[int32](a); err == nil {
		t.Fatal("a view of memory that the host cannot read")
	}
}

func TestNpy(t *testing.T) {
	path := t.TempDir() + "/a.npy"
	a := ok[*Array](t)(NewArray([]int16{1, 2, 3, 4, 5, 6}, 2, 3))
	noError(t, a.SaveNpy(path))
	b := ok[*Array](t)(LoadNpy(path))
	if s := ok[[]int16](t)(Copy[int16](b)); s[5] != 6 || !reflect.DeepEqual(b.GetShape(), []int64{2, 3}) {
		t.Fatal(s, b.GetShape())
	}
	_, err := LoadNpy(path + "x")
	var e *Error
	if !errors.As(err, &e) || e.Status != ErrIO || e.File != path+"x" {
		t.Fatalf("%#v", err)
	}
}

func TestDtypeNames(t *testing.T) {
	for _, name := range []string{"float32", "int8", "uint64", "bool", "bfloat16", "float16", "float32x4"} {
		if d := ok[DType](t)(ParseDType(name)); d.String() != name {
			t.Fatalf("%s came back as %s", name, d)
		}
	}
	for _, name := range []string{"", "float", "int0", "bool8", "float32x", "float32x0", "int-8", "complex64"} {
		if d, err := ParseDType(name); err == nil {
			t.Fatalf("'%s' is %v", name, d)
		}
	}
}

func TestArraysPrintTheirElements(t *testing.T) {
	filled := func(dtype string, data interface{}, shape ...int64) *Array {
		a := ok[*Array](t)(Empty(shape, dtype))
		noError(t, a.CopyFrom(data))
		return a
	}
	many := make([]int32, 2000)
	for i := range many {
		many[i] = int32(i)
	}
	closed := ok[*Array](t)(Empty([]int64{2}))
	closed.Close()
	remote := ok[*Array](t)(Empty([]int64{2}, "float32", Context{12, 0}))
	noError(t, remote.CopyFrom([]float32{7, 8}))
	for want, a := range map[string]*Array{
		"[[1 2.5 3] [4 5 6]]":               filled("float32", []float32{1, 2.5, 3, 4, 5, 6}, 2, 3),
		"[true false]":                      filled("bool", []bool{true, false}, 2),
		"-7":                                filled("int64", []int64{-7}),
		"[]":                                filled("int8", []int8{}, 0),
		"[[] []]":                           filled("int8", []int8{}, 2, 0),
		"[1 -2 0 65504 +Inf 5.9604645e-08]": filled("float16", []uint16{0x3c00, 0xc000, 0, 0x7bff, 0x7c00, 1}, 6),
		"[1 -2]":                            filled("bfloat16", []uint16{0x3f80, 0xc000}, 2),
		"[[0 1 2 ... 997 998 999] [1000 1001 1002 ... 1997 1998 1999]]": filled("int32", many, 2, 1000),
		"[7 8]": remote,
		"<nil>": nil,
		"<float32[2]: " + ErrClosed.Error() + ">": closed,
	} {
		if got := fmt.Sprint(a); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	if got := fmt.Sprint([]*Array{filled("uint8", []uint8{1, 2}, 2)}); got == "" {
		t.Error("a slice of arrays")
	}
}

func TestUseAfterClose(t *testing.T) {
	a := ok[*Array](t)(Empty([]int64{2}))
	a.Close()
	a.Close()
	_, err := a.AsSlice()
	for _, e := range []error{err, a.CopyFrom([]float32{1, 2}), a.SaveNpy("x.npy")} {
		if e != ErrClosed {
			t.Fatal(e)
		}
	}
	if a.GetDType() != "float32" {
		t.Fatal("what it was is not known any more")
	}
}

// An array that was closed leaves what frees it to a later one, and holds nothing of that.
func TestClosedArraysHoldNothing(t *testing.T) {
	var closed []*Array
	for i := 0; i < 50; i++ {
		one := ok[*Array](t)(Empty([]int64{4}))
		one.Close()
		closed = append(closed, one, ok[*Array](t)(Empty([]int64{1 << 20}))) // the second is forgotten below
	}
	for i := 1; i < len(closed); i += 2 {
		closed[i] = nil
	}
	before := held.bytes.Load()
	for round := 0; round < 100 && held.bytes.Load() > before-40<<18; round++ {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if after := held.bytes.Load(); after > before-40<<18 {
		t.Fatalf("%d bytes are held, of %d before", after, before)
	}
	runtime.KeepAlive(closed)
}
