package heddle

// Element types by name, and the Go slices that hold them.

// #include "bridge.h"
import "C"

import (
	"fmt"
	"strconv"
	"strings"
	"unsafe"
)

// DType is the type of an array's elements as DLPack has it.
type DType struct {
	Code  uint8
	Bits  uint8
	Lanes uint16
}

var dtypeWords = []struct {
	word string
	code uint8
}{
	{"bfloat", C.HEDDLE_DTYPE_BFLOAT}, {"float", C.HEDDLE_DTYPE_FLOAT}, {"uint", C.HEDDLE_DTYPE_UINT},
	{"int", C.HEDDLE_DTYPE_INT}, {"bool", C.HEDDLE_DTYPE_BOOL},
}

// ParseDType reads "float32", "int8", "bool", "bfloat16", "float32x4".
func ParseDType(name string) (DType, error) {
	for _, w := range dtypeWords {
		if !strings.HasPrefix(name, w.word) {
			continue
		}
		rest, lanes := strings.TrimPrefix(name, w.word), 1
		var err error
		if at := strings.IndexByte(rest, 'x'); at >= 0 {
			lanes, err = strconv.Atoi(rest[at+1:])
			rest = rest[:at]
		}
		bits := 8
		if err == nil && w.word != "bool" {
			bits, err = strconv.Atoi(rest)
		}
		if err == nil && (w.word != "bool" || rest == "") && bits > 0 && bits <= 128 && lanes > 0 && lanes <= 0xffff {
			return DType{w.code, uint8(bits), uint16(lanes)}, nil
		}
	}
	return DType{}, invalid("'", name, "' is no dtype: expected one such as float32, int64, uint8, bool")
}

// String gives the name that ParseDType reads, or "unknown" where there is none: of an output before a run gives it.
func (d DType) String() string {
	if d.Bits == 0 {
		return "unknown"
	}
	name := fmt.Sprintf("dtype(%d,%d)", d.Code, d.Bits)
	for _, w := range dtypeWords {
		if w.code == d.Code {
			name = w.word + strconv.Itoa(int(d.Bits))
		}
	}
	if d.Code == C.HEDDLE_DTYPE_BOOL && d.Bits == 8 {
		name = "bool"
	}
	if d.Lanes != 1 {
		name += "x" + strconv.Itoa(int(d.Lanes))
	}
	return name
}

func (d DType) c() C.heddle_dtype {
	return C.heddle_dtype{code: C.uint8_t(d.Code), bits: C.uint8_t(d.Bits), lanes: C.uint16_t(d.Lanes)}
}

func dtypeOf(d C.heddle_dtype) DType { return DType{uint8(d.code), uint8(d.bits), uint16(d.lanes)} }

// Element is what a slice of numbers may hold. float16 and bfloat16 are the bits of it, as uint16.
type Element interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | bool
}

// A Go slice of an Element type, as memory.
type elements struct {
	data  unsafe.Pointer
	count int
	dtype DType
}

func (e elements) bytes() int { return e.count * int(e.dtype.Bits) / 8 }

func elementsOf[T Element](s []T, code uint8) elements {
	var zero T
	e := elements{count: len(s), dtype: DType{code, uint8(unsafe.Sizeof(zero) * 8), 1}}
	if len(s) > 0 {
		e.data = unsafe.Pointer(&s[0])
	}
	return e
}

// Ok is false for what is no slice of an Element type.
func sliceElements(value interface{}) (e elements, ok bool) {
	switch s := value.(type) {
	case []float32:
		return elementsOf(s, C.HEDDLE_DTYPE_FLOAT), true
	case []float64:
		return elementsOf(s, C.HEDDLE_DTYPE_FLOAT), true
	case []int8:
		return elementsOf(s, C.HEDDLE_DTYPE_INT), true
	case []int16:
		return elementsOf(s, C.HEDDLE_DTYPE_INT), true
	case []int32:
		return elementsOf(s, C.HEDDLE_DTYPE_INT), true
	case []int64:
		return elementsOf(s, C.HEDDLE_DTYPE_INT), true
	case []uint8:
		return elementsOf(s, C.HEDDLE_DTYPE_UINT), true
	case []uint16:
		return elementsOf(s, C.HEDDLE_DTYPE_UINT), true
	case []uint32:
		return elementsOf(s, C.HEDDLE_DTYPE_UINT), true
	case []uint64:
		return elementsOf(s, C.HEDDLE_DTYPE_UINT), true
	case []bool:
		return elementsOf(s, C.HEDDLE_DTYPE_BOOL), true
	}
	return elements{}, false
}

// Whether a slice of dtype e holds what an array of dtype d has: the same, or the bits of a 16-bit float.
func (d DType) holds(e DType) bool {
	return d == e || d.Bits == 16 && d.Lanes == 1 && e == (DType{C.HEDDLE_DTYPE_UINT, 16, 1}) &&
		(d.Code == C.HEDDLE_DTYPE_FLOAT || d.Code == C.HEDDLE_DTYPE_BFLOAT)
}

// A new slice for n elements, and its memory; nil where Go has no type for them.
func (d DType) newSlice(n int) (interface{}, elements) {
	var s interface{}
	if d.Lanes != 1 {
		return nil, elements{}
	}
	is := func(code uint8, bits uint8) bool { return d.Code == code && d.Bits == bits }
	switch {
	case is(C.HEDDLE_DTYPE_FLOAT, 32):
		s = make([]float32, n)
	case is(C.HEDDLE_DTYPE_FLOAT, 64):
		s = make([]float64, n)
	case is(C.HEDDLE_DTYPE_INT, 8):
		s = make([]int8, n)
	case is(C.HEDDLE_DTYPE_INT, 16):
		s = make([]int16, n)
	case is(C.HEDDLE_DTYPE_INT, 32):
		s = make([]int32, n)
	case is(C.HEDDLE_DTYPE_INT, 64):
		s = make([]int64, n)
	case is(C.HEDDLE_DTYPE_UINT, 8):
		s = make([]uint8, n)
	case is(C.HEDDLE_DTYPE_UINT, 16), is(C.HEDDLE_DTYPE_FLOAT, 16), is(C.HEDDLE_DTYPE_BFLOAT, 16):
		s = make([]uint16, n)
	case is(C.HEDDLE_DTYPE_UINT, 32):
		s = make([]uint32, n)
	case is(C.HEDDLE_DTYPE_UINT, 64):
		s = make([]uint64, n)
	case is(C.HEDDLE_DTYPE_BOOL, 8):
		s = make([]bool, n)
	default:
		return nil, elements{}
	}
	e, _ := sliceElements(s)
	return s, e
}
