package heddle

// What must hold however long a process lives: memory, handles, finalizers, Close at any moment.

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
)

// Settles finalizers and gives the process's memory.
func settled(t testing.TB) int {
	for i := 0; i < 3; i++ {
		runtime.GC()
		done := make(chan struct{})
		x := &struct{ p *int }{new(int)}
		runtime.SetFinalizer(x, func(interface{}) { close(done) })
		x = nil
		runtime.GC()
		<-done
	}
	return rss(t)
}

// Memory after the last round is that after the first fifth, but for what the runtimes keep.
func flat(t *testing.T, n int, round func(i int)) {
	t.Helper()
	for i := 0; i < n/5; i++ {
		round(i)
	}
	before := settled(t)
	for i := n / 5; i < n; i++ {
		round(i)
	}
	after := settled(t)
	t.Logf("%d rounds: %d KiB, then %d KiB", n, before, after)
	if after > before+8*1024 {
		t.Fatalf("memory grew from %d to %d KiB in %d rounds", before, after, n)
	}
}

func TestMemoryOfCallsWithErrors(t *testing.T) {
	apply := ok[*Function](t)(ok[*Module](t)(LoadModuleFromFile(prepared(t, "calls.so"))).GetFunction("apply"))
	array := ok[*Array](t)(NewArray([]float32{1, 2, 3, 4}))
	flat(t, rounds(100000, 5000), func(i int) {
		v, err := apply.Invoke(func(args ...*Value) (interface{}, error) {
			switch i % 4 {
			case 0:
				return nil, errOurs
			case 1:
				panic(errOurs)
			case 2:
				return args[1].AsArray(), nil
			}
			return fmt.Sprint(args[0].AsStr(), i), nil
		}, "text", array, []byte("bytes"))
		if (i%4 < 2) != errors.Is(err, errOurs) || (i%4 < 2) != (v == nil) {
			t.Fatal(i, v, err)
		}
		v.Close()
	})
}

func TestMemoryOfRunsWithErrors(t *testing.T) {
	images, expected := digits(t)
	m := loadDigits(t)
	flat(t, rounds(100000, 5000), func(i int) {
		image := images[i%len(images)]
		if i%10 == 0 {
			image = image[:60]
		}
		out, err := m.Run(image)
		if i%10 == 0 {
			if !errors.Is(err, ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		noError(t, err)
		if i%100 == 1 {
			near(t, ok[[]float32](t)(Copy[float32](out[0])), expected[i%len(expected)], 1e-4)
		} else {
			out[0].Close() // the others are for the finalizers
		}
	})
}

func TestMemoryOfModels(t *testing.T) {
	images, _ := digits(t)
	flat(t, rounds(2000, 50), func(i int) {
		m, err := Load(digitsFile("digits.json"), WithDevices("cpu"), WithoutAnnotations(), WithPool(2))
		noError(t, err)
		ok[[]*Array](t)(m.Run(images[0]))
		m.Close()
		if _, err := Load("no_such.json"); err == nil {
			t.Fatal("no error")
		}
	})
}

// Two gigabytes that are never closed: the collector sees some kilobytes of Go.
func TestMemoryThatIsNotClosed(t *testing.T) {
	before := settled(t)
	for i := 0; i < 512; i++ {
		a := ok[*Array](t)(Empty([]int64{1 << 20}))
		memory := ok[[]float32](t)(View[float32](a))
		for k := 0; k < len(memory); k += 1024 {
			memory[k] = 1
		}
		runtime.KeepAlive(a)
		if now := rss(t); now > before+600*1024 {
			t.Fatalf("%d KiB at first, %d KiB after %d arrays of 4 MiB", before, now, i)
		}
	}
	for i := 0; i < rounds(200, 40); i++ {
		m, err := Load(digitsFile("digits.json"), WithDevices("cpu"), WithoutAnnotations())
		noError(t, err)
		ok[[]IOInfo](t)(m.Inputs())
	}
	t.Logf("%d KiB at first, %d KiB at the end", before, settled(t))
}

func TestFinalizersUnderPressure(t *testing.T) {
	images, expected := digits(t)
	m := loadDigits(t, WithPool(2))
	stop := make(chan struct{})
	var collector, all sync.WaitGroup
	collector.Add(1)
	go func() {
		defer collector.Done()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for g := 0; g < 4; g++ {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			for i := 0; i < rounds(2000, 100); i++ {
				k := (g*100 + i) % len(images)
				in, err := NewArray(images[k], 1, 1, 8, 8)
				if err == nil {
					var out []*Array
					if out, err = m.Run(in); err == nil {
						var scores []float32
						if scores, err = Copy[float32](out[0]); err == nil && math.Abs(float64(scores[3]-expected[k][3])) > 1e-4 {
							err = fmt.Errorf("image %d is not its own", k)
						}
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		}(g)
	}
	all.Wait()
	close(stop)
	collector.Wait()
}

// A call after Close gets ErrClosed, a call before it gets its result.
func TestCloseRaces(t *testing.T) {
	images, expected := digits(t)
	for round := 0; round < rounds(200, 15); round++ {
		m := loadDigits(t, WithPool(2))
		c := ok[*Call](t)(m.Prepare())
		a := ok[*Array](t)(NewArray(images[0], 1, 1, 8, 8))
		f := ok[*Function](t)(ConvertFunction(addOne))
		var all sync.WaitGroup
		begin := make(chan struct{})
		for g := 0; g < 6; g++ {
			all.Add(1)
			go func(g int) {
				defer all.Done()
				<-begin
				for i := 0; i < 20; i++ {
					var err error
					var scores []float32
					switch g % 3 {
					case 0:
						var out []*Array
						if out, err = m.Run(a); err == nil {
							scores, err = Copy[float32](out[0])
						}
						if err == nil && math.Abs(float64(scores[0]-expected[0][0])) > 1e-4 {
							t.Error("scores of another image")
						}
					case 1:
						if err = c.Run(); errors.Is(err, ErrBusy) {
							err = nil
						}
					default:
						_, err = f.Invoke(i)
					}
					if err != nil && !errors.Is(err, ErrClosed) {
						t.Error(err)
						return
					}
				}
			}(g)
		}
		for _, closer := range []func(){m.Close, c.Close, a.Close, f.Close, m.Close, a.Close} {
			all.Add(1)
			go func(closer func()) {
				defer all.Done()
				<-begin
				runtime.Gosched()
				closer()
			}(closer)
		}
		close(begin)
		all.Wait()
	}
}

func TestArraysOutliveTheirModel(t *testing.T) {
	images, expected := digits(t)
	m := loadDigits(t)
	var kept []*Array
	for i := 0; i < 10; i++ {
		kept = append(kept, ok[[]*Array](t)(m.Run(images[i]))[0])
	}
	m.Close()
	m = nil
	settled(t)
	for i, a := range kept {
		near(t, ok[[]float32](t)(Copy[float32](a)), expected[i], 1e-4)
	}
}

// A function that was registered is there although nothing of Go holds it; one that was converted goes with its handle.
func TestFunctionsAreCollected(t *testing.T) {
	gone := make(chan struct{})
	func() {
		held := &struct{ p *int }{new(int)}
		runtime.SetFinalizer(held, func(interface{}) { close(gone) })
		f := ok[*Function](t)(ConvertFunction(func(...*Value) (interface{}, error) { return *held.p, nil }))
		ok[*Value](t)(f.Invoke())
	}()
	for i := 0; i < 3; i++ {
		settled(t)
	}
	runtime.GC()
	<-gone
	noError(t, RegisterFunction(func(...*Value) (interface{}, error) { return "kept", nil }, "go.kept", true))
	settled(t)
	if v := ok[*Value](t)(ok[*Function](t)(GetGlobalFunction("go.kept")).Invoke()); v.AsStr() != "kept" {
		t.Fatal(v)
	}
}
