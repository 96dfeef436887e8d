// Pack_func_register registers a Go function for the whole process, finds it by its name, and calls it: once well, and
// once so that it fails.
package main

import (
	"errors"
	"fmt"
	"log"

	"heddle.internal/heddle"
)

var errNegative = errors.New("a length is never negative")

func perimeter(args ...*heddle.Value) (interface{}, error) {
	if args[0].AsFloat64() < 0 || args[1].AsFloat64() < 0 {
		return nil, errNegative
	}
	return 2 * (args[0].AsFloat64() + args[1].AsFloat64()), nil
}

func main() {
	if err := heddle.RegisterFunction(perimeter, "sample.perimeter"); err != nil {
		log.Fatal(err)
	}
	function, err := heddle.GetGlobalFunction("sample.perimeter")
	if err != nil {
		log.Fatal(err)
	}
	result, err := function.Invoke(2, 1.5)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("result:", result.AsFloat64())

	_, err = function.Invoke(-1, 1)
	fmt.Println("error:", err, "ours:", errors.Is(err, errNegative))
}
