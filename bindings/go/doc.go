// Package heddle runs models and compiled functions on several kinds of device at once, with libheddle.
//
// A model comes from a file and is called with slices or arrays, from as many goroutines as there are:
//
//	model, err := heddle.Load("model.onnx", heddle.WithDevices("vulkan:0,cpu"))
//	outputs, err := model.Run(pixels)
//	scores, err := heddle.Copy[float32](outputs[0])
//
// Modules, functions and values are those of TVM's own Go package, name for name: LoadModuleFromFile, GetFunction,
// Invoke, RegisterFunction, ConvertFunction, Empty, AsSlice, CopyFrom.
//
// Everything that holds something of the library has a Close, which may be called twice and from any goroutine, and a
// finalizer for callers that forget it. What is used after its Close gives ErrClosed. Unless a method says otherwise it
// may be called from several goroutines at once. Errors are of type *Error where the library gave them; errors.Is
// compares them with ErrBusy and its kin, and with the error that a Go function in the middle of the call returned.
//
// Memory that Go allocated is never kept by the library: slices are copied, and View gives the memory of an array that
// the library allocated.
package heddle
