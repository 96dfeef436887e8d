// Simple calls a function of a compiled library: simple LIBRARY, whose function add takes two arrays of four float32 and
// writes their sum to a third.
package main

import (
	"fmt"
	"log"
	"os"

	"heddle.internal/heddle"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("simple LIBRARY")
	}
	fmt.Println("TVM's API:", heddle.TVMVersion, "DLPack:", heddle.DLPackVersion)

	module, err := heddle.LoadModuleFromFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	add, err := module.GetFunction("add")
	if err != nil {
		log.Fatal(err)
	}

	var arrays [3]*heddle.Array
	for i := range arrays {
		if arrays[i], err = heddle.Empty([]int64{4}, "float32", heddle.CPU(0)); err != nil {
			log.Fatal(err)
		}
	}
	for i, values := range [][]float32{{1, 2, 3, 4}, {10, 20, 30, 40}} {
		if err = arrays[i].CopyFrom(values); err != nil {
			log.Fatal(err)
		}
	}
	if _, err = add.Invoke(arrays[0], arrays[1], arrays[2]); err != nil {
		log.Fatal(err)
	}
	sum, err := arrays[2].AsSlice()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sum:", sum.([]float32))
}
