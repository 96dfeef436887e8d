// Pack_func_convert makes a function of the runtime from a Go closure, and calls it.
package main

import (
	"fmt"
	"log"

	"heddle.internal/heddle"
)

func main() {
	calls := 0
	product := func(args ...*heddle.Value) (interface{}, error) {
		calls++
		return args[0].AsInt64() * args[1].AsInt64(), nil
	}
	function, err := heddle.ConvertFunction(product)
	if err != nil {
		log.Fatal(err)
	}
	defer function.Close()
	result, err := function.Invoke(6, 7)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("result:", result.AsInt64(), "calls:", calls)
}
