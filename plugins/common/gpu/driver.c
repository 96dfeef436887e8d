/* Opening the driver's library, finding its calls, and starting it. For each thing that may be missing there is a
 * message with what to do, since heddle devices --all shows it. */
#include "gpu.h"

#include <dlfcn.h>

/* Codes that both drivers have, of cuInit and hipInit. */
static const struct {
  int code;
  const char *advice;
} init_advice[] = {
    {34, "this is the stub that programs are linked with, not a driver"},
    {100, "there is no device, or this user may not use it"},
    {101, "there is no device, or this user may not use it"},
    {802, "the system's services for the device are not running yet"},
    {803, "the library and the kernel's module are of different versions: restart the machine, or install them anew"},
    {804, "the library is of another version than the kernel's module, and this device does not allow that"},
    {999, "the kernel's module may not be loaded"},
};

/* The base of a path. */
static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static heddle_status open_library(heddle_pinstance *self, const char **name, heddle_error *err) {
  const gpu_vendor *v = self->vendor;
  char why[400] = "";
  if (self->driver_path != NULL) {
    *name = base_of(self->driver_path);
    self->driver.library = dlopen(self->driver_path, RTLD_NOW | RTLD_LOCAL);
    if (self->driver.library != NULL) return HEDDLE_OK;
    const char *words = dlerror();
    return p_fail(err, HEDDLE_ENODEV, 0, "no %s device: the setting driver: the library cannot be opened (%.400s)",
                  v->api, words != NULL ? words : "no reason given");
  }
  for (const char *const *next = v->libraries; *next != NULL; next++) {
    *name = *next;
    self->driver.library = dlopen(*next, RTLD_NOW | RTLD_LOCAL);
    if (self->driver.library != NULL) return HEDDLE_OK;
    const char *words = dlerror();
    if (why[0] == '\0') snprintf(why, sizeof why, "%s", words != NULL ? words : "no reason given");
  }
  return p_fail(err, HEDDLE_ENODEV, 0, "no %s device: the driver cannot be opened (%s); install the one of your device",
                v->api, why);
}

static void *find_call(const heddle_pinstance *self, uint32_t call) {
  const char *symbol = self->vendor->symbols[call];
  return symbol[0] != '\0' ? dlsym(self->driver.library, symbol) : NULL;
}

static heddle_status find_calls(heddle_pinstance *self, const char *name, heddle_error *err) {
  const gpu_vendor *v = self->vendor;
  const char *missing = NULL;
#define FIND(member, need, cuda, hip, args) \
  self->driver.member = (int(*) args)(uintptr_t)find_call(self, GPU_CALL_##member); \
  if ((need) == GPU_MUST && self->driver.member == NULL && missing == NULL) missing = v->symbols[GPU_CALL_##member];
  GPU_CALLS(FIND)
#undef FIND
  if (missing == NULL) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ENODEV, 0, "no %s device: %.100s has no %s: the driver is older than %s", v->api, name,
                missing, v->needs);
}

static heddle_status start(heddle_pinstance *self, heddle_error *err) {
  const gpu_vendor *v = self->vendor;
  char words[300];
  int n = 0;
  int code = self->driver.init(0);
  if (code == 0) code = self->driver.driver_version(&self->driver_version);
  if (code == 0) code = self->driver.device_count(&n);
  if (code != 0) {
    const char *advice = "is the driver installed as a whole?";
    for (size_t i = 0; i < sizeof init_advice / sizeof init_advice[0]; i++) {
      if (init_advice[i].code == code) advice = init_advice[i].advice;
    }
    v->code_words(self, code, words, sizeof words);
    return p_fail(err, HEDDLE_ENODEV, code, "no %s device: the driver does not start: %s; %s", v->api, words, advice);
  }
  if (n <= 0) return p_fail(err, HEDDLE_ENODEV, 0, "no %s device: the driver is there and shows none", v->api);
  self->n_devices = (uint32_t)n;
  return HEDDLE_OK;
}

heddle_status gpu_driver_load(heddle_pinstance *self, heddle_error *err) {
  const char *name = "";
  heddle_status s = open_library(self, &name, err);
  if (s == HEDDLE_OK) s = find_calls(self, name, err);
  if (s == HEDDLE_OK) s = start(self, err);
  return s;
}
