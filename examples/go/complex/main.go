// Complex runs an image model of 224 x 224 pixels and 1,000 classes by hand, as programs for TVM's runtime do: a library,
// the graph as text, the parameters as bytes. complex FOLDER, which holds net.so, net.json, net.params and image.npy. The
// same in two lines: heddle.Load("net.json", heddle.WithLibrary("net.so")) and its Run.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"heddle.internal/heddle"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("complex FOLDER")
	}
	file := func(name string) string { return filepath.Join(os.Args[1], name) }

	library := must(heddle.LoadModuleFromFile(file("net.so")))
	graph := must(os.ReadFile(file("net.json")))
	params := must(os.ReadFile(file("net.params")))
	create := must(heddle.GetGlobalFunction("tvm.graph_executor.create"))
	executor := must(create.Invoke(string(graph), library, heddle.KDLCPU, 0)).AsModule()
	defer executor.Close()

	call := func(name string, args ...interface{}) *heddle.Value {
		return must(must(executor.GetFunction(name)).Invoke(args...))
	}
	call("load_params", params)

	image := must(heddle.LoadNpy(file("image.npy")))
	call("set_input", "data", image)
	call("run")

	scores := must(heddle.Empty([]int64{1, 1000}))
	call("get_output", 0, scores)
	best, values := 0, must(scores.AsSlice()).([]float32)
	for i, score := range values {
		if score > values[best] {
			best = i
		}
	}
	fmt.Printf("class %d, score %.4f\n", best, values[best])
}
