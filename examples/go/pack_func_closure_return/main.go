// Pack_func_closure_return gets a Go closure back from a function, and calls it.
package main

import (
	"fmt"
	"log"

	"heddle.internal/heddle"
)

// Gives a function that counts on from its argument.
func counter(args ...*heddle.Value) (interface{}, error) {
	n := args[0].AsInt64()
	return func(...*heddle.Value) (interface{}, error) {
		n++
		return n, nil
	}, nil
}

func main() {
	function, err := heddle.ConvertFunction(counter)
	if err != nil {
		log.Fatal(err)
	}
	made, err := function.Invoke(40)
	if err != nil {
		log.Fatal(err)
	}
	next := made.AsFunction()
	defer next.Close()
	for i := 0; i < 2; i++ {
		value, err := next.Invoke()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("value:", value.AsInt64())
	}
}
