package heddle

// Runs: until they have ended or a context is done, and their outputs.

// #include "bridge.h"
import "C"

import (
	"context"
	"fmt"
	"time"
	"unsafe"
)

func (c *Call) failed(s C.heddle_status) error {
	err := c.about.errorOf(s, &c.e.err).withCause(takeCause(c.e.cause))
	c.e.cause = 0
	if err.Status == ErrDevice {
		c.deviceOK = false
	}
	return err
}

func (c *Call) number() C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(c.e))) }

func (c *Call) runPlain() error {
	s := C.hgo_run(c.number())
	if s != C.HEDDLE_OK {
		return c.failed(s)
	}
	return nil
}

func (c *Call) run(ctx context.Context) error {
	if ctx.Done() == nil {
		return c.runPlain()
	}
	return c.runUntil(ctx)
}

func canceled(words string, cause error) *Error {
	status := ErrCanceled
	if cause == context.DeadlineExceeded {
		status = ErrTimeout
	}
	return &Error{Status: status, Message: words + ": " + cause.Error(), cause: cause}
}

const patience = 2 * time.Second // with a run that was cancelled

// The run has a goroutine of its own, so that one that never comes back can be left behind.
func (c *Call) runUntil(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return canceled("the run was not started", err)
	}
	if err := c.acquire(); err != nil {
		return err
	}
	ended := make(chan C.heddle_status, 1)
	go func() {
		defer c.release()
		ended <- C.hgo_run(c.number())
	}()
	var s C.heddle_status
	select {
	case s = <-ended:
	case <-ctx.Done():
		if s = c.cancel(ended); c.left {
			return canceled("the run was cancelled, and a device has not given it back", ctx.Err())
		}
	}
	if s == C.HEDDLE_OK {
		return nil
	}
	err := c.failed(s).(*Error)
	if stop := ctx.Err(); stop != nil && err.Status == ErrCanceled {
		err.Status, err.cause = canceled("", stop).Status, stop
		err.Message += ": " + stop.Error()
	}
	return err
}

// Cancels until the run has ended, again and again because it may not have begun at the first time. Sets left where it
// does not end.
func (c *Call) cancel(ended <-chan C.heddle_status) C.heddle_status {
	tick, over := time.NewTicker(time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer over.Stop()
	for {
		C.heddle_executor_cancel(c.e.ex, nil)
		select {
		case s := <-ended:
			return s
		case <-over.C:
			c.left = true
			return C.HEDDLE_ECANCELED
		case <-tick.C:
		}
	}
}

func (c *Call) runOutputs(ctx context.Context) ([]*Array, error) {
	if len(c.outputs) == 0 {
		return nil, c.run(ctx)
	}
	var s C.heddle_status
	if ctx.Done() == nil {
		s = C.hgo_run_outputs(c.number())
	} else {
		if err := c.runUntil(ctx); err != nil {
			return nil, err
		}
		s = C.hgo_outputs(c.e)
	}
	if s != C.HEDDLE_OK {
		return nil, c.failed(s)
	}
	made := unsafe.Slice(c.e.outs, len(c.outputs))
	outputs := make([]*Array, len(made))
	for i := range made {
		outputs[i] = ownArray(&made[i])
	}
	return outputs, nil
}

func (c *Call) copyOutput(i int, to interface{}) error {
	array := c.outputs[i].array
	if array == nil {
		made, err := c.Output(i)
		if err != nil {
			return err
		}
		defer made.Close()
		array = made
	}
	if into, ok := to.(*Array); ok {
		if into == nil {
			return invalid(fmt.Sprintf("output %d was given a nil *Array; nil leaves one out", i))
		}
		return into.CopyFrom(array)
	}
	if err := array.CopyTo(to); err != nil {
		return fmt.Errorf("output %d: %w", i, err)
	}
	return nil
}
