package heddle

import (
	"errors"
	"os"
	"path/filepath"
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
