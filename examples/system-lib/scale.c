/* A model as an object file: y = x * p0, compiled with the prefix scale_. Nothing in main.c names what is in here: the
 * constructors below register it. */
#include "era.h"

#define GRAPH \
  "{\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"p0\",\"inputs\":[]}," \
  "{\"op\":\"tvm_op\",\"name\":\"fused_multiply\",\"attrs\":{\"func_name\":\"fused_multiply\",\"num_inputs\":\"2\"," \
  "\"num_outputs\":\"1\",\"flatten_data\":\"0\"},\"inputs\":[[0,0,0],[1,0,0]]}]," \
  "\"arg_nodes\":[0,1],\"heads\":[[2,0,0]],\"node_row_ptr\":[0,1,2,3]," \
  "\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\",\"float32\"]]," \
  "\"shape\":[\"list_shape\",[[4],[4],[4]]],\"storage_id\":[\"list_int\",[0,1,2]]}}"

static void *scale___tvm_module_ctx;
static const ERA_BLOB(GRAPH) scale___tvm_dev_mblob = ERA_BLOB_OF(GRAPH, scale___tvm_dev_mblob, 1, 10, 100, 1000);

static int scale_fused_multiply(TVMValue *args, int *codes, int num_args, TVMValue *ret, int *ret_code,
                                void *resource) {
  (void)codes, (void)ret, (void)ret_code, (void)resource;
  const DLTensor *x = num_args == 3 ? args[0].v_handle : 0;
  if (x == 0 || x->ndim != 1 || x->shape[0] != 4) {
    TVMAPISetLastError("Assert fail: fused_multiply: expected three vectors of 4");
    return -1;
  }
  const float *a = x->data, *b = ((const DLTensor *)args[1].v_handle)->data;
  float *y = ((const DLTensor *)args[2].v_handle)->data;
  for (int i = 0; i < 4; i++) y[i] = a[i] * b[i];
  return 0;
}

__attribute__((constructor)) static void __tvm_module_startup(void) {
  TVMBackendRegisterSystemLibSymbol("scale___tvm_module_ctx", &scale___tvm_module_ctx);
  TVMBackendRegisterSystemLibSymbol("scale_fused_multiply", (void *)(uintptr_t)scale_fused_multiply);
}

__attribute__((constructor)) static void __tvm_dev_mblob_reg(void) {
  TVMBackendRegisterSystemLibSymbol("scale___tvm_dev_mblob", (void *)(uintptr_t)&scale___tvm_dev_mblob);
}
