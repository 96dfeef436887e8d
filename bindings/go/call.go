package heddle

// Calls: an executor with its inputs and outputs in memory that Go can reach, so that a run is one call of C.

// #include "bridge.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Call is an executor of a model: its memory, its inputs and outputs. Fill the arrays that Input gives (View, CopyFrom),
// Run, and read those that Output gives; nothing is copied or allocated in between. One goroutine uses it at a time: a
// second gets ErrBusy.
type Call struct {
	ref
	e        *C.hgo_exec
	about    about
	owner    *Runtime // of the model
	inputs   []slot
	outputs  []slot
	busy     atomic.Bool
	left     bool // a run that never came back holds the executor
	deviceOK bool
}

// An input or an output. array is memory that is bound to it, or nil where its shape is not known beforehand.
type slot struct {
	index C.uint32_t
	name  string
	shape []int64 // nil: not known
	dtype DType
	array *Array
}

func (s *slot) public() IOInfo {
	info := IOInfo{Name: s.name, Shape: append([]int64(nil), s.shape...)}
	if s.shape != nil && info.Shape == nil {
		info.Shape = []int64{}
	}
	if s.dtype.Bits != 0 {
		info.DType = s.dtype.String()
	}
	return info
}

func (s *slot) isFixed() bool {
	for _, d := range s.shape {
		if d < 0 {
			return false
		}
	}
	return s.shape != nil && s.dtype.Bits != 0
}

// Prepare plans the model where its shapes are known, opens its devices and gives a Call of the caller's own, beside the
// pool's.
func (m *Model) Prepare() (*Call, error) {
	if err := m.acquire(); err != nil {
		return nil, err
	}
	defer m.release()
	c, err := newCall(m)
	if err == nil {
		runtime.SetFinalizer(c, (*Call).Close)
	}
	return c, err
}

func newCall(m *Model) (*Call, error) {
	words := newErr()
	defer freeErr(words)
	var s C.heddle_status
	e := C.hgo_exec_create(m.m, words, &s)
	if e == nil {
		return nil, m.about.errorOf(s, words)
	}
	// No way back to the model: its finalizer is to run while executors lie in its pool.
	c := &Call{e: e, about: m.about, owner: m.owner, deviceOK: true}
	allocated(modelBytes)
	c.free = func(unsafe.Pointer, int) {
		C.hgo_exec_free(e)
		freed(modelBytes)
	}
	if err := c.bindAll(words); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func slotOf(i C.uint32_t, info *C.heddle_io_info) slot {
	made := slot{index: i, name: C.GoString(info.name), dtype: dtypeOf(info.dtype)}
	if info.ndim != C.UINT32_MAX {
		made.shape = make([]int64, int(info.ndim))
		for d := range made.shape {
			made.shape[d] = int64(*(*C.int64_t)(unsafe.Add(unsafe.Pointer(info.shape), d*8)))
		}
	}
	return made
}

// Binds memory to every input that is no parameter and every output whose shapes are known.
func (c *Call) bindAll(words *C.heddle_error) error {
	var info C.heddle_io_info
	for i := C.uint32_t(0); i < C.heddle_executor_input_count(c.e.ex); i++ {
		info.struct_size = C.size_t(unsafe.Sizeof(info))
		if s := C.heddle_executor_input_info(c.e.ex, i, &info, words); s != C.HEDDLE_OK {
			return c.about.errorOf(s, words)
		}
		if info.is_param != 0 {
			continue
		}
		in := slotOf(i, &info)
		if in.isFixed() {
			if err := in.allocate(); err != nil {
				return err
			}
			if s := C.heddle_executor_bind_input(c.e.ex, i, in.array.t, words); s != C.HEDDLE_OK {
				return c.about.errorOf(s, words)
			}
		}
		c.inputs = append(c.inputs, in)
	}
	for i := 0; i < int(c.e.n_outputs); i++ {
		c.outputs = append(c.outputs, slot{index: C.uint32_t(i)})
		out, err := c.outputInfo(i)
		if err != nil {
			return err
		}
		if out.isFixed() && !c.isState(out.name) {
			if err := out.allocate(); err != nil {
				return err
			}
			if s := C.heddle_executor_bind_output(c.e.ex, out.index, out.array.t, words); s != C.HEDDLE_OK {
				return c.about.errorOf(s, words)
			}
			unsafe.Slice(c.e.bound, c.e.n_outputs)[i] = out.array.t
		}
		c.outputs[i] = out
	}
	return nil
}

func (s *slot) allocate() error {
	array, err := Empty(s.shape, s.dtype)
	s.array = array
	return err
}

// What is known of an output by now.
func (c *Call) outputInfo(i int) (slot, error) {
	if c.outputs[i].array != nil {
		return c.outputs[i], nil
	}
	words := newErr()
	defer freeErr(words)
	info := C.heddle_io_info{struct_size: C.size_t(unsafe.Sizeof(C.heddle_io_info{}))}
	if s := C.heddle_executor_output_info(c.e.ex, C.uint32_t(i), &info, words); s != C.HEDDLE_OK {
		return slot{}, c.about.errorOf(s, words)
	}
	return slotOf(C.uint32_t(i), &info), nil
}

// Close gives the executor back once its run has ended; arrays of inputs and outputs stay with their holders.
func (c *Call) Close() {
	if c == nil {
		return
	}
	runtime.SetFinalizer(c, nil)
	c.close()
}

// What goes back to the pool: nil where the executor is not to be used again.
func (c *Call) reusable() *Call {
	if c.left || !c.deviceOK {
		c.Close()
		return nil
	}
	if C.heddle_executor_state_count(c.e.ex) > 0 && C.heddle_executor_reset_state(c.e.ex, C.HEDDLE_STATE_ALL, nil) != C.HEDDLE_OK {
		c.Close()
		return nil
	}
	return c
}

// begin takes the call for one goroutine.
func (c *Call) begin() error {
	if err := c.acquire(); err != nil {
		return err
	}
	if !c.busy.CompareAndSwap(false, true) {
		c.release()
		return &Error{Status: ErrBusy, Message: "another goroutine uses this Call; each needs one of its own"}
	}
	return nil
}

func (c *Call) end() {
	c.busy.Store(false)
	c.release()
}

func countWords(have int, noun string, want int) string {
	return fmt.Sprintf("%d %ss were given; the model has %d", have, noun, want)
}

// Input gives the array of an input that is bound to the executor: what is written there is what the next run reads.
// ErrInvalid where its shape is not known beforehand: SetInput is for that.
func (c *Call) Input(i int) (*Array, error) {
	if i < 0 || i >= len(c.inputs) {
		return nil, invalid(fmt.Sprintf("there is no input %d; the model has %d", i, len(c.inputs)))
	}
	if c.inputs[i].array == nil {
		return nil, invalid("the shape of input '", c.inputs[i].name, "' is open; SetInput gives it one with its value")
	}
	return c.inputs[i].array, nil
}

// InputNames gives the names of the inputs in order.
func (c *Call) InputNames() []string {
	names := make([]string, len(c.inputs))
	for i := range names {
		names[i] = c.inputs[i].name
	}
	return names
}

// SetInput copies a slice or an *Array to an input by name; it stays set for later runs. A parameter may be set too, by
// an *Array, and is then an input of this Call.
func (c *Call) SetInput(name string, value interface{}) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.end()
	for i := range c.inputs {
		if c.inputs[i].name == name {
			return c.set(i, value)
		}
	}
	array, ok := value.(*Array)
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	word := texts.add(name)
	if texts.err != nil {
		return texts.err
	}
	index := C.heddle_executor_input_index(c.e.ex, word)
	if index < 0 {
		return &Error{Status: ErrNotFound, File: c.about.file, Message: "there is no input '" + name +
			"'; there are: " + strings.Join(c.InputNames(), ", ")}
	}
	if !ok || array == nil {
		return invalid("parameter '", name, "' is set with an *Array")
	}
	return c.setArray(C.uint32_t(index), array)
}

// Run runs once and waits.
func (c *Call) Run() error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.end()
	return c.runPlain()
}

// RunContext is Run until ctx is done, as of a model.
func (c *Call) RunContext(ctx context.Context) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.end()
	return c.run(ctx)
}

// Output gives an output of the last run: the executor's own array, which the next run writes, where its shape was known
// beforehand, else a copy.
func (c *Call) Output(i int) (*Array, error) {
	if i < 0 || i >= len(c.outputs) {
		return nil, invalid(fmt.Sprintf("there is no output %d; the model has %d", i, len(c.outputs)))
	}
	if c.outputs[i].array != nil {
		return c.outputs[i].array, nil
	}
	if err := c.begin(); err != nil {
		return nil, err
	}
	defer c.end()
	words := newErr()
	defer freeErr(words)
	var view, t *C.heddle_tensor
	s := C.heddle_executor_view_output(c.e.ex, C.uint32_t(i), &view, words)
	if s == C.HEDDLE_OK {
		s = C.hgo_tensor_clone(view, &t, words)
		C.heddle_tensor_release(view)
	}
	if s != C.HEDDLE_OK {
		return nil, c.about.errorOf(s, words)
	}
	return wrapArray(t), nil
}

// Node runs the model up to a node with the inputs that are set, and gives a copy of one of its outputs. "#12" is node 12.
func (c *Call) Node(name string, output int) (*Array, error) {
	if err := c.begin(); err != nil {
		return nil, err
	}
	defer c.end()
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	word := texts.add(name)
	if texts.err != nil || output < 0 {
		return nil, invalid(fmt.Sprintf("there is no output %d of a node %q", output, name))
	}
	var t *C.heddle_tensor
	if s := C.heddle_executor_run_to(c.e.ex, word, C.uint32_t(output), &t, words); s != C.HEDDLE_OK {
		return nil, c.about.errorOf(s, words)
	}
	return wrapArray(t), nil
}

// Explain gives the plan of this call's present program, as Model.Plan writes it.
func (c *Call) Explain(format PlanFormat) (string, error) {
	if err := c.begin(); err != nil {
		return "", err
	}
	defer c.end()
	words := newErr()
	defer freeErr(words)
	var text *C.char
	if s := C.heddle_executor_explain(c.e.ex, C.heddle_explain_format(format), &text, words); s != C.HEDDLE_OK {
		return "", c.about.errorOf(s, words)
	}
	defer C.heddle_free(unsafe.Pointer(text))
	return C.GoString(text), nil
}
