package heddle

// Statuses, and errors with the node, the device and the file that they are about.

// #include "bridge.h"
import "C"

import (
	"context"
	"errors"
	"runtime/cgo"
	"strings"
	"sync"
	"unsafe"
)

// Status is what kind of error an Error is. As a value of type error it is what errors.Is compares with.
type Status int32

// The kinds of error. errors.Is(err, heddle.ErrBusy) asks for one.
const (
	ErrInvalid     Status = C.HEDDLE_EINVAL       // wrong argument
	ErrNoMemory    Status = C.HEDDLE_ENOMEM       // out of memory
	ErrIO          Status = C.HEDDLE_EIO          // file could not be read or written
	ErrFormat      Status = C.HEDDLE_EFORMAT      // malformed data
	ErrNoDevice    Status = C.HEDDLE_ENODEV       // no such device
	ErrNotFound    Status = C.HEDDLE_ENOTFOUND    // no such name
	ErrUnsupported Status = C.HEDDLE_EUNSUPPORTED // not supported
	ErrBusy        Status = C.HEDDLE_EBUSY        // still in use
	ErrTimeout     Status = C.HEDDLE_ETIMEOUT     // time limit passed
	ErrCanceled    Status = C.HEDDLE_ECANCELED    // cancelled
	ErrDevice      Status = C.HEDDLE_EDEVICE      // device lost
	ErrFailed      Status = C.HEDDLE_EFAILED      // a call of a device or a function failed
	ErrCompile     Status = C.HEDDLE_ECOMPILE     // device code did not compile
	ErrABI         Status = C.HEDDLE_EABI         // plugin or library does not fit
	ErrFork        Status = C.HEDDLE_EFORK        // used after fork
	ErrPlan        Status = C.HEDDLE_EPLAN        // plan could not be proved
	ErrInternal    Status = C.HEDDLE_EINTERNAL    // fault of Heddle's own
	ErrNeedsOpen   Status = C.HEDDLE_ENEEDSOPEN   // answer needs an open device
	ErrLimit       Status = C.HEDDLE_ELIMIT       // over a limit
	ErrDenied      Status = C.HEDDLE_EDENIED      // not permitted: no valid signature, or a key that others may read
)

// ErrClosed is the error of everything that is used after its Close.
var ErrClosed = errors.New("heddle: used after Close")

// Error gives the status's meaning, "still in use".
func (s Status) Error() string { return C.GoString(C.heddle_status_text(C.heddle_status(s))) }

// Name gives the status's name in C, "HEDDLE_EBUSY".
func (s Status) Name() string { return C.GoString(C.heddle_status_name(C.heddle_status(s))) }

// Error is a failure that the library reported.
type Error struct {
	Status  Status
	Node    string // of the graph; "" where none is concerned
	Device  string // "cuda:0"; "" where none is concerned
	File    string // the path that the call was about; "" without one
	Message string // the library's own words
	cause   error
	rank    int // and 1; 0: none
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Rank gives the rank whose failure it is, in a context of ranks; false where none is named.
func (e *Error) Rank() (int, bool) { return e.rank - 1, e.rank > 0 }

// Unwrap gives the error that a Go function in the middle of the call returned, or the context's that cancelled it.
func (e *Error) Unwrap() error { return e.cause }

// Is says whether target is this error's status.
func (e *Error) Is(target error) bool {
	s, ok := target.(Status)
	return ok && s == e.Status
}

func invalid(words ...string) *Error {
	return &Error{Status: ErrInvalid, Message: strings.Join(words, "")}
}

// Buffers for the library's words: a kilobyte each, without pointers, so that C may write to them.
var errorBuffers = sync.Pool{New: func() interface{} { return new(C.heddle_error) }}

func newErr() *C.heddle_error {
	e := errorBuffers.Get().(*C.heddle_error)
	e.text[0] = 0
	return e
}

func freeErr(e *C.heddle_error) { errorBuffers.Put(e) }

// What a call was about, for the attributes of its error.
type about struct {
	file string
}

func (a about) errorOf(status C.heddle_status, err *C.heddle_error) *Error {
	e := &Error{Status: Status(status), File: a.file, Message: C.GoString(&err.text[0])}
	if e.Message == "" {
		e.Message = e.Status.Error()
	}
	about := C.heddle_failure{struct_size: C.uint32_t(unsafe.Sizeof(C.heddle_failure{}))}
	if C.heddle_error_failure(err, &about) == C.HEDDLE_OK {
		e.Node, e.Device = C.GoString(&about.node_name[0]), C.GoString(&about.device[0])
		e.rank = int(about.rank) + 1
	}
	return e
}

func failure(status C.heddle_status, err *C.heddle_error) error { return about{}.errorOf(status, err) }

// Takes the error of a Go function that failed within a call; 0 gives nil.
func takeCause(handle C.uintptr_t) error {
	if handle == 0 {
		return nil
	}
	h := cgo.Handle(handle)
	defer h.Delete()
	return h.Value().(error)
}

// As an error of the library's says it: one line.
func oneLine(text string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ").Replace(text)
}

// The error of the Go function that the call failed because of, or nil.
func (e *Error) withCause(cause error) *Error {
	e.cause = cause
	return e
}

func statusOf(err error) C.heddle_status {
	var ours *Error
	var status Status
	switch {
	case errors.As(err, &ours):
		return C.heddle_status(ours.Status)
	case errors.As(err, &status):
		return C.heddle_status(status)
	case errors.Is(err, context.Canceled):
		return C.HEDDLE_ECANCELED
	case errors.Is(err, context.DeadlineExceeded):
		return C.HEDDLE_ETIMEOUT
	}
	return C.HEDDLE_EFAILED
}
