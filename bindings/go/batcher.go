package heddle

// Batchers: requests of one item, or of a few, are gathered into runs of many.

// #include "bridge.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"runtime/cgo"
	"strings"
	"time"
	"unsafe"
)

// BatchPort is what differs from the default for an input or an output of a Batcher.
type BatchPort struct {
	Axis        int     // the batch dimension
	NoAxis      bool    // there is none: an input's value is the same for all requests of a run, an output is given whole
	PadAxes     []int   // inputs: dimensions that are padded; outputs: dimensions that are cut to the request's own length
	PadValue    float64 // inputs: what is padded with
	PadMultiple int     // inputs: padded lengths are multiples of it
	PadMax      int64   // inputs: longer requests are refused, and no length is padded past it; 0: no limit
	PadInput    string  // outputs: the input whose length it has; "": the first one that is padded
}

// BatcherOptions says how a Batcher gathers requests. What is zero has its default.
type BatcherOptions struct {
	MaxItems    int                  // of a run; 0: 32, or as many as a model with a fixed batch dimension takes
	MaxDelay    time.Duration        // how long a request waits for others; 0: not at all while a worker is free
	MaxQueue    int                  // items that may wait; 0: 8 times MaxItems
	Workers     int                  // runs at the same time; 0: 1
	RunTimeout  time.Duration        // limit for one run; 0: none
	Inputs      map[string]BatchPort // where a default does not fit
	Outputs     map[string]BatchPort
	Exact       bool // a run has as many items as its requests; else the number is rounded up to a power of two
	KeepPadding bool // outputs keep the padded length
	Together    bool // the requests of a failed run are not repeated one by one
}

// Batcher gathers requests into runs along the model's open batch dimension. Goroutines share it; its queue is bounded.
type Batcher struct {
	ref
	b       *C.heddle_batcher
	about   about
	inputs  []slot
	outputs int
}

// BatchCall is how a request is served.
type BatchCall struct {
	Priority int32         // higher ones run first
	Wait     time.Duration // for room in the queue; 0: ErrBusy at once where it is full
	Times    *BatchTimes   // receives where the time of the request went, also where its run failed; nil: nothing
	Steps    bool          // its run is timed step by step, for Times; it takes a little longer
}

// BatchTimes says where the time of a request went. Times count from when it was accepted; what it did not come to is 0.
type BatchTimes struct {
	Taken time.Duration // a worker took it for a run, and copied its inputs
	Run   time.Duration // the run began
	Ran   time.Duration // the run had ended; its outputs were copied
	Ended time.Duration // it had its result
	Items uint64        // of all requests of the run
	Rows  uint64        // of the run: the items rounded up
	Steps []Step        // of the run, with BatchCall.Steps; from the start of the first
}

// BatcherStats are counters since the batcher was made, and its queue. The mean batch is Items / Runs.
type BatcherStats struct {
	Requests, Succeeded, Failed, Expired, Cancelled uint64 // accepted requests, and their results
	Rejected, Refused                               uint64 // not accepted: the queue was full, and other reasons
	Runs, Items, Filled, Repeated                   uint64
	Queued, Running, MostItems                      uint64 // items
}

// NewBatcher makes a batcher of the model, which it keeps. It opens the model's devices.
func (m *Model) NewBatcher(o BatcherOptions) (*Batcher, error) {
	if err := m.acquire(); err != nil {
		return nil, err
	}
	defer m.release()
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	c := (*C.heddle_batcher_options)(C.calloc(1, C.size_t(unsafe.Sizeof(C.heddle_batcher_options{}))))
	if c == nil {
		return nil, ErrNoMemory
	}
	defer C.free(unsafe.Pointer(c))
	if err := o.fill(c, &texts); err != nil {
		return nil, err
	}
	var b *C.heddle_batcher
	if s := C.heddle_batcher_create(m.m, c, &b, words); s != C.HEDDLE_OK {
		return nil, m.about.errorOf(s, words)
	}
	made := &Batcher{b: b, about: m.about}
	made.inputs = batchInputs(m.m, b, o.Inputs)
	for C.heddle_batcher_output_name(b, C.uint32_t(made.outputs)) != nil {
		made.outputs++
	}
	made.free = func(unsafe.Pointer, int) {
		C.heddle_batcher_release(b)
		freed(modelBytes)
	}
	allocated(modelBytes)
	runtime.SetFinalizer(made, (*Batcher).Close)
	return made, nil
}

func (o *BatcherOptions) fill(c *C.heddle_batcher_options, texts *cstrings) error {
	for _, n := range []int{o.MaxItems, o.MaxQueue, o.Workers} {
		if n < 0 || n > 1<<31-1 {
			return invalid(fmt.Sprintf("a batcher's options have the number %d", n))
		}
	}
	if o.MaxDelay < 0 || o.RunTimeout < 0 {
		return invalid("a batcher's options have a negative time")
	}
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.max_items, c.max_queue, c.workers = C.uint32_t(o.MaxItems), C.uint32_t(o.MaxQueue), C.uint32_t(o.Workers)
	c.max_delay_ns, c.run_timeout_ns = C.uint64_t(o.MaxDelay), C.uint64_t(o.RunTimeout)
	for _, flag := range []struct {
		set bool
		bit C.uint32_t
	}{{o.Exact, C.HEDDLE_BATCH_EXACT}, {o.KeepPadding, C.HEDDLE_BATCH_KEEP_PADDING}, {o.Together, C.HEDDLE_BATCH_TOGETHER}} {
		if flag.set {
			c.flags |= flag.bit
		}
	}
	var err error
	if c.inputs, err = batchPorts(o.Inputs, texts); err != nil {
		return err
	}
	c.outputs, err = batchPorts(o.Outputs, texts)
	c.n_inputs, c.n_outputs = C.size_t(len(o.Inputs)), C.size_t(len(o.Outputs))
	if err == nil {
		err = texts.err
	}
	return err
}

// In C memory, which texts frees.
func batchPorts(ports map[string]BatchPort, texts *cstrings) (*C.heddle_batch_port, error) {
	if len(ports) == 0 {
		return nil, nil
	}
	p := C.calloc(C.size_t(len(ports)), C.size_t(unsafe.Sizeof(C.heddle_batch_port{})))
	if p == nil {
		return nil, ErrNoMemory
	}
	texts.all = append(texts.all, p)
	array, i := unsafe.Slice((*C.heddle_batch_port)(p), len(ports)), 0
	for name, port := range ports {
		c := &array[i]
		i++
		c.name, c.axis = texts.add(name), C.int32_t(port.Axis)
		if port.NoAxis {
			c.axis = -1
		}
		for _, axis := range port.PadAxes {
			if axis < 0 || axis > 31 {
				return nil, invalid(fmt.Sprintf("'%s': there is no dimension %d to pad", name, axis))
			}
			c.pad_axes |= 1 << uint(axis)
		}
		if port.PadMultiple < 0 || port.PadMultiple > 1<<31-1 {
			return nil, invalid(fmt.Sprintf("'%s': PadMultiple is %d", name, port.PadMultiple))
		}
		c.pad_value, c.pad_multiple = C.double(port.PadValue), C.uint32_t(port.PadMultiple)
		c.pad_max, c.pad_input = C.int64_t(port.PadMax), texts.optional(port.PadInput)
	}
	return (*C.heddle_batch_port)(p), nil
}

// The inputs as the graph declares them, with an open batch dimension: a slice has as many items as fit.
func batchInputs(m *C.heddle_model, b *C.heddle_batcher, ports map[string]BatchPort) []slot {
	g := C.heddle_model_graph(m)
	var all []slot
	for i := C.uint32_t(0); ; i++ {
		name := C.heddle_batcher_input_name(b, i)
		if name == nil {
			return all
		}
		in := slot{index: i, name: C.GoString(name)}
		for k := C.uint32_t(0); k < C.heddle_graph_input_count(g); k++ {
			v := C.heddle_value_info{struct_size: C.size_t(unsafe.Sizeof(C.heddle_value_info{}))}
			if C.heddle_graph_input(g, k, &v, nil) != C.HEDDLE_OK || C.GoString(v.name) != in.name {
				continue
			}
			info := C.heddle_io_info{name: v.name, shape: v.shape, ndim: v.ndim, dtype: v.dtype}
			in = slotOf(i, &info)
		}
		port := ports[in.name]
		if !port.NoAxis && port.Axis < len(in.shape) {
			in.shape[port.Axis] = -1
		}
		all = append(all, in)
	}
}

// Close ends requests that wait or run with ErrCanceled, waits for their runs, and frees the batcher. Shutdown before it
// lets them end.
func (b *Batcher) Close() {
	if b == nil {
		return
	}
	runtime.SetFinalizer(b, nil)
	if b.acquire() == nil {
		C.heddle_batcher_close(b.b, 1, C.HEDDLE_FOREVER, nil)
		b.release()
	}
	b.close()
}

// Until a call of C, which waits for as long as it is told to, has something else to report than that its time passed.
func (b *Batcher) until(ctx context.Context, what string, call func(ns C.uint64_t, words *C.heddle_error) C.heddle_status) error {
	if err := b.acquire(); err != nil {
		return err
	}
	defer b.release()
	words := newErr()
	defer freeErr(words)
	for {
		s := call(C.uint64_t(20*time.Millisecond), words)
		if s == C.HEDDLE_OK {
			return nil
		}
		if s != C.HEDDLE_ETIMEOUT {
			return b.about.errorOf(s, words)
		}
		if err := ctx.Err(); err != nil {
			return canceled(what, err)
		}
	}
}

// Drain waits until every request that was accepted before has its result. They do not wait for others meanwhile.
func (b *Batcher) Drain(ctx context.Context) error {
	return b.until(ctx, "requests have no result yet", func(ns C.uint64_t, words *C.heddle_error) C.heddle_status {
		return C.heddle_batcher_drain(b.b, ns, words)
	})
}

// Shutdown accepts no more requests, and waits until those that were accepted have their results. Close is still to be
// called.
func (b *Batcher) Shutdown(ctx context.Context) error {
	return b.until(ctx, "requests have no result yet", func(ns C.uint64_t, words *C.heddle_error) C.heddle_status {
		return C.heddle_batcher_close(b.b, 0, ns, words)
	})
}

// Stats gives the counters.
func (b *Batcher) Stats() (BatcherStats, error) {
	if err := b.acquire(); err != nil {
		return BatcherStats{}, err
	}
	defer b.release()
	words := newErr()
	defer freeErr(words)
	c := C.heddle_batcher_stats{struct_size: C.size_t(unsafe.Sizeof(C.heddle_batcher_stats{}))}
	if s := C.heddle_batcher_get_stats(b.b, &c, words); s != C.HEDDLE_OK {
		return BatcherStats{}, b.about.errorOf(s, words)
	}
	return BatcherStats{Requests: uint64(c.requests), Succeeded: uint64(c.succeeded), Failed: uint64(c.failed),
		Expired: uint64(c.expired), Cancelled: uint64(c.cancelled), Rejected: uint64(c.rejected), Refused: uint64(c.refused),
		Runs: uint64(c.runs), Items: uint64(c.items), Filled: uint64(c.filled), Repeated: uint64(c.repeated),
		Queued: uint64(c.queued), Running: uint64(c.running), MostItems: uint64(c.most_items)}, nil
}

// Run submits a request and waits for its outputs, on the host, which are the caller's. Inputs are given as to Model.Run,
// with the batch dimension. The deadline of ctx is the request's; where ctx is done the request ends, also in a run, which
// goes on for others. ErrBusy: the queue is full.
func (b *Batcher) Run(ctx context.Context, inputs ...interface{}) ([]*Array, error) {
	return b.RunCall(ctx, BatchCall{}, inputs...)
}

// RunCall is Run with a priority, and with time to wait for room in the queue.
func (b *Batcher) RunCall(ctx context.Context, call BatchCall, inputs ...interface{}) ([]*Array, error) {
	if err := ctx.Err(); err != nil {
		return nil, canceled("the request was not submitted", err)
	}
	if err := b.acquire(); err != nil {
		return nil, err
	}
	defer b.release()
	arrays, left, err := b.arrays(inputs)
	defer left()
	if err != nil {
		return nil, err
	}
	words := newErr()
	defer freeErr(words)
	ended := make(chan struct{})
	r, err := b.submit(ctx, call, arrays, ended, words)
	if err != nil {
		return nil, err
	}
	defer C.heddle_batch_request_release(r)
	if call.Times != nil {
		*call.Times = BatchTimes{}
		defer func() { timesOf(r, call.Times) }()
	}
	select {
	case <-ended:
	case <-ctx.Done():
		C.heddle_batch_request_cancel(r)
		<-ended // it was ended, or its result came just then
	}
	if s := C.heddle_batch_request_wait(r, C.HEDDLE_FOREVER, words); s != C.HEDDLE_OK {
		err := b.about.errorOf(s, words)
		if stop := ctx.Err(); stop != nil && (err.Status == ErrCanceled || err.Status == ErrTimeout) {
			return nil, canceled("the request was ended", stop)
		}
		return nil, err
	}
	outputs := make([]*Array, b.outputs)
	for i := range outputs {
		var t *C.heddle_tensor
		if s := C.heddle_batch_request_output(r, C.uint32_t(i), &t, words); s != C.HEDDLE_OK {
			return nil, b.about.errorOf(s, words)
		}
		outputs[i] = wrapArray(t)
	}
	return outputs, nil
}

func (b *Batcher) submit(ctx context.Context, call BatchCall, arrays []*C.heddle_tensor, ended chan struct{},
	words *C.heddle_error) (*C.heddle_batch_request, error) {
	var deadline C.uint64_t
	if at, ok := ctx.Deadline(); ok {
		left := time.Until(at)
		if left <= 0 {
			return nil, canceled("the request was not submitted", context.DeadlineExceeded)
		}
		deadline = C.uint64_t(left)
	}
	var first **C.heddle_tensor
	if len(arrays) > 0 {
		first = &arrays[0]
	}
	for left := call.Wait; ; { // in slices, so that ctx ends it
		slice := left
		if slice > 20*time.Millisecond {
			slice = 20 * time.Millisecond
		}
		if slice < 0 {
			slice = 0
		}
		flags := C.uint32_t(0)
		if call.Steps {
			flags = C.HEDDLE_BATCH_CALL_STEPS
		}
		handle := cgo.NewHandle(ended)
		var r *C.heddle_batch_request
		s := C.hgo_batch_submit(b.b, first, C.size_t(len(arrays)), C.int32_t(call.Priority), flags, deadline,
			C.uint64_t(slice), C.uintptr_t(handle), &r, words)
		if s == C.HEDDLE_OK {
			return r, nil
		}
		handle.Delete()
		left -= slice
		if stop := ctx.Err(); stop != nil {
			return nil, canceled("the request was not submitted", stop)
		}
		if s != C.HEDDLE_EBUSY || left <= 0 {
			return nil, b.about.errorOf(s, words)
		}
	}
}

// Of a request that has its result.
func timesOf(r *C.heddle_batch_request, out *BatchTimes) {
	c := C.heddle_batch_times{struct_size: C.size_t(unsafe.Sizeof(C.heddle_batch_times{}))}
	if C.heddle_batch_request_times(r, &c, nil) != C.HEDDLE_OK {
		return
	}
	since := func(ns C.uint64_t) time.Duration {
		if ns == 0 {
			return 0
		}
		return time.Duration(ns - c.accepted_ns)
	}
	*out = BatchTimes{since(c.taken_ns), since(c.run_ns), since(c.ran_ns), since(c.ended_ns), uint64(c.items), uint64(c.rows),
		stepsOf(c.steps, c.n_steps)}
}

//export heddleGoBatchEnded
func heddleGoBatchEnded(handle C.uintptr_t) {
	h := cgo.Handle(handle)
	close(h.Value().(chan struct{}))
	h.Delete()
}

// The tensors of inputs in the batcher's order; left is called when they are not used any more.
func (b *Batcher) arrays(inputs []interface{}) (all []*C.heddle_tensor, left func(), err error) {
	var ends []func()
	left = func() {
		for _, end := range ends {
			end()
		}
	}
	named, isNamed := map[string]interface{}(nil), false
	if len(inputs) == 1 {
		named, isNamed = inputs[0].(map[string]interface{})
	}
	if !isNamed && len(inputs) != len(b.inputs) {
		return nil, left, invalid(countWords(len(inputs), "input", len(b.inputs)), ": ", strings.Join(b.names(), ", "))
	}
	for i := range b.inputs {
		in := &b.inputs[i]
		var value interface{}
		if !isNamed {
			value = inputs[i]
		} else if given, ok := named[in.name]; ok {
			value = given
		} else {
			return nil, left, invalid("input '", in.name, "' is missing")
		}
		array, ok := value.(*Array)
		if !ok {
			if array, err = in.arrayOf(value); err != nil {
				return nil, left, fmt.Errorf("input '%s': %w", in.name, err)
			}
			ends = append(ends, array.Close)
		}
		if array == nil {
			return nil, left, invalid("input '", in.name, "' was given a nil *Array")
		}
		if err = array.acquire(); err != nil {
			return nil, left, err
		}
		ends = append([]func(){array.release}, ends...)
		all = append(all, array.t)
	}
	if isNamed && len(named) > len(b.inputs) {
		for name := range named {
			if !strings.Contains("\x00"+strings.Join(b.names(), "\x00")+"\x00", "\x00"+name+"\x00") {
				return nil, left, &Error{Status: ErrNotFound, File: b.about.file, Message: "there is no input '" + name +
					"'; there are: " + strings.Join(b.names(), ", ")}
			}
		}
	}
	return all, left, nil
}

func (b *Batcher) names() []string {
	names := make([]string, len(b.inputs))
	for i := range names {
		names[i] = b.inputs[i].name
	}
	return names
}
