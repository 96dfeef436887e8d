/* tests/unit/tensor_device.h: what tests of tensors on devices share: a context for the program, its devices by name, and
 * the dtype of their numbers. */
#ifndef HEDDLE_TESTS_UNIT_TENSOR_DEVICE_H
#define HEDDLE_TESTS_UNIT_TENSOR_DEVICE_H

#include "cases.h"

static const heddle_dtype INT32 = {HEDDLE_DTYPE_INT, 32, 1};
static heddle_context *context;

/* The device that this case runs on in the place of `name`; skips the case where there is none. */
static heddle_device *find(const char *name) {
  heddle_device *dev;
  heddle_error err;
  if (context == NULL && heddle_context_create(NULL, 0, NULL, NULL, &context, &err) != HEDDLE_OK)
    fail_msg("%s", err.text);
  if (heddle_context_find_device(context, on(name), &dev, &err) == HEDDLE_OK) return dev;
  heddle_context_release(context);
  SKIP(err.text);
  return NULL;
}

#endif
