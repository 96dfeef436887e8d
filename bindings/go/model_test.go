package heddle

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func loadDigits(t testing.TB, opts ...Option) *Model {
	t.Helper()
	m, err := Load(digitsFile("digits.json"), append([]Option{WithoutAnnotations(), WithDevices("cpu")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestDigits(t *testing.T) {
	images, expected := digits(t)
	for _, opts := range [][]Option{{}, {WithDevices("cpu,sim:0,sim:1"), WithPlace("wide*=sim:0", "fine*=sim:1")},
		{WithOptimize("off"), WithStrict(), WithStreams(1), WithPrograms(2), WithPool(1)}} {
		m := loadDigits(t, opts...)
		for i, image := range images {
			out := ok[[]*Array](t)(m.Run(image))
			if len(out) != 1 || !reflect.DeepEqual(out[0].GetShape(), []int64{1, 10}) {
				t.Fatal(out)
			}
			near(t, ok[[]float32](t)(Copy[float32](out[0])), expected[i], 1e-4)
			out[0].Close()
			if i == 30 && len(opts) > 0 {
				break
			}
		}
	}
}

func TestPlanTimeout(t *testing.T) {
	images, _ := digits(t)
	m := loadDigits(t, WithPlanTimeout(time.Hour), WithUploadTimeout(time.Hour))
	ok[[]*Array](t)(m.Run(images[0]))
	if m, err := Load(digitsFile("digits.json"), WithDevices("cpu"), WithPlanTimeout(-1)); err == nil {
		m.Close()
		t.Fatal("a negative limit is taken")
	}
	m, err := Load(digitsFile("digits.json"), WithDevices("cpu"), WithoutAnnotations(), WithPlanTimeout(1))
	if err == nil {
		defer m.Close()
		_, err = m.Run(images[0])
	}
	if !errors.Is(err, ErrTimeout) {
		t.Fatal(err)
	}
}

func TestWaysToGiveInputs(t *testing.T) {
	images, expected := digits(t)
	m := loadDigits(t)
	array := ok[*Array](t)(NewArray(images[0], 1, 1, 8, 8))
	onSim := ok[*Array](t)(Empty([]int64{1, 1, 8, 8}, ExtDev(0)))
	noError(t, onSim.CopyFrom(array))
	for _, in := range []interface{}{images[0], array, onSim, map[string]interface{}{"image": images[0]},
		map[string]interface{}{"image": array}} {
		near(t, ok[[]float32](t)(Copy[float32](ok[[]*Array](t)(m.Run(in))[0])), expected[0], 1e-4)
	}
	into := make([]float32, 10)
	noError(t, m.RunInto([]interface{}{into}, images[1]))
	near(t, into, expected[1], 1e-4)
	held := ok[*Array](t)(Empty([]int64{1, 10}))
	noError(t, m.RunInto([]interface{}{held}, images[2]))
	near(t, ok[[]float32](t)(Copy[float32](held)), expected[2], 1e-4)
	noError(t, m.RunInto([]interface{}{nil}, images[2]))

	for _, bad := range [][]interface{}{{}, {images[0], images[1]}, {images[0][:63]}, {make([]float64, 64)}, {"text"}, {nil},
		{map[string]interface{}{}}, {map[string]interface{}{"image": images[0], "label": images[0]}},
		{ok[*Array](t)(Empty([]int64{64}))}} {
		if _, err := m.Run(bad...); err == nil {
			t.Fatalf("Run took %v", bad)
		}
	}
	if err := m.RunInto(nil, images[0]); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	for _, bad := range []interface{}{make([]float32, 9), (*Array)(nil)} {
		if err := m.RunInto([]interface{}{bad}, images[0]); !errors.Is(err, ErrInvalid) {
			t.Fatal(err)
		}
	}
}

func TestWhatAModelSaysOfItself(t *testing.T) {
	m := loadDigits(t)
	in, out := ok[[]IOInfo](t)(m.Inputs()), ok[[]IOInfo](t)(m.Outputs())
	if !reflect.DeepEqual(in, []IOInfo{{"image", []int64{1, 1, 8, 8}, "float32"}}) {
		t.Fatal(in)
	}
	if len(out) != 1 || !reflect.DeepEqual(out[0].Shape, []int64{1, 10}) || out[0].DType != "float32" {
		t.Fatal(out)
	}
	if d := m.Devices(); !reflect.DeepEqual(d, []string{"cpu:0"}) && !reflect.DeepEqual(d, []string{"cpu"}) {
		t.Fatal(d)
	}
	if text := ok[string](t)(m.Plan()); !strings.Contains(text, "cpu") {
		t.Fatal(text)
	}
	var object map[string]interface{}
	noError(t, json.Unmarshal([]byte(ok[string](t)(m.Plan(PlanJSON))), &object))
	if dot := ok[string](t)(m.Plan(PlanDOT)); !strings.Contains(dot, "digraph") {
		t.Fatal(dot)
	}
	if _, err := m.Plan(PlanFormat(9)); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	images, _ := digits(t)
	steps := ok[[]Step](t)(m.Profile(images[0]))
	if len(steps) == 0 || steps[0].Start != 0 || steps[0].Name == "" || !strings.HasPrefix(steps[0].Device, "cpu") {
		t.Fatal(steps)
	}
}

func TestAnOpenDimension(t *testing.T) {
	m := ok[*Model](t)(Load(prepared(t, "batch.json"), WithDevices("cpu")))
	y := []float32{1, 2, 3, 4}
	for _, n := range []int{1, 3, 2} {
		x := make([]float32, n*4)
		out := ok[[]*Array](t)(m.Run(x, y))[0]
		if !reflect.DeepEqual(out.GetShape(), []int64{int64(n), 4}) {
			t.Fatal(out.GetShape())
		}
		into := make([]float32, n*4)
		noError(t, m.RunInto([]interface{}{into}, ok[*Array](t)(NewArray(x, int64(n), 4)), y))
		near(t, into[4*n-4:], y, 0)
	}
	for _, bad := range []interface{}{make([]float32, 5), make([]int32, 4), ok[*Array](t)(Empty([]int64{2, 5}))} {
		if _, err := m.Run(bad, y); err == nil {
			t.Fatalf("Run took %v", bad)
		}
	}
	if in := ok[[]IOInfo](t)(m.Inputs()); !reflect.DeepEqual(in[0].Shape, []int64{-1, 4}) {
		t.Fatal(in)
	}
	bound := ok[*Model](t)(Load(prepared(t, "batch.json"), WithDevices("cpu"), WithDims("n=2")))
	if in := ok[[]IOInfo](t)(bound.Inputs()); !reflect.DeepEqual(in[0].Shape, []int64{2, 4}) {
		t.Fatal(in)
	}
}

func TestErrorsOfModels(t *testing.T) {
	attributes := func(err error) Error {
		t.Helper()
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%#v", err)
		}
		return *e
	}
	_, err := Load("no_such.json")
	if e := attributes(err); e.Status != ErrIO || e.File != "no_such.json" || !errors.Is(err, ErrIO) || errors.Is(err, ErrBusy) {
		t.Fatalf("%#v", e)
	}
	_, err = Load(digitsFile("digits.json"), WithDevices("cpu,npu:3"))
	if e := attributes(err); e.Status != ErrNoDevice || e.Device != "npu:3" {
		t.Fatalf("%#v", e)
	}
	_, err = Load(digitsFile("digits.json"), WithPlace("nonsense"))
	if e := attributes(err); e.Status != ErrInvalid {
		t.Fatalf("%#v", e)
	}
	bad := t.TempDir() + "/bad.json"
	text, _ := os.ReadFile(prepared(t, "add.json"))
	noError(t, os.WriteFile(bad, []byte(strings.Replace(string(text), "[0, 0, 0]", "[7, 0, 0]", 1)), 0o600))
	_, err = Load(bad)
	if e := attributes(err); e.Status != ErrFormat || e.File != bad || !strings.Contains(e.Message, "nodes[2]") {
		t.Fatalf("%#v", e)
	}
	for _, opts := range [][]Option{{WithPool(-1)}, {WithDevices("c\x00pu")}, {WithLibrary("no_such.so")},
		{WithLibrary("x.so"), WithModule(&Module{})}} {
		if _, err := Load(prepared(t, "add.json"), opts...); err == nil {
			t.Fatal("no error")
		}
	}
	if ErrBusy.Name() != "HEDDLE_EBUSY" || ErrBusy.Error() != "still in use" {
		t.Fatal(ErrBusy)
	}
}

func TestGraphFromBytes(t *testing.T) {
	images, expected := digits(t)
	graph, _ := os.ReadFile(digitsFile("digits.json"))
	params, _ := os.ReadFile(digitsFile("digits.params"))
	m := ok[*Model](t)(LoadGraph(graph, params, WithDevices("cpu"), WithoutAnnotations()))
	near(t, ok[[]float32](t)(Copy[float32](ok[[]*Array](t)(m.Run(images[0]))[0])), expected[0], 1e-4)
	if _, err := LoadGraph(graph[:100], params); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
	if _, err := LoadGraph(nil, nil); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
	ok[*Model](t)(LoadBytes(graph, "", WithDevices("cpu"), WithoutAnnotations())).Close()
	if _, err := LoadBytes(graph[:100], ""); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
	if _, err := LoadBytes(nil, "."); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
}

func TestAnImageModelOfALibrary(t *testing.T) {
	image := ok[*Array](t)(LoadNpy(prepared(t, "image.npy")))
	want := ok[[]float32](t)(Copy[float32](ok[*Array](t)(LoadNpy(prepared(t, "scores.npy")))))
	m := ok[*Model](t)(Load(prepared(t, "net.json"), WithLibrary(prepared(t, "net.so"))))
	near(t, ok[[]float32](t)(Copy[float32](ok[[]*Array](t)(m.Run(image))[0])), want, 1e-3)
	library := ok[*Module](t)(LoadModuleFromFile(prepared(t, "net.so")))
	m = ok[*Model](t)(Load(prepared(t, "net.json"), WithModule(library), WithParams(prepared(t, "net.params"))))
	library.Close()
	near(t, ok[[]float32](t)(Copy[float32](ok[[]*Array](t)(m.Run(image))[0])), want, 1e-3)
}

func TestAGoFunctionAsANode(t *testing.T) {
	failing := false
	setFunction(t, "go.node", func(args ...*Value) (interface{}, error) {
		if failing {
			return nil, errOurs
		}
		x, err := View[float32](args[0].AsArray())
		if err != nil {
			return nil, err
		}
		y := make([]float32, len(x))
		for i := range x {
			y[i] = x[i] * x[i]
		}
		return nil, args[1].AsArray().CopyFrom(y)
	})
	library := ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so")))
	m, err := Load(prepared(t, "node.json"), WithModule(library), WithDevices("cpu"))
	noError(t, err)
	x := []float32{1, 2, 3, 4}
	near(t, ok[[]float32](t)(Copy[float32](ok[[]*Array](t)(m.Run(x))[0])), []float32{1, 4, 9, 16}, 0)
	failing = true
	for i := 0; i < 3; i++ {
		_, err = m.Run(x)
		var e *Error
		if !errors.Is(err, errOurs) || !errors.As(err, &e) || e.Node != "squared" {
			t.Fatalf("%#v", err)
		}
	}
	failing = false
	ok[[]*Array](t)(m.Run(x))
}

func TestCall(t *testing.T) {
	images, expected := digits(t)
	m := loadDigits(t)
	c := ok[*Call](t)(m.Prepare())
	m.Close()
	in, out := ok[*Array](t)(c.Input(0)), ok[*Array](t)(c.Output(0))
	pixels, scores := ok[[]float32](t)(View[float32](in)), ok[[]float32](t)(View[float32](out))
	for i := 0; i < 20; i++ {
		copy(pixels, images[i])
		noError(t, c.Run())
		near(t, scores, expected[i], 1e-4)
	}
	noError(t, c.SetInput("image", images[21]))
	noError(t, c.RunContext(context.Background()))
	near(t, scores, expected[21], 1e-4)
	if err := c.SetInput("label", images[0]); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "image") {
		t.Fatal(err)
	}
	stem := ok[*Array](t)(c.Node("stem", 0))
	if s := stem.GetShape(); len(s) != 4 {
		t.Fatal(s)
	}
	if _, err := c.Node("no_such", 0); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if s := ok[Stats](t)(c.Stats()); s.Runs < 21 {
		t.Fatal(s)
	}
	if steps := ok[[]Step](t)(c.Profile()); len(steps) == 0 {
		t.Fatal(steps)
	}
	ok[string](t)(c.Explain(PlanText))
	for _, i := range []int{-1, 1} {
		if _, err := c.Input(i); err == nil {
			t.Fatal(i)
		}
		if _, err := c.Output(i); err == nil {
			t.Fatal(i)
		}
	}
	c.Close()
	c.Close()
	if err := c.Run(); err != ErrClosed {
		t.Fatal(err)
	}
	near(t, ok[[]float32](t)(Copy[float32](out)), expected[21], 1e-4) // the array outlives model and call
}

func TestAParameterMayBeSetByACall(t *testing.T) {
	images, _ := digits(t)
	m := loadDigits(t)
	dark := ok[[]float32](t)(Copy[float32](ok[[]*Array](t)(m.Run(make([]float32, 64)))[0]))
	c := ok[*Call](t)(m.Prepare())
	noError(t, c.SetInput("scale.factor", ok[*Array](t)(Empty([]int64{1, 1, 1, 1}))))
	noError(t, c.SetInput("image", images[0]))
	noError(t, c.Run())
	near(t, ok[[]float32](t)(Copy[float32](ok[*Array](t)(c.Output(0)))), dark, 1e-5)
}

func TestGoroutinesOnOneModel(t *testing.T) {
	images, expected := digits(t)
	m := loadDigits(t, WithPool(3))
	var all sync.WaitGroup
	for g := 0; g < 8; g++ {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			into := make([]float32, 10)
			for i := g; i < len(images); i += 8 {
				err := m.RunInto([]interface{}{into}, images[i])
				if err != nil {
					t.Error(err)
					return
				}
				for k := range into {
					if math.Abs(float64(into[k]-expected[i][k])) > 1e-4 {
						t.Errorf("image %d is not its own", i)
						return
					}
				}
			}
		}(g)
	}
	all.Wait()
}

func TestOneCallInTwoGoroutines(t *testing.T) {
	c := ok[*Call](t)(loadDigits(t).Prepare())
	noError(t, c.begin())
	if err := c.Run(); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	c.end()
	noError(t, c.Run())
}

func TestCancel(t *testing.T) {
	started := make(chan struct{})
	stop := make(chan struct{})
	setFunction(t, "go.node", func(args ...*Value) (interface{}, error) {
		started <- struct{}{}
		<-stop
		return nil, nil
	})
	library := ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so")))
	m := ok[*Model](t)(Load(prepared(t, "node.json"), WithModule(library), WithDevices("cpu"), WithPool(1)))
	x := []float32{1, 2, 3, 4}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.RunContext(ctx, x); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrCanceled) {
		t.Fatal(err)
	}

	first := make(chan error)
	go func() {
		_, err := m.Run(x)
		first <- err
	}()
	<-started
	waiting, giveUp := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer giveUp()
	if _, err := m.RunContext(waiting, x); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrTimeout) {
		t.Fatalf("while the only executor was in use: %v", err)
	}
	stop <- struct{}{}
	noError(t, <-first)

	live, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		_, err := m.RunContext(live, x)
		first <- err
	}()
	<-started
	stop <- struct{}{}
	noError(t, <-first)
}

// The device's 60th command never completes; a run is left behind with its executor, and the next one has another.
func TestARunThatNeverComesBack(t *testing.T) {
	rt := ok[*Runtime](t)(NewRuntime(Settings{"sim.hang": "60", "devices": "sim:0"}))
	defer rt.Close()
	images, _ := digits(t)
	m := ok[*Model](t)(Load(digitsFile("digits.json"), WithRuntime(rt), WithoutAnnotations(), WithPool(1)))
	defer m.Close()
	for i := 0; ; i++ {
		ctx, end := context.WithTimeout(context.Background(), time.Second)
		_, err := m.RunContext(ctx, images[0])
		end()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if noError(t, err); i == 100 {
			t.Fatal("no run was left behind")
		}
	}
}

func TestRuntimes(t *testing.T) {
	rt := ok[*Runtime](t)(NewRuntime(Settings{"devices": "sim:0", "threads": "1"}))
	value, origin, err := rt.Setting("devices")
	if err != nil || value != "sim:0" || origin != "call" {
		t.Fatal(value, origin, err)
	}
	found := false
	for _, info := range ok[[]SettingInfo](t)(rt.DescribedSettings()) {
		found = found || info.Key == "sim.delay_us" && info.Type == "number" && info.PerDevice && info.Help != ""
	}
	if !found {
		t.Fatal("sim.delay_us is not described")
	}
	if _, _, err := rt.Setting("no_such"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	m := ok[*Model](t)(Load(digitsFile("digits.json"), WithRuntime(rt), WithoutAnnotations()))
	rt.Close()
	rt.Close()
	if d := m.Devices(); len(d) != 1 || d[0] != "sim:0" {
		t.Fatal(d)
	}
	images, expected := digits(t)
	near(t, ok[[]float32](t)(Copy[float32](ok[[]*Array](t)(m.Run(images[0]))[0])), expected[0], 1e-4)
	if _, err := Load(digitsFile("digits.json"), WithRuntime(rt)); err != ErrClosed {
		t.Fatal(err)
	}
	if _, err := rt.Devices(); err != ErrClosed {
		t.Fatal(err)
	}
	if _, err := NewRuntime(Settings{"threads": "many"}); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	process := ok[*Runtime](t)(Default())
	process.Close()
	value, _, err = process.Setting("devices")
	if err != nil || value != "cpu,sim:0,sim:1" {
		t.Fatal(value, err)
	}
}
