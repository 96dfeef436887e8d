package heddle

// What the garbage collector cannot see: a few bytes of Go may hold megabytes of the library's. Those are counted, and
// the collector is run where too many have come since it last was, so that a program that leaves arrays to their
// finalizers does not run out of memory.

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	leastLimit   = 64 << 20
	handleBytes  = 512     // of an array, beside its elements
	modelBytes   = 1 << 20 // of a model or an executor: an estimate
	longestDrain = 100 * time.Millisecond
)

var held struct {
	bytes atomic.Int64
	limit atomic.Int64
	turn  sync.Mutex
}

func init() { held.limit.Store(leastLimit) }

func freed(bytes int) { held.bytes.Add(int64(-bytes)) }

// allocated counts; it may run the collector, and waits then for finalizers, at most a moment.
func allocated(bytes int) {
	if held.bytes.Add(int64(bytes)) <= held.limit.Load() || !held.turn.TryLock() {
		return
	}
	defer held.turn.Unlock()
	drained := make(chan struct{})
	last := &struct{ p *int }{new(int)} // of a type that has a pointer, so that it is no part of a block of tiny ones
	runtime.SetFinalizer(last, func(interface{}) { close(drained) })
	runtime.GC()
	select {
	case <-drained:
	case <-time.After(longestDrain):
	}
	limit := 2 * held.bytes.Load()
	if limit < leastLimit {
		limit = leastLimit
	}
	held.limit.Store(limit)
}
