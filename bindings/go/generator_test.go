package heddle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// logits = table[ids], where the next token is the last one and 1; the caches are the ids.
const counter = `{"heddle": {"version": 1, "opset": 17}, "nodes": [
{"op": "null", "name": "input_ids", "inputs": []}, {"op": "null", "name": "table", "inputs": []},
{"op": "null", "name": "axes", "inputs": []}, {"op": "null", "name": "past_key_values.0.key", "inputs": []},
{"op": "null", "name": "past_key_values.0.value", "inputs": []},
{"op": "Gather", "name": "logits", "attrs": {"axis": 0}, "inputs": [[1, 0, 0], [0, 0, 0]]},
{"op": "Cast", "name": "cast", "attrs": {"to": 1}, "inputs": [[0, 0, 0]]},
{"op": "Unsqueeze", "name": "wide", "inputs": [[6, 0, 0], [2, 0, 0]]},
{"op": "Concat", "name": "present.0.key", "attrs": {"axis": 2}, "inputs": [[3, 0, 0], [7, 0, 0]]},
{"op": "Concat", "name": "present.0.value", "attrs": {"axis": 2}, "inputs": [[4, 0, 0], [7, 0, 0]]}],
"arg_nodes": [0, 1, 2, 3, 4], "heads": [[5, 0, 0], [8, 0, 0], [9, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
"attrs": {"dltype": ["list_str", ["int64", "float32", "int64", "float32", "float32", "float32", "float32", "float32", "float32", "float32"]],
"shape": ["list_shape", [["batch", "length"], [16, 16], [2], ["batch", 1, "past", 1], ["batch", 1, "past", 1],
["batch", "length", 16], ["batch", "length"], ["batch", 1, "length", 1], ["batch", 1, "total", 1], ["batch", 1, "total", 1]]]}}`

const counterConfig = `{"model_type": "counter", "vocab_size": 16, "max_position_embeddings": 64, "num_hidden_layers": 1,
"num_key_value_heads": 1, "head_dim": 1, "eos_token_id": [15]}`

func counterFolder(t *testing.T) string {
	var table [16][16]float32
	for i := range table {
		table[i][(i+1)%16] = 2
	}
	var blob bytes.Buffer
	put := func(values ...interface{}) {
		for _, v := range values {
			noError(t, binary.Write(&blob, binary.LittleEndian, v))
		}
	}
	tensor := func(code, bits uint8, shape []int64, data interface{}) {
		put(uint64(0xDD5E40F096B4A13F), uint64(0), int32(1), int32(0), int32(len(shape)), code, bits, uint16(1), shape,
			int64(binary.Size(data)), data)
	}
	put(uint64(0xF7E58D4F05049CB7), uint64(0), uint64(2))
	for _, name := range []string{"table", "axes"} {
		put(uint64(len(name)), []byte(name))
	}
	put(uint64(2))
	tensor(2, 32, []int64{16, 16}, table)
	tensor(0, 64, []int64{2}, []int64{1, 3})
	folder := t.TempDir()
	for name, text := range map[string]string{"m.json": counter, "config.json": counterConfig, "m.params": blob.String()} {
		noError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return filepath.Join(folder, "m.json")
}

func TestGenerator(t *testing.T) {
	path, ctx := counterFolder(t), context.Background()
	g := ok[*Generator](t)(OpenGenerator(path, GeneratorOptions{MaxLength: 60}, WithDevices("cpu")))
	defer g.Close()
	info := ok[GeneratorInfo](t)(g.Info())
	if info.Vocabulary != 16 || info.MaxLength != 60 || info.Layers != 1 || info.Type != "counter" || len(info.StopTokens) != 1 {
		t.Fatalf("%+v", info)
	}
	noError(t, g.Append(3))
	if next := ok[int64](t)(g.Next(ctx, Sampling{})); next != 4 {
		t.Fatalf("the next token is %d", next)
	}
	if row := ok[[]float32](t)(g.Logits(ctx)); len(row) != 16 || row[5] != 2 {
		t.Fatalf("%v", row)
	}
	other := ok[*Generator](t)(g.Fork())
	defer other.Close()
	noError(t, g.Truncate(1))
	var seen []int64
	n := ok[int](t)(g.Generate(ctx, Generation{MaxTokens: 3}, func(one int64) bool { seen = append(seen, one); return true }))
	if n != 3 || !reflect.DeepEqual(seen, []int64{4, 5, 6}) {
		t.Fatalf("%d %v", n, seen)
	}
	if n := ok[int](t)(g.Generate(ctx, Generation{}, nil)); n != 9 {
		t.Fatalf("it stopped after %d", n)
	}
	if n := ok[int](t)(g.Generate(ctx, Generation{PastStops: true}, nil)); n != 60-13 {
		t.Fatalf("there were %d", n)
	}
	if next := ok[int64](t)(other.Next(ctx, Sampling{Bias: map[int64]float32{9: 50}})); next != 9 {
		t.Fatalf("the biased token is %d", next)
	}
	if next := ok[int64](t)(other.Next(ctx, Sampling{Temperature: 1, TopK: 1})); next != 10 {
		t.Fatalf("the drawn token is %d", next)
	}
	if tokens := ok[[]int64](t)(other.Tokens()); !reflect.DeepEqual(tokens, []int64{3, 4, 9, 10}) {
		t.Fatalf("%v", tokens)
	}
	if stats := ok[GeneratorStats](t)(other.Stats()); stats.Sampled != 2 {
		t.Fatalf("%+v", stats)
	}
	noError(t, g.Truncate(1))
	noError(t, g.Speculate(other, 3))
	if n := ok[int](t)(g.Generate(ctx, Generation{MaxTokens: 8}, nil)); n != 8 {
		t.Fatalf("there were %d", n)
	}
	if tokens := ok[[]int64](t)(g.Tokens()); !reflect.DeepEqual(tokens, []int64{3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Fatalf("%v", tokens)
	}
	if stats := ok[GeneratorStats](t)(g.Stats()); stats.Guessed == 0 || stats.Accepted != stats.Guessed || stats.Guess == 0 {
		t.Fatalf("%+v", stats)
	}
	noError(t, g.Speculate(nil, 0))
	if err := g.Speculate(other, 17); err == nil {
		t.Fatal("17 guesses")
	}
	if n := ok[int](t)(g.Generate(ctx, Generation{PastStops: true}, nil)); n != 60-9 {
		t.Fatalf("there were %d", n)
	}
	var failure *Error
	if err := other.Append(16); !errors.As(err, &failure) || failure.Status != ErrInvalid {
		t.Fatalf("a wrong token: %v", err)
	}
	if _, err := g.Next(ctx, Sampling{}); !errors.As(err, &failure) || failure.Status != ErrLimit {
		t.Fatalf("one token too many: %v", err)
	}
	if _, err := OpenGenerator(filepath.Dir(path), GeneratorOptions{}); err == nil {
		t.Fatal("a folder without an ONNX model was opened")
	}
}

func TestGeneratorCancel(t *testing.T) {
	g := ok[*Generator](t)(OpenGenerator(counterFolder(t), GeneratorOptions{}, WithDevices("cpu")))
	canceled := 0
	for i := 0; i < 100; i++ {
		noError(t, g.Truncate(0))
		noError(t, g.Append(1))
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*20)*time.Microsecond)
		if _, err := g.Generate(ctx, Generation{PastStops: true}, nil); err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			canceled++
		}
		cancel()
		tokens := ok[[]int64](t)(g.Tokens())
		for k := 1; k < len(tokens); k++ {
			if tokens[k] != (tokens[k-1]+1)%16 {
				t.Fatalf("%v", tokens)
			}
		}
	}
	if canceled == 0 {
		t.Fatal("nothing was cancelled")
	}
	noError(t, g.Truncate(1))
	g.Cancel()
	var failure *Error
	if _, err := g.Next(context.Background(), Sampling{}); !errors.As(err, &failure) || failure.Status != ErrCanceled {
		t.Fatalf("a call after Cancel: %v", err)
	}
	g.Close()
	if _, err := g.Next(context.Background(), Sampling{}); !errors.Is(err, ErrClosed) {
		t.Fatalf("a call after Close: %v", err)
	}
}
