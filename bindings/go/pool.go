package heddle

// The executors of a model, which runs take in turn.

import (
	"context"
	"sync"
)

// pool bounds how many executors there are, and gives the one that was used last, whose memory is warm. A waiting
// caller gets a turn in the order of coming.
type pool struct {
	mu      sync.Mutex
	idle    []*Call
	waiting []chan struct{} // closed when the turn has come
	turns   int             // that are left
	closed  bool
}

func newPool(n int) *pool { return &pool{turns: n} }

// get waits for a turn: an executor, or nil where one is to be made.
func (p *pool) get(ctx context.Context) (*Call, error) {
	p.mu.Lock()
	if p.turns > 0 {
		p.turns--
	} else if err := p.wait(ctx); err != nil {
		p.mu.Unlock()
		return nil, err
	}
	var c *Call
	if n := len(p.idle); n > 0 {
		c = p.idle[n-1]
		p.idle = p.idle[:n-1]
	}
	p.mu.Unlock()
	return c, nil
}

// wait is called with the lock, and returns with it.
func (p *pool) wait(ctx context.Context) error {
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case <-turn:
		p.mu.Lock()
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	for i, other := range p.waiting {
		if other == turn {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return canceled("no executor was free", ctx.Err())
		}
	}
	return nil // the turn came meanwhile; the run finds that ctx is done
}

// put ends a turn; c is nil where there is no executor to keep.
func (p *pool) put(c *Call) {
	p.mu.Lock()
	if c != nil && !p.closed {
		p.idle, c = append(p.idle, c), nil
	}
	if len(p.waiting) > 0 {
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
	} else {
		p.turns++
	}
	p.mu.Unlock()
	if c != nil {
		c.Close()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}
