// Digits reads handwritten digits: digits FOLDER [DEVICES], where FOLDER is examples/digits.
package main

import (
	"fmt"
	"log"
	"math"
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

func npy[T heddle.Element](folder, name string) []T {
	return must(heddle.Copy[T](must(heddle.LoadNpy(filepath.Join(folder, name)))))
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 || len(os.Args) > 3 {
		log.Fatal("digits FOLDER [DEVICES]")
	}
	folder, devices := os.Args[1], "cpu"
	if len(os.Args) == 3 {
		devices = os.Args[2]
	}
	images, labels := npy[uint8](folder, "images.npy"), npy[int64](folder, "labels.npy")
	expected := npy[float32](folder, "expected.npy")

	model := must(heddle.Load(filepath.Join(folder, "digits.json"), heddle.WithDevices(devices),
		heddle.WithoutAnnotations()))
	defer model.Close()
	right, apart := 0, 0.0
	image, scores := make([]float32, 64), make([]float32, 10)
	for i, label := range labels {
		for k := range image {
			image[k] = float32(images[i*64+k])
		}
		if err := model.RunInto([]interface{}{scores}, image); err != nil {
			log.Fatal(err)
		}
		best := 0
		for k, score := range scores {
			if score > scores[best] {
				best = k
			}
			apart = math.Max(apart, math.Abs(float64(score-expected[i*10+k])))
		}
		if int64(best) == label {
			right++
		}
	}
	fmt.Printf("%d of %d digits right on %v, scores at most %.1g from what was calculated in float64\n", right,
		len(labels), model.Devices(), apart)
	if float64(right) < 0.97*float64(len(labels)) || apart > 1e-4 {
		os.Exit(1)
	}
}
