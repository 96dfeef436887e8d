// Package rpc has sessions with servers of TVM's RPC: TVM's own (v0.14 to v0.27) and heddle rpc-server, directly or from a
// tracker. docs/rpc.md describes them; the protocol has no authentication and no encryption.
//
// Functions, modules and tensors of a session are the server's. One goroutine at a time uses a session.
package rpc

// #cgo CFLAGS: -std=c11 -Wall
// #cgo pkg-config: heddle_rpc
// #include <stdlib.h>
// #include <string.h>
// #include "heddle/rpc.h"
// static void set_word(heddle_rpc_value *v, uint64_t word) { memcpy(&v->of, &word, sizeof word); }
// static uint64_t word_of(const heddle_rpc_value *v) { uint64_t word; memcpy(&word, &v->of, sizeof word); return word; }
// static void set_pointer(heddle_rpc_value *v, const void *p) { v->of.data = p; }
// static const void *pointer_of(const heddle_rpc_value *v) { return v->of.data; }
// static const heddle_rpc_tensor *tensor_of(const heddle_rpc_value *v) { return v->of.tensor; }
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

// Error is what failed. Code is the number of a heddle_status.
type Error struct {
	Code int
	Text string
}

func (e *Error) Error() string { return e.Text }

// What Error.Code may be.
const (
	CodeInvalid  = int(C.HEDDLE_EINVAL)
	CodeLost     = int(C.HEDDLE_EIO)       // the connection failed, and the session is over
	CodeFormat   = int(C.HEDDLE_EFORMAT)   // the server sent what is not TVM's RPC
	CodeMissing  = int(C.HEDDLE_ENOTFOUND) // there is no such function
	CodeExpired  = int(C.HEDDLE_ETIMEOUT)  // the session took longer than it may, and is over
	CodeFailed   = int(C.HEDDLE_EFAILED)   // the server reported an error
	CodeOtherKey = int(C.HEDDLE_EDENIED)   // the server has another key
)

// Function, Module and Object are the server's; Session.Free frees them.
type (
	Function uint64
	Module   uint64
	Object   uint64
)

// Tensor is a tensor in the server's memory.
type Tensor struct {
	c C.heddle_rpc_tensor
}

// Shape gives the tensor's dimensions.
func (t *Tensor) Shape() []int64 {
	out := make([]int64, int(t.c.ndim))
	for i := range out {
		out[i] = int64(t.c.shape[i])
	}
	return out
}

// DType is a DLPack dtype.
type DType struct {
	Code, Bits uint8
	Lanes      uint16
}

// Float32 is the dtype of float32.
var Float32 = DType{2, 32, 1}

// Options of a session; zeros are the defaults.
type Options struct {
	SessionSeconds float64 // after which the server ends the session; 0: never
	ConnectMillis  uint32  // to reach the server; 0: 30,000
}

// Session is a session on a server. Close ends it.
type Session struct {
	c *C.heddle_rpc
}

func errorOf(s C.heddle_status, e *C.heddle_error) error {
	if s == C.HEDDLE_OK {
		return nil
	}
	return &Error{int(s), C.GoString(&e.text[0])}
}

func invalid(text string) error { return &Error{CodeInvalid, text} }

func (o Options) c() C.heddle_rpc_options {
	var out C.heddle_rpc_options
	out.struct_size = C.size_t(unsafe.Sizeof(out))
	out.session_seconds, out.connect_ms = C.double(o.SessionSeconds), C.uint32_t(o.ConnectMillis)
	return out
}

func opened(c *C.heddle_rpc) *Session {
	s := &Session{c}
	runtime.SetFinalizer(s, (*Session).Close)
	return s
}

// Connect opens a session on a server; it waits while the server has another one.
func Connect(host string, port uint16, key string, options Options) (*Session, error) {
	var e C.heddle_error
	var out *C.heddle_rpc
	o, h, k := options.c(), C.CString(host), C.CString(key)
	defer C.free(unsafe.Pointer(h))
	defer C.free(unsafe.Pointer(k))
	if err := errorOf(C.heddle_rpc_connect(h, C.uint16_t(port), k, &o, &out, &e), &e); err != nil {
		return nil, err
	}
	return opened(out), nil
}

// Request asks a tracker for a server of a key, and opens a session there; the largest priority comes first.
func Request(tracker string, port uint16, key string, priority float64, options Options) (*Session, error) {
	var e C.heddle_error
	var out *C.heddle_rpc
	o, h, k := options.c(), C.CString(tracker), C.CString(key)
	defer C.free(unsafe.Pointer(h))
	defer C.free(unsafe.Pointer(k))
	if err := errorOf(C.heddle_rpc_request(h, C.uint16_t(port), k, C.double(priority), &o, &out, &e), &e); err != nil {
		return nil, err
	}
	return opened(out), nil
}

// Summary gives what a tracker knows, as JSON.
func Summary(tracker string, port uint16) (string, error) {
	var e C.heddle_error
	var out *C.char
	h := C.CString(tracker)
	defer C.free(unsafe.Pointer(h))
	if err := errorOf(C.heddle_rpc_summary(h, C.uint16_t(port), &out, &e), &e); err != nil {
		return "", err
	}
	defer C.heddle_rpc_release(out)
	return C.GoString(out), nil
}

// Close ends the session; the server frees all that it holds.
func (s *Session) Close() {
	C.heddle_rpc_close(s.c)
	s.c = nil
	runtime.SetFinalizer(s, nil)
}

// named calls with a name in C.
func (s *Session) named(name string, call func(name *C.char, e *C.heddle_error) C.heddle_status) error {
	var e C.heddle_error
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	defer runtime.KeepAlive(s)
	return errorOf(call(n, &e), &e)
}

// Upload puts bytes into the session's folder under a plain name.
func (s *Session) Upload(name string, data []byte) error {
	return s.named(name, func(n *C.char, e *C.heddle_error) C.heddle_status {
		return C.heddle_rpc_upload(s.c, n, pointer(data), C.size_t(len(data)), e)
	})
}

// Download gives the bytes of a file of the session.
func (s *Session) Download(name string) ([]byte, error) {
	var data unsafe.Pointer
	var bytes C.size_t
	err := s.named(name, func(n *C.char, e *C.heddle_error) C.heddle_status {
		return C.heddle_rpc_download(s.c, n, &data, &bytes, e)
	})
	if err != nil {
		return nil, err
	}
	return append([]byte{}, unsafe.Slice((*byte)(data), int(bytes))...), nil
}

// Load loads a library that was uploaded.
func (s *Session) Load(name string) (Module, error) {
	var out C.uint64_t
	err := s.named(name, func(n *C.char, e *C.heddle_error) C.heddle_status { return C.heddle_rpc_load(s.c, n, &out, e) })
	return Module(out), err
}

// Function finds a function of a module, or with module 0 of the server.
func (s *Session) Function(module Module, name string) (Function, error) {
	var out C.uint64_t
	err := s.named(name, func(n *C.char, e *C.heddle_error) C.heddle_status {
		return C.heddle_rpc_function(s.c, C.uint64_t(module), n, &out, e)
	})
	return Function(out), err
}

// arguments are values in memory of C's.
type arguments struct {
	values *C.heddle_rpc_value
	n      int
	all    []unsafe.Pointer
}

func (a *arguments) free() {
	for _, p := range a.all {
		C.free(p)
	}
}

func (a *arguments) set(i int, arg any) error {
	v := (*C.heddle_rpc_value)(unsafe.Add(unsafe.Pointer(a.values), uintptr(i)*unsafe.Sizeof(*a.values)))
	word := func(kind C.int32_t, word uint64) error {
		v.kind = kind
		C.set_word(v, C.uint64_t(word))
		return nil
	}
	held := func(kind C.int32_t, p unsafe.Pointer) error {
		v.kind = kind
		a.all = append(a.all, p)
		C.set_pointer(v, p)
		return nil
	}
	switch x := arg.(type) {
	case nil:
		return nil
	case int:
		return word(C.HEDDLE_RPC_INT, uint64(x))
	case int64:
		return word(C.HEDDLE_RPC_INT, uint64(x))
	case bool:
		if x {
			return word(C.HEDDLE_RPC_BOOL, 1)
		}
		return word(C.HEDDLE_RPC_BOOL, 0)
	case float64:
		return word(C.HEDDLE_RPC_FLOAT, math.Float64bits(x))
	case string:
		return held(C.HEDDLE_RPC_STRING, unsafe.Pointer(C.CString(x)))
	case []byte:
		v.bytes = C.uint64_t(len(x))
		return held(C.HEDDLE_RPC_BYTES, C.CBytes(append(append([]byte{}, x...), 0)))
	case *Tensor:
		p := C.malloc(C.size_t(unsafe.Sizeof(x.c)))
		*(*C.heddle_rpc_tensor)(p) = x.c
		return held(C.HEDDLE_RPC_TENSOR, p)
	case Module:
		return word(C.HEDDLE_RPC_MODULE, uint64(x))
	case Function:
		return word(C.HEDDLE_RPC_FUNCTION, uint64(x))
	case Object:
		return word(C.HEDDLE_RPC_OBJECT, uint64(x))
	}
	return invalid(fmt.Sprintf("argument %d: a %T cannot be sent", i, arg))
}

func argumentsOf(args []any) (*arguments, error) {
	size := unsafe.Sizeof(C.heddle_rpc_value{})
	p := C.calloc(C.size_t(len(args)+1), C.size_t(size))
	a := &arguments{(*C.heddle_rpc_value)(p), len(args), []unsafe.Pointer{p}}
	for i, arg := range args {
		if err := a.set(i, arg); err != nil {
			a.free()
			return nil, err
		}
	}
	return a, nil
}

func resultOf(v *C.heddle_rpc_value) (any, error) {
	word := uint64(C.word_of(v))
	switch v.kind {
	case C.HEDDLE_RPC_NONE:
		return nil, nil
	case C.HEDDLE_RPC_INT:
		return int64(word), nil
	case C.HEDDLE_RPC_BOOL:
		return word != 0, nil
	case C.HEDDLE_RPC_FLOAT:
		return math.Float64frombits(word), nil
	case C.HEDDLE_RPC_STRING:
		return C.GoStringN((*C.char)(C.pointer_of(v)), C.int(v.bytes)), nil
	case C.HEDDLE_RPC_BYTES:
		return append([]byte{}, unsafe.Slice((*byte)(C.pointer_of(v)), int(v.bytes))...), nil
	case C.HEDDLE_RPC_TENSOR:
		return &Tensor{*C.tensor_of(v)}, nil
	case C.HEDDLE_RPC_MODULE:
		return Module(word), nil
	case C.HEDDLE_RPC_FUNCTION:
		return Function(word), nil
	case C.HEDDLE_RPC_OBJECT:
		return Object(word), nil
	}
	return nil, &Error{CodeFormat, fmt.Sprintf("the result is of kind %d, which Go has no type for", int(v.kind))}
}

// Call calls a function. Arguments are nil, int, int64, bool, float64, string, []byte, *Tensor, Module, Function and Object;
// the result is one of these, too.
func (s *Session) Call(f Function, args ...any) (any, error) {
	var e C.heddle_error
	var result C.heddle_rpc_value
	a, err := argumentsOf(args)
	if err != nil {
		return nil, err
	}
	defer a.free()
	defer runtime.KeepAlive(s)
	st := C.heddle_rpc_call(s.c, C.uint64_t(f), a.values, C.uint32_t(a.n), &result, &e)
	if err := errorOf(st, &e); err != nil {
		return nil, err
	}
	return resultOf(&result)
}

// Time times a function of a module on the server: seconds of one call, from each of repeat measurements.
func (s *Session) Time(module Module, name string, deviceType, deviceNumber int, number, repeat, minRepeatMillis uint32,
	args ...any) ([]float64, error) {
	a, err := argumentsOf(args)
	if err != nil {
		return nil, err
	}
	defer a.free()
	if repeat == 0 {
		return nil, invalid("no measurement is asked for")
	}
	seconds := make([]float64, repeat)
	err = s.named(name, func(n *C.char, e *C.heddle_error) C.heddle_status {
		return C.heddle_rpc_time(s.c, C.uint64_t(module), n, C.int32_t(deviceType), C.int32_t(deviceNumber), a.values,
			C.uint32_t(a.n), C.uint32_t(number), C.uint32_t(repeat), C.uint32_t(minRepeatMillis),
			(*C.double)(unsafe.Pointer(&seconds[0])), e)
	})
	return seconds, err
}

// Free frees a module, a function or an object.
func (s *Session) Free(handle any) error {
	var e C.heddle_error
	number := C.uint64_t(0)
	switch x := handle.(type) {
	case Module:
		number = C.uint64_t(x)
	case Function:
		number = C.uint64_t(x)
	case Object:
		number = C.uint64_t(x)
	default:
		return invalid(fmt.Sprintf("a %T is not freed so", handle))
	}
	defer runtime.KeepAlive(s)
	return errorOf(C.heddle_rpc_free(s.c, number, &e), &e)
}

// DeviceExists is whether the server has a device, by DLPack's type and its number.
func (s *Session) DeviceExists(deviceType, deviceNumber int) (bool, error) {
	var e C.heddle_error
	var out C.int
	defer runtime.KeepAlive(s)
	st := C.heddle_rpc_device_exists(s.c, C.int32_t(deviceType), C.int32_t(deviceNumber), &out, &e)
	return out != 0, errorOf(st, &e)
}

// Tensor allocates a tensor on a device, by DLPack's type and its number. FreeTensor frees it.
func (s *Session) Tensor(deviceType, deviceNumber int, dtype DType, shape ...int64) (*Tensor, error) {
	var e C.heddle_error
	out := &Tensor{}
	var d C.heddle_dtype
	d.code, d.bits, d.lanes = C.uint8_t(dtype.Code), C.uint8_t(dtype.Bits), C.uint16_t(dtype.Lanes)
	sizes := append(append([]int64{}, shape...), 0)
	defer runtime.KeepAlive(s)
	st := C.heddle_rpc_tensor_create(s.c, C.int32_t(deviceType), C.int32_t(deviceNumber), d,
		(*C.int64_t)(unsafe.Pointer(&sizes[0])), C.uint32_t(len(shape)), &out.c, &e)
	if err := errorOf(st, &e); err != nil {
		return nil, err
	}
	return out, nil
}

// FreeTensor frees a tensor.
func (s *Session) FreeTensor(t *Tensor) error {
	var e C.heddle_error
	defer runtime.KeepAlive(s)
	return errorOf(C.heddle_rpc_tensor_free(s.c, &t.c, &e), &e)
}

// Write copies all bytes of a tensor to the server.
func (s *Session) Write(t *Tensor, data []byte) error {
	var e C.heddle_error
	defer runtime.KeepAlive(s)
	return errorOf(C.heddle_rpc_write(s.c, &t.c, pointer(data), C.size_t(len(data)), &e), &e)
}

// Read copies all bytes of a tensor from the server.
func (s *Session) Read(t *Tensor, data []byte) error {
	var e C.heddle_error
	defer runtime.KeepAlive(s)
	return errorOf(C.heddle_rpc_read(s.c, &t.c, pointer(data), C.size_t(len(data)), &e), &e)
}

func pointer(data []byte) unsafe.Pointer {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Pointer(&data[0])
}
