// Pack_func_closure_arg passes a Go closure as an argument to a function that calls it.
package main

import (
	"fmt"
	"log"

	"heddle.internal/heddle"
)

// Calls its first argument with each number below the second.
func each(args ...*heddle.Value) (interface{}, error) {
	function := args[0].AsFunction()
	for i := int64(0); i < args[1].AsInt64(); i++ {
		if _, err := function.Invoke(i); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func main() {
	function, err := heddle.ConvertFunction(each)
	if err != nil {
		log.Fatal(err)
	}
	sum := int64(0)
	_, err = function.Invoke(func(args ...*heddle.Value) (interface{}, error) {
		sum += args[0].AsInt64()
		return nil, nil
	}, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sum:", sum)
}
