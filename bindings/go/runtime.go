package heddle

// The library's contexts: a configuration, its plugins and their devices.

// #include "bridge.h"
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// Runtime is a configuration, the plugins that it found and their devices: what the C API calls a context. Most programs
// use the process's own, which Default gives and which is the default everywhere.
type Runtime struct {
	ref
	c *C.heddle_context
}

// Settings are the keys of the configuration file, with dots between levels: {"devices": "vulkan:0,cpu", "threads": "4"}.
type Settings map[string]string

// DeviceInfo says what is known of a device.
type DeviceInfo struct {
	Name         string // "opencl:0"
	Plugin       string
	Product      string // the vendor's name
	Driver       string
	Reason       string // why it is not used by default; "" where it is
	Device       Device
	MemoryBytes  uint64
	ComputeUnits uint32
	IsDefault    bool
}

func wrapRuntime(c *C.heddle_context) *Runtime {
	rt := &Runtime{c: c}
	rt.free = func(unsafe.Pointer, int) { C.heddle_context_release(c) }
	runtime.SetFinalizer(rt, (*Runtime).Close)
	return rt
}

var process struct {
	sync.Mutex
	rt *Runtime
}

// Default gives the runtime of the process, made from environment and configuration file when it is first asked for. It
// is the one of Module and Function too. Closing it has no effect.
func Default() (*Runtime, error) {
	process.Lock()
	defer process.Unlock()
	if process.rt != nil {
		return process.rt, nil
	}
	if err := checkVersion(Version()); err != nil {
		return nil, err
	}
	err := newErr()
	defer freeErr(err)
	var c *C.heddle_context
	if s := C.heddle_context_process(&c, err); s != C.HEDDLE_OK {
		return nil, failure(s, err)
	}
	process.rt = &Runtime{c: c}
	return process.rt, nil
}

// NewRuntime makes a runtime of its own; settings are stronger than environment and configuration file. It may try
// plugins, and blocks meanwhile.
func NewRuntime(settings Settings) (*Runtime, error) {
	if err := checkVersion(Version()); err != nil {
		return nil, err
	}
	n := len(settings)
	list := (*[1 << 20]C.heddle_setting)(C.calloc(C.size_t(n+1), C.size_t(unsafe.Sizeof(C.heddle_setting{}))))
	if list == nil {
		return nil, ErrNoMemory
	}
	defer C.free(unsafe.Pointer(list))
	texts := cstrings{}
	defer texts.free()
	i := 0
	for key, value := range settings {
		list[i] = C.heddle_setting{key: texts.add(key), value: texts.add(value)}
		i++
	}
	if texts.err != nil {
		return nil, texts.err
	}
	err := newErr()
	defer freeErr(err)
	var c *C.heddle_context
	if s := C.heddle_context_create(&list[0], C.size_t(n), nil, nil, &c, err); s != C.HEDDLE_OK {
		return nil, failure(s, err)
	}
	return wrapRuntime(c), nil
}

// Close gives the runtime back; models and arrays of it go on to work.
func (rt *Runtime) Close() {
	if rt == nil || rt.free == nil {
		return
	}
	runtime.SetFinalizer(rt, nil)
	rt.close()
}

// Devices lists all devices of all plugins. Plugins are loaded for it, so it may block in their drivers.
func (rt *Runtime) Devices() ([]DeviceInfo, error) {
	if err := rt.acquire(); err != nil {
		return nil, err
	}
	defer rt.release()
	err := newErr()
	defer freeErr(err)
	n := C.heddle_context_device_count(rt.c)
	all := make([]DeviceInfo, 0, int(n))
	for i := C.size_t(0); i < n; i++ {
		info, s := deviceInfo(C.heddle_context_device(rt.c, i), err)
		if s != C.HEDDLE_OK {
			return nil, failure(s, err)
		}
		all = append(all, info)
	}
	return all, nil
}

func deviceInfo(dev *C.heddle_device, err *C.heddle_error) (DeviceInfo, C.heddle_status) {
	info := C.heddle_device_info{struct_size: C.size_t(unsafe.Sizeof(C.heddle_device_info{}))}
	if s := C.heddle_device_get_info(dev, &info, err); s != C.HEDDLE_OK {
		return DeviceInfo{}, s
	}
	return DeviceInfo{Name: C.GoString(info.name), Plugin: C.GoString(info.plugin), Product: C.GoString(info.product),
		Driver: C.GoString(info.driver), Reason: C.GoString(info.reason),
		Device:      Device{int32(info._type), int32(info.index)},
		MemoryBytes: uint64(info.memory_bytes), ComputeUnits: uint32(info.compute_units),
		IsDefault: info.is_default != 0}, C.HEDDLE_OK
}

// Devices lists the devices of the process's runtime.
func Devices() ([]DeviceInfo, error) {
	rt, err := Default()
	if err != nil {
		return nil, err
	}
	return rt.Devices()
}

// Setting gives a setting's value and where it came from; ErrNotFound where it is not set and has no default.
func (rt *Runtime) Setting(key string) (value, origin string, err error) {
	if err := rt.acquire(); err != nil {
		return "", "", err
	}
	defer rt.release()
	words := newErr()
	defer freeErr(words)
	texts := cstrings{}
	defer texts.free()
	var v, from *C.char
	name := texts.add(key)
	if texts.err != nil {
		return "", "", texts.err
	}
	if s := C.heddle_context_setting(rt.c, name, &v, &from, words); s != C.HEDDLE_OK {
		return "", "", failure(s, words)
	}
	return C.GoString(v), C.GoString(from), nil
}

// SettingInfo is a setting that a plugin has, as the plugin describes it.
type SettingInfo struct {
	Key       string // "sim.delay_us"
	Type      string // "switch", "number", "word", "text" or "path"
	Default   string
	Values    string // the values of a word, with commas between
	Help      string
	Low, High uint64 // of a number
	PerDevice bool   // it can be given for one device: "sim.1.delay_us"
}

// DescribedSettings gives the settings that plugins have. It loads all plugins.
func (rt *Runtime) DescribedSettings() ([]SettingInfo, error) {
	if err := rt.acquire(); err != nil {
		return nil, err
	}
	defer rt.release()
	words := newErr()
	defer freeErr(words)
	var all []SettingInfo
	for {
		info := C.heddle_setting_info{struct_size: C.size_t(unsafe.Sizeof(C.heddle_setting_info{}))}
		s := C.heddle_context_described(rt.c, C.size_t(len(all)), &info, words)
		if s == C.HEDDLE_ENOTFOUND {
			return all, nil
		}
		if s != C.HEDDLE_OK {
			return nil, failure(s, words)
		}
		all = append(all, SettingInfo{C.GoString(info.key), C.GoString(info._type), C.GoString(info.default_value),
			C.GoString(info.values), C.GoString(info.help), uint64(info.low), uint64(info.high), info.per_device != 0})
	}
}

// The device of a type and a number, by the rule of the C API: of those that the runtime's list of devices names, else of
// all; an error where an ExtDev is that of several plugins.
func (rt *Runtime) device(d Device) (*C.heddle_device, error) {
	err := newErr()
	defer freeErr(err)
	var dev *C.heddle_device
	if s := C.heddle_context_dlpack_device(rt.c, C.int32_t(d.DeviceType), C.int32_t(d.DeviceID), &dev, err); s != C.HEDDLE_OK {
		return nil, failure(s, err)
	}
	return dev, nil
}

// Device finds a device by its name, "cpu" or "sim:1"; ErrNoDevice where there is none.
func (rt *Runtime) Device(name string) (DeviceInfo, error) {
	if err := rt.acquire(); err != nil {
		return DeviceInfo{}, err
	}
	defer rt.release()
	err := newErr()
	defer freeErr(err)
	texts := cstrings{}
	defer texts.free()
	word := texts.add(name)
	if texts.err != nil {
		return DeviceInfo{}, texts.err
	}
	var dev *C.heddle_device
	if s := C.heddle_context_find_device(rt.c, word, &dev, err); s != C.HEDDLE_OK {
		return DeviceInfo{}, failure(s, err)
	}
	info, s := deviceInfo(dev, err)
	if s != C.HEDDLE_OK {
		return DeviceInfo{}, failure(s, err)
	}
	return info, nil
}

// DeviceByName finds a device of the process's runtime by its name, "cpu" or "sim:1".
func DeviceByName(name string) (DeviceInfo, error) {
	rt, err := Default()
	if err != nil {
		return DeviceInfo{}, err
	}
	return rt.Device(name)
}

// Rank gives the runtime's rank and how many there are: 0 and 1 where it is alone. Several there are in programs that C code
// starts on ranks (docs/cluster.md).
func (rt *Runtime) Rank() (rank, size int) {
	if rt.acquire() != nil {
		return 0, 1
	}
	defer rt.release()
	var r, n C.uint32_t
	C.heddle_context_rank(rt.c, &r, &n)
	return int(r), int(n)
}

// FailRanks ends the work of all ranks with a failure of the program's own, such as a file that only this rank lacks. The
// first failure counts. Nothing happens where the runtime is alone, or with status 0.
func (rt *Runtime) FailRanks(status Status, text string) {
	if rt.acquire() != nil {
		return
	}
	defer rt.release()
	texts := cstrings{}
	defer texts.free()
	C.heddle_context_fail_ranks(rt.c, C.heddle_status(status), texts.optional(text))
}
