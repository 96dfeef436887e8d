/* examples/tvm-cpp/addone_sys.c: what TVM writes for an object that is linked into the program, by hand: a function, and a
 * constructor that registers it. */
#include <tvm/runtime/c_backend_api.h>

static int addonesys(TVMValue *args, int *type_codes, int num_args, TVMValue *out, int *out_code, void *resource) {
  (void)out, (void)out_code, (void)resource;
  if (num_args != 2 || type_codes[0] != kTVMDLTensorHandle || type_codes[1] != kTVMDLTensorHandle) {
    TVMAPISetLastError("addonesys takes two tensors");
    return -1;
  }
  const DLTensor *x = (const DLTensor *)args[0].v_handle;
  DLTensor *y = (DLTensor *)args[1].v_handle;
  for (int64_t i = 0; i < x->shape[0]; i++) ((float *)y->data)[i] = ((const float *)x->data)[i] + 1;
  return 0;
}

__attribute__((constructor)) static void add(void) {
  union { /* a function's address as a pointer to data */
    TVMBackendPackedCFunc function;
    void *data;
  } address = {addonesys};
  TVMBackendRegisterSystemLibSymbol("addonesys", address.data);
}
