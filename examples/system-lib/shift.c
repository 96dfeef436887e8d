/* A second model: y = x + p0, with the prefix shift_. It is put into a static archive, whose members nothing asks for
 * by name: without --whole-archive the linker would leave it out. */
#include "era.h"

#define GRAPH \
  "{\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"p0\",\"inputs\":[]}," \
  "{\"op\":\"tvm_op\",\"name\":\"fused_add\",\"attrs\":{\"func_name\":\"fused_add\",\"num_inputs\":\"2\"," \
  "\"num_outputs\":\"1\",\"flatten_data\":\"0\"},\"inputs\":[[0,0,0],[1,0,0]]}]," \
  "\"arg_nodes\":[0,1],\"heads\":[[2,0,0]],\"node_row_ptr\":[0,1,2,3]," \
  "\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\",\"float32\"]]," \
  "\"shape\":[\"list_shape\",[[4],[4],[4]]],\"storage_id\":[\"list_int\",[0,1,2]]}}"

static void *shift___tvm_module_ctx;
static const ERA_BLOB(GRAPH) shift___tvm_dev_mblob = ERA_BLOB_OF(GRAPH, shift___tvm_dev_mblob, 0.5f, 0.25f, 0.125f, 0);

static int shift_fused_add(TVMValue *args, int *codes, int num_args, TVMValue *ret, int *ret_code, void *resource) {
  (void)codes, (void)ret, (void)ret_code, (void)resource;
  const DLTensor *x = num_args == 3 ? args[0].v_handle : 0;
  if (x == 0 || x->ndim != 1 || x->shape[0] != 4) {
    TVMAPISetLastError("Assert fail: fused_add: expected three vectors of 4");
    return -1;
  }
  const float *a = x->data, *b = ((const DLTensor *)args[1].v_handle)->data;
  float *y = ((const DLTensor *)args[2].v_handle)->data;
  for (int i = 0; i < 4; i++) y[i] = a[i] + b[i];
  return 0;
}

__attribute__((constructor)) static void __tvm_module_startup(void) {
  TVMBackendRegisterSystemLibSymbol("shift___tvm_module_ctx", &shift___tvm_module_ctx);
  TVMBackendRegisterSystemLibSymbol("shift_fused_add", (void *)(uintptr_t)shift_fused_add);
}

__attribute__((constructor)) static void __tvm_dev_mblob_reg(void) {
  TVMBackendRegisterSystemLibSymbol("shift___tvm_dev_mblob", (void *)(uintptr_t)&shift___tvm_dev_mblob);
}
