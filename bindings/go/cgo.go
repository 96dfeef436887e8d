package heddle

// How the package finds libheddle, for all its files.

// #cgo CFLAGS: -std=c11 -Wall
// #cgo pkg-config: heddle
// #cgo LDFLAGS: -lheddle_tvm
import "C"
