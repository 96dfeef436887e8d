// Server classifies digits over HTTP: server -model digits.json -listen :8080. POST 64 grey values as a JSON list to
// /classify. Clients share runs of one model, up to -batch in each; at most -queue are in, and one more gets 503 with
// Retry-After. SIGTERM ends it once those that are in have their answers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"heddle.internal/heddle"
)

type server struct {
	batcher *heddle.Batcher
	seats   chan struct{} // one a request that is read, waits or runs
}

func (s *server) classify(w http.ResponseWriter, r *http.Request) {
	select {
	case s.seats <- struct{}{}:
		defer func() { <-s.seats }()
	default:
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close") // or a refusal would wait for the rest of the request
		http.Error(w, "all seats are taken", http.StatusServiceUnavailable)
		return
	}
	var image []float32
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&image); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	outputs, err := s.batcher.Run(r.Context(), image) // ends when the client goes away
	switch {
	case errors.Is(err, heddle.ErrInvalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer outputs[0].Close()
	scores, err := heddle.Copy[float32](outputs[0])
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	best := 0
	for k, score := range scores {
		if score > scores[best] {
			best = k
		}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]interface{}{"digit": best, "scores": scores})
}

func main() {
	path := flag.String("model", "digits.json", "model to serve")
	listen := flag.String("listen", "localhost:8080", "address; port 0 takes a free one")
	queue := flag.Int("queue", 64, "requests that may run or wait")
	batch := flag.Int("batch", 16, "images in a run")
	patience := flag.Duration("patience", 10*time.Second, "how long a client may take to send its request")
	flag.Parse()
	batcher, err := load(*path, heddle.BatcherOptions{MaxItems: *batch, MaxDelay: time.Millisecond, MaxQueue: *batch + *queue})
	if err != nil {
		log.Fatal(err)
	}
	defer batcher.Close()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	s := &server{batcher, make(chan struct{}, *queue)}
	http.HandleFunc("/classify", s.classify)
	web := &http.Server{ReadTimeout: *patience}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	go web.Serve(listener)
	fmt.Println("listening on", listener.Addr())
	<-stop.Done()
	end, over := context.WithTimeout(context.Background(), *patience)
	defer over()
	if err := web.Shutdown(end); err != nil {
		log.Fatal(err)
	}
	fmt.Println("all answered")
}
