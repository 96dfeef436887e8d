/* The vendor's libraries: settings, opening them once per instance, a handle per device, and handing steps to the first
 * that takes them. What a step is to a library is in the library's own file. */
#include "plugins/common/gpu/library.h"

#include "plugins/common/region.h"
#include "plugins/common/setting.h"

#include <dlfcn.h>

enum { PATH_BYTES = 1024 };

/* A library: what its setting says, and its table of calls once it is there. */
typedef struct opened {
  char path[PATH_BYTES]; /* of the setting; empty: look by names */
  bool off;
  void *calls; /* NULL: it is not there */
} opened;

struct gpu_libraries {
  pthread_mutex_t lock; /* guards tried, calls, and the states of devices; libraries are called with it held */
  bool tried;
  opened each[GPU_LIBRARIES];
};

/* What a device has of each library. */
typedef struct device_state {
  bool tried[GPU_LIBRARIES];
  void *state[GPU_LIBRARIES];
} device_state;

static const gpu_library *library_at(const heddle_pinstance *self, int i) {
  return self->vendor->library == NULL ? NULL : self->vendor->library->list[i];
}

P_PRINTF(3, 4)
static void say(const heddle_pinstance *self, int32_t level, const char *format, ...) {
  char words[512];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  p_one_line(words);
  self->host->log(self->host->ctx, level, self->vendor->name, words);
}

/* ---------------------------------------------------------------- opening */

/* Every function that must be there, or its name in why. */
static bool resolve(const gpu_library *library, void *handle, void *calls, char *why, size_t bytes) {
  for (uint32_t i = 0; i < library->n_symbols; i++) {
    const gpu_symbol *symbol = &library->symbols[i];
    void *address = dlsym(handle, symbol->name);
    if (address == NULL && !symbol->may) {
      snprintf(why, bytes, "it lacks %s", symbol->name);
      return false;
    }
    memcpy((char *)calls + symbol->at, &address, sizeof address);
  }
  return true;
}

static void *open_file(const gpu_library *library, const char *path, const char **file, char *why, size_t bytes) {
  void *handle = NULL;
  snprintf(why, bytes, "there is none");
  for (int i = 0; handle == NULL && (path[0] != '\0' ? i < 1 : library->files[i] != NULL); i++) {
    *file = path[0] != '\0' ? path : library->files[i];
    handle = dlopen(*file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL && (i == 0 || path[0] != '\0')) {
      const char *said = dlerror();
      snprintf(why, bytes, "%s", said != NULL ? said : *file);
    }
  }
  return handle;
}

/* A failure is a word in the log, unless it is insisted on. */
static heddle_status open_one(heddle_pinstance *self, int i, bool insist, heddle_error *err) {
  const gpu_library *library = library_at(self, i);
  opened *o = &self->libraries->each[i];
  char why[256], version[64] = "";
  const char *file = NULL;
  void *calls = NULL;
  if (o->off) return HEDDLE_OK;
  if (library->files == NULL) return gpu_new(self->host, sizeof(void *), library->name, &o->calls, err);
  void *handle = open_file(library, o->path, &file, why, sizeof why);
  if (handle != NULL) {
    heddle_status s = gpu_new(self->host, library->calls_bytes, library->name, &calls, err);
    if (s != HEDDLE_OK) return s;
    if (resolve(library, handle, calls, why, sizeof why)) {
      o->calls = calls;
      library->version(calls, version, sizeof version);
      say(self, HEDDLE_LOG_INFO, "%s%s%s (%s) is there for %s", library->name, version[0] != '\0' ? " " : "", version,
          file, library->what);
      return HEDDLE_OK;
    }
    self->host->free(self->host->ctx, calls);
  }
  if (insist || o->path[0] != '\0')
    return p_fail(err, HEDDLE_ENODEV, 0, "%s: %s cannot be loaded, and the setting %s wants it: %s", self->vendor->name,
                  library->name, o->path[0] != '\0' ? library->setting : "libraries=1", why);
  say(self, HEDDLE_LOG_INFO, "there is no %s (%s); %s are by kernels", library->name, why, library->what);
  return HEDDLE_OK;
}

static heddle_status open_all(heddle_pinstance *self, bool insist, heddle_error *err) {
  gpu_libraries *all = self->libraries;
  heddle_status s = HEDDLE_OK;
  for (int i = 0; i < GPU_LIBRARIES && library_at(self, i) != NULL && s == HEDDLE_OK; i++)
    s = open_one(self, i, insist, err);
  all->tried = true;
  return s;
}

/* A setting's text; false where it is not set. Too long a one is an error. */
static heddle_status setting(const heddle_pinstance *self, const char *key, char *buf, uint64_t bytes, bool *given,
                             heddle_error *err) {
  const int64_t length = self->host->config(self->host->ctx, key, buf, bytes);
  *given = length >= 0;
  if (length >= (int64_t)bytes)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s: setting %s has more than %llu bytes", self->vendor->name, key,
                  (unsigned long long)(bytes - 1));
  if (!*given) buf[0] = '\0';
  return HEDDLE_OK;
}

static heddle_status read_settings(heddle_pinstance *self, bool automatic, bool wanted, bool *named,
                                   heddle_error *err) {
  gpu_libraries *all = self->libraries;
  heddle_status s = HEDDLE_OK;
  bool given = false;
  for (int i = 0; i < GPU_LIBRARIES && library_at(self, i) != NULL && s == HEDDLE_OK; i++) {
    const gpu_library *library = library_at(self, i);
    opened *o = &all->each[i];
    s = setting(self, library->setting, o->path, sizeof o->path, &given, err);
    o->off = s == HEDDLE_OK && given && (o->path[0] == '\0' || p_is_off(o->path));
    if (o->off) o->path[0] = '\0';
    if (library->files == NULL) { /* of ours: a switch */
      bool on = true;
      if (s == HEDDLE_OK && o->path[0] != '\0' && !p_switch(o->path, &on))
        s = p_fail(err, HEDDLE_EINVAL, 0, "%s: setting %s: '%.200s' is neither 0 nor 1", self->vendor->name,
                   library->setting, o->path);
      continue;
    }
    if (o->path[0] == '\0' && automatic && self->driver_path != NULL) o->off = true;
    o->off = o->off || !wanted;
    *named = *named || (!o->off && o->path[0] != '\0');
  }
  return s;
}

heddle_status gpu_library_open(heddle_pinstance *self, heddle_error *err) {
  char text[16] = "";
  void *memory = NULL;
  bool given = false, wanted = true, named = false;
  if (self->vendor->library == NULL) return HEDDLE_OK;
  heddle_status s = setting(self, "libraries", text, sizeof text, &given, err);
  if (s != HEDDLE_OK) return s;
  const bool automatic = !given || strcmp(text, "auto") == 0;
  if (!automatic && !p_switch(text, &wanted))
    return p_fail(err, HEDDLE_EINVAL, 0, "%s: setting libraries: '%s' is none of 0, 1 and auto", self->vendor->name,
                  text);
  s = gpu_new(self->host, sizeof(gpu_libraries), "libraries", &memory, err);
  if (s != HEDDLE_OK) return s;
  self->libraries = memory;
  pthread_mutex_init(&self->libraries->lock, NULL);
  s = read_settings(self, automatic, wanted, &named, err);
  /* Those that are named or insisted on must be there, so that a wrong path is reported at once. */
  if (s == HEDDLE_OK && (!automatic || named)) s = open_all(self, !automatic && wanted, err);
  if (s != HEDDLE_OK) gpu_library_close(self);
  return s;
}

void gpu_library_close(heddle_pinstance *self) {
  gpu_libraries *all = self->libraries;
  if (all == NULL) return;
  for (int i = 0; i < GPU_LIBRARIES; i++) self->host->free(self->host->ctx, all->each[i].calls);
  pthread_mutex_destroy(&all->lock);
  self->host->free(self->host->ctx, all);
  self->libraries = NULL;
}

void gpu_library_device_close(heddle_pdevice *dev) {
  device_state *state = dev->library_state;
  if (state == NULL) return;
  for (int i = 0; i < GPU_LIBRARIES; i++) {
    if (state->state[i] != NULL) library_at(dev->self, i)->device_close(dev, state->state[i]);
  }
  dev->host->free(dev->host->ctx, state);
  dev->library_state = NULL;
}

/* ---------------------------------------------------------------- asking */

static gpu_ask ask_for(const heddle_pregion *region, const k_step *step) {
  gpu_ask ask = {.step = step, .fast = (region->flags & HEDDLE_REGION_FAST) != 0};
  for (uint32_t k = 0; k < step->n_args; k++) {
    uint64_t bytes = 0;
    if (step->args[k] >= region->n_inputs) continue; /* an output, or the table */
    const heddle_pvalue *value = region_value(region, region->inputs[step->args[k]]);
    if (value == NULL || !region_value_count(value, &ask.count[k]) || !region_value_bytes(value, &bytes)) continue;
    if (value->data != NULL && value->data_bytes >= bytes) ask.data[k] = value->data;
  }
  return ask;
}

/* Which library takes a step, -1: none. Loads what is installed at the first call. */
static int which(heddle_pinstance *self, const gpu_info *info, const gpu_ask *ask, uint64_t *workspace) {
  gpu_libraries *all = self->libraries;
  if (all == NULL || ask->step->kind != K_STEP_KERNEL) return -1;
  if (!ask->step->is_product && !ask->step->is_conv) return -1;
  pthread_mutex_lock(&all->lock);
  if (!all->tried) {
    heddle_error err;
    heddle_status s = open_all(self, false, &err);
    if (s != HEDDLE_OK) say(self, HEDDLE_LOG_WARN, "%s", err.text);
  }
  pthread_mutex_unlock(&all->lock);
  for (int i = 0; i < GPU_LIBRARIES && library_at(self, i) != NULL; i++) {
    *workspace = 0;
    if (all->each[i].calls != NULL && library_at(self, i)->takes(info, ask, workspace)) return i;
  }
  *workspace = 0;
  return -1;
}

uint64_t gpu_library_workspace(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                               const k_step *step) {
  uint64_t bytes = 0;
  const gpu_ask ask = ask_for(region, step);
  if (index < self->n_devices) which(self, &self->devices[index], &ask, &bytes);
  return bytes;
}

/* The library's handle on this device, made at its first step; *out NULL where that failed, now or before. */
static heddle_status state_of(heddle_pdevice *dev, int i, void **out, heddle_error *err) {
  gpu_libraries *all = dev->self->libraries;
  const gpu_library *library = library_at(dev->self, i);
  heddle_status s = HEDDLE_OK;
  gpu_scope scope;
  *out = NULL;
  pthread_mutex_lock(&all->lock);
  device_state *state = dev->library_state;
  if (state == NULL) {
    void *memory = NULL;
    s = gpu_new(dev->host, sizeof *state, "libraries", &memory, err);
    dev->library_state = state = memory;
  }
  if (s == HEDDLE_OK && !state->tried[i]) {
    s = gpu_enter(dev, &scope, err);
    if (s == HEDDLE_OK) {
      heddle_error own = {0};
      state->tried[i] = true;
      if (library->device_open(dev, all->each[i].calls, &state->state[i], &own) != HEDDLE_OK) {
        state->state[i] = NULL;
        say(dev->self, HEDDLE_LOG_WARN, "%s:%u: %s does not work here; %s are by kernels: %s", dev->vendor->name,
            dev->index, library->name, library->what, own.text);
      }
      gpu_leave(dev, &scope);
    }
  }
  if (s == HEDDLE_OK) *out = state->state[i];
  pthread_mutex_unlock(&all->lock);
  return s;
}

static uint64_t result_bytes(const k_step *step) {
  const k_conv *c = &step->params.conv;
  if (step->is_product) return (uint64_t)step->params.matmul.count * sizeof(float);
  return (uint64_t)(step->images * c->m * c->groups * c->n) * sizeof(float);
}

/* "16 products of 64 x 64 x 64 in bfloat16" */
static void step_words(const k_step *step, char *buf, size_t bytes) {
  if (step->is_product) {
    const k_matmul *p = &step->params.matmul;
    snprintf(buf, bytes, "%lld products of %lld x %lld x %lld", (long long)(p->count / p->m / p->n), (long long)p->m,
             (long long)p->n, (long long)p->k);
  } else {
    const k_conv *p = &step->params.conv;
    snprintf(buf, bytes, "a convolution of %lld channels to %lld at %lld x %lld x %lld positions, %lld images",
             (long long)p->in_channels * (long long)p->groups, (long long)p->m * (long long)p->groups,
             (long long)p->out[0], (long long)p->out[1], (long long)p->out[2], (long long)step->images);
  }
}

/* Runs a step once, in memory whose contents do not matter: what a library loads or compiles at its first call would not be
 * allowed in a capture, and a call that fails is found out here. *fine is false, with why, where it does not work. */
static heddle_status warm(heddle_pdevice *dev, gpu_library_step *step, const gpu_ask *ask, uint64_t workspace,
                          bool *fine, char *why, size_t bytes, heddle_error *err) {
  const k_step *plan = ask->step;
  gpu_address all[K_ARGS + 1] = {0};
  heddle_pstream stream = {.dev = dev, .handle = dev->service};
  heddle_error own = {0};
  gpu_scope scope;
  heddle_status s = HEDDLE_OK;
  for (uint32_t k = 0; k <= plan->n_args && s == HEDDLE_OK; k++) {
    uint64_t need = k < plan->n_args ? ask->count[k] * sizeof(float) : workspace;
    if (k + 1 == plan->n_args) need = result_bytes(plan);
    if (need > 0) s = gpu_block_get(dev, need, &all[k], &own);
    if (s != HEDDLE_OK) all[k] = 0;
  }
  const heddle_status entered = gpu_enter(dev, &scope, err);
  if (entered == HEDDLE_OK) {
    if (s == HEDDLE_OK) s = step->library->run(step, &stream, all, all[plan->n_args], &own);
    gpu_leave(dev, &scope);
  }
  const heddle_status waited =
      entered == HEDDLE_OK ? gpu_stream_wait(dev, dev->service, UINT64_MAX, err) : entered; /* what it began, it ends */
  for (uint32_t k = 0; k <= plan->n_args; k++) {
    if (all[k] != 0) gpu_block_put(dev, all[k]);
  }
  *fine = s == HEDDLE_OK;
  if (!*fine) snprintf(why, bytes, "%.200s", own.text);
  return waited;
}

heddle_status gpu_library_prepare(heddle_pdevice *dev, const heddle_pregion *region, const k_step *step,
                                  gpu_library_step **out, heddle_error *err) {
  heddle_pinstance *self = dev->self;
  char what[160], why[192], refusal[256] = "";
  uint64_t bytes = 0;
  void *state = NULL;
  *out = NULL;
  const gpu_ask ask = ask_for(region, step);
  const int i = which(self, dev->info, &ask, &bytes);
  if (i < 0) return HEDDLE_OK;
  const gpu_library *library = library_at(self, i);
  heddle_status s = state_of(dev, i, &state, err);
  if (s != HEDDLE_OK || state == NULL) return s;
  why[0] = '\0';
  s = library->prepare(dev, state, &ask, out, why, sizeof why, err);
  if (s != HEDDLE_OK) return s;
  bool fine = *out != NULL;
  if (fine) {
    (*out)->dev = dev;
    (*out)->library = library;
    (*out)->state = state;
    s = warm(dev, *out, &ask, bytes, &fine, refusal, sizeof refusal, err);
    if (s != HEDDLE_OK || !fine) {
      gpu_library_free(*out);
      *out = NULL;
    }
    if (s != HEDDLE_OK) return s;
  }
  step_words(step, what, sizeof what);
  if (!fine) {
    say(self, HEDDLE_LOG_INFO, "%s:%u: %s: a kernel does it; %s refuses: %s", dev->vendor->name, dev->index, what,
        library->name, refusal[0] != '\0' ? refusal : why);
    return HEDDLE_OK;
  }
  say(self, HEDDLE_LOG_INFO, "%s:%u: %s: %s does it%s%s", dev->vendor->name, dev->index, what, library->name,
      why[0] != '\0' ? ", " : "", why);
  return HEDDLE_OK;
}

void gpu_library_free(gpu_library_step *step) {
  gpu_scope scope;
  heddle_error err;
  if (step == NULL) return;
  const heddle_status s = gpu_enter(step->dev, &scope, &err);
  heddle_pdevice *dev = step->dev;
  step->library->free(step);
  if (s == HEDDLE_OK) gpu_leave(dev, &scope);
}

heddle_status gpu_library_run(gpu_library_step *step, heddle_pstream *stream, const gpu_address *operands,
                              gpu_address workspace, heddle_error *err) {
  return step->library->run(step, stream, operands, workspace, err);
}
