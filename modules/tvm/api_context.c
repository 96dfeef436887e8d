/* modules/tvm/api_context.c: the context that TVM's C API runs in, the process's, and its devices by DLPack's type and number. */
#include "modules/tvm/object.h"

/* Borrowed: the process keeps it. */
heddle_context *heddle__api_context(void) {
  heddle_error err = {0};
  heddle_context *ctx = NULL;
  if (heddle_context_process(&ctx, &err) != HEDDLE_OK) {
    heddle__tvm_say_error("the devices of this process", &err);
    return NULL;
  }
  heddle_context_release(ctx);
  return ctx;
}

heddle_device *heddle__numbered_device(heddle_context *ctx, int32_t type, int32_t number) {
  heddle_error err = {0};
  heddle_device *dev = NULL;
  if (heddle_context_dlpack_device(ctx, type, number, &dev, &err) != HEDDLE_OK) heddle__tvm_say_error(NULL, &err);
  return dev;
}

heddle_device *heddle__api_device(int32_t type, int32_t number) {
  heddle_context *ctx = heddle__api_context();
  return ctx != NULL ? heddle__numbered_device(ctx, type, number) : NULL;
}
