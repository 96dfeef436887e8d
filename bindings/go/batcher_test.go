package heddle

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
)

// z = x + y of prepare.py: x has n items of 4, y has none and is the same for all requests of a run.
func newBatcher(t testing.TB, o BatcherOptions, opts ...Option) *Batcher {
	t.Helper()
	m := ok[*Model](t)(Load(prepared(t, "batch.json"), append([]Option{WithDevices("cpu")}, opts...)...))
	defer m.Close() // the batcher keeps what it needs
	b := ok[*Batcher](t)(m.NewBatcher(o))
	t.Cleanup(b.Close)
	return b
}

var ones = []float32{1, 1, 1, 1}

func four(first int) []float32 {
	f := float32(first)
	return []float32{f, f + 1, f + 2, f + 3}
}

func checkFour(t testing.TB, out []*Array, err error, first int) {
	t.Helper()
	noError(t, err)
	near(t, ok[[]float32](t)(Copy[float32](out[0])), four(first+1), 0)
	out[0].Close()
}

func TestBatcherSharesRuns(t *testing.T) {
	b := newBatcher(t, BatcherOptions{MaxItems: 16, MaxDelay: time.Minute, MaxQueue: 64})
	var all sync.WaitGroup
	for i := 0; i < 64; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			var out []*Array
			var err error
			if i%2 == 0 {
				out, err = b.Run(context.Background(), four(i), ones)
			} else {
				out, err = b.RunCall(context.Background(), BatchCall{Priority: int32(i % 3), Wait: time.Minute},
					map[string]interface{}{"x": four(i), "y": ones})
			}
			if err != nil || len(out) != 1 {
				t.Error(err)
				return
			}
			if got, err := Copy[float32](out[0]); err != nil || len(got) != 4 || got[3] != float32(i+4) {
				t.Error(got, err)
			}
			out[0].Close()
		}(i)
	}
	all.Wait()
	if s := ok[BatcherStats](t)(b.Stats()); s.Runs != 4 || s.Items != 64 || s.Succeeded != 64 || s.MostItems != 16 {
		t.Fatalf("%+v", s)
	}
}

func TestBatcherRefuses(t *testing.T) {
	b := newBatcher(t, BatcherOptions{MaxItems: 2})
	ctx := context.Background()
	for _, bad := range [][]interface{}{{}, {four(0)}, {four(0), ones, ones}, {four(0)[:3], ones}, {append(four(0), append(four(1), four(2)...)...), ones},
		{[]int32{1, 2, 3, 4}, ones}, {map[string]interface{}{"x": four(0)}}, {(*Array)(nil), ones}} {
		if out, err := b.Run(ctx, bad...); !errors.Is(err, ErrInvalid) {
			t.Fatal(bad, out, err)
		}
	}
	if _, err := b.Run(ctx, map[string]interface{}{"x": four(0), "y": ones, "q": ones}); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	out, err := b.Run(ctx, four(7), ones)
	checkFour(t, out, err, 7)
	m := loadDigits(t)
	for _, o := range []BatcherOptions{{MaxItems: -1}, {Workers: 65}, {MaxDelay: -1}, {MaxItems: 4, MaxQueue: 2},
		{Inputs: map[string]BatchPort{"image": {Axis: 9}}}, {Inputs: map[string]BatchPort{"image": {PadAxes: []int{40}}}}} {
		if b, err := m.NewBatcher(o); !errors.Is(err, ErrInvalid) {
			b.Close()
			t.Fatalf("%+v: %v", o, err)
		}
	}
	if _, err := m.NewBatcher(BatcherOptions{Outputs: map[string]BatchPort{"q": {}}}); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

func TestBatcherEndsWithContext(t *testing.T) {
	b := newBatcher(t, BatcherOptions{MaxItems: 8, MaxQueue: 8, MaxDelay: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := b.Run(ctx, four(0), ones)
		ended <- err
	}()
	for ok[BatcherStats](t)(b.Stats()).Queued == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrCanceled) {
		t.Fatal(err)
	}
	if _, err := b.Run(ctx, four(0), ones); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// A deadline shortens the delay.
	soon, end := context.WithTimeout(context.Background(), 2*time.Second)
	defer end()
	out, err := b.Run(soon, four(3), ones)
	checkFour(t, out, err, 3)
}

func TestBatcherIsFullAndShutsDown(t *testing.T) {
	b := newBatcher(t, BatcherOptions{MaxItems: 2, MaxQueue: 2, MaxDelay: time.Hour})
	results := make(chan error, 2)
	for i := 0; i < 2; i++ {
		go func(i int) {
			other := []float32{float32(i), 1, 1, 1} // they do not share a run
			out, err := b.Run(context.Background(), four(0), other)
			if err == nil {
				out[0].Close()
			}
			results <- err
		}(i)
	}
	for ok[BatcherStats](t)(b.Stats()).Queued < 2 {
		time.Sleep(time.Millisecond)
	}
	if _, err := b.Run(context.Background(), four(0), ones); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	if _, err := b.RunCall(context.Background(), BatchCall{Wait: 50 * time.Millisecond}, four(0), ones); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	noError(t, b.Drain(context.Background()))
	noError(t, b.Shutdown(context.Background()))
	for i := 0; i < 2; i++ {
		noError(t, <-results)
	}
	if _, err := b.Run(context.Background(), four(0), ones); !errors.Is(err, ErrCanceled) {
		t.Fatal(err)
	}
	b.Close()
	b.Close()
	if _, err := b.Run(context.Background(), four(0), ones); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

func TestBatcherClosesWithRequests(t *testing.T) {
	b := newBatcher(t, BatcherOptions{MaxItems: 64, MaxDelay: time.Hour})
	results := make(chan error, 8)
	for i := 0; i < 8; i++ {
		go func(i int) {
			_, err := b.Run(context.Background(), four(i), ones)
			results <- err
		}(i)
	}
	for ok[BatcherStats](t)(b.Stats()).Queued < 8 {
		time.Sleep(time.Millisecond)
	}
	b.Close()
	for i := 0; i < 8; i++ {
		if err := <-results; !errors.Is(err, ErrCanceled) {
			t.Fatal(err)
		}
	}
	for i := 0; i < 3; i++ { // one that nobody closes
		m := ok[*Model](t)(Load(prepared(t, "batch.json"), WithDevices("cpu")))
		out, err := ok[*Batcher](t)(m.NewBatcher(BatcherOptions{})).Run(context.Background(), four(1), ones)
		checkFour(t, out, err, 1)
		m.Close()
		runtime.GC()
	}
}

func TestBatcherTimes(t *testing.T) {
	b := newBatcher(t, BatcherOptions{MaxItems: 8, MaxDelay: 5 * time.Millisecond})
	times := BatchTimes{Items: 77}
	out, err := b.RunCall(context.Background(), BatchCall{Times: &times}, four(1), ones)
	checkFour(t, out, err, 1)
	if times.Items != 1 || times.Rows != 1 || times.Steps != nil {
		t.Error(times)
	}
	if times.Taken < 4*time.Millisecond || times.Run < times.Taken || times.Ran <= times.Run || times.Ended < times.Ran {
		t.Error(times)
	}
	out, err = b.RunCall(context.Background(), BatchCall{Times: &times, Steps: true}, four(2), ones)
	checkFour(t, out, err, 2)
	if len(times.Steps) == 0 || times.Steps[0].Op != "Add" || times.Steps[0].End <= times.Steps[0].Start {
		t.Error(times.Steps)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(5*time.Millisecond, cancel)
	slow := newBatcher(t, BatcherOptions{MaxItems: 8, MaxDelay: time.Minute})
	if _, err = slow.RunCall(ctx, BatchCall{Times: &times}, four(3), ones); err == nil || times.Run != 0 || times.Items != 0 {
		t.Error(err, times)
	}
}
