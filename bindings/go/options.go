package heddle

// What Load takes beside the file.

// #include "bridge.h"
import "C"

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"
)

// Option is a wish for a model.
type Option func(*options)

type options struct {
	runtime                                                   *Runtime
	library                                                   *Module
	params, devices, optimize, memory, onFailure, name, state string
	seed                                                      uint64
	libraryFile, trust, key                                   string
	place, keep, dims                                         []string
	flags                                                     C.uint32_t
	streams, programs, pool                                   int
	upload, plan                                              time.Duration
}

// WithDevices says on which devices, in order of preference: "vulkan:0,cuda?,cpu". '?' marks what may be missing.
func WithDevices(list string) Option { return func(o *options) { o.devices = list } }

// WithParams names the file of the parameters. Without it a graph's are those of FILE.params beside FILE.json.
func WithParams(path string) Option { return func(o *options) { o.params = path } }

// WithLibrary names the library whose functions the graph's nodes call.
func WithLibrary(path string) Option { return func(o *options) { o.libraryFile = path } }

// WithModule gives the library whose functions the graph's nodes call.
func WithModule(m *Module) Option { return func(o *options) { o.library = m } }

// WithModel names one of several models that a library holds.
func WithModel(name string) Option { return func(o *options) { o.name = name } }

// WithPlace adds rules "PATTERN=DEVICE" for nodes by name; a later one is stronger. "auto" places by measured cost.
func WithPlace(rules ...string) Option {
	return func(o *options) { o.place = append(o.place, rules...) }
}

// WithKeep names nodes, "NAME" or "NAME:OUTPUT", whose values stay readable after a run.
func WithKeep(nodes ...string) Option {
	return func(o *options) { o.keep = append(o.keep, nodes...) }
}

// WithDims gives numbers for dimensions that the graph names, "batch=8", or the most that one can be, "length<=512".
func WithDims(rules ...string) Option {
	return func(o *options) { o.dims = append(o.dims, rules...) }
}

// WithOptimize says which optimisations rewrite the graph: "off", "on", or names with commas.
func WithOptimize(what string) Option { return func(o *options) { o.optimize = what } }

// WithMemory limits what devices' memory may give: "opencl:0=2GiB".
func WithMemory(limits string) Option { return func(o *options) { o.memory = limits } }

// WithOnFailure says what becomes of a run that a device failed: "error", "retry", "retry:N" or "failover".
func WithOnFailure(what string) Option { return func(o *options) { o.onFailure = what } }

// WithState says which outputs are inputs of the next run and stay on their device: "past*:present*", or "auto", by the
// names that exporters use. The state is a Call's; runs of the model's pool begin with none.
func WithState(rules string) Option { return func(o *options) { o.state = rules } }

// WithSeed gives the seed of random operators that have none of their own; 0: it follows from their names.
func WithSeed(seed uint64) Option { return func(o *options) { o.seed = seed } }

// WithTrust names a trust file: every file that is loaded must be signed by one of its keys, else ErrDenied.
func WithTrust(path string) Option { return func(o *options) { o.trust = path } }

// WithKey names the file of the key of encrypted files.
func WithKey(path string) Option { return func(o *options) { o.key = path } }

// WithFast lets float32 be computed in bfloat16 or the like.
func WithFast() Option { return func(o *options) { o.flags |= C.HEDDLE_MODEL_FAST } }

// WithStrict keeps float32 as it is, whatever the setting precision says.
func WithStrict() Option { return func(o *options) { o.flags |= C.HEDDLE_MODEL_STRICT } }

// WithoutAnnotations leaves aside what the graph says of devices.
func WithoutAnnotations() Option {
	return func(o *options) { o.flags |= C.HEDDLE_MODEL_IGNORE_ANNOTATIONS }
}

// WithPool says how many runs of the model there may be at once, each with memory of its own; one more waits. Without it
// as many as GOMAXPROCS, at most 4.
func WithPool(n int) Option { return func(o *options) { o.pool = n } }

// WithStreams limits the compute streams a device.
func WithStreams(n int) Option { return func(o *options) { o.streams = n } }

// WithPrograms says for how many sets of input shapes plans are kept; 8 without it.
func WithPrograms(n int) Option { return func(o *options) { o.programs = n } }

// WithUploadTimeout limits the time in which constants reach their devices.
func WithUploadTimeout(d time.Duration) Option { return func(o *options) { o.upload = d } }

// WithPlanTimeout limits the time of a plan, and that of creating the model: ErrTimeout names the node.
func WithPlanTimeout(d time.Duration) Option { return func(o *options) { o.plan = d } }

// WithRuntime makes the model one of another runtime than the process's.
func WithRuntime(rt *Runtime) Option { return func(o *options) { o.runtime = rt } }

func collect(list []Option) (*options, error) {
	o := &options{}
	for _, option := range list {
		if option != nil {
			option(o)
		}
	}
	if o.pool < 0 || o.streams < 0 || o.programs < 0 || o.upload < 0 || o.plan < 0 {
		return nil, invalid("an option of a model is negative")
	}
	if o.pool == 0 {
		if o.pool = runtime.GOMAXPROCS(0); o.pool > 4 {
			o.pool = 4
		}
	}
	if o.library != nil && o.libraryFile != "" {
		return nil, invalid("WithLibrary and WithModule are one too many")
	}
	if o.runtime != nil {
		return o, nil
	}
	var err error
	o.runtime, err = Default()
	return o, err
}

// The options in C, in memory of texts. Library is the reference that the caller gives back, or nil.
func (o *options) c(texts *cstrings) (*C.heddle_model_options, *C.heddle_module, error) {
	size := C.size_t(unsafe.Sizeof(C.heddle_model_options{}))
	p := C.calloc(1, size)
	if p == nil {
		return nil, nil, ErrNoMemory
	}
	texts.all = append(texts.all, p)
	out := (*C.heddle_model_options)(p)
	out.struct_size = size
	out.devices = texts.optional(o.devices)
	out.place, out.n_place = texts.list(o.place), C.size_t(len(o.place))
	out.keep, out.n_keep = texts.list(o.keep), C.size_t(len(o.keep))
	out.dims, out.n_dims = texts.list(o.dims), C.size_t(len(o.dims))
	out.flags = o.flags
	out.max_streams, out.max_programs = C.uint32_t(o.streams), C.uint32_t(o.programs)
	out.model_name, out.optimize = texts.optional(o.name), texts.optional(o.optimize)
	out.memory, out.on_failure = texts.optional(o.memory), texts.optional(o.onFailure)
	out.upload_timeout_ns = C.uint64_t(o.upload)
	out.plan_timeout_ns = C.uint64_t(o.plan)
	out.state = texts.optional(o.state)
	out.seed = C.uint64_t(o.seed)
	out.trust, out.key = texts.optional(o.trust), texts.optional(o.key)
	file := texts.optional(o.libraryFile)
	if texts.err != nil {
		return nil, nil, texts.err
	}
	if file != nil {
		words := newErr()
		defer freeErr(words)
		opening := (*C.heddle_module_options)(C.calloc(1, C.size_t(unsafe.Sizeof(C.heddle_module_options{}))))
		if opening == nil {
			return nil, nil, ErrNoMemory
		}
		texts.all = append(texts.all, unsafe.Pointer(opening))
		opening.struct_size = C.size_t(unsafe.Sizeof(*opening))
		opening.trust, opening.key = out.trust, out.key
		if s := C.heddle_module_open(o.runtime.c, file, opening, &out.library, words); s != C.HEDDLE_OK {
			return nil, nil, about{file: o.libraryFile}.errorOf(s, words)
		}
		return out, out.library, nil
	}
	if o.library != nil {
		if err := o.library.acquire(); err != nil {
			return nil, nil, err
		}
		defer o.library.release()
		out.library = C.heddle_object_library(o.library.o)
		if out.library == nil {
			return nil, nil, invalid(fmt.Sprintf("the module of %q is no library", o.library.file))
		}
		C.heddle_module_retain(out.library)
	}
	return out, out.library, nil
}
