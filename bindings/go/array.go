package heddle

// Arrays: memory of the library's on the host or on a device, with a dtype and a shape.

// #include "bridge.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Array is memory with a dtype and a shape, on the host or on a device. What one goroutine writes while another reads is
// for them to order.
type Array struct {
	ref
	t      *C.heddle_tensor
	data   unsafe.Pointer // row-major on the host, or nil
	dtype  DType
	shape  []int64
	few    [4]int64 // the shape, where it is no longer
	count  int
	bytes  int
	ctx    Context
	owner  *Runtime // of its device
	loaned bool     // of an argument: the memory has another owner
}

// Takes over the reference t.
func wrapArray(t *C.heddle_tensor) *Array {
	var d C.hgo_array
	C.hgo_describe(t, &d)
	return ownArray(&d)
}

// Takes over the reference in d.
func ownArray(d *C.hgo_array) *Array {
	a := describeArray(d)
	k := newKeeper(d.t, a.bytes+handleBytes)
	a.free, a.p = freeTensor, unsafe.Pointer(k)
	allocated(k.size)
	return a
}

// A keeper has the reference of an array, and the finalizer for callers that forget to close it. To set a finalizer and
// take it off again costs more than all the rest of an array, so an array that was closed leaves its keeper to the next
// one.
type keeper struct {
	t    *C.heddle_tensor // nil: of no array
	size int
}

var keepers = sync.Pool{New: func() interface{} {
	k := &keeper{}
	runtime.SetFinalizer(k, (*keeper).drop)
	return k
}}

func newKeeper(t *C.heddle_tensor, size int) *keeper {
	k := keepers.Get().(*keeper)
	k.t, k.size = t, size
	return k
}

func (k *keeper) drop() {
	if k.t == nil {
		return
	}
	C.hgo_tensor_drop(C.uintptr_t(uintptr(unsafe.Pointer(k.t))))
	k.t = nil
	freed(k.size)
}

func freeTensor(p unsafe.Pointer, _ int) {
	k := (*keeper)(p)
	k.drop()
	keepers.Put(k)
}

func describeArray(d *C.hgo_array) *Array {
	n := int(d.ndim)
	a := &Array{t: d.t, data: d.data, dtype: dtypeOf(d.dtype), count: 1, bytes: int(d.bytes), ctx: CPU(0)}
	if a.shape = a.few[:]; n > len(a.few) {
		a.shape = make([]int64, n)
	}
	a.shape = a.shape[:n]
	if n > 0 {
		for i, dim := range unsafe.Slice(d.shape, n) {
			a.shape[i] = int64(dim)
			a.count *= int(dim)
		}
	}
	if d.dev != nil {
		err := newErr()
		if info, s := deviceInfo(d.dev, err); s == C.HEDDLE_OK {
			a.ctx = info.Device
		}
		freeErr(err)
	}
	return a
}

func shapePointer(shape []int64) *C.int64_t {
	if len(shape) == 0 {
		return nil
	}
	return (*C.int64_t)(unsafe.Pointer(&shape[0]))
}

// Empty makes an array of zeros. After the shape come, in any order and each at most once, the dtype as a string, which
// is "float32" without one, and a Context, which is CPU(0) without one.
func Empty(shape []int64, args ...interface{}) (*Array, error) {
	dtype, ctx := DType{C.HEDDLE_DTYPE_FLOAT, 32, 1}, CPU(0)
	var err error
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			if dtype, err = ParseDType(v); err != nil {
				return nil, err
			}
		case DType:
			dtype = v
		case Context:
			ctx = v
		default:
			return nil, invalid(fmt.Sprintf("Empty takes a dtype such as \"float32\" and a Context, not %T", arg))
		}
	}
	var owner *Runtime
	var dev *C.heddle_device
	if ctx != CPU(0) {
		if owner, err = Default(); err != nil {
			return nil, err
		}
		if dev, err = owner.device(ctx); err != nil {
			return nil, err
		}
		if ctx.DeviceType == KExtDev { // a name of what has a type of its own
			words := newErr()
			info, _ := deviceInfo(dev, words)
			freeErr(words)
			ctx = info.Device
		}
	}
	words := newErr()
	defer freeErr(words)
	var t *C.heddle_tensor
	s := C.heddle_tensor_create(dev, dtype.c(), shapePointer(shape), C.uint32_t(len(shape)), &t, words)
	if s != C.HEDDLE_OK {
		return nil, failure(s, words)
	}
	a := wrapArray(t)
	a.owner, a.ctx = owner, ctx
	return a, nil
}

// NewArray makes an array of the host with a copy of data. Without a shape it has one dimension.
func NewArray[T Element](data []T, shape ...int64) (*Array, error) {
	e, _ := sliceElements(data)
	if len(shape) == 0 {
		shape = []int64{int64(len(data))}
	}
	return newArray(e, shape)
}

func newArray(e elements, shape []int64) (*Array, error) {
	count, ok := elementCount(shape)
	if !ok || count != e.count {
		return nil, invalid(fmt.Sprintf("%d elements do not fill an array of shape %v", e.count, shape))
	}
	words := newErr()
	defer freeErr(words)
	var t *C.heddle_tensor
	s := C.hgo_tensor(e.data, C.uint64_t(e.bytes()), e.dtype.c(), shapePointer(shape), C.uint32_t(len(shape)), &t, words)
	if s != C.HEDDLE_OK {
		return nil, failure(s, words)
	}
	return wrapArray(t), nil
}

func elementCount(shape []int64) (int, bool) {
	count := 1
	for _, d := range shape {
		if d < 0 || d > 0 && count > (1<<62)/int(d) {
			return 0, false
		}
		count *= int(d)
	}
	return count, true
}

// LoadNpy reads a .npy file.
func LoadNpy(path string) (*Array, error) {
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	var t *C.heddle_tensor
	name := texts.add(path)
	if texts.err != nil {
		return nil, texts.err
	}
	if s := C.heddle_tensor_load_npy(name, &t, words); s != C.HEDDLE_OK {
		return nil, about{file: path}.errorOf(s, words)
	}
	return wrapArray(t), nil
}

// SaveNpy writes a .npy file.
func (a *Array) SaveNpy(path string) error {
	if err := a.acquire(); err != nil {
		return err
	}
	defer a.release()
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	name := texts.add(path)
	if texts.err != nil {
		return texts.err
	}
	var copy *C.heddle_tensor
	s := C.hgo_tensor_clone(a.t, &copy, words)
	if s == C.HEDDLE_OK {
		s = C.heddle_tensor_save_npy(copy, name, words)
		C.heddle_tensor_release(copy)
	}
	if s != C.HEDDLE_OK {
		return about{file: path}.errorOf(s, words)
	}
	return nil
}

// Close gives the memory back once no call uses it. What View gave is not to be used any more.
func (a *Array) Close() {
	if a == nil || a.loaned {
		return
	}
	a.close()
}

// GetNdim, GetShape, GetDType and GetCtx say what the array is, after its Close too.
func (a *Array) GetNdim() int32    { return int32(len(a.shape)) }
func (a *Array) GetShape() []int64 { return append([]int64{}, a.shape...) }
func (a *Array) GetDType() string  { return a.dtype.String() }
func (a *Array) GetCtx() Context   { return a.ctx }

// Bytes is the size of the elements.
func (a *Array) Bytes() int { return a.bytes }

// Len is the number of elements.
func (a *Array) Len() int { return a.count }

// CopyFrom copies to the array: a slice of its element type (of uint16 for float16 and bfloat16) with just as many
// elements, or an *Array of its dtype and shape, from any device. It blocks until that is done.
func (a *Array) CopyFrom(value interface{}) error {
	if from, ok := value.(*Array); ok {
		return a.copyArray(from)
	}
	e, ok := sliceElements(value)
	if !ok {
		return invalid(fmt.Sprintf("CopyFrom takes a slice of numbers or an *Array, not %T", value))
	}
	if err := a.fits(e); err != nil {
		return err
	}
	if err := a.acquire(); err != nil {
		return err
	}
	defer a.release()
	if e.count == 0 {
		return nil
	}
	if a.data != nil {
		copy(unsafe.Slice((*byte)(a.data), a.bytes), unsafe.Slice((*byte)(e.data), e.bytes()))
		return nil
	}
	words := newErr()
	defer freeErr(words)
	if s := C.hgo_tensor_write(a.t, e.data, C.uint64_t(e.bytes()), words); s != C.HEDDLE_OK {
		return failure(s, words)
	}
	return nil
}

func (a *Array) fits(e elements) error {
	if !a.dtype.holds(e.dtype) {
		return invalid("an array of ", a.dtype.String(), " and a slice of ", e.dtype.String(), " do not go together")
	}
	if e.count != a.count {
		return invalid(fmt.Sprintf("an array of shape %v has %d elements, the slice %d", a.shape, a.count, e.count))
	}
	return nil
}

func (a *Array) copyArray(from *Array) error {
	if from == nil {
		return invalid("CopyFrom was given a nil *Array")
	}
	if err := a.acquire(); err != nil {
		return err
	}
	defer a.release()
	if err := from.acquire(); err != nil {
		return err
	}
	defer from.release()
	words := newErr()
	defer freeErr(words)
	if s := C.heddle_tensor_copy(a.t, from.t, words); s != C.HEDDLE_OK {
		return failure(s, words)
	}
	return nil
}

// AsSlice gives a copy of the elements as a flat slice: []float32 for float32 and so on, []uint16 for float16 and
// bfloat16. It blocks for arrays on a device.
func (a *Array) AsSlice() (interface{}, error) {
	s, e := a.dtype.newSlice(a.count)
	if s == nil {
		return nil, &Error{Status: ErrUnsupported, Message: "Go has no slice for elements of " + a.dtype.String()}
	}
	return s, a.read(e)
}

func (a *Array) read(e elements) error {
	if err := a.acquire(); err != nil {
		return err
	}
	defer a.release()
	if e.bytes() != a.bytes {
		return invalid(fmt.Sprintf("an array of %d bytes and a slice of %d do not go together", a.bytes, e.bytes()))
	}
	if a.bytes == 0 {
		return nil
	}
	if a.data != nil {
		copy(unsafe.Slice((*byte)(e.data), e.bytes()), unsafe.Slice((*byte)(a.data), a.bytes))
		return nil
	}
	words := newErr()
	defer freeErr(words)
	if s := C.hgo_tensor_read(a.t, e.data, C.uint64_t(e.bytes()), words); s != C.HEDDLE_OK {
		return failure(s, words)
	}
	return nil
}

// CopyTo copies the elements to a slice of the element type with just as many elements.
func (a *Array) CopyTo(value interface{}) error {
	e, ok := sliceElements(value)
	if !ok {
		return invalid(fmt.Sprintf("CopyTo takes a slice of numbers, not %T", value))
	}
	if err := a.fits(e); err != nil {
		return err
	}
	return a.read(e)
}

// Copy gives the elements of an array as a slice of type T, which must be the array's.
func Copy[T Element](a *Array) ([]T, error) {
	s := make([]T, a.count)
	return s, a.CopyTo(s)
}

// View gives the array's own memory, which must be on the host, as a slice of type T. Nothing is copied. The slice may be
// used until the array is closed, and does not keep it: hold the array as long (runtime.KeepAlive).
func View[T Element](a *Array) ([]T, error) {
	if err := a.acquire(); err != nil {
		return nil, err
	}
	defer a.release()
	e, _ := sliceElements([]T(nil))
	if !a.dtype.holds(e.dtype) {
		return nil, invalid("an array of ", a.dtype.String(), " and a slice of ", e.dtype.String(), " do not go together")
	}
	if a.data == nil && a.bytes > 0 {
		return nil, invalid("View needs row-major memory of the host; this array is on ", a.ctx.String())
	}
	return unsafe.Slice((*T)(a.data), a.count), nil
}

// Clone gives a copy of the array on the host.
func (a *Array) Clone() (*Array, error) {
	if err := a.acquire(); err != nil {
		return nil, err
	}
	defer a.release()
	words := newErr()
	defer freeErr(words)
	var t *C.heddle_tensor
	if s := C.hgo_tensor_clone(a.t, &t, words); s != C.HEDDLE_OK {
		return nil, failure(s, words)
	}
	return wrapArray(t), nil
}
