package heddle

// Models: loading, what they take and give, and where they run.

// #include "bridge.h"
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

// Model is a graph with its parameters and the wish where it should run. Goroutines share it: each run has an executor of
// the model's pool for itself, and waits where all are in use.
type Model struct {
	ref
	m       *C.heddle_model
	about   about
	devices []string
	pool    *pool
	owner   *Runtime
}

// Load makes a model from a graph (.json), an ONNX model (.onnx) or a library that TVM compiled (.so). It may block in
// drivers; the plan is made with the first run, or with Prepare. Errors carry the file, and the node where one is named.
func Load(path string, opts ...Option) (*Model, error) {
	return makeModel(path, opts, func(o *options, texts *cstrings, c *C.heddle_model_options, out **C.heddle_model,
		words *C.heddle_error) C.heddle_status {
		name, params := texts.add(path), texts.optional(o.params)
		if texts.err != nil {
			return C.HEDDLE_EINVAL
		}
		return C.heddle_model_load(o.runtime.c, name, params, c, out, words)
	})
}

// LoadBytes makes a model from memory: an ONNX model, or a graph's JSON. folder is where weights outside of an ONNX model
// lie; with "" a model that has such weights is refused. WithParams is not for it.
func LoadBytes(data []byte, folder string, opts ...Option) (*Model, error) {
	return makeModel("", opts, func(o *options, texts *cstrings, c *C.heddle_model_options, out **C.heddle_model,
		words *C.heddle_error) C.heddle_status {
		if o.params != "" {
			texts.err = invalid("LoadBytes is given all of a model; WithParams is for Load")
			return C.HEDDLE_EINVAL
		}
		place := texts.optional(folder)
		if texts.err != nil {
			return C.HEDDLE_EINVAL
		}
		bytes := C.CBytes(data)
		defer C.free(bytes)
		return C.heddle_model_parse(o.runtime.c, bytes, C.size_t(len(data)), place, c, out, words)
	})
}

// LoadGraph makes a model from a graph's JSON and a blob of parameters, which may be nil. WithParams is not for it.
func LoadGraph(json, params []byte, opts ...Option) (*Model, error) {
	return makeModel("", opts, func(o *options, texts *cstrings, c *C.heddle_model_options, out **C.heddle_model,
		words *C.heddle_error) C.heddle_status {
		if o.params != "" {
			texts.err = invalid("LoadGraph is given the parameters; WithParams is for Load")
			return C.HEDDLE_EINVAL
		}
		name := texts.add("graph")
		text := C.CBytes(json)
		defer C.free(text)
		var g *C.heddle_graph
		limits := (*C.heddle_read_limits)(C.calloc(1, C.size_t(unsafe.Sizeof(C.heddle_read_limits{}))))
		if limits == nil {
			texts.err = ErrNoMemory
			return C.HEDDLE_ENOMEM
		}
		defer C.free(unsafe.Pointer(limits))
		limits.struct_size = C.size_t(unsafe.Sizeof(*limits))
		limits.trust, limits.key = c.trust, c.key
		c.trust, c.key = nil, nil // they are the readers'
		s := C.heddle_graph_parse((*C.char)(text), C.size_t(len(json)), name, limits, &g, words)
		defer C.heddle_graph_release(g)
		var p *C.heddle_params
		if s == C.HEDDLE_OK && params != nil {
			blob := C.CBytes(params)
			defer C.free(blob)
			s = C.heddle_params_parse(blob, C.size_t(len(params)), texts.add("params"), limits, &p, words)
		}
		defer C.heddle_params_release(p)
		if s != C.HEDDLE_OK {
			return s
		}
		return C.heddle_model_create(o.runtime.c, g, p, c, out, words)
	})
}

// opener calls C with a list of options as C has them; texts keeps what it makes of strings.
type opener func(o *options, texts *cstrings, c *C.heddle_model_options, words *C.heddle_error) C.heddle_status

// opened calls open, and gives the options, and its failure as an error about the path.
func opened(path string, list []Option, open opener) (*options, error) {
	o, err := collect(list)
	if err != nil {
		return nil, err
	}
	if err := o.runtime.acquire(); err != nil {
		return nil, err
	}
	defer o.runtime.release()
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	c, library, err := o.c(&texts)
	if err != nil {
		return nil, err
	}
	defer C.heddle_module_release(library)
	s := open(o, &texts, c, words)
	if s != C.HEDDLE_OK && texts.err != nil {
		return nil, texts.err
	}
	if s != C.HEDDLE_OK {
		return nil, about{file: path}.errorOf(s, words)
	}
	return o, nil
}

type modelMaker func(o *options, texts *cstrings, c *C.heddle_model_options, out **C.heddle_model,
	words *C.heddle_error) C.heddle_status

func makeModel(path string, list []Option, create modelMaker) (*Model, error) {
	var m *C.heddle_model
	o, err := opened(path, list, func(o *options, texts *cstrings, c *C.heddle_model_options, words *C.heddle_error) C.heddle_status {
		return create(o, texts, c, &m, words)
	})
	if err != nil {
		return nil, err
	}
	made := &Model{m: m, about: about{file: path}, devices: namesOfDevices(m), owner: o.runtime}
	made.pool = newPool(o.pool)
	pool := made.pool
	made.free = func(unsafe.Pointer, int) {
		pool.close()
		C.heddle_model_release(m)
		freed(modelBytes)
	}
	runtime.SetFinalizer(made, (*Model).Close)
	allocated(modelBytes)
	return made, nil
}

func namesOfDevices(m *C.heddle_model) []string {
	var names []string
	for i := C.size_t(0); i < C.heddle_model_device_count(m); i++ {
		names = append(names, C.GoString(C.heddle_device_name(C.heddle_model_device(m, i))))
	}
	return names
}

// Close gives the model back; runs that are under way end, arrays that it gave stay.
func (m *Model) Close() {
	if m == nil {
		return
	}
	runtime.SetFinalizer(m, nil)
	m.close()
}

// Devices gives the names of the devices that the model may use, in order.
func (m *Model) Devices() []string { return append([]string{}, m.devices...) }

// IOInfo is an input or an output.
type IOInfo struct {
	Name  string
	Shape []int64 // nil where it is not known yet; -1 for a dimension that is not
	DType string  // "" where it is not known yet
}

// Inputs says what a run takes, in order; parameters are not among them.
func (m *Model) Inputs() ([]IOInfo, error) {
	var all []IOInfo
	err := m.with(context.Background(), func(c *Call) error {
		for _, in := range c.inputs {
			all = append(all, in.public())
		}
		return nil
	})
	return all, err
}

// Outputs says what a run gives, in order. Before the first run an output may have no shape yet.
func (m *Model) Outputs() ([]IOInfo, error) {
	var all []IOInfo
	err := m.with(context.Background(), func(c *Call) error {
		for i := range c.outputs {
			out, err := c.outputInfo(i)
			if err != nil {
				return err
			}
			all = append(all, out.public())
		}
		return nil
	})
	return all, err
}

// PlanFormat is how Plan writes.
type PlanFormat int32

// The formats of a plan.
const (
	PlanText PlanFormat = C.HEDDLE_EXPLAIN_TEXT // for people
	PlanJSON PlanFormat = C.HEDDLE_EXPLAIN_JSON // one object, as heddle plan --json
	PlanDOT  PlanFormat = C.HEDDLE_EXPLAIN_DOT  // for Graphviz
)

// Plan says where each node runs and why, with copies, streams and memory, as text or in another format. It is that for
// the input shapes that the graph gives.
func (m *Model) Plan(format ...PlanFormat) (string, error) {
	how := PlanText
	if len(format) > 1 || len(format) == 1 && (format[0] < PlanText || format[0] > PlanDOT) {
		return "", invalid("Plan takes one format: PlanText, PlanJSON or PlanDOT")
	}
	if len(format) == 1 {
		how = format[0]
	}
	if err := m.acquire(); err != nil {
		return "", err
	}
	defer m.release()
	words := newErr()
	defer freeErr(words)
	var text *C.char
	s := C.heddle_model_explain(m.m, C.heddle_explain_format(how), nil, nil, 0, &text, words)
	if s != C.HEDDLE_OK {
		return "", m.about.errorOf(s, words)
	}
	defer C.heddle_free(unsafe.Pointer(text))
	return C.GoString(text), nil
}

// Run runs the model and gives its outputs, on the host, which are the caller's. Inputs are either one
// map[string]interface{} by name, or all of them in order; each is a slice of the input's element type or an *Array from
// any device. A slice has the input's shape; one dimension that the model leaves open is found from its length. Run waits
// for an executor, then for the run.
func (m *Model) Run(inputs ...interface{}) ([]*Array, error) {
	return m.RunContext(context.Background(), inputs...)
}

// RunContext is Run until ctx is done: what is not submitted to devices is then cancelled, and the error is ctx's too
// (errors.Is). A run that a device does not give back within two seconds is left behind with its executor.
func (m *Model) RunContext(ctx context.Context, inputs ...interface{}) ([]*Array, error) {
	var outputs []*Array
	err := m.with(ctx, func(c *Call) error {
		err := c.setAll(inputs)
		if err == nil {
			outputs, err = c.runOutputs(ctx)
		}
		return err
	})
	return outputs, err
}

// RunInto is Run with the outputs copied to slices or arrays that the caller has, in order; nil leaves one out. It
// allocates nothing of the library's.
func (m *Model) RunInto(outputs []interface{}, inputs ...interface{}) error {
	return m.with(context.Background(), func(c *Call) error {
		if len(outputs) != len(c.outputs) {
			return invalid(countWords(len(outputs), "output", len(c.outputs)))
		}
		err := c.setAll(inputs)
		if err == nil {
			err = c.run(context.Background())
		}
		for i := 0; err == nil && i < len(outputs); i++ {
			if outputs[i] != nil {
				err = c.copyOutput(i, outputs[i])
			}
		}
		return err
	})
}

// With an executor of the pool.
func (m *Model) with(ctx context.Context, do func(c *Call) error) error {
	if err := m.acquire(); err != nil {
		return err
	}
	defer m.release()
	c, err := m.pool.get(ctx)
	if err != nil {
		return err
	}
	if c == nil {
		if c, err = newCall(m); err != nil {
			m.pool.put(nil)
			return err
		}
	}
	defer func() { m.pool.put(c.reusable()) }()
	return do(c)
}
