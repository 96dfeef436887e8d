package heddle

// Modules: compiled libraries, models inside of them, and what else has functions by name.

// #include "bridge.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Module is something whose functions are found by name, most often a library that TVM compiled.
type Module struct {
	ref
	o    *C.heddle_object
	file string
}

// Takes over the reference o.
func wrapModule(o *C.heddle_object, file string) *Module {
	m := &Module{o: o, file: file}
	m.free = func(unsafe.Pointer, int) { C.heddle_object_release(o) }
	runtime.SetFinalizer(m, (*Module).Close)
	return m
}

// LoadModuleFromFile opens a library. A format, such as "so", says how the file is read; without one its suffix does. The
// library is code, and runs with the rights of the process.
func LoadModuleFromFile(path string, format ...string) (*Module, error) {
	if len(format) > 1 {
		return nil, invalid("LoadModuleFromFile takes one format")
	}
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	name := texts.add(path)
	var kind *C.char
	if len(format) == 1 {
		kind = texts.optional(format[0])
	}
	if texts.err != nil {
		return nil, texts.err
	}
	var o *C.heddle_object
	if s := C.heddle_object_load(name, kind, &o, words); s != C.HEDDLE_OK {
		return nil, about{file: path}.errorOf(s, words)
	}
	return wrapModule(o, path), nil
}

// Close gives the module back once no call uses it; functions of it hold it on.
func (m *Module) Close() {
	if m == nil {
		return
	}
	runtime.SetFinalizer(m, nil)
	m.close()
}

// GetFunction gives a function of the module; with queryImports, which is false without it, of the modules that it
// imports too. ErrNotFound where there is none.
func (m *Module) GetFunction(name string, queryImports ...bool) (*Function, error) {
	if len(queryImports) > 1 {
		return nil, invalid("GetFunction takes one bool, whether imports are looked at")
	}
	if err := m.acquire(); err != nil {
		return nil, err
	}
	defer m.release()
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	word := texts.add(name)
	if texts.err != nil {
		return nil, texts.err
	}
	imports := C.int(0)
	if len(queryImports) == 1 && queryImports[0] {
		imports = 1
	}
	var f *C.heddle_function
	if s := C.heddle_object_function(m.o, word, imports, &f, words); s != C.HEDDLE_OK {
		return nil, about{file: m.file}.errorOf(s, words)
	}
	made := wrapFunction(f)
	made.file = m.file
	return made, nil
}

// Import makes the functions of another module those of this one's imports. No other goroutine uses m meanwhile.
// ErrInvalid where of imports m already.
func (m *Module) Import(of *Module) error {
	if of == nil {
		return invalid("Import of a nil *Module")
	}
	if err := m.acquire(); err != nil {
		return err
	}
	defer m.release()
	if err := of.acquire(); err != nil {
		return err
	}
	defer of.release()
	words := newErr()
	defer freeErr(words)
	if s := C.heddle_object_import(m.o, of.o, words); s != C.HEDDLE_OK {
		return failure(s, words)
	}
	return nil
}

// Kind says what the module is: "library", "GraphExecutor", ...
func (m *Module) Kind() (string, error) {
	if err := m.acquire(); err != nil {
		return "", err
	}
	defer m.release()
	return C.GoString(C.heddle_object_kind(m.o)), nil
}
