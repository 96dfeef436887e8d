package heddle

// Loaders: modules of kinds that Heddle does not know, which Go reads, runs and writes.

// #include "bridge.h"
import "C"

// LoadedModule is a module that a ModuleLoader made. Its methods are called from any thread, several at once.
type LoadedModule interface {
	// Function gives a function by its name; nil where there is none.
	Function(name string) (Callback, error)
}

// ModuleNamer is a LoadedModule that lists its functions.
type ModuleNamer interface {
	LoadedModule
	Names() []string
}

// ModuleSaver is a LoadedModule that is written when a library that holds it is packed: Save gives its bytes as the loader
// reads them. Of others, and where it gives nil, the bytes that the module was loaded from are written again.
type ModuleSaver interface {
	LoadedModule
	Save() ([]byte, error)
}

// ModuleLoader makes a module from its bytes, and says how many of them belong to it: libraries of v0.21 and before do not say
// where a module ends, and data is the rest of the library's blob there.
type ModuleLoader func(data []byte) (module LoadedModule, used int, err error)

// RegisterModuleLoader has load read the modules of a kind in all libraries that are opened later, in the place of an earlier
// loader of the kind; nil ends that. ErrInvalid for a kind that Heddle reads itself.
func RegisterModuleLoader(kind string, load ModuleLoader) error {
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	word := texts.add(kind)
	if texts.err != nil {
		return texts.err
	}
	var f *C.heddle_function
	if load != nil {
		made, err := newCallback(func(args ...*Value) (interface{}, error) { return loadModule(load, args) })
		if err != nil {
			return err
		}
		defer made.Close()
		f = made.f
	}
	if s := C.heddle_function_register_loader(word, f, words); s != C.HEDDLE_OK {
		return failure(s, words)
	}
	return nil
}

// The arguments are the kind and the bytes; the result is the module as heddle_function_register_loader has it.
func loadModule(load ModuleLoader, args []*Value) (interface{}, error) {
	data, err := args[1].Bytes()
	if err != nil {
		return nil, err
	}
	module, used, err := load(data)
	if err != nil {
		return nil, err
	}
	if module == nil {
		return nil, invalid("a ModuleLoader gave neither a module nor an error")
	}
	return Callback(func(args ...*Value) (interface{}, error) { return askModule(module, used, args) }), nil
}

func askModule(module LoadedModule, used int, args []*Value) (interface{}, error) {
	what, err := args[0].Str()
	if err != nil {
		return nil, err
	}
	switch what {
	case "bytes":
		return used, nil
	case "name":
		namer, ok := module.(ModuleNamer)
		i, err := args[1].Int64()
		if err != nil || !ok {
			return nil, err
		}
		if names := namer.Names(); i < int64(len(names)) {
			return names[i], nil
		}
	case "find":
		name, err := args[1].Str()
		if err != nil {
			return nil, err
		}
		if found, err := module.Function(name); err != nil || found != nil {
			return found, err
		}
	case "save":
		if saver, ok := module.(ModuleSaver); ok {
			if data, err := saver.Save(); err != nil || data != nil {
				return data, err
			}
		}
	}
	return nil, nil
}
