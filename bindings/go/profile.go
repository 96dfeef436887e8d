package heddle

// Profiles and numbers of runs.

// #include "bridge.h"
import "C"

import (
	"context"
	"time"
	"unsafe"
)

// Step is one step of a profiled run. Start and End count from the first step's start.
type Step struct {
	Name   string // of the node, or what is copied
	Op     string // operator, compiled function, or "h2d", ...
	Device string
	Stream uint32
	Start  time.Duration
	End    time.Duration
}

// Stats are numbers since a Call was made.
type Stats struct {
	Runs        uint64 // that ended well
	Copies      uint64 // between devices
	BytesCopied uint64
	DeviceBytes uint64 // of memory, on all devices
	Retries     uint64
	Failovers   uint64
	Growths     uint64 // programs for larger bounds of open dimensions
}

// Profile runs once with each step timed, a little slower than Run, and gives the steps in order of their start. Inputs
// are as Run takes them.
func (m *Model) Profile(inputs ...interface{}) ([]Step, error) {
	var steps []Step
	err := m.with(context.Background(), func(c *Call) error {
		err := c.setAll(inputs)
		if err == nil {
			steps, err = c.profile()
		}
		return err
	})
	return steps, err
}

// Profile is that of a model, with the inputs that are set.
func (c *Call) Profile() ([]Step, error) {
	if err := c.begin(); err != nil {
		return nil, err
	}
	defer c.end()
	return c.profile()
}

func (c *Call) profile() ([]Step, error) {
	words := newErr()
	defer freeErr(words)
	var entries *C.heddle_profile_entry
	var n C.size_t
	if s := C.heddle_executor_profile(c.e.ex, &entries, &n, words); s != C.HEDDLE_OK {
		return nil, c.about.errorOf(s, words)
	}
	return stepsOf(entries, n), nil
}

func stepsOf(entries *C.heddle_profile_entry, n C.size_t) []Step {
	if entries == nil || n == 0 {
		return nil
	}
	steps := make([]Step, 0, int(n))
	for _, e := range unsafe.Slice(entries, int(n)) {
		zero := entries.start_ns
		steps = append(steps, Step{C.GoString(e.name), C.GoString(e.op), C.GoString(e.device), uint32(e.stream),
			time.Duration(int64(e.start_ns - zero)), time.Duration(int64(e.end_ns - zero))})
	}
	return steps
}

// Stats gives the call's numbers.
func (c *Call) Stats() (Stats, error) {
	if err := c.begin(); err != nil {
		return Stats{}, err
	}
	defer c.end()
	words := newErr()
	defer freeErr(words)
	s := C.heddle_executor_stats{struct_size: C.size_t(unsafe.Sizeof(C.heddle_executor_stats{}))}
	if status := C.heddle_executor_get_stats(c.e.ex, &s, words); status != C.HEDDLE_OK {
		return Stats{}, c.about.errorOf(status, words)
	}
	return Stats{uint64(s.runs), uint64(s.copies), uint64(s.bytes_copied), uint64(s.device_bytes), uint64(s.retries),
		uint64(s.failovers), uint64(s.growths)}, nil
}
