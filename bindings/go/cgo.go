package heddle

// How the package finds libheddle, for all its files.

// #cgo CFLAGS: -std=c11 -Wall
// #cgo pkg-config: heddle heddle_tvm
import "C"
