/* modules/tvm/api_globals.c: functions by name that clients of TVM expect to be registered: loading, the system library,
 * what is known of a device, streams. registry.c lists them. */
#include <string.h>

#include "core/device.h"
#include "modules/tvm/api.h"
#include "modules/tvm/args.h"

static int give_library(heddle_status s, heddle_module *m, const heddle_error *err, heddle__word *ret,
                        int32_t *ret_code) {
  if (s != HEDDLE_OK) {
    heddle__tvm_say_error(NULL, err);
    return -1;
  }
  heddle_object *o = heddle__library_object(m);
  heddle_module_release(m);
  return heddle__give_object(o, ret, ret_code);
}

/* (path, format): a shared library, whatever the format is called. */
int heddle__tvm_load_so(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                        int32_t *ret_code) {
  heddle_error err = {0};
  heddle_module *m = NULL;
  (void)self;
  if (n < 1 || codes[0] != PACKED_STRING) return heddle__api_refuse("runtime.module.loadfile_so takes a path");
  heddle_context *ctx = heddle__api_context();
  if (ctx == NULL) return -1;
  heddle_status s = heddle_module_load(ctx, args[0].s, &m, &err);
  return give_library(s, m, &err, ret, ret_code);
}

int heddle__tvm_load_file(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                          int32_t *ret_code) {
  (void)self;
  if (n < 1 || n > 2 || codes[0] != PACKED_STRING || (n == 2 && codes[1] != PACKED_STRING && codes[1] != PACKED_NULL))
    return heddle__api_refuse("runtime.ModuleLoadFromFile takes a path and a format");
  return heddle__give_object(heddle__api_load(args[0].s, n == 2 && codes[1] == PACKED_STRING ? args[1].s : NULL), ret,
                             ret_code);
}

/* (), or with the prefix that the objects were compiled with. */
int heddle__tvm_system_lib(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                           int32_t *ret_code) {
  heddle_error err = {0};
  heddle_module *m = NULL;
  (void)self;
  if (n > 1 || (n == 1 && codes[0] != PACKED_STRING && codes[0] != PACKED_NULL))
    return heddle__api_refuse("runtime.SystemLib takes a prefix, or nothing");
  heddle_context *ctx = heddle__api_context();
  if (ctx == NULL) return -1;
  const char *prefix = n == 1 && codes[0] == PACKED_STRING ? args[0].s : "";
  heddle_status s = heddle_module_system(ctx, prefix, &m, &err);
  return give_library(s, m, &err, ret, ret_code);
}

static bool ints(const int32_t *codes, int32_t from, int32_t to) {
  bool good = true;
  for (int32_t i = from; i < to; i++) good = good && codes[i] == PACKED_INT;
  return good;
}

/* (type, number, kind): what is not known of a device is "none", as with TVM; whether there is such a device is never an
 * error. */
int heddle__tvm_device_attr(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code) {
  enum { EXISTS = 0, NAME = 5, UNITS = 7, DRIVER = 12, MEMORY = 14 };
  (void)self;
  if (n != 3 || !ints(codes, 0, 3))
    return heddle__api_refuse("runtime.GetDeviceAttr takes a device type, a number, and the kind of attribute");
  const heddle_device *dev = heddle__api_device((int32_t)args[0].i, (int32_t)args[1].i);
  *ret_code = PACKED_INT;
  if (args[2].i == EXISTS) {
    ret->i = dev != NULL;
    return 0;
  }
  *ret_code = PACKED_NULL;
  if (dev == NULL) return -1;
  switch (args[2].i) {
  case NAME: return heddle__give_text(dev->desc.name, strlen(dev->desc.name), ret, ret_code);
  case DRIVER: return heddle__give_text(dev->desc.driver, strlen(dev->desc.driver), ret, ret_code);
  case UNITS: ret->i = dev->desc.compute_units; break;
  case MEMORY: ret->i = (int64_t)dev->desc.memory_bytes; break;
  default: return 0;
  }
  if (ret->i > 0) *ret_code = PACKED_INT;
  return 0;
}

/* (type, number, stream) */
int heddle__tvm_set_stream(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                           int32_t *ret_code) {
  (void)self, (void)ret, (void)ret_code;
  if (n != 3 || !ints(codes, 0, 2) || (codes[2] != PACKED_HANDLE && codes[2] != PACKED_NULL))
    return heddle__api_refuse("runtime.TVMSetStream takes a device type, a number, and a stream");
  return TVMSetStream((int)args[0].i, (int)args[1].i, codes[2] == PACKED_NULL ? NULL : args[2].p);
}
