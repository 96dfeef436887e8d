package heddle

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// total = s + x, which is s of the next run.
const sums = `{"nodes":[{"op":"null","name":"x","inputs":[]},{"op":"null","name":"s","inputs":[]},` +
	`{"op":"Add","name":"total","inputs":[[1,0,0],[0,0,0]]}],"arg_nodes":[0,1],"heads":[[2,0,0]],` +
	`"node_row_ptr":[0,1,2,3],"attrs":{"shape":["list_shape",[[2],[2],null]],"dltype":["list_str",["float32","float32",null]]},` +
	`"heddle":{"version":1,"opset":17}}`

func TestState(t *testing.T) {
	model := ok[*Model](t)(LoadGraph([]byte(sums), nil, WithDevices("cpu"), WithState("s:total")))
	defer model.Close()
	call := ok[*Call](t)(model.Prepare())
	defer call.Close()
	other := ok[*Call](t)(model.Prepare())
	defer other.Close()
	read := func(c *Call) float32 {
		array := ok[*Array](t)(c.ReadState("total"))
		defer array.Close()
		got := make([]float32, 2)
		noError(t, array.CopyTo(got))
		return got[1]
	}
	add := func(c *Call, x float32, want float32) {
		t.Helper()
		noError(t, c.SetInput("x", []float32{0, x}))
		noError(t, c.Run())
		if got := read(c); got != want {
			t.Fatalf("the sum is %v, expected %v", got, want)
		}
	}
	add(call, 1, 1)
	add(call, 2, 3)
	states := ok[[]StateInfo](t)(call.States())
	if len(states) != 1 || states[0].Input != "s" || states[0].Output != "total" || states[0].Axis != -1 ||
		states[0].IsReset || states[0].Bytes != 8 || states[0].DType != "float32" || states[0].Device != "cpu" {
		t.Fatalf("the state is described as %+v", states)
	}
	noError(t, call.ForkState(other))
	add(other, 4, 7)
	add(call, 1, 4)
	path := filepath.Join(t.TempDir(), "state")
	noError(t, call.SaveState(path))
	noError(t, call.ResetState("s"))
	add(call, 1, 1)
	noError(t, call.LoadState(path))
	add(call, 1, 5)
	value := ok[*Array](t)(other.ReadState("s"))
	defer value.Close()
	noError(t, call.WriteState("s", value))
	add(call, 1, 8)
	var failure *Error
	if err := call.TruncateState(1, ""); !errors.As(err, &failure) || failure.Status != ErrInvalid {
		t.Fatalf("a state without an open dimension was cut: %v", err)
	}
	if err := call.ResetState("x"); !errors.As(err, &failure) || failure.Status != ErrNotFound {
		t.Fatalf("a value that is no state: %v", err)
	}
	noError(t, os.WriteFile(path, []byte("HEDDLEST"), 0o600))
	if err := call.LoadState(path); !errors.As(err, &failure) || failure.Status != ErrFormat {
		t.Fatalf("a file that is not whole: %v", err)
	}
	for i := 0; i < 3; i++ { // runs of the pool begin with none
		outputs := ok[[]*Array](t)(model.Run([]float32{0, 9}))
		got := make([]float32, 2)
		noError(t, outputs[0].CopyTo(got))
		if got[1] != 9 {
			t.Fatalf("run %d of the pool gave %v", i, got)
		}
		outputs[0].Close()
	}
	if _, err := LoadGraph([]byte(sums), nil, WithState("s:none")); !errors.As(err, &failure) || failure.Status != ErrInvalid {
		t.Fatalf("a rule without an output: %v", err)
	}
}
