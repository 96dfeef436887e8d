package heddle

// Packed files: models and the libraries that they run, written as one library.

// #include <stdlib.h>
// #include <string.h>
// #include "bridge.h"
import "C"

import (
	"encoding/json"
	"unsafe"
)

// PackModel is a model that is packed.
type PackModel struct {
	Name   string // "" is "default"
	Graph  string // the path of its .json file
	Params string // the path of its parameters; "" for none
}

// PackImport is a module of another kind that a packed library carries.
type PackImport struct {
	Kind string
	Data []byte // as the loader of the kind reads it
}

// PackOptions says what Pack writes. Libraries are finished ones (.so) or objects (.o, .a, .tar).
type PackOptions struct {
	Libraries    []string
	Models       []PackModel
	Imports      []PackImport
	RemoveParams bool   // models are written without parameters
	Compiler     string // that links objects; "" is the variable CC, else cc
	// Of one graph of operators, without libraries: lists of devices, such as "opencl:0,cpu", for which the file also holds
	// what was prepared.
	For []string
	// With For: "NAME=NUMBER" for the dimensions that have names; several of one name prepare for each.
	Dims []string
	// With For: limits on devices' memory that models of the file will have, "sim:0=64MiB"; "" is none.
	Memory string
	Sign   SignOptions // the keys that sign and encrypt the file
}

// Pack writes a library that holds the models and the code of the libraries; or one graph of operators as a file.
func Pack(path string, options PackOptions) error {
	return packing(path, options, func(name *C.char, _ *cstrings, o *C.heddle_pack_options, words *C.heddle_error) C.heddle_status {
		return C.heddle_pack(name, o, words)
	})
}

// Link writes FOLDER/NAME.o and FOLDER/NAME.h of a graph of operators, for programs that load it from memory.
func Link(folder, name string, options PackOptions) error {
	return packing(folder, options, func(to *C.char, texts *cstrings, o *C.heddle_pack_options, words *C.heddle_error) C.heddle_status {
		symbol := texts.add(name)
		if texts.err != nil {
			return C.HEDDLE_EINVAL
		}
		return C.heddle_link(to, symbol, o, words)
	})
}

func packing(path string, options PackOptions,
	call func(*C.char, *cstrings, *C.heddle_pack_options, *C.heddle_error) C.heddle_status) error {
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	n := len(options.Models)
	size := unsafe.Sizeof(C.heddle_pack_model{})
	room := C.calloc(C.size_t(n)+1, C.size_t(size+unsafe.Sizeof(uintptr(0))))
	if room == nil {
		return ErrNoMemory
	}
	defer C.free(room)
	models := unsafe.Slice((*C.heddle_pack_model)(room), n+1)
	list := unsafe.Slice((**C.heddle_pack_model)(unsafe.Add(room, size*uintptr(n+1))), n+1)
	for i, m := range options.Models {
		models[i].struct_size = C.size_t(size)
		models[i].name = texts.optional(m.Name)
		models[i].graph_path = texts.add(m.Graph)
		models[i].params_path = texts.optional(m.Params)
		list[i] = &models[i]
	}
	o := (*C.heddle_pack_options)(C.calloc(1, C.size_t(unsafe.Sizeof(C.heddle_pack_options{}))))
	if o == nil {
		return ErrNoMemory
	}
	defer C.free(unsafe.Pointer(o))
	o.struct_size = C.size_t(unsafe.Sizeof(*o))
	o.libraries = texts.list(options.Libraries)
	o.n_libraries = C.size_t(len(options.Libraries))
	o.models = &list[0]
	o.n_models = C.size_t(n)
	o.imports = importList(options.Imports, &texts)
	o.n_imports = C.size_t(len(options.Imports))
	o.compiler = texts.optional(options.Compiler)
	o.targets = texts.list(options.For)
	o.n_targets = C.size_t(len(options.For))
	o.dims = texts.list(options.Dims)
	o.n_dims = C.size_t(len(options.Dims))
	o.memory = texts.optional(options.Memory)
	if options.RemoveParams {
		o.flags = C.HEDDLE_PACK_NO_PARAMS
	}
	if options.Sign != (SignOptions{}) {
		o.sign = options.Sign.c(&texts)
	}
	name := texts.add(path)
	if texts.err != nil {
		return texts.err
	}
	if s := call(name, &texts, o, words); s != C.HEDDLE_OK {
		if texts.err != nil {
			return texts.err
		}
		return about{file: path}.errorOf(s, words)
	}
	return nil
}

// The modules in C memory, which texts frees; nil for none.
func importList(all []PackImport, texts *cstrings) **C.heddle_pack_import {
	if len(all) == 0 {
		return nil
	}
	size := unsafe.Sizeof(C.heddle_pack_import{})
	room := C.calloc(C.size_t(len(all)), C.size_t(size+unsafe.Sizeof(uintptr(0))))
	texts.all = append(texts.all, room)
	imports := unsafe.Slice((*C.heddle_pack_import)(room), len(all))
	list := unsafe.Slice((**C.heddle_pack_import)(unsafe.Add(room, size*uintptr(len(all)))), len(all))
	for i, m := range all {
		data := C.CBytes(m.Data)
		texts.all = append(texts.all, data)
		imports[i] = C.heddle_pack_import{struct_size: C.size_t(size), kind: texts.add(m.Kind), data: data, bytes: C.size_t(len(m.Data))}
		list[i] = &imports[i]
	}
	return &list[0]
}

// Unpack writes what a packed file holds to a folder: NAME.json and NAME.params of each model, and lib.so.
func Unpack(path, folder string) error {
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	name, to := texts.add(path), texts.add(folder)
	if texts.err != nil {
		return texts.err
	}
	if s := C.heddle_unpack(name, to, words); s != C.HEDDLE_OK {
		return about{file: path}.errorOf(s, words)
	}
	return nil
}

// Prepared is what a packed graph carries that was prepared for devices.
type Prepared struct {
	Heddle  string           `json:"heddle"` // the version that wrote it
	Why     string           `json:"why"`    // why nothing of it is used here; "": some is
	Targets []PreparedTarget `json:"targets"`
}

// PreparedTarget is what was prepared for one list of devices.
type PreparedTarget struct {
	For     string           `json:"for"`
	Fits    bool             `json:"fits"`
	Why     string           `json:"why"` // it does not fit
	Bytes   uint64           `json:"bytes"`
	Devices []PreparedDevice `json:"devices"`
	Files   []PreparedFile   `json:"files"`
}

// PreparedDevice is a device as it was when the file was packed.
type PreparedDevice struct {
	Name, About, Driver, Build string
	Why                        string // what is different now; "": nothing
}

// PreparedFile is one thing that was prepared: packed weights, a program of a device, measured costs.
type PreparedFile struct {
	Name, Kind string
	Bytes      uint64
}

// Prepared compares what a packed graph carries with the devices that are here, whose plugins are loaded; nil: it carries
// nothing that was prepared. The files of trust and key are those of the environment.
func (rt *Runtime) Prepared(path string) (*Prepared, error) {
	if err := rt.acquire(); err != nil {
		return nil, err
	}
	defer rt.release()
	var text *C.char
	err := fileCall(path, func(name *C.char, _ *cstrings, words *C.heddle_error) C.heddle_status {
		var params *C.heddle_params
		s := C.heddle_params_load(name, nil, &params, words)
		if s == C.HEDDLE_OK {
			s = C.heddle_params_prepared(params, rt.c, &text, words)
		}
		C.heddle_params_release(params)
		return s
	})
	if err != nil {
		return nil, err
	}
	defer C.heddle_free(unsafe.Pointer(text))
	var out *Prepared
	if err := json.Unmarshal([]byte(C.GoString(text)), &out); err != nil {
		return nil, invalid("heddle_params_prepared: " + err.Error())
	}
	return out, nil
}
