package heddle

// Order with the caller's streams, and arrays of a device that runs use where they lie.

// #include "bridge.h"
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// onCall takes the call for one call of C, whose failure is an error about the model.
func (c *Call) onCall(call func(words *C.heddle_error) C.heddle_status) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.end()
	words := newErr()
	defer freeErr(words)
	if s := call(words); s != C.HEDDLE_OK {
		return c.about.errorOf(s, words)
	}
	return nil
}

// UseStream puts all later runs in order with a stream of the caller's on a device, which is the vendor's handle: a
// cl_command_queue, a CUstream, a hipStream_t. 0 to 2 are CUDA's default streams. A run begins after the work that is in the
// stream when it is started, and what is put there after Start or Run has returned begins after the run. Inputs and
// outputs on the host are not the stream's: wait before their use. The stream stays open until LeaveStream or Close.
// ErrInvalid where it is of another device or the model does not use the device, ErrUnsupported where the device takes no
// streams of others or the model runs in stages.
func (c *Call) UseStream(on Context, stream uintptr) error {
	if err := c.owner.acquire(); err != nil {
		return err
	}
	defer c.owner.release()
	dev, err := c.owner.device(on)
	if err != nil {
		return err
	}
	return c.onCall(func(words *C.heddle_error) C.heddle_status {
		return C.heddle_executor_use_stream(c.e.ex, dev, C.uint64_t(stream), words)
	})
}

// LeaveStream ends the order that UseStream began.
func (c *Call) LeaveStream() error {
	return c.onCall(func(words *C.heddle_error) C.heddle_status {
		return C.heddle_executor_use_stream(c.e.ex, nil, 0, words)
	})
}

// BindInput makes an array the memory of an input, without a copy, until another is bound; on a device of the model's it is
// read where it lies. The array is not to be written while a run is under way.
func (c *Call) BindInput(name string, array *Array) error {
	if array == nil {
		return invalid("input '", name, "' was given a nil *Array")
	}
	var in *slot
	for i := range c.inputs {
		if c.inputs[i].name == name {
			in = &c.inputs[i]
		}
	}
	if in == nil {
		return &Error{Status: ErrNotFound, File: c.about.file, Message: "there is no input '" + name + "'"}
	}
	if err := array.acquire(); err != nil {
		return err
	}
	defer array.release()
	return c.onCall(func(words *C.heddle_error) C.heddle_status {
		s := C.heddle_executor_bind_input(c.e.ex, in.index, array.t, words)
		if s == C.HEDDLE_OK && in.isFixed() {
			in.array = array
		}
		return s
	})
}

// BindOutput makes an array the memory of an output, likewise; nil gives the output memory of the executor's own again.
func (c *Call) BindOutput(i int, array *Array) error {
	if i < 0 || i >= len(c.outputs) {
		return invalid(fmt.Sprintf("there is no output %d; the model has %d", i, len(c.outputs)))
	}
	var t *C.heddle_tensor
	if array != nil {
		if err := array.acquire(); err != nil {
			return err
		}
		defer array.release()
		t = array.t
	}
	return c.onCall(func(words *C.heddle_error) C.heddle_status {
		s := C.heddle_executor_bind_output(c.e.ex, C.uint32_t(i), t, words)
		if s == C.HEDDLE_OK {
			c.outputs[i].array = array
			unsafe.Slice(c.e.bound, c.e.n_outputs)[i] = t
		}
		return s
	})
}

// Start begins a run and returns; Wait waits until it has ended and gives its failure. Another use of the call in between
// is ErrBusy.
func (c *Call) Start() error {
	return c.onCall(func(words *C.heddle_error) C.heddle_status { return C.heddle_executor_start(c.e.ex, words) })
}

// Wait is for Start.
func (c *Call) Wait() error {
	return c.onCall(func(words *C.heddle_error) C.heddle_status {
		s := C.heddle_executor_wait(c.e.ex, C.HEDDLE_FOREVER, words)
		c.deviceOK = c.deviceOK && s != C.HEDDLE_EDEVICE
		return s
	})
}

func (a *Array) onTensor(call func(words *C.heddle_error) C.heddle_status) error {
	if err := a.acquire(); err != nil {
		return err
	}
	defer a.release()
	words := newErr()
	defer freeErr(words)
	if s := call(words); s != C.HEDDLE_OK {
		return failure(s, words)
	}
	return nil
}

// AfterStream has whatever uses the array from now on come after the work that is in a stream of the caller's now, which is
// given as to Call.UseStream. An array of the host has no such order, and nothing happens.
func (a *Array) AfterStream(stream uintptr) error {
	return a.onTensor(func(words *C.heddle_error) C.heddle_status {
		return C.heddle_tensor_after_stream(a.t, C.uint64_t(stream), words)
	})
}

// BeforeStream has work that is put into a stream of the caller's from now on come after the runs with the array that were
// started.
func (a *Array) BeforeStream(stream uintptr) error {
	return a.onTensor(func(words *C.heddle_error) C.heddle_status {
		return C.heddle_tensor_before_stream(a.t, C.uint64_t(stream), words)
	})
}

// Wait waits until the runs with the array that were started have ended, at most timeout (ErrTimeout); a negative one is no
// limit.
func (a *Array) Wait(timeout time.Duration) error {
	limit := C.uint64_t(C.HEDDLE_FOREVER)
	if timeout >= 0 {
		limit = C.uint64_t(timeout.Nanoseconds())
	}
	return a.onTensor(func(words *C.heddle_error) C.heddle_status {
		return C.heddle_tensor_wait(a.t, limit, words)
	})
}
