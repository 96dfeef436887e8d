/* The vendor's libraries: a handle per device, and handing steps to the first library that takes them. How they are opened
 * is in library_open.c, what a step is to a library in the library's own file. */
#include "plugins/common/gpu/library_state.h"

#include "plugins/common/filecache.h"
#include "plugins/common/region.h"

/* Steps that were run once on a device. */
typedef struct warmed {
  filecache_key key;
  struct warmed *next;
} warmed;

/* What a device has of each library. */
typedef struct device_state {
  bool tried[GPU_LIBRARIES];
  void *state[GPU_LIBRARIES];
  warmed *warmed; /* the lock of gpu_libraries guards it */
} device_state;

void gpu_library_device_close(heddle_pdevice *dev) {
  device_state *state = dev->library_state;
  if (state == NULL) return;
  for (int i = 0; i < GPU_LIBRARIES; i++) {
    if (state->state[i] != NULL) gpu_library_at(dev->self, i)->device_close(dev, state->state[i]);
  }
  while (state->warmed != NULL) {
    warmed *next = state->warmed->next;
    dev->host->free(dev->host->ctx, state->warmed);
    state->warmed = next;
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
    heddle_status s = gpu_library_open_all(self, false, &err);
    if (s != HEDDLE_OK) gpu_library_say(self, HEDDLE_LOG_WARN, "%s", err.text);
  }
  pthread_mutex_unlock(&all->lock);
  for (int i = 0; i < GPU_LIBRARIES && gpu_library_at(self, i) != NULL; i++) {
    *workspace = 0;
    if (all->each[i].calls != NULL && gpu_library_at(self, i)->takes(info, ask, workspace)) return i;
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
  const gpu_library *library = gpu_library_at(dev->self, i);
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
        gpu_library_say(dev->self, HEDDLE_LOG_WARN, "%s:%u: %s does not work here; %s are by kernels: %s",
                        dev->vendor->name, dev->index, library->name, library->what, own.text);
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

/* Heuristics promise less than they list: what fails when it is run leaves the next best. */
static bool next_algorithm(heddle_pdevice *dev, gpu_library_step *step, char *why, size_t bytes) {
  gpu_scope scope;
  if (step->library->next == NULL || gpu_enter(dev, &scope, NULL) != HEDDLE_OK) return false;
  const bool found = step->library->next(step, why, bytes);
  gpu_leave(dev, &scope);
  return found;
}

/* What a step is to a library: its shapes, and which operands are constant. */
static filecache_key key_of(int library, const gpu_ask *ask) {
  const k_step *step = ask->step;
  filecache_key key = filecache_key_start();
  const int64_t rest[] = {library, step->n_args, step->images, step->is_product, ask->fast};
  filecache_key_add(&key, rest, sizeof rest);
  for (uint32_t k = 0; k < step->n_args; k++) {
    const uint8_t constant = ask->data[k] != NULL;
    filecache_key_add(&key, &constant, 1);
  }
  filecache_key_add(&key, &step->params, (size_t)step->params_bytes);
  return filecache_key_end(key);
}

/* A step like one that ran before needs no run to be ready: programs for other shapes of inputs have many alike. */
static bool was_warmed(heddle_pdevice *dev, const filecache_key *key) {
  const device_state *state = dev->library_state;
  pthread_mutex_lock(&dev->self->libraries->lock);
  const warmed *x = state->warmed;
  while (x != NULL && memcmp(&x->key, key, sizeof *key) != 0) x = x->next;
  pthread_mutex_unlock(&dev->self->libraries->lock);
  return x != NULL;
}

static void keep_warmed(heddle_pdevice *dev, const filecache_key *key) {
  device_state *state = dev->library_state;
  warmed *x = dev->host->alloc(dev->host->ctx, sizeof *x, _Alignof(warmed));
  if (x == NULL) return; /* it runs once more next time */
  x->key = *key;
  pthread_mutex_lock(&dev->self->libraries->lock);
  x->next = state->warmed;
  state->warmed = x;
  pthread_mutex_unlock(&dev->self->libraries->lock);
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
  const gpu_library *library = gpu_library_at(self, i);
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
    const filecache_key key = key_of(i, &ask);
    const bool known = was_warmed(dev, &key);
    if (!known) s = warm(dev, *out, &ask, bytes, &fine, refusal, sizeof refusal, err);
    while (s == HEDDLE_OK && !fine && next_algorithm(dev, *out, why, sizeof why))
      s = warm(dev, *out, &ask, bytes, &fine, refusal, sizeof refusal, err);
    if (!known && s == HEDDLE_OK && fine) keep_warmed(dev, &key);
    if (s != HEDDLE_OK || !fine) {
      gpu_library_free(*out);
      *out = NULL;
    }
    if (s != HEDDLE_OK) return s;
  }
  step_words(step, what, sizeof what);
  if (!fine) {
    gpu_library_say(self, HEDDLE_LOG_INFO, "%s:%u: %s: a kernel does it; %s refuses: %s", dev->vendor->name, dev->index,
                    what, library->name, refusal[0] != '\0' ? refusal : why);
    return HEDDLE_OK;
  }
  gpu_library_say(self, HEDDLE_LOG_INFO, "%s:%u: %s: %s does it%s%s", dev->vendor->name, dev->index, what,
                  library->name, why[0] != '\0' ? ", " : "", why);
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
