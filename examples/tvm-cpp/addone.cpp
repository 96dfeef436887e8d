// examples/tvm-cpp/addone.cpp: a function of a library, called by itself, in the form of TVM's how_to/deploy: from a file, or
// without one from the objects that are linked into the program. The function adds one to each of ten floats.
#include <cstdio>

#include <dlpack/dlpack.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

static void verify(tvm::runtime::Module mod, const std::string &name) {
  tvm::runtime::PackedFunc f = mod.GetFunction(name);
  ICHECK(f != nullptr) << "the module has no function " << name;
  DLTensor *x;
  DLTensor *y;
  const int ndim = 1;
  const int dtype_code = kDLFloat;
  const int dtype_bits = 32;
  const int dtype_lanes = 1;
  const int device_type = kDLCPU;
  const int device_id = 0;
  int64_t shape[1] = {10};
  TVMArrayAlloc(shape, ndim, dtype_code, dtype_bits, dtype_lanes, device_type, device_id, &x);
  TVMArrayAlloc(shape, ndim, dtype_code, dtype_bits, dtype_lanes, device_type, device_id, &y);
  for (int i = 0; i < shape[0]; ++i) static_cast<float *>(x->data)[i] = static_cast<float>(i);
  f(x, y);
  for (int i = 0; i < shape[0]; ++i) ICHECK_EQ(static_cast<float *>(y->data)[i], static_cast<float>(i) + 1.0f);
  TVMArrayFree(x);
  TVMArrayFree(y);
  LOG(INFO) << name << ": verified";
}

int main(int argc, char **argv) {
  try {
    if (argc > 1) verify(tvm::runtime::Module::LoadFromFile(argv[1]), "addone");
    tvm::runtime::Module system = (*tvm::runtime::Registry::Get("runtime.SystemLib"))();
    verify(system, "addonesys");
  } catch (const dmlc::Error &e) {
    std::fprintf(stderr, "addone: %s\n", e.what());
    return 1;
  }
  std::puts("verified");
  return 0;
}
