package heddle

// The executors of a model, which runs take in turn.

import (
	"context"
	"sync"
)

// pool bounds how many executors there are, and gives the one that was used last, whose memory is warm.
type pool struct {
	tokens chan struct{} // one a use that is allowed at once
	mu     sync.Mutex
	idle   []*Call
	closed bool
}

func newPool(n int) *pool { return &pool{tokens: make(chan struct{}, n)} }

// get waits for a turn: an executor, or nil where one is to be made.
func (p *pool) get(ctx context.Context) (*Call, error) {
	select {
	case p.tokens <- struct{}{}:
	default:
		select {
		case p.tokens <- struct{}{}:
		case <-ctx.Done():
			return nil, canceled("no executor was free", ctx.Err())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, nil
	}
	return nil, nil
}

// put ends a turn; c is nil where there is no executor to keep.
func (p *pool) put(c *Call) {
	p.mu.Lock()
	if c != nil && !p.closed {
		p.idle, c = append(p.idle, c), nil
	}
	p.mu.Unlock()
	if c != nil {
		c.Close()
	}
	<-p.tokens
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
