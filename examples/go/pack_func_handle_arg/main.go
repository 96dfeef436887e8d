// Pack_func_handle_arg hands handles over: a Go function gets a module and an array from the runtime, and calls a function
// of the one on the other. pack_func_handle_arg LIBRARY, as of simple.
package main

import (
	"fmt"
	"log"
	"os"

	"heddle.internal/heddle"
)

// Doubles the array in its second argument with the module in its first.
func double(args ...*heddle.Value) (interface{}, error) {
	module, array := args[0].AsModule(), args[1].AsArray()
	add, err := module.GetFunction("add")
	if err != nil {
		return nil, err
	}
	sum, err := heddle.Empty(array.GetShape(), array.GetDType())
	if err != nil {
		return nil, err
	}
	_, err = add.Invoke(array, array, sum)
	return sum, err
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("pack_func_handle_arg LIBRARY")
	}
	module, err := heddle.LoadModuleFromFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	function, err := heddle.ConvertFunction(double)
	if err != nil {
		log.Fatal(err)
	}
	array, err := heddle.NewArray([]float32{1, 2, 3, 4})
	if err != nil {
		log.Fatal(err)
	}
	result, err := function.Invoke(module, array)
	if err != nil {
		log.Fatal(err)
	}
	doubled, err := heddle.Copy[float32](result.AsArray())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("doubled:", doubled)
}
