package heddle

// Functions as values and by name.

// #include "bridge.h"
import "C"

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"unsafe"
)

// Function is a function of a compiled library, of the runtime, or of Go.
type Function struct {
	ref
	f    *C.heddle_function
	file string // of the library that it is from
}

// Callback is a Go function that others may call: compiled code, C, Python in the same process. Its arguments' arrays
// may be used until it returns; Clone what is to stay. What it returns is what an argument of Invoke may be; an error
// that it returns, or the panic that it ends in, is the error of the call. It is called from any thread, several at once
// where its callers are. It must not end its goroutine (runtime.Goexit, and so testing's FailNow).
type Callback = func(args ...*Value) (interface{}, error)

// Takes over the reference f.
func wrapFunction(f *C.heddle_function) *Function {
	made := &Function{f: f}
	made.free, made.p = freeFunction, unsafe.Pointer(f)
	runtime.SetFinalizer(made, (*Function).Close)
	return made
}

func freeFunction(f unsafe.Pointer, _ int) { C.heddle_function_release((*C.heddle_function)(f)) }

// Close gives the function back once no call uses it.
func (f *Function) Close() {
	if f == nil {
		return
	}
	runtime.SetFinalizer(f, nil)
	f.close()
}

// Invoke calls the function and waits for it. Arguments are nil, numbers, bool, string, []byte, *Array, *Module,
// *Function, Device, DType, *Value, and Go functions, which live for the call or as long as the callee keeps them. Of an
// error *Error has the words; errors.Is and errors.As find the one that a Go function in the middle returned.
func (f *Function) Invoke(args ...interface{}) (*Value, error) {
	if f == nil {
		return nil, invalid("Invoke of a nil *Function")
	}
	if err := f.acquire(); err != nil {
		return nil, err
	}
	defer f.release()
	var a arguments
	defer a.free()
	a.list = a.few[:0]
	if len(args) > len(a.few) {
		a.list = make([]C.heddle_value, 0, len(args))
	}
	a.list = a.list[:len(args)]
	for i, arg := range args {
		if err := a.set(&a.list[i], arg); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
	}
	var first *C.heddle_value
	if len(args) > 0 {
		first = &a.list[0]
	}
	var result C.hgo_result
	words := newErr()
	defer freeErr(words)
	s := C.hgo_call(f.f, first, C.uint32_t(len(args)), &result, words)
	runtime.KeepAlive(args)
	cause := takeCause(result.cause)
	if s != C.HEDDLE_OK {
		return nil, about{file: f.file}.errorOf(s, words).withCause(cause)
	}
	defer C.free(result.text)
	return resultValue(&result), nil
}

// GetGlobalFunction gives the function that is registered under a name; ErrNotFound where there is none.
func GetGlobalFunction(name string) (*Function, error) {
	texts := cstrings{}
	defer texts.free()
	word := texts.add(name)
	if texts.err != nil {
		return nil, texts.err
	}
	f := C.heddle_function_find(word)
	if f == nil {
		return nil, &Error{Status: ErrNotFound, Message: "no function is registered as '" + name + "'"}
	}
	return wrapFunction(f), nil
}

// FuncListGlobalNames gives the names of all registered functions in alphabetical order.
func FuncListGlobalNames() ([]string, error) {
	words := newErr()
	defer freeErr(words)
	var text *C.char
	var n C.size_t
	if s := C.hgo_names(&text, &n, words); s != C.HEDDLE_OK {
		return nil, failure(s, words)
	}
	defer C.free(unsafe.Pointer(text))
	names := make([]string, 0, int(n))
	for p := text; len(names) < int(n); {
		name := C.GoString(p)
		names = append(names, name)
		p = (*C.char)(unsafe.Add(unsafe.Pointer(p), len(name)+1))
	}
	return names, nil
}

// ConvertFunction makes a Function of a Go function. It lives as long as a reference to it exists.
func ConvertFunction(f Callback) (*Function, error) { return newCallback(f) }

// RegisterFunction registers a Go function, or a *Function, for all code in this process: compiled code finds it by its
// name. After it come, in any order, the name, which is Go's name of the function without one ("main.add"), and a bool:
// whether a function of that name is replaced, which without it is an error.
func RegisterFunction(f interface{}, args ...interface{}) error {
	name, override := "", C.int(0)
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			name = v
		case bool:
			if v {
				override = 1
			}
		default:
			return invalid(fmt.Sprintf("RegisterFunction takes a name and a bool, not %T", arg))
		}
	}
	made, given := f.(*Function)
	if given && made == nil {
		return invalid("RegisterFunction was given a nil *Function")
	}
	if given && name == "" {
		return invalid("RegisterFunction of a *Function needs a name")
	}
	if !given {
		call, ok := asCallback(f)
		if !ok {
			return invalid(fmt.Sprintf("RegisterFunction takes a func(...*Value) (interface{}, error), not %T", f))
		}
		if name == "" {
			name = runtime.FuncForPC(reflect.ValueOf(call).Pointer()).Name()
		}
		var err error
		if made, err = newCallback(call); err != nil {
			return err
		}
		defer made.Close()
	}
	if err := made.acquire(); err != nil {
		return err
	}
	defer made.release()
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	word := texts.add(name)
	if texts.err != nil {
		return texts.err
	}
	if s := C.heddle_function_register(word, made.f, override, words); s != C.HEDDLE_OK {
		return failure(s, words)
	}
	return nil
}

// RemoveFunction takes a name out of the registry; ErrNotFound where it is not there.
func RemoveFunction(name string) error {
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	word := texts.add(name)
	if texts.err != nil {
		return texts.err
	}
	if s := C.heddle_function_remove(word, words); s != C.HEDDLE_OK {
		return failure(s, words)
	}
	return nil
}

func asCallback(value interface{}) (Callback, bool) {
	f := reflect.ValueOf(value)
	want := reflect.TypeOf(Callback(nil))
	if f.Kind() != reflect.Func || f.IsNil() || !f.Type().ConvertibleTo(want) {
		return nil, false
	}
	return f.Convert(want).Interface().(Callback), true
}

// What a message may say at most.
func clipped(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(oneLine(text), "")
}
