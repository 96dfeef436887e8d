// tvm/runtime/detail/handle.h: what the C++ headers share: objects that hold a handle of the C API, and names of devices.
#ifndef TVM_RUNTIME_DETAIL_HANDLE_H_
#define TVM_RUNTIME_DETAIL_HANDLE_H_

#include <ostream>

#include <tvm/runtime/object.h>

namespace tvm {
namespace runtime {

using Device = DLDevice;

namespace detail {

// Holds one reference of a module, a function or an array of the C API.
class HandleObject : public Object {
public:
  explicit HandleObject(TVMObjectHandle handle) : handle_(handle) {}
  HandleObject(const HandleObject &) = delete;
  HandleObject &operator=(const HandleObject &) = delete;
  ~HandleObject() override {
    TVMObjectFree(handle_);
  }
  TVMObjectHandle handle() const {
    return handle_;
  }
  const void *heddle_identity() const override {
    return handle_;
  }

private:
  TVMObjectHandle handle_;
};

// An object that takes the reference over; null for NULL.
template <class Node> ObjectPtr<Object> adopt_handle(TVMObjectHandle handle) {
  struct Guard {
    TVMObjectHandle held;
    ~Guard() {
      if (held != nullptr) TVMObjectFree(held);
    }
  } guard{handle};
  if (handle == nullptr) return nullptr;
  ObjectPtr<Object> made = make_object<Node>(handle);
  guard.held = nullptr;
  return made;
}

// An object with a reference of its own.
template <class Node> ObjectPtr<Object> share_handle(TVMObjectHandle handle) {
  if (handle == nullptr) return nullptr;
  must(TVMObjectRetain(handle));
  return adopt_handle<Node>(handle);
}

// The handle that a reference holds; NULL where it holds none.
inline TVMObjectHandle handle_of(const Object *object) {
  return object != nullptr ? static_cast<const HandleObject *>(object)->handle() : nullptr;
}

} // namespace detail

// The name that TVM has for a type of devices.
inline const char *DeviceName(int type) {
  switch (type) {
  case kDLCPU: return "cpu";
  case kDLCUDA: return "cuda";
  case kDLCUDAHost: return "cuda_host";
  case kDLCUDAManaged: return "cuda_managed";
  case kDLOpenCL: return "opencl";
  case kDLSDAccel: return "sdaccel";
  case kDLAOCL: return "aocl";
  case kDLVulkan: return "vulkan";
  case kDLMetal: return "metal";
  case kDLVPI: return "vpi";
  case kDLROCM: return "rocm";
  case kDLROCMHost: return "rocm_host";
  case kDLExtDev: return "ext_dev";
  case kDLOneAPI: return "oneapi";
  case kDLWebGPU: return "webgpu";
  case kDLHexagon: return "hexagon";
  case kOpenGL: return "opengl";
  case kDLMicroDev: return "microdev";
  default: throw Error("unknown type of devices " + std::to_string(type));
  }
}

// The name up to v0.19.
inline const char *DLDeviceType2Str(int type) {
  return DeviceName(type);
}

inline bool operator==(const DLDevice &a, const DLDevice &b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}
inline bool operator!=(const DLDevice &a, const DLDevice &b) {
  return !(a == b);
}
inline std::ostream &operator<<(std::ostream &out, DLDevice dev) {
  return out << DeviceName(dev.device_type) << '(' << dev.device_id << ')';
}

} // namespace runtime

using runtime::Device;

} // namespace tvm

// What DLPack's names were up to v0.7. Members of that name (DLTensor::ctx) need -DHEDDLE_DLPACK_CTX.
#if !defined(HEDDLE_DLPACK_CTX)
typedef DLDevice DLContext;
#ifndef kDLGPU
#define kDLGPU kDLCUDA
#endif
#ifndef kDLCPUPinned
#define kDLCPUPinned kDLCUDAHost
#endif
#endif

#endif
