package heddle

// State values: outputs that are inputs of the next run of a Call, and stay on their device (docs/state.md).

// #include "bridge.h"
import "C"

import "unsafe"

// StateInfo is a state value.
type StateInfo struct {
	Input, Output string
	Shape         []int64
	DType         string
	Device        string // "cpu" for the host's memory
	Bytes         uint64
	Axis          int  // the open dimension along which it grows, or -1
	IsReset       bool // neither written nor computed since its reset
}

func (c *Call) isState(name string) bool {
	texts := cstrings{}
	defer texts.free()
	word := texts.add(name)
	return texts.err == nil && C.heddle_executor_state_index(c.e.ex, word) >= 0
}

// onState calls C with the position of a state value; "" stands for all.
func (c *Call) onState(name string, call func(i C.uint32_t, words *C.heddle_error) C.heddle_status) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.end()
	i := C.uint32_t(C.HEDDLE_STATE_ALL)
	if name != "" {
		texts := cstrings{}
		defer texts.free()
		word := texts.add(name)
		if texts.err != nil {
			return texts.err
		}
		found := C.heddle_executor_state_index(c.e.ex, word)
		if found < 0 {
			return &Error{Status: ErrNotFound, File: c.about.file, Message: "there is no state value '" + name + "'"}
		}
		i = C.uint32_t(found)
	}
	words := newErr()
	defer freeErr(words)
	if s := call(i, words); s != C.HEDDLE_OK {
		return c.about.errorOf(s, words)
	}
	return nil
}

// States describes the state values, in order.
func (c *Call) States() ([]StateInfo, error) {
	var all []StateInfo
	err := c.onState("", func(_ C.uint32_t, words *C.heddle_error) C.heddle_status {
		var info C.heddle_state_info
		for i := C.uint32_t(0); i < C.heddle_executor_state_count(c.e.ex); i++ {
			info.struct_size = C.size_t(unsafe.Sizeof(info))
			if s := C.heddle_executor_state_info(c.e.ex, i, &info, words); s != C.HEDDLE_OK {
				return s
			}
			one := StateInfo{Input: C.GoString(info.input), Output: C.GoString(info.output), Device: "cpu",
				DType: dtypeOf(info.dtype).String(), Bytes: uint64(info.bytes), Axis: -1, IsReset: info.is_reset != 0}
			if info.device != nil {
				one.Device = C.GoString(C.heddle_device_name(info.device))
			}
			if info.axis != C.HEDDLE_STATE_NO_AXIS {
				one.Axis = int(info.axis)
			}
			one.Shape = make([]int64, int(info.ndim))
			for d := range one.Shape {
				one.Shape[d] = int64(*(*C.int64_t)(unsafe.Add(unsafe.Pointer(info.shape), d*8)))
			}
			all = append(all, one)
		}
		return C.HEDDLE_OK
	})
	return all, err
}

// ResetState sets a state value to its beginning, or with "" all of them. It is named by its input or its output.
func (c *Call) ResetState(name string) error {
	return c.onState(name, func(i C.uint32_t, words *C.heddle_error) C.heddle_status {
		return C.heddle_executor_reset_state(c.e.ex, i, words)
	})
}

// ReadState gives a copy of a state value on the host.
func (c *Call) ReadState(name string) (*Array, error) {
	var t *C.heddle_tensor
	if err := c.onState(name, func(i C.uint32_t, words *C.heddle_error) C.heddle_status {
		return C.heddle_executor_read_state(c.e.ex, i, &t, words)
	}); err != nil {
		return nil, err
	}
	return wrapArray(t), nil
}

// WriteState copies an array to a state value.
func (c *Call) WriteState(name string, value *Array) error {
	if value == nil {
		return invalid("state value '", name, "' was given a nil *Array")
	}
	if err := value.acquire(); err != nil {
		return err
	}
	defer value.release()
	return c.onState(name, func(i C.uint32_t, words *C.heddle_error) C.heddle_status {
		return C.heddle_executor_write_state(c.e.ex, i, value.t, words)
	})
}

// TruncateState keeps the first elements along the open dimension of a state value, or with "" of each that has one.
func (c *Call) TruncateState(length int64, name string) error {
	return c.onState(name, func(i C.uint32_t, words *C.heddle_error) C.heddle_status {
		return C.heddle_executor_truncate_state(c.e.ex, i, C.int64_t(length), words)
	})
}

// SaveState writes all state values to a file.
func (c *Call) SaveState(path string) error {
	return c.onStateFile(path, func(name *C.char, words *C.heddle_error) C.heddle_status {
		return C.heddle_executor_save_state(c.e.ex, name, words)
	})
}

// LoadState reads all state values from a file.
func (c *Call) LoadState(path string) error {
	return c.onStateFile(path, func(name *C.char, words *C.heddle_error) C.heddle_status {
		return C.heddle_executor_load_state(c.e.ex, name, words)
	})
}

func (c *Call) onStateFile(path string, call func(name *C.char, words *C.heddle_error) C.heddle_status) error {
	texts := cstrings{}
	defer texts.free()
	name := texts.add(path)
	if texts.err != nil {
		return texts.err
	}
	return c.onState("", func(_ C.uint32_t, words *C.heddle_error) C.heddle_status { return call(name, words) })
}

// ForkState gives the state values to another Call of the model. Memory is shared until a run of either replaces its own.
func (c *Call) ForkState(to *Call) error {
	if to == nil {
		return invalid("a state is forked to a nil *Call")
	}
	if to == c {
		return nil
	}
	if err := to.begin(); err != nil {
		return err
	}
	defer to.end()
	return c.onState("", func(_ C.uint32_t, words *C.heddle_error) C.heddle_status {
		return C.heddle_executor_fork_state(c.e.ex, to.e.ex, words)
	})
}
