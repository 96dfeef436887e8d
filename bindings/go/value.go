package heddle

// Arguments and results of functions.

// #include "bridge.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Kind is what a Value holds.
type Kind int32

// The kinds of values.
const (
	KindNone     Kind = C.HEDDLE_VALUE_NONE
	KindInt      Kind = C.HEDDLE_VALUE_INT
	KindFloat    Kind = C.HEDDLE_VALUE_FLOAT
	KindBool     Kind = C.HEDDLE_VALUE_BOOL
	KindString   Kind = C.HEDDLE_VALUE_STRING
	KindBytes    Kind = C.HEDDLE_VALUE_BYTES
	KindArray    Kind = C.HEDDLE_VALUE_TENSOR
	KindPointer  Kind = C.HEDDLE_VALUE_POINTER
	KindModule   Kind = C.HEDDLE_VALUE_MODULE
	KindFunction Kind = C.HEDDLE_VALUE_FUNCTION
	KindDevice   Kind = C.HEDDLE_VALUE_DEVICE
	KindDType    Kind = C.HEDDLE_VALUE_DTYPE
)

var kindWords = [...]string{"nothing", "an int", "a float", "a bool", "a string", "bytes", "an array", "a pointer",
	"a module", "a function", "a device", "a dtype"}

// String gives the kind as text, "an array".
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindWords) {
		return fmt.Sprintf("a value of kind %d", int32(k))
	}
	return kindWords[k]
}

// Value is an argument or a result. It is immutable; modules, functions and arrays in it are closed by their holders,
// or Close closes them.
//
// Int64 and its kin give an error where the value is of another kind. AsInt64 and its kin, as TVM's package has them,
// panic with that error, which in a Go function that was called becomes the error of the call.
type Value struct {
	kind Kind
	v    interface{} // int64, float64, bool, string, []byte, *Array, uintptr, *Module, *Function, Device, DType
}

// Kind says what the value holds.
func (v *Value) Kind() Kind { return v.kind }

// Interface gives the value as Go has it: nil, int64, float64, bool, string, []byte, *Array, uintptr, *Module, *Function,
// Device, DType.
func (v *Value) Interface() interface{} { return v.v }

func (v *Value) wrong(want Kind) error {
	return invalid("the value is ", v.kind.String(), ", not ", want.String())
}

// Int64 gives an int or a bool.
func (v *Value) Int64() (int64, error) {
	switch x := v.v.(type) {
	case int64:
		return x, nil
	case bool:
		if x {
			return 1, nil
		}
		return 0, nil
	}
	return 0, v.wrong(KindInt)
}

// Float64 gives a float, or an int as one.
func (v *Value) Float64() (float64, error) {
	if x, ok := v.v.(float64); ok {
		return x, nil
	}
	if x, err := v.Int64(); err == nil {
		return float64(x), nil
	}
	return 0, v.wrong(KindFloat)
}

func valueAs[T any](v *Value, want Kind) (T, error) {
	x, ok := v.v.(T)
	if !ok {
		return x, v.wrong(want)
	}
	return x, nil
}

// Bool gives a bool, or whether an int is not 0.
func (v *Value) Bool() (bool, error) {
	if x, err := v.Int64(); err == nil {
		return x != 0, nil
	}
	return false, v.wrong(KindBool)
}

// Str gives a string.
func (v *Value) Str() (string, error) { return valueAs[string](v, KindString) }

// Bytes gives bytes.
func (v *Value) Bytes() ([]byte, error) { return valueAs[[]byte](v, KindBytes) }

// Module gives a module.
func (v *Value) Module() (*Module, error) { return valueAs[*Module](v, KindModule) }

// Function gives a function.
func (v *Value) Function() (*Function, error) { return valueAs[*Function](v, KindFunction) }

// Array gives an array.
func (v *Value) Array() (*Array, error) { return valueAs[*Array](v, KindArray) }

// Device gives a device.
func (v *Value) Device() (Device, error) { return valueAs[Device](v, KindDevice) }

// DType gives a dtype.
func (v *Value) DType() (DType, error) { return valueAs[DType](v, KindDType) }

// Pointer gives a pointer of C.
func (v *Value) Pointer() (uintptr, error) { return valueAs[uintptr](v, KindPointer) }

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// AsInt64 and its kin give what Int64 and its kin give, and panic where those fail.
func (v *Value) AsInt64() int64        { return must(v.Int64()) }
func (v *Value) AsFloat64() float64    { return must(v.Float64()) }
func (v *Value) AsBool() bool          { return must(v.Bool()) }
func (v *Value) AsStr() string         { return must(v.Str()) }
func (v *Value) AsBytes() []byte       { return must(v.Bytes()) }
func (v *Value) AsModule() *Module     { return must(v.Module()) }
func (v *Value) AsFunction() *Function { return must(v.Function()) }
func (v *Value) AsArray() *Array       { return must(v.Array()) }
func (v *Value) AsDevice() Device      { return must(v.Device()) }
func (v *Value) AsDType() DType        { return must(v.DType()) }
func (v *Value) AsPointer() uintptr    { return must(v.Pointer()) }

// Close closes a module, a function or an array in the value.
func (v *Value) Close() {
	if v == nil {
		return
	}
	switch x := v.v.(type) {
	case *Module:
		x.Close()
	case *Function:
		x.Close()
	case *Array:
		x.Close()
	}
}

// Arguments of a call in C, and what they hold for its time.
type arguments struct {
	list  []C.heddle_value
	texts cstrings
	held  []*ref
	made  []*Function // of Go functions among them
	few   [4]C.heddle_value
}

func (a *arguments) free() {
	for _, r := range a.held {
		r.release()
	}
	for _, f := range a.made {
		f.Close()
	}
	a.texts.free()
}

func (a *arguments) hold(r *ref) error {
	if err := r.acquire(); err != nil {
		return err
	}
	a.held = append(a.held, r)
	return nil
}

func setInt(v *C.heddle_value, kind C.int32_t, i int64) {
	v.kind = kind
	*(*int64)(unsafe.Pointer(&v.of)) = i
}

func setPointer(v *C.heddle_value, kind C.int32_t, p unsafe.Pointer) {
	v.kind = kind
	*(*uintptr)(unsafe.Pointer(&v.of)) = uintptr(p)
}

// Fills one argument; the memory behind strings and bytes is C's.
func (a *arguments) set(v *C.heddle_value, value interface{}) error {
	*v = C.heddle_value{}
	switch x := value.(type) {
	case nil:
	case *Value:
		if x == nil {
			return nil
		}
		if p, ok := x.v.(uintptr); ok && x.kind == KindPointer {
			setInt(v, C.HEDDLE_VALUE_POINTER, int64(p))
			return nil
		}
		return a.set(v, x.v)
	case int:
		setInt(v, C.HEDDLE_VALUE_INT, int64(x))
	case int8:
		setInt(v, C.HEDDLE_VALUE_INT, int64(x))
	case int16:
		setInt(v, C.HEDDLE_VALUE_INT, int64(x))
	case int32:
		setInt(v, C.HEDDLE_VALUE_INT, int64(x))
	case int64:
		setInt(v, C.HEDDLE_VALUE_INT, x)
	case uint8:
		setInt(v, C.HEDDLE_VALUE_INT, int64(x))
	case uint16:
		setInt(v, C.HEDDLE_VALUE_INT, int64(x))
	case uint32:
		setInt(v, C.HEDDLE_VALUE_INT, int64(x))
	case uint:
		return a.setUnsigned(v, uint64(x))
	case uint64:
		return a.setUnsigned(v, x)
	case uintptr:
		setInt(v, C.HEDDLE_VALUE_POINTER, int64(x))
	case bool:
		setInt(v, C.HEDDLE_VALUE_BOOL, 0)
		if x {
			setInt(v, C.HEDDLE_VALUE_BOOL, 1)
		}
	case float32:
		v.kind = C.HEDDLE_VALUE_FLOAT
		*(*float64)(unsafe.Pointer(&v.of)) = float64(x)
	case float64:
		v.kind = C.HEDDLE_VALUE_FLOAT
		*(*float64)(unsafe.Pointer(&v.of)) = x
	case string:
		setPointer(v, C.HEDDLE_VALUE_STRING, unsafe.Pointer(a.texts.add(x)))
		return a.texts.err
	case []byte:
		p := C.CBytes(x)
		a.texts.all = append(a.texts.all, p)
		setPointer(v, C.HEDDLE_VALUE_BYTES, p)
		v.bytes = C.uint64_t(len(x))
	case Device:
		v.kind = C.HEDDLE_VALUE_DEVICE
		*(*[2]int32)(unsafe.Pointer(&v.of)) = [2]int32{x.DeviceType, x.DeviceID}
	case DType:
		v.kind = C.HEDDLE_VALUE_DTYPE
		*(*C.heddle_dtype)(unsafe.Pointer(&v.of)) = x.c()
	default:
		return a.setHandle(v, value)
	}
	return nil
}

func (a *arguments) setUnsigned(v *C.heddle_value, x uint64) error {
	if x > 1<<63-1 {
		return invalid(fmt.Sprintf("%d does not fit an int64", x))
	}
	setInt(v, C.HEDDLE_VALUE_INT, int64(x))
	return nil
}

func (a *arguments) setHandle(v *C.heddle_value, value interface{}) error {
	switch x := value.(type) {
	case *Array:
		if x != nil {
			setPointer(v, C.HEDDLE_VALUE_TENSOR, unsafe.Pointer(x.t))
			return a.hold(&x.ref)
		}
	case *Module:
		if x != nil {
			setPointer(v, C.HEDDLE_VALUE_MODULE, unsafe.Pointer(x.o))
			return a.hold(&x.ref)
		}
	case *Function:
		if x != nil {
			setPointer(v, C.HEDDLE_VALUE_FUNCTION, unsafe.Pointer(x.f))
			return a.hold(&x.ref)
		}
	default:
		call, ok := asCallback(value)
		if !ok {
			return invalid(fmt.Sprintf("%T cannot be passed: expected nil, a number, a bool, a string, []byte, a *Value, an "+
				"*Array, a *Module, a *Function, a Device, a DType or a func(...*Value) (interface{}, error)", value))
		}
		f, err := newCallback(call)
		if err != nil {
			return err
		}
		a.made = append(a.made, f)
		setPointer(v, C.HEDDLE_VALUE_FUNCTION, unsafe.Pointer(f.f))
		return nil
	}
	return invalid(fmt.Sprintf("a nil %T cannot be passed; use nil", value))
}

func intOf(v *C.heddle_value) int64 { return *(*int64)(unsafe.Pointer(&v.of)) }

func pointerOf(v *C.heddle_value) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&v.of)) }

// What is no handle, as Go has it; text and bytes are those of a string or bytes.
func plainValue(v *C.heddle_value, text unsafe.Pointer, bytes C.uint64_t) *Value {
	out := &Value{kind: Kind(v.kind)}
	switch v.kind {
	case C.HEDDLE_VALUE_INT:
		out.v = intOf(v)
	case C.HEDDLE_VALUE_BOOL:
		out.v = intOf(v) != 0
	case C.HEDDLE_VALUE_FLOAT:
		out.v = *(*float64)(unsafe.Pointer(&v.of))
	case C.HEDDLE_VALUE_STRING:
		out.v = string(unsafe.Slice((*byte)(text), int(bytes)))
	case C.HEDDLE_VALUE_BYTES:
		out.v = append([]byte{}, unsafe.Slice((*byte)(text), int(bytes))...)
	case C.HEDDLE_VALUE_POINTER:
		out.v = *(*uintptr)(unsafe.Pointer(&v.of))
	case C.HEDDLE_VALUE_DEVICE:
		d := *(*[2]int32)(unsafe.Pointer(&v.of))
		out.v = Device{d[0], d[1]}
	case C.HEDDLE_VALUE_DTYPE:
		out.v = dtypeOf(*(*C.heddle_dtype)(unsafe.Pointer(&v.of)))
	}
	return out
}

// A result: handles are taken over.
func resultValue(r *C.hgo_result) *Value {
	v := &r.value
	switch v.kind {
	case C.HEDDLE_VALUE_TENSOR, C.HEDDLE_VALUE_MODULE, C.HEDDLE_VALUE_FUNCTION:
		if pointerOf(v) == nil {
			return &Value{}
		}
	}
	switch v.kind {
	case C.HEDDLE_VALUE_TENSOR:
		return &Value{KindArray, wrapArray((*C.heddle_tensor)(pointerOf(v)))}
	case C.HEDDLE_VALUE_MODULE:
		return &Value{KindModule, wrapModule((*C.heddle_object)(pointerOf(v)), "")}
	case C.HEDDLE_VALUE_FUNCTION:
		return &Value{KindFunction, wrapFunction((*C.heddle_function)(pointerOf(v)))}
	}
	return plainValue(v, r.text, v.bytes)
}
