package heddle

// Devices by DLPack's type and number, and the constants that go with them.

// #include "bridge.h"
import "C"

import (
	"strconv"
	"unsafe"
)

const (
	// ModuleVersion is the version of this module, and of the libheddle that it is made for.
	ModuleVersion = "0.1.0"
	// TVMVersion is the version of TVM's C API, and of its graphs and libraries, that names and meanings here follow. What
	// the library itself is, Version says.
	TVMVersion = "0.14.0"
	// DLPackVersion is the version of DLPack whose device types and dtypes are used.
	DLPackVersion = "1.1"
)

// Device types, DLPack's numbers.
const (
	KDLCPU       int32 = 1
	KDLGPU       int32 = 2 // CUDA
	KDLCUDA      int32 = 2
	KDLCPUPinned int32 = 3
	KDLOpenCL    int32 = 4
	KDLSDAccel   int32 = 6
	KDLVulkan    int32 = 7
	KDLMetal     int32 = 8
	KDLVPI       int32 = 9
	KDLROCM      int32 = 10
	KOpenGL      int32 = 11
	KExtDev      int32 = 12
)

// Device is a device by its type and its number among those of that type.
type Device struct {
	DeviceType int32
	DeviceID   int32
}

// Context is what TVM's Go package calls a Device.
type Context = Device

// CPU and its kin give a device by number. Those of which there is no plugin are names: Empty says that there is none.
func CPU(i int32) Context       { return Context{KDLCPU, i} }
func GPU(i int32) Context       { return Context{KDLGPU, i} }
func CPUPinned(i int32) Context { return Context{KDLCPUPinned, i} }
func OpenCL(i int32) Context    { return Context{KDLOpenCL, i} }
func Metal(i int32) Context     { return Context{KDLMetal, i} }
func VPI(i int32) Context       { return Context{KDLVPI, i} }
func ROCM(i int32) Context      { return Context{KDLROCM, i} }
func SDAccel(i int32) Context   { return Context{KDLSDAccel, i} }
func Vulkan(i int32) Context    { return Context{KDLVulkan, i} }
func OpenGL(i int32) Context    { return Context{KOpenGL, i} }
func ExtDev(i int32) Context    { return Context{KExtDev, i} }

// PluginDevice gives a device of a plugin whose devices are of no type of DLPack's, "sim": its number depends on the
// plugin's name only. ExtDev means such a device where one plugin has them.
func PluginDevice(plugin string, i int32) Context {
	name := C.CString(plugin)
	defer C.free(unsafe.Pointer(name))
	return Context{int32(C.heddle_plugin_device_type(name)), i}
}

var deviceWords = map[int32]string{KDLCPU: "cpu", KDLGPU: "cuda", KDLCPUPinned: "cpu_pinned", KDLOpenCL: "opencl",
	KDLSDAccel: "sdaccel", KDLVulkan: "vulkan", KDLMetal: "metal", KDLVPI: "vpi", KDLROCM: "rocm", KOpenGL: "opengl",
	KExtDev: "ext_dev"}

// String gives "opencl(0)".
func (d Device) String() string {
	word, ok := deviceWords[d.DeviceType]
	if !ok {
		word = "device_type_" + strconv.Itoa(int(d.DeviceType))
	}
	return word + "(" + strconv.Itoa(int(d.DeviceID)) + ")"
}

// Version gives the library's version, "0.1.0".
func Version() string { return C.GoString(C.heddle_version()) }
