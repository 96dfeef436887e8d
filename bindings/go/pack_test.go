package heddle

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestPack(t *testing.T) {
	folder := t.TempDir()
	graph, packed := filepath.Join(folder, "g.json"), filepath.Join(folder, "packed.so")
	const text = `{"nodes":[{"op":"null","name":"x","inputs":[]}],"arg_nodes":[0],"node_row_ptr":[0,1],"heads":[[0,0,0]],` +
		`"attrs":{"shape":["list_shape",[[2]]],"dltype":["list_str",["float32"]],"storage_id":["list_int",[0]]}}`
	noError(t, os.WriteFile(graph, []byte(text), 0o600))
	options := PackOptions{Libraries: []string{prepared(t, "calls.so")}, Models: []PackModel{{Name: "same", Graph: graph}}}
	noError(t, Pack(packed, options))
	noError(t, Unpack(packed, filepath.Join(folder, "out")))
	if back := ok[[]byte](t)(os.ReadFile(filepath.Join(folder, "out", "same.json"))); string(back) != text {
		t.Fatalf("the graph came back as %s", back)
	}
	module := ok[*Module](t)(LoadModuleFromFile(packed))
	defer module.Close()
	get := ok[*Function](t)(module.GetFunction("get_graph_json"))
	if text != ok[string](t)(ok[*Value](t)(get.Invoke()).Str()) {
		t.Fatal("the packed module has another graph")
	}
	options.Models[0].Graph = filepath.Join(folder, "none.json")
	var failure *Error
	if err := Pack(packed, options); !errors.As(err, &failure) || failure.Status != ErrIO || failure.File != packed {
		t.Fatalf("a graph that is not there: %v", err)
	}
	if err := Link(folder, "no name", PackOptions{Models: options.Models}); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a name with a blank: %v", err)
	}
	if err := Pack(packed, PackOptions{Libraries: options.Libraries, For: []string{"cpu"}}); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a library is prepared: %v", err)
	}
	if err := Unpack(prepared(t, "calls.so"), folder); !errors.Is(err, ErrNotFound) {
		t.Fatalf("a library without a model: %v", err)
	}
}

func TestPrepared(t *testing.T) {
	const text = `{"nodes":[{"op":"null","name":"x","inputs":[]}],"arg_nodes":[0],"node_row_ptr":[0,1],"heads":[[0,0,0]],` +
		`"attrs":{"shape":["list_shape",[[2]]],"dltype":["list_str",["float32"]],"storage_id":["list_int",[0]]}}`
	folder := t.TempDir()
	graph, packed := filepath.Join(folder, "g.json"), filepath.Join(folder, "packed")
	noError(t, os.WriteFile(graph, []byte(text), 0o600))
	rt := ok[*Runtime](t)(Default())
	noError(t, Pack(packed, PackOptions{Models: []PackModel{{Graph: graph}}}))
	if found := ok[*Prepared](t)(rt.Prepared(packed)); found != nil {
		t.Fatalf("nothing was prepared: %+v", found)
	}
	noError(t, Pack(packed, PackOptions{Models: []PackModel{{Graph: graph}}, For: []string{"cpu"}}))
	found := ok[*Prepared](t)(rt.Prepared(packed))
	if found == nil || found.Heddle != Version() || len(found.Targets) != 1 || !found.Targets[0].Fits ||
		found.Targets[0].For != "cpu" || found.Targets[0].Devices[0].Name != "cpu:0" {
		t.Fatalf("what was prepared: %+v", found)
	}
	if _, err := rt.Prepared(graph + ".none"); !errors.Is(err, ErrIO) {
		t.Fatalf("a file that is not there: %v", err)
	}
}

// A module of a kind of its own: a number as text, up to a zero byte.
type adder struct{ number int64 }

func (a *adder) Function(name string) (Callback, error) {
	switch name {
	case "plus":
		return func(args ...*Value) (interface{}, error) {
			n, err := args[0].Int64()
			return n + a.number, err
		}, nil
	case "broken":
		return nil, errors.New("no luck")
	}
	return nil, nil
}

func (a *adder) Names() []string { return []string{"plus"} }

type savedAdder struct{ adder }

func (a *savedAdder) Save() ([]byte, error) {
	if a.number > 1 {
		return nil, errors.New("not today")
	}
	return []byte(strconv.FormatInt(a.number+1, 10) + "\x00"), nil
}

func TestModuleLoader(t *testing.T) {
	folder := t.TempDir()
	first, second, third := filepath.Join(folder, "1.so"), filepath.Join(folder, "2.so"), filepath.Join(folder, "3.so")
	read := func(data []byte) (adder, int, error) {
		text, _, _ := bytes.Cut(data, []byte{0})
		n, err := strconv.ParseInt(string(text), 10, 64)
		return adder{n}, len(text) + 1, err
	}
	plain := func(data []byte) (LoadedModule, int, error) { a, n, err := read(data); return &a, n, err }
	saves := func(data []byte) (LoadedModule, int, error) { a, n, err := read(data); return &savedAdder{a}, n, err }
	noError(t, Pack(first, PackOptions{Libraries: []string{prepared(t, "calls.so")}, Imports: []PackImport{{"acme_go", []byte("0\x00")}}}))
	if _, err := LoadModuleFromFile(first); !errors.Is(err, ErrUnsupported) {
		t.Fatalf("a kind without a loader: %v", err)
	}
	plus := func(path string, load ModuleLoader) int64 {
		noError(t, RegisterModuleLoader("acme_go", load))
		module := ok[*Module](t)(LoadModuleFromFile(path))
		defer module.Close()
		f := ok[*Function](t)(module.GetFunction("plus", true))
		defer f.Close()
		if _, err := module.GetFunction("broken", true); err == nil || !strings.Contains(err.Error(), "no luck") {
			t.Fatalf("a module that fails: %v", err)
		}
		return ok[int64](t)(ok[*Value](t)(f.Invoke(5)).Int64())
	}
	if n := plus(first, plain); n != 5 {
		t.Fatalf("5 + 0 is %d", n)
	}
	noError(t, Pack(second, PackOptions{Libraries: []string{first}}))
	if n := plus(second, saves); n != 5 {
		t.Fatalf("without Save the bytes stay: %d", n)
	}
	noError(t, Pack(second, PackOptions{Libraries: []string{first}}))
	if n := plus(second, saves); n != 6 {
		t.Fatalf("Save writes anew: %d", n)
	}
	noError(t, Pack(second, PackOptions{Libraries: []string{second}}))
	if err := Pack(third, PackOptions{Libraries: []string{second}}); err == nil || !strings.Contains(err.Error(), "not today") {
		t.Fatalf("Save failed: %v", err)
	}
	noError(t, RegisterModuleLoader("acme_go", func([]byte) (LoadedModule, int, error) { panic("a bad day") }))
	if _, err := LoadModuleFromFile(first); err == nil || !strings.Contains(err.Error(), "a bad day") {
		t.Fatalf("a loader that panics: %v", err)
	}
	noError(t, RegisterModuleLoader("acme_go", nil))
	if _, err := LoadModuleFromFile(first); !errors.Is(err, ErrUnsupported) {
		t.Fatalf("the loader is gone: %v", err)
	}
	if err := RegisterModuleLoader("opencl", plain); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a kind of Heddle's: %v", err)
	}
}
