package heddle

// Go functions that C calls.

// #include "bridge.h"
import "C"

import (
	"fmt"
	"runtime/cgo"
	"runtime/debug"
	"unsafe"
)

// PanicError is the error of a call in the middle of which a Go function panicked.
type PanicError struct {
	Value interface{} // what panic was given
	Stack []byte
}

// Error gives the panic's value as text.
func (p *PanicError) Error() string { return fmt.Sprint("panic in a Go function: ", p.Value) }

// Unwrap gives the panic's value where it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

func newCallback(call Callback) (*Function, error) {
	if call == nil {
		return nil, invalid("a nil function cannot be converted")
	}
	words := newErr()
	defer freeErr(words)
	handle := cgo.NewHandle(call)
	var f *C.heddle_function
	if s := C.hgo_function(C.uintptr_t(handle), &f, words); s != C.HEDDLE_OK {
		handle.Delete()
		return nil, failure(s, words)
	}
	return wrapFunction(f), nil
}

// An argument: modules and functions are retained; an array is there until the function returns, and left waits for it.
func argumentValue(v *C.heddle_value) (value *Value, left func()) {
	switch v.kind {
	case C.HEDDLE_VALUE_TENSOR:
		t := (*C.heddle_tensor)(pointerOf(v))
		if t == nil {
			return &Value{}, nil
		}
		var d C.hgo_array
		C.hgo_describe(t, &d)
		a := describeArray(&d)
		unused := make(chan struct{})
		a.loaned = true
		a.free = func(unsafe.Pointer, int) { close(unused) }
		return &Value{KindArray, a}, func() {
			a.close()
			<-unused
		}
	case C.HEDDLE_VALUE_MODULE:
		o := C.heddle_object_retain((*C.heddle_object)(pointerOf(v)))
		if o == nil {
			return &Value{}, nil
		}
		return &Value{KindModule, wrapModule(o, "")}, nil
	case C.HEDDLE_VALUE_FUNCTION:
		f := C.heddle_function_retain((*C.heddle_function)(pointerOf(v)))
		if f == nil {
			return &Value{}, nil
		}
		return &Value{KindFunction, wrapFunction(f)}, nil
	case C.HEDDLE_VALUE_STRING:
		text := pointerOf(v)
		if text == nil {
			return &Value{}, nil
		}
		return plainValue(v, text, C.uint64_t(C.strlen((*C.char)(text)))), nil
	case C.HEDDLE_VALUE_BYTES:
		return plainValue(v, pointerOf(v), v.bytes), nil
	}
	return plainValue(v, nil, 0), nil
}

//export heddleGoCall
func heddleGoCall(self C.uintptr_t, args *C.heddle_value, n C.uint32_t, result *C.heddle_value, err *C.heddle_error,
	cause *C.uintptr_t) C.heddle_status {
	failed := callGo(cgo.Handle(self).Value().(Callback), unsafe.Slice(args, int(n)), result)
	if failed == nil {
		return C.HEDDLE_OK
	}
	*result = C.heddle_value{}
	failed, s, words := inWords(failed)
	setWords(err, s, words)
	*cause = C.uintptr_t(cgo.NewHandle(failed))
	return s
}

// Fills an error of the library's, which may be nil.
func setWords(err *C.heddle_error, s C.heddle_status, words string) {
	if err == nil {
		return
	}
	if words = clipped(words, len(err.text)-1); words == "" {
		words = "a Go function failed"
	}
	err.status = s
	for i := 0; i < len(words); i++ {
		err.text[i] = C.char(words[i])
	}
	err.text[len(words)] = 0
}

// An error's status and words. Its methods are others' code: where they panic, as those of a nil pointer that was returned
// as an error do, that is the error, for no panic may pass through C.
func inWords(failed error) (same error, s C.heddle_status, words string) {
	defer func() {
		if p := recover(); p != nil {
			same, s = &PanicError{p, debug.Stack()}, C.HEDDLE_EFAILED
			words = same.Error()
		}
	}()
	return failed, statusOf(failed), failed.Error()
}

//export heddleGoDrop
func heddleGoDrop(handle C.uintptr_t) { cgo.Handle(handle).Delete() }

func callGo(call Callback, args []C.heddle_value, result *C.heddle_value) (failed error) {
	values := make([]*Value, len(args))
	var loans []func()
	defer func() {
		if p := recover(); p != nil {
			failed = &PanicError{p, debug.Stack()}
		}
		for _, left := range loans {
			left()
		}
	}()
	for i := range args {
		value, left := argumentValue(&args[i])
		values[i] = value
		if left != nil {
			loans = append(loans, left)
		}
	}
	out, err := call(values...)
	if err != nil {
		return err
	}
	return setResult(result, out)
}

// What a function gives back: handles carry a reference over; strings and bytes are in C memory that bridge.c frees.
func setResult(result *C.heddle_value, out interface{}) error {
	if v, ok := out.(*Value); ok && v != nil && v.kind != KindPointer {
		out = v.v
	}
	switch x := out.(type) {
	case *Array:
		return resultArray(result, x)
	case *Module, *Function:
		var a arguments
		defer a.free()
		if err := a.set(result, x); err != nil {
			return err
		}
		if m, ok := x.(*Module); ok {
			C.heddle_object_retain(m.o)
		} else {
			C.heddle_function_retain(x.(*Function).f)
		}
		return nil
	case string, []byte:
		var a arguments
		if err := a.set(result, x); err != nil {
			a.texts.free()
			return err
		}
		return nil
	}
	if call, ok := asCallback(out); ok {
		f, err := newCallback(call)
		if err != nil {
			return err
		}
		defer f.Close()
		C.heddle_function_retain(f.f)
		setPointer(result, C.HEDDLE_VALUE_FUNCTION, unsafe.Pointer(f.f))
		return nil
	}
	var a arguments
	return a.set(result, out)
}

func resultArray(result *C.heddle_value, a *Array) error {
	if a == nil {
		return invalid("a nil *Array cannot be returned; use nil")
	}
	if a.loaned { // its memory is the caller's, who may take it away
		copied, err := a.Clone()
		if err != nil {
			return err
		}
		defer copied.Close()
		a = copied
	}
	if err := a.acquire(); err != nil {
		return err
	}
	defer a.release()
	setPointer(result, C.HEDDLE_VALUE_TENSOR, unsafe.Pointer(C.heddle_tensor_retain(a.t)))
	return nil
}
