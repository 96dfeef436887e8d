/* modules/tvm/api_context.c: the context that TVM's C API runs in, the process's, and its devices by DLPack's type and number. */
#include <stdio.h>
#include <string.h>

#include "core/device.h"
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

static bool is(const heddle_device *dev, int32_t type, int32_t number) {
  return dev->desc.type == type && number >= 0 && dev->index == (uint32_t)number;
}

/* Two plugins may have devices of one type: those in the user's list come first. */
heddle_device *heddle__numbered_device(heddle_context *ctx, int32_t type, int32_t number) {
  enum { MOST = 64 };
  heddle_device *chosen[MOST];
  size_t n_chosen = 0;
  if (heddle_context_select(ctx, NULL, chosen, MOST, &n_chosen, NULL, NULL) != HEDDLE_OK) n_chosen = 0;
  for (size_t i = 0; i < n_chosen && i < MOST; i++)
    if (is(chosen[i], type, number)) return chosen[i];
  char words[900], list[600] = "";
  size_t n = heddle_context_device_count(ctx), used = 0;
  for (size_t i = 0; i < n; i++) {
    heddle_device *dev = heddle_context_device(ctx, i);
    if (is(dev, type, number)) return dev;
    int more = snprintf(list + used, sizeof list - used, "%s%s is (%d, %u)", used > 0 ? ", " : "", dev->name,
                        (int)dev->desc.type, (unsigned)dev->index);
    if (more > 0 && (size_t)more < sizeof list - used) used += (size_t)more;
    else list[used] = '\0';
  }
  snprintf(words, sizeof words, "there is no device %d of DLPack's type %d; there is: %s", (int)number, (int)type,
           used > 0 ? list : "none");
  heddle__tvm_say(NULL, words);
  return NULL;
}

heddle_device *heddle__api_device(int32_t type, int32_t number) {
  heddle_context *ctx = heddle__api_context();
  return ctx != NULL ? heddle__numbered_device(ctx, type, number) : NULL;
}
