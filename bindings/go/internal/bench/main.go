// Bench times a call of a model with one node from Go and from C, as requested on standard input. Each line "WAY CALLS"
// gives one line: nanoseconds of one call, the mean over CALLS. Ways: c and call, input and output in memory that is
// bound; c_copy and into, input and output copied; c_new and run, outputs as new tensors; invoke, a function of C.
package main

/*
#cgo pkg-config: heddle
#cgo LDFLAGS: -lheddle_tvm
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heddle/function.h"
#include "heddle/heddle.h"

typedef struct bench {
  heddle_executor *ex;
  heddle_tensor *in[2], *out;
} bench;

static heddle_status prepare(bench *b, const char *text, size_t bytes, heddle_error *err) {
  heddle_context *ctx;
  heddle_graph *g;
  heddle_model *m;
  int64_t shape[1] = {1};
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu"};
  heddle_status s = heddle_context_process(&ctx, err);
  if (s == HEDDLE_OK) s = heddle_graph_parse(text, bytes, "bench", NULL, &g, err);
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, g, NULL, &options, &m, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(m, &b->ex, err);
  for (uint32_t i = 0; i < 2 && s == HEDDLE_OK; i++) {
    s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 1, &b->in[i], err);
    if (s == HEDDLE_OK) s = heddle_executor_bind_input(b->ex, i, b->in[i], err);
  }
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 1, &b->out, err);
  return s == HEDDLE_OK ? heddle_executor_bind_output(b->ex, 0, b->out, err) : s;
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// copy: as a program does that has its numbers elsewhere; 2: and that wants each output in a tensor of its own.
static double run_c(bench *b, int calls, int copy, heddle_error *err) {
  float x[2] = {1, 2}, y = 0;
  double start = now_ns();
  for (int i = 0; i < calls; i++) {
    if (copy)
      for (int k = 0; k < 2; k++) memcpy(heddle_tensor_data(b->in[k]), &x[k], sizeof x[k]);
    if (heddle_executor_run(b->ex, HEDDLE_FOREVER, err) != HEDDLE_OK) return -1;
    if (copy == 2) {
      heddle_tensor *made;
      int64_t shape[1] = {1};
      if (heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, 1, &made, err) != HEDDLE_OK) return -1;
      memcpy(heddle_tensor_data(made), heddle_tensor_data(b->out), sizeof y);
      y = *(float *)heddle_tensor_data(made);
      heddle_tensor_release(made);
    } else if (copy) {
      memcpy(&y, heddle_tensor_data(b->out), sizeof y);
    }
  }
  double end = now_ns();
  return copy && y != 3 ? -1 : (end - start) / calls;
}

static heddle_status nothing(void *self, const heddle_value *args, uint32_t n, heddle_value *result, heddle_error *err) {
  (void)self, (void)err;
  if (n > 0) *result = args[0];
  return HEDDLE_OK;
}

static heddle_status register_nothing(heddle_error *err) {
  heddle_function *f;
  heddle_status s = heddle_function_create(nothing, NULL, NULL, &f, err);
  return s == HEDDLE_OK ? heddle_function_register("bench.nothing", f, 1, err) : s;
}
*/
import "C"

import (
	"fmt"
	"log"
	"time"
	"unsafe"

	"heddle.internal/heddle"
)

const graph = `{"heddle":{"version":1,"opset":17},"nodes":[{"op":"null","name":"x","inputs":[]},
{"op":"null","name":"y","inputs":[]},{"op":"Add","name":"z","inputs":[[0,0,0],[1,0,0]]}],"arg_nodes":[0,1],
"heads":[[2,0,0]],"node_row_ptr":[0,1,2,3],"attrs":{"dltype":["list_str",["float32","float32",null]],
"shape":["list_shape",[[1],[1],null]]}}`

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func timed(calls int, one func() error) float64 {
	start := time.Now()
	for i := 0; i < calls; i++ {
		check(one())
	}
	return float64(time.Since(start).Nanoseconds()) / float64(calls)
}

func main() {
	var words C.heddle_error
	var b C.bench
	text := C.CString(graph)
	if C.prepare(&b, text, C.size_t(len(graph)), &words) != C.HEDDLE_OK || C.register_nothing(&words) != C.HEDDLE_OK {
		log.Fatal(C.GoString(&words.text[0]))
	}
	C.free(unsafe.Pointer(text))
	model := must(heddle.LoadGraph([]byte(graph), nil, heddle.WithDevices("cpu")))
	call := must(model.Prepare())
	var in [2][]float32
	for i := range in {
		in[i] = must(heddle.View[float32](must(call.Input(i))))
	}
	out := must(heddle.View[float32](must(call.Output(0))))
	x, y, z := []float32{1}, []float32{2}, []float32{0}
	outputs := []interface{}{z}
	function := must(heddle.GetGlobalFunction("bench.nothing"))
	ways := map[string]func() error{
		"call": func() error {
			in[0][0], in[1][0] = 1, 2
			err := call.Run()
			if err == nil && out[0] != 3 {
				log.Fatal("1 and 2 are not ", out[0])
			}
			return err
		},
		"into": func() error { return model.RunInto(outputs, x, y) },
		"run": func() error {
			arrays, err := model.Run(x, y)
			if err == nil {
				arrays[0].Close()
			}
			return err
		},
		"invoke": func() error {
			_, err := function.Invoke(1)
			return err
		},
	}
	copies := map[string]int{"c": 0, "c_copy": 1, "c_new": 2}
	var way string
	var calls int
	for {
		if n, _ := fmt.Scan(&way, &calls); n != 2 {
			return
		}
		var ns float64
		if one := ways[way]; one != nil {
			ns = timed(calls, one)
		} else if ns = float64(C.run_c(&b, C.int(calls), C.int(copies[way]), &words)); ns < 0 {
			log.Fatal("the run in C: ", C.GoString(&words.text[0]))
		}
		fmt.Printf("%.3f\n", ns)
	}
}
