package heddle

import (
	"errors"
	"testing"
	"time"
)

// y = x + x
const twice = `{"nodes":[{"op":"null","name":"x","inputs":[]},{"op":"Add","name":"y","inputs":[[0,0,0],[0,0,0]]}],` +
	`"arg_nodes":[0],"heads":[[1,0,0]],"node_row_ptr":[0,1,2],` +
	`"attrs":{"shape":["list_shape",[[3],null]],"dltype":["list_str",["float32",null]]},` +
	`"heddle":{"version":1,"opset":17}}`

// The stream is CUDA's legacy default one, which every driver has; run_tests.py gives the double of the driver.
func TestStreams(t *testing.T) {
	devices := ok[[]DeviceInfo](t)(Devices())
	there := false
	for _, d := range devices {
		there = there || d.Name == "cuda:0"
	}
	if !there {
		t.Skip("there is no cuda:0")
	}
	first := ok[*Model](t)(LoadGraph([]byte(twice), nil, WithDevices("cuda:0")))
	defer first.Close()
	a := ok[*Call](t)(first.Prepare())
	defer a.Close()
	b := ok[*Call](t)(first.Prepare())
	defer b.Close()
	var arrays [3]*Array
	for i := range arrays {
		arrays[i] = ok[*Array](t)(Empty([]int64{3}, GPU(0)))
		defer arrays[i].Close()
	}
	noError(t, a.BindInput("x", arrays[0]))
	noError(t, a.BindOutput(0, arrays[1]))
	noError(t, b.BindInput("x", arrays[1]))
	noError(t, b.BindOutput(0, arrays[2]))
	noError(t, a.UseStream(GPU(0), 1))
	noError(t, b.UseStream(GPU(0), 0))
	for i := float32(1); i < 4; i++ {
		noError(t, arrays[0].CopyFrom([]float32{i, 2 * i, 3 * i}))
		noError(t, arrays[0].AfterStream(0))
		noError(t, a.Start())
		noError(t, b.Start())
		noError(t, arrays[2].BeforeStream(1))
		noError(t, arrays[2].Wait(time.Minute))
		near(t, ok[[]float32](t)(Copy[float32](arrays[2])), []float32{4 * i, 8 * i, 12 * i}, 0)
		noError(t, b.Wait())
		noError(t, a.Wait())
	}
	noError(t, a.LeaveStream())
	noError(t, b.LeaveStream())
	noError(t, b.BindOutput(0, nil))
	noError(t, a.Run())
	noError(t, b.Run())
	near(t, ok[[]float32](t)(Copy[float32](ok[*Array](t)(b.Output(0)))), []float32{12, 24, 36}, 0)
	if err := a.UseStream(GPU(1), 0); !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrNoDevice) {
		t.Fatalf("a device that the model does not use has a stream: %v", err)
	}
}

func TestStreamsThatDoNotFit(t *testing.T) {
	model := ok[*Model](t)(LoadGraph([]byte(twice), nil, WithDevices("sim:0,cpu")))
	defer model.Close()
	call := ok[*Call](t)(model.Prepare())
	defer call.Close()
	sim := PluginDevice("sim", 0)
	for _, one := range []struct {
		on     Context
		status Status
	}{{CPU(0), ErrUnsupported}, {sim, ErrInvalid}, {PluginDevice("sim", 1), ErrInvalid}, {OpenGL(0), ErrNoDevice}} {
		if err := call.UseStream(one.on, 12345); !errors.Is(err, one.status) {
			t.Fatalf("a stream on %v: %v, expected %v", one.on, err, one.status)
		}
	}
	noError(t, call.LeaveStream())
	if err := call.BindInput("z", nil); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	x, there := ok[*Array](t)(NewArray([]float32{1, 2, 3})), ok[*Array](t)(Empty([]int64{3}, sim))
	defer x.Close()
	defer there.Close()
	if err := call.BindInput("z", x); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if err := call.BindOutput(1, x); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	noError(t, call.BindInput("x", x))
	noError(t, call.Start())
	noError(t, call.Wait())
	near(t, ok[[]float32](t)(Copy[float32](ok[*Array](t)(call.Output(0)))), []float32{2, 4, 6}, 0)
	noError(t, x.AfterStream(12345)) // of the host: nothing
	noError(t, x.BeforeStream(12345))
	noError(t, x.Wait(0))
	if err := there.AfterStream(12345); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	noError(t, there.Wait(-1))
	x.Close()
	if err := x.Wait(0); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}
