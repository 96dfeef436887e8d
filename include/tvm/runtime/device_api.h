// tvm/runtime/device_api.h: constants and functions of devices, for programs written for TVM's C++ runtime. Written for
// Heddle; the names are TVM's. The devices are those of the process's context. DeviceAPI calls the C API, and is no base
// class for devices of a program's own: a device is a plugin (heddle/plugin.h).
#ifndef TVM_RUNTIME_DEVICE_API_H_
#define TVM_RUNTIME_DEVICE_API_H_

#include <string>

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/detail/handle.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace runtime {

// The attributes that runtime.GetDeviceAttr returns.
enum DeviceAttrKind : int {
  kExist = 0,
  kMaxThreadsPerBlock = 1,
  kWarpSize = 2,
  kMaxSharedMemoryPerBlock = 3,
  kComputeVersion = 4,
  kDeviceName = 5,
  kMaxClockRate = 6,
  kMultiProcessorCount = 7,
  kMaxThreadDimensions = 8,
  kMaxRegistersPerBlock = 9,
  kGcnArch = 10,
  kApiVersion = 11,
  kDriverVersion = 12,
  kL2CacheSizeBytes = 13,
  kTotalGlobalMemory = 14,
  kAvailableGlobalMemory = 15
};

constexpr int kAllocAlignment = 64;      // of memory that kernels take
constexpr int kTempAllocaAlignment = 64; // of workspaces
constexpr int kMaxStackAlloca = 1024;
constexpr int kRPCSessMask = 128; // of types of devices on other machines, which Heddle does not have
constexpr int kDefaultWorkspaceAlignment = 1;
static_assert(kRPCSessMask >= TVMDeviceExtType_End, "the types of devices are below the mask");

inline int GetRPCSessionIndex(Device dev) {
  if (dev.device_type < kRPCSessMask) throw Error("the device is on this machine");
  return dev.device_type / kRPCSessMask - 1;
}
inline bool IsRPCSessionDevice(Device dev) {
  return dev.device_type >= kRPCSessMask;
}
inline Device RemoveRPCSessionMask(Device dev) {
  dev.device_type = static_cast<DLDeviceType>(dev.device_type % kRPCSessMask);
  return dev;
}

class DeviceAPI {
public:
  // The functions for a device; one that is not there is an error, or null with allow_missing.
  static DeviceAPI *Get(Device dev, bool allow_missing = false) {
    static DeviceAPI one;
    TVMRetValue exists;
    one.GetAttr(dev, kExist, &exists);
    if (exists.type_code() == kDLInt && static_cast<int>(exists) != 0) return &one;
    if (allow_missing) return nullptr;
    throw Error("there is no device of type " + std::to_string(static_cast<int>(dev.device_type)) + " and number " +
                std::to_string(dev.device_id));
  }
  void SetDevice(Device) {} // each call names its device
  void GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue *rv) {
    *rv = (*Registry::Get("runtime.GetDeviceAttr"))(static_cast<int>(dev.device_type), dev.device_id,
                                                    static_cast<int>(kind));
  }
  void *AllocDataSpace(Device dev, std::size_t nbytes, std::size_t alignment, DLDataType type_hint) {
    void *out = nullptr;
    detail::must(TVMDeviceAllocDataSpace(dev, nbytes, alignment, type_hint, &out));
    return out;
  }
  void FreeDataSpace(Device dev, void *data) {
    detail::must(TVMDeviceFreeDataSpace(dev, data));
  }
  void CopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream) {
    detail::must(TVMDeviceCopyDataFromTo(from, to, stream));
  }
  TVMStreamHandle CreateStream(Device dev) {
    TVMStreamHandle out = nullptr;
    detail::must(TVMStreamCreate(dev.device_type, dev.device_id, &out));
    return out;
  }
  void FreeStream(Device dev, TVMStreamHandle stream) {
    detail::must(TVMStreamFree(dev.device_type, dev.device_id, stream));
  }
  void SetStream(Device dev, TVMStreamHandle stream) {
    detail::must(TVMSetStream(dev.device_type, dev.device_id, stream));
  }
  void StreamSync(Device dev, TVMStreamHandle stream) {
    detail::must(TVMSynchronize(dev.device_type, dev.device_id, stream));
  }
  void SyncStreamFromTo(Device dev, TVMStreamHandle from, TVMStreamHandle to) {
    detail::must(TVMStreamStreamSynchronize(dev.device_type, dev.device_id, from, to));
  }
  void *AllocWorkspace(Device dev, std::size_t nbytes, DLDataType type_hint = DLDataType()) {
    void *out = TVMBackendAllocWorkspace(dev.device_type, dev.device_id, nbytes, type_hint.code, type_hint.bits);
    if (out == nullptr) throw Error(TVMGetLastError());
    return out;
  }
  void FreeWorkspace(Device dev, void *data) {
    detail::must(TVMBackendFreeWorkspace(dev.device_type, dev.device_id, data));
  }
  static bool NeedSetDevice(int) {
    return false;
  }

private:
  DeviceAPI() = default;
};

} // namespace runtime
} // namespace tvm

#endif
