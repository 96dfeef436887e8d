package heddle

// Strings in C memory for the time of a call.

// #include "bridge.h"
import "C"

import (
	"strings"
	"unsafe"
)

type cstrings struct {
	all []unsafe.Pointer
	err error // the first string that C cannot take
}

func (t *cstrings) add(s string) *C.char {
	if strings.IndexByte(s, 0) >= 0 && t.err == nil {
		t.err = invalid("a string with a zero byte cannot be passed; use []byte")
	}
	p := C.CString(s)
	t.all = append(t.all, unsafe.Pointer(p))
	return p
}

// Like add, but nil for "".
func (t *cstrings) optional(s string) *C.char {
	if s == "" {
		return nil
	}
	return t.add(s)
}

// A C array of strings; nil for none.
func (t *cstrings) list(all []string) **C.char {
	if len(all) == 0 {
		return nil
	}
	p := C.calloc(C.size_t(len(all)), C.size_t(unsafe.Sizeof(uintptr(0))))
	t.all = append(t.all, p)
	array := unsafe.Slice((**C.char)(p), len(all))
	for i, s := range all {
		array[i] = t.add(s)
	}
	return (**C.char)(p)
}

func (t *cstrings) free() {
	for _, p := range t.all {
		C.free(p)
	}
	t.all = nil
}
