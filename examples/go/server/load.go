package main

import (
	"bytes"
	"os"
	"strings"

	"heddle.internal/heddle"
)

// load makes a batcher of a network that is declared for one image: its batch dimension is opened.
func load(path string, options heddle.BatcherOptions) (*heddle.Batcher, error) {
	graph, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	params, err := os.ReadFile(strings.TrimSuffix(path, ".json") + ".params")
	if err != nil {
		return nil, err
	}
	graph = bytes.Replace(graph, []byte("[1, 1, 8, 8]"), []byte(`["n", 1, 8, 8]`), 1)
	model, err := heddle.LoadGraph(graph, params, heddle.WithDevices("cpu"), heddle.WithoutAnnotations())
	if err != nil {
		return nil, err
	}
	defer model.Close() // the batcher keeps what it needs
	return model.NewBatcher(options)
}
