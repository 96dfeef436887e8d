package heddle

// Handles of the library that several goroutines use and one closes.

import (
	"sync/atomic"
	"unsafe"
)

const closedBit = int64(1) << 40

// ref counts the calls that use a handle. Close marks it; the last user releases it, so that nothing waits.
type ref struct {
	state atomic.Int64                  // users, and closedBit
	free  func(p unsafe.Pointer, n int) // given what is below; plain functions, so that a handle costs no closure
	p     unsafe.Pointer
	n     int
}

// acquire begins a use, or gives ErrClosed. Each that gave nil is followed by release.
func (r *ref) acquire() error {
	for {
		now := r.state.Load()
		if now&closedBit != 0 {
			return ErrClosed
		}
		if r.state.CompareAndSwap(now, now+1) {
			return nil
		}
	}
}

func (r *ref) release() {
	if r.state.Add(-1) == closedBit {
		r.finish()
	}
}

// close marks it; only the first one does something.
func (r *ref) close() {
	for {
		now := r.state.Load()
		if now&closedBit != 0 {
			return
		}
		if r.state.CompareAndSwap(now, now|closedBit) {
			if now == 0 {
				r.finish()
			}
			return
		}
	}
}

// No other code looks at p any more. It is forgotten: it may have another owner soon.
func (r *ref) finish() {
	p := r.p
	r.p = nil
	r.free(p, r.n)
}
