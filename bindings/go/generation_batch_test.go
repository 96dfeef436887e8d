package heddle

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
)

// The folder of counterFolder, with the inputs that a batch of texts needs.
func maskedFolder(t *testing.T) string {
	path := counterFolder(t)
	text := counter
	for _, change := range [][2]string{
		{`[[4, 0, 0], [7, 0, 0]]}],`, `[[4, 0, 0], [7, 0, 0]]},
{"op": "null", "name": "attention_mask", "inputs": []}, {"op": "null", "name": "position_ids", "inputs": []}],`},
		{`"arg_nodes": [0, 1, 2, 3, 4]`, `"arg_nodes": [0, 1, 2, 3, 4, 10, 11]`},
		{`8, 9, 10]`, `8, 9, 10, 11, 12]`},
		{`"float32"]]`, `"float32", "int64", "int64"]]`},
		{`1]]]}}`, `1], ["batch", "all"], ["batch", "length"]]]}}`},
	} {
		text = strings.Replace(text, change[0], change[1], 1)
	}
	noError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestGenerationBatch(t *testing.T) {
	ctx := context.Background()
	g := ok[*Generator](t)(OpenGenerator(maskedFolder(t), GeneratorOptions{}, WithDevices("cpu")))
	defer g.Close()
	b := ok[*GenerationBatch](t)(NewGenerationBatch(g, GenerationBatchOptions{Rows: 2, MaxQueue: 10}))
	defer b.Close()
	var all sync.WaitGroup
	for i := 1; i < 9; i++ {
		all.Add(1)
		i := i
		go func() {
			defer all.Done()
			tokens, err := b.Generate(ctx, make([]int64, i), Generation{MaxTokens: 2 * i, PastStops: true}, nil)
			if err != nil || len(tokens) != 2*i {
				t.Errorf("%d: %v %v", i, tokens, err)
			}
			for k, one := range tokens {
				if one != int64(k+1)%16 {
					t.Errorf("%d: %v", i, tokens)
				}
			}
		}()
	}
	all.Wait()
	if stats := ok[GenerationBatchStats](t)(b.Stats()); stats.Finished != 8 || stats.Rows != 2 || stats.Sampled != 72 {
		t.Fatalf("%+v", stats)
	}
	tokens := ok[[]int64](t)(b.Generate(ctx, []int64{3}, Generation{PastStops: true}, func(one int64) bool { return one < 6 }))
	if len(tokens) != 3 {
		t.Fatalf("%v", tokens)
	}
	if tokens := ok[[]int64](t)(b.Generate(ctx, []int64{3}, Generation{}, nil)); len(tokens) != 12 || tokens[11] != 15 {
		t.Fatalf("%v", tokens)
	}
	limited, cancel := context.WithCancel(ctx)
	_, err := b.Generate(limited, []int64{3}, Generation{PastStops: true}, func(int64) bool { cancel(); return true })
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := b.Generate(ctx, []int64{16}, Generation{}, nil); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	other := ok[*Generator](t)(OpenGenerator(counterFolder(t), GeneratorOptions{}, WithDevices("cpu")))
	defer other.Close()
	if _, err := NewGenerationBatch(other, GenerationBatchOptions{}); !errors.Is(err, ErrUnsupported) {
		t.Fatal(err)
	}
	b.Close()
	if _, err := b.Generate(ctx, []int64{1}, Generation{}, nil); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}
