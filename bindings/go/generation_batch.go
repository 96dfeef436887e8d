package heddle

// Continuous batching: several texts of one language model share its runs (docs/generate.md).

// #include "bridge.h"
import "C"

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

// GenerationBatchOptions says how texts share runs. What is zero has its default.
type GenerationBatchOptions struct {
	Rows     int // texts in one run; 0: 8
	MaxQueue int // requests that wait for a row; 0: 4 times Rows
}

// GenerationBatch gives the tokens of several texts by runs that they share. Goroutines share it; its queue is bounded.
type GenerationBatch struct {
	ref
	b     *C.heddle_generation_batch
	about about
}

// GenerationBatchStats are counters since the batch was made, and its queue.
type GenerationBatchStats struct {
	Requests, Finished, Failed, Rejected    uint64
	Runs, Chunks, Computed, Reused, Sampled uint64
	Run, Join                               time.Duration
	Queued, Running, Rows                   uint64
}

// NewGenerationBatch makes a batch of the generator's model. The generator stays the caller's.
func NewGenerationBatch(g *Generator, o GenerationBatchOptions) (*GenerationBatch, error) {
	if o.Rows < 0 || o.Rows > 1<<31-1 || o.MaxQueue < 0 || o.MaxQueue > 1<<31-1 {
		return nil, invalid("a batch's options have a number that is negative or too large")
	}
	var b *C.heddle_generation_batch
	err := g.do(context.Background(), func(words *C.heddle_error) C.heddle_status {
		c := C.heddle_generation_batch_options{struct_size: C.size_t(unsafe.Sizeof(C.heddle_generation_batch_options{})),
			rows: C.uint32_t(o.Rows), max_queue: C.uint32_t(o.MaxQueue)}
		return C.heddle_generation_batch_create(g.g, &c, &b, words)
	})
	if err != nil {
		return nil, err
	}
	made := &GenerationBatch{b: b, about: about{file: g.about.file}}
	made.free = func(unsafe.Pointer, int) {
		C.heddle_generation_batch_release(b)
		freed(modelBytes)
	}
	allocated(modelBytes)
	runtime.SetFinalizer(made, (*GenerationBatch).Close)
	return made, nil
}

// Close ends all texts with ErrCanceled and frees the batch when the calls that use it have ended.
func (b *GenerationBatch) Close() {
	if b == nil {
		return
	}
	runtime.SetFinalizer(b, nil)
	if b.acquire() == nil {
		C.heddle_generation_batch_close(b.b, 1, 0, nil)
		b.release()
	}
	b.close()
}

func (b *GenerationBatch) submit(prompt []int64, o *Generation, texts *cstrings) (*C.heddle_generation_request, error) {
	sampling, err := o.Sampling.c(texts)
	if err != nil {
		return nil, err
	}
	n, stops := len(prompt), len(o.StopTokens)
	call := (*C.heddle_generation_call)(C.calloc(1, C.size_t(unsafe.Sizeof(C.heddle_generation_call{}))))
	options := (*C.heddle_generation)(C.calloc(1, C.size_t(unsafe.Sizeof(C.heddle_generation{}))))
	tokens, ends := C.calloc(C.size_t(n+1), 8), C.calloc(C.size_t(stops+1), 8)
	texts.all = append(texts.all, unsafe.Pointer(call), unsafe.Pointer(options), tokens, ends)
	if call == nil || options == nil || tokens == nil || ends == nil {
		return nil, ErrNoMemory
	}
	copy(unsafe.Slice((*int64)(tokens), n), prompt)
	copy(unsafe.Slice((*int64)(ends), stops), o.StopTokens)
	options.struct_size = C.size_t(unsafe.Sizeof(*options))
	options.sampling, options.stop_tokens, options.n_stop_tokens = sampling, (*C.int64_t)(ends), C.size_t(stops)
	options.max_tokens = C.uint64_t(o.MaxTokens)
	if o.PastStops {
		options.flags = C.HEDDLE_GENERATE_PAST_STOPS
	}
	call.struct_size = C.size_t(unsafe.Sizeof(*call))
	call.tokens, call.n_tokens, call.generation = (*C.int64_t)(tokens), C.size_t(n), options
	words := newErr()
	defer freeErr(words)
	var r *C.heddle_generation_request
	if s := C.heddle_generation_batch_submit(b.b, call, &r, words); s != C.HEDDLE_OK {
		return nil, b.about.errorOf(s, words)
	}
	return r, nil
}

// Generate gives the tokens behind a prompt, a stop token included, beside those of other goroutines. token, which may be nil, is
// called for each that has come; false: no more. Where ctx is done the text ends, and the tokens up to then are given
// with the error. ErrBusy: the queue is full.
func (b *GenerationBatch) Generate(ctx context.Context, prompt []int64, o Generation, token func(int64) bool) ([]int64, error) {
	if o.MaxTokens < 0 {
		return nil, invalid("MaxTokens is negative")
	}
	if err := ctx.Err(); err != nil {
		return nil, canceled("nothing was computed", err)
	}
	if err := b.acquire(); err != nil {
		return nil, err
	}
	defer b.release()
	texts := cstrings{}
	defer texts.free()
	r, err := b.submit(prompt, &o, &texts)
	if err != nil {
		return nil, err
	}
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			C.heddle_generation_request_cancel(r)
		case <-over:
		}
		close(watched)
	}()
	all, err := b.read(r, token)
	close(over)
	<-watched
	C.heddle_generation_request_release(r)
	if stop := ctx.Err(); stop != nil && err != nil {
		err = canceled("the text was cancelled", stop)
	}
	return all, err
}

func (b *GenerationBatch) read(r *C.heddle_generation_request, token func(int64) bool) ([]int64, error) {
	words := newErr()
	defer freeErr(words)
	var all []int64
	room := (*[64]int64)(C.calloc(64, 8))
	if room == nil {
		return nil, ErrNoMemory
	}
	defer C.free(unsafe.Pointer(room))
	for {
		var n C.size_t
		s := C.heddle_generation_request_read(r, C.uint64_t(len(all)), (*C.int64_t)(unsafe.Pointer(room)), 64, C.HEDDLE_FOREVER, &n, words)
		if s != C.HEDDLE_OK {
			return all, b.about.errorOf(s, words)
		}
		if n == 0 {
			break
		}
		for _, one := range room[:n] {
			all = append(all, one)
			if token != nil && !token(one) {
				C.heddle_generation_request_cancel(r)
				return all, nil
			}
		}
	}
	if s := C.heddle_generation_request_wait(r, C.HEDDLE_FOREVER, nil, words); s != C.HEDDLE_OK {
		return all, b.about.errorOf(s, words)
	}
	return all, nil
}

// Stats gives the counters.
func (b *GenerationBatch) Stats() (GenerationBatchStats, error) {
	if err := b.acquire(); err != nil {
		return GenerationBatchStats{}, err
	}
	defer b.release()
	words := newErr()
	defer freeErr(words)
	c := C.heddle_generation_batch_stats{struct_size: C.size_t(unsafe.Sizeof(C.heddle_generation_batch_stats{}))}
	if s := C.heddle_generation_batch_get_stats(b.b, &c, words); s != C.HEDDLE_OK {
		return GenerationBatchStats{}, b.about.errorOf(s, words)
	}
	return GenerationBatchStats{Requests: uint64(c.requests), Finished: uint64(c.finished), Failed: uint64(c.failed),
		Rejected: uint64(c.rejected), Runs: uint64(c.runs), Chunks: uint64(c.chunks), Computed: uint64(c.computed),
		Reused: uint64(c.reused), Sampled: uint64(c.sampled), Run: time.Duration(c.run_ns), Join: time.Duration(c.join_ns),
		Queued: uint64(c.queued), Running: uint64(c.running), Rows: uint64(c.rows)}, nil
}
