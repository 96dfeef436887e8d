package heddle

// Generators: tokens of language models (docs/generate.md).

// #include "bridge.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Generator is a language model in a folder, and its tokens. Goroutines may share it; a call waits for the one before it.
type Generator struct {
	ref
	lock  sync.Mutex
	g     *C.heddle_generator
	about about
}

// GeneratorOptions differ from the defaults. Options of models are given beside them, but for WithState, WithPool and
// libraries.
type GeneratorOptions struct {
	MaxLength int // tokens at most, the prompt's included; 0: as the configuration says
	Chunk     int // tokens of a prompt that one run computes at most; 0: 256, or fewer where logits are large
}

// GeneratorInfo describes a generator.
type GeneratorInfo struct {
	Type, ModelPath               string
	StopTokens                    []int64
	Vocabulary, MaxLength, Layers int
	BosToken                      int64 // -1: none
	CacheRows                     int64
	CacheBytes                    uint64
}

// GeneratorStats are counters since the generator was opened.
type GeneratorStats struct {
	Runs, Computed, Sampled uint64
	Guessed, Accepted       uint64 // tokens of a draft
	All, Run, Sample, Guess time.Duration
}

// Sampling says how a token is chosen: with no temperature the best one. heddle/generate.h describes each member.
type Sampling struct {
	Temperature, TopP, MinP, RepetitionPenalty float64
	TopK                                       int
	Seed                                       uint64
	Bias                                       map[int64]float32
}

// Generation says how many tokens are made.
type Generation struct {
	Sampling
	MaxTokens  int     // 0: as many as fit
	StopTokens []int64 // besides the configuration's
	PastStops  bool    // the configuration's are like others
}

// OpenGenerator opens a folder with genai_config.json or config.json and an ONNX model, or that model.
func OpenGenerator(path string, o GeneratorOptions, list ...Option) (*Generator, error) {
	if o.MaxLength < 0 || o.MaxLength > 1<<31-1 || o.Chunk < 0 || o.Chunk > 1<<31-1 {
		return nil, invalid("a generator's options have a number that is negative or too large")
	}
	var g *C.heddle_generator
	_, err := opened(path, list, func(all *options, texts *cstrings, model *C.heddle_model_options, words *C.heddle_error) C.heddle_status {
		c := (*C.heddle_generator_options)(C.calloc(1, C.size_t(unsafe.Sizeof(C.heddle_generator_options{}))))
		if c == nil {
			texts.err = ErrNoMemory
			return C.HEDDLE_ENOMEM
		}
		defer C.free(unsafe.Pointer(c))
		c.struct_size = C.size_t(unsafe.Sizeof(*c))
		c.model, c.max_length, c.chunk = model, C.uint32_t(o.MaxLength), C.uint32_t(o.Chunk)
		name := texts.add(path)
		if texts.err != nil {
			return C.HEDDLE_ENOMEM
		}
		return C.heddle_generator_open(all.runtime.c, name, c, &g, words)
	})
	if err != nil {
		return nil, err
	}
	return newGenerator(g, path), nil
}

func newGenerator(g *C.heddle_generator, path string) *Generator {
	made := &Generator{g: g, about: about{file: path}}
	made.free = func(unsafe.Pointer, int) {
		C.heddle_generator_release(g)
		freed(modelBytes)
	}
	allocated(modelBytes)
	runtime.SetFinalizer(made, (*Generator).Close)
	return made
}

// Close frees the generator when the call that uses it has ended.
func (g *Generator) Close() {
	if g == nil {
		return
	}
	runtime.SetFinalizer(g, nil)
	g.close()
}

// Calls C while no other call uses the generator; where ctx is done before it ends, it is cancelled.
func (g *Generator) do(ctx context.Context, call func(words *C.heddle_error) C.heddle_status) error {
	if err := ctx.Err(); err != nil {
		return canceled("nothing was computed", err)
	}
	if err := g.acquire(); err != nil {
		return err
	}
	defer g.release()
	g.lock.Lock()
	defer g.lock.Unlock()
	words := newErr()
	defer freeErr(words)
	over, watched := make(chan struct{}), make(chan bool, 1)
	if ctx.Done() != nil {
		go func() {
			select {
			case <-ctx.Done():
				C.heddle_generator_cancel(g.g)
				watched <- true
			case <-over:
				watched <- false
			}
		}()
	} else {
		watched <- false
	}
	s := call(words)
	close(over)
	if <-watched && s != C.HEDDLE_ECANCELED { // it came too late: the next call is not meant
		var n C.size_t
		C.heddle_generator_tokens(g.g, &n)
		C.heddle_generator_truncate(g.g, n, nil)
	}
	if s == C.HEDDLE_OK {
		return nil
	}
	if stop := ctx.Err(); stop != nil && s == C.HEDDLE_ECANCELED {
		return canceled("the generator was cancelled", stop)
	}
	return g.about.errorOf(s, words)
}

// Append adds tokens; they are computed when logits are needed.
func (g *Generator) Append(tokens ...int64) error {
	return g.do(context.Background(), func(words *C.heddle_error) C.heddle_status {
		var first *C.int64_t
		if len(tokens) > 0 {
			first = (*C.int64_t)(unsafe.Pointer(&tokens[0]))
		}
		return C.heddle_generator_append(g.g, first, C.size_t(len(tokens)), words)
	})
}

// Truncate keeps the first n tokens and what was computed for them.
func (g *Generator) Truncate(n int) error {
	if n < 0 {
		return invalid("a negative number of tokens cannot be kept")
	}
	return g.do(context.Background(), func(words *C.heddle_error) C.heddle_status {
		return C.heddle_generator_truncate(g.g, C.size_t(n), words)
	})
}

// Tokens gives a copy of the tokens.
func (g *Generator) Tokens() ([]int64, error) {
	var all []int64
	err := g.do(context.Background(), func(*C.heddle_error) C.heddle_status {
		var n C.size_t
		if first := C.heddle_generator_tokens(g.g, &n); n > 0 {
			all = append(all, unsafe.Slice((*int64)(unsafe.Pointer(first)), int(n))...)
		}
		return C.HEDDLE_OK
	})
	return all, err
}

// Fork gives a generator with the same tokens, which shares what was computed for them.
func (g *Generator) Fork() (*Generator, error) {
	var made *C.heddle_generator
	err := g.do(context.Background(), func(words *C.heddle_error) C.heddle_status {
		return C.heddle_generator_fork(g.g, &made, words)
	})
	if err != nil {
		return nil, err
	}
	return newGenerator(made, g.about.file), nil
}

// Speculate lets a smaller model with the same vocabulary guess so many tokens (0: 4; at most 16), which one run computes. The
// tokens are those that come without it. A nil draft ends it; draft stays the caller's.
func (g *Generator) Speculate(draft *Generator, tokens int) error {
	if tokens < 0 || tokens > 1<<31-1 {
		return invalid("a number of guesses is negative or too large")
	}
	var of *C.heddle_generator
	if draft != nil {
		if err := draft.acquire(); err != nil {
			return err
		}
		defer draft.release()
		of = draft.g
	}
	return g.do(context.Background(), func(words *C.heddle_error) C.heddle_status {
		return C.heddle_generator_speculate(g.g, of, C.uint32_t(tokens), words)
	})
}

// Evaluate computes what was appended.
func (g *Generator) Evaluate(ctx context.Context) error {
	return g.do(ctx, func(words *C.heddle_error) C.heddle_status {
		return C.heddle_generator_evaluate(g.g, C.HEDDLE_FOREVER, words)
	})
}

// Logits gives those of the next token.
func (g *Generator) Logits(ctx context.Context) ([]float32, error) {
	var all []float32
	err := g.do(ctx, func(words *C.heddle_error) C.heddle_status {
		var t *C.heddle_tensor
		s := C.heddle_generator_logits(g.g, C.HEDDLE_FOREVER, &t, words)
		if s == C.HEDDLE_OK {
			n := int(C.heddle_tensor_bytes(t)) / 4
			all = append(all, unsafe.Slice((*float32)(C.heddle_tensor_data(t)), n)...)
			C.heddle_tensor_release(t)
		}
		return s
	})
	return all, err
}

// The options in C memory, which texts frees.
func (o *Sampling) c(texts *cstrings) (*C.heddle_sampling, error) {
	if o.TopK < 0 || o.TopK > 1<<31-1 {
		return nil, invalid("TopK is negative or too large")
	}
	n := C.size_t(len(o.Bias))
	c := (*C.heddle_sampling)(C.calloc(1, C.size_t(unsafe.Sizeof(C.heddle_sampling{}))))
	tokens, biases := C.calloc(n+1, 8), C.calloc(n+1, 4)
	texts.all = append(texts.all, unsafe.Pointer(c), tokens, biases)
	if c == nil || tokens == nil || biases == nil {
		return nil, ErrNoMemory
	}
	i := 0
	for token, bias := range o.Bias {
		unsafe.Slice((*int64)(tokens), len(o.Bias))[i] = token
		unsafe.Slice((*float32)(biases), len(o.Bias))[i] = bias
		i++
	}
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.temperature, c.top_p, c.min_p = C.double(o.Temperature), C.double(o.TopP), C.double(o.MinP)
	c.repetition_penalty, c.seed, c.top_k = C.double(o.RepetitionPenalty), C.uint64_t(o.Seed), C.uint32_t(o.TopK)
	c.n_biases, c.bias_tokens, c.biases = C.uint32_t(n), (*C.int64_t)(tokens), (*C.float)(biases)
	return c, nil
}

// Next chooses a token and adds it.
func (g *Generator) Next(ctx context.Context, o Sampling) (int64, error) {
	texts := cstrings{}
	defer texts.free()
	c, err := o.c(&texts)
	if err != nil {
		return 0, err
	}
	return g.next(ctx, c)
}

func (g *Generator) next(ctx context.Context, c *C.heddle_sampling) (int64, error) {
	var token C.int64_t
	err := g.do(ctx, func(words *C.heddle_error) C.heddle_status {
		return C.heddle_generator_next(g.g, c, C.HEDDLE_FOREVER, &token, words)
	})
	return int64(token), err
}

// Generate adds tokens until a stop token (which is added too), MaxTokens, the greatest length, or until token, which is called
// for each that is no stop token and may be nil, returns false. It gives how many were added; where it fails they stay.
func (g *Generator) Generate(ctx context.Context, o Generation, token func(int64) bool) (int, error) {
	texts := cstrings{}
	defer texts.free()
	c, err := o.c(&texts)
	if err != nil {
		return 0, err
	}
	info, err := g.Info()
	if err != nil {
		return 0, err
	}
	stops := map[int64]bool{}
	for _, one := range o.StopTokens {
		stops[one] = true
	}
	for _, one := range info.StopTokens {
		stops[one] = stops[one] || !o.PastStops
	}
	have, err := g.Tokens()
	if err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		if (o.MaxTokens > 0 && n >= o.MaxTokens) || len(have)+n >= info.MaxLength {
			return n, nil
		}
		one, err := g.next(ctx, c)
		if err != nil {
			return n, err
		}
		if stops[one] || (token != nil && !token(one)) {
			return n + 1, nil
		}
	}
}

// Cancel ends the call that computes, or else the next one, with ErrCanceled.
func (g *Generator) Cancel() {
	if g.acquire() == nil {
		C.heddle_generator_cancel(g.g)
		g.release()
	}
}

// Info describes the generator.
func (g *Generator) Info() (GeneratorInfo, error) {
	var out GeneratorInfo
	err := g.do(context.Background(), func(words *C.heddle_error) C.heddle_status {
		c := C.heddle_generator_info{struct_size: C.size_t(unsafe.Sizeof(C.heddle_generator_info{}))}
		s := C.heddle_generator_get_info(g.g, &c, words)
		if s != C.HEDDLE_OK {
			return s
		}
		out = GeneratorInfo{Type: C.GoString(c._type), ModelPath: C.GoString(c.model_path), Vocabulary: int(c.vocabulary),
			MaxLength: int(c.max_length), Layers: int(c.layers), BosToken: int64(c.bos_token), CacheRows: int64(c.cache_rows),
			CacheBytes: uint64(c.cache_bytes)}
		if c.n_stop_tokens > 0 {
			all := unsafe.Slice((*int64)(unsafe.Pointer(c.stop_tokens)), int(c.n_stop_tokens))
			out.StopTokens = append(out.StopTokens, all...)
		}
		return s
	})
	return out, err
}

// Stats gives the counters.
func (g *Generator) Stats() (GeneratorStats, error) {
	var out GeneratorStats
	err := g.do(context.Background(), func(words *C.heddle_error) C.heddle_status {
		c := C.heddle_generator_stats{struct_size: C.size_t(unsafe.Sizeof(C.heddle_generator_stats{}))}
		s := C.heddle_generator_get_stats(g.g, &c, words)
		out = GeneratorStats{Runs: uint64(c.runs), Computed: uint64(c.computed), Sampled: uint64(c.sampled),
			Guessed: uint64(c.guessed), Accepted: uint64(c.accepted), All: time.Duration(c.all_ns), Run: time.Duration(c.run_ns),
			Sample: time.Duration(c.sample_ns), Guess: time.Duration(c.guess_ns)}
		return s
	})
	return out, err
}
