/* bench/hand_host.c: loading a plugin, fences on one condition variable, one Add: what a careful programmer writes. */
#include "hand_host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FENCES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the sleep on cond */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_ullong values[FENCES];
static uint64_t fences = 1;

static void host_log(void *ctx, int32_t level, const char *component, const char *text) {
  (void)ctx;
  if (level <= HEDDLE_LOG_WARN) fprintf(stderr, "%s: %s\n", component, text);
}

static void *host_alloc(void *ctx, uint64_t bytes, uint64_t align) {
  (void)ctx;
  void *p = NULL;
  if (align < sizeof(void *)) align = sizeof(void *);
  return posix_memalign(&p, align, bytes == 0 ? 1 : bytes) == 0 ? p : NULL;
}

static void host_free(void *ctx, void *p) {
  (void)ctx;
  free(p);
}

static int64_t host_config(void *ctx, const char *key, char *buf, uint64_t bytes) {
  (void)ctx, (void)key, (void)buf, (void)bytes;
  return -1;
}

void hand_signal(heddle_pfence fence, uint64_t value) {
  pthread_mutex_lock(&lock);
  atomic_store(&values[fence], value);
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&lock);
}

static void host_signal(void *ctx, heddle_pfence fence, uint64_t value) {
  (void)ctx;
  hand_signal(fence, value);
}

static void host_fail(void *ctx, heddle_pfence fence, heddle_status status, const char *text) {
  (void)ctx, (void)fence;
  fprintf(stderr, "fence failed: %d %s\n", (int)status, text);
  exit(1);
}

static heddle_status host_query(void *ctx, heddle_pfence fence, uint64_t value) {
  (void)ctx;
  return atomic_load(&values[fence]) >= value ? HEDDLE_OK : HEDDLE_EBUSY;
}

static void host_fault(void *ctx, uint64_t cookie, int32_t code, const char *text) {
  (void)ctx, (void)cookie, (void)code;
  fprintf(stderr, "device fault: %s\n", text);
  exit(1);
}

static uint64_t host_now(void *ctx) {
  (void)ctx;
  return (uint64_t)now_ns();
}

static void host_span(void *ctx, const char *track, const char *name, uint64_t t0, uint64_t t1) {
  (void)ctx, (void)track, (void)name, (void)t0, (void)t1;
}

static void host_parallel(void *ctx, uint32_t n, uint32_t flags, heddle_task_fn task, void *arg, uint32_t *granted) {
  (void)ctx, (void)flags;
  uint32_t m = (flags & HEDDLE_PARALLEL_CONCURRENT) ? 1 : n;
  if (granted != NULL) *granted = m;
  for (uint32_t i = 0; i < m; i++) task(arg, i, m);
}

static uint32_t host_threads(void *ctx) {
  (void)ctx;
  return 1;
}

static const heddle_host host = {.struct_size = sizeof host,
                                 .abi_major = HEDDLE_ABI_MAJOR,
                                 .abi_minor = HEDDLE_ABI_MINOR,
                                 .build = "hand-written",
                                 .log = host_log,
                                 .alloc = host_alloc,
                                 .free = host_free,
                                 .config = host_config,
                                 .fence_signal = host_signal,
                                 .fence_fail = host_fail,
                                 .fence_query = host_query,
                                 .device_fault = host_fault,
                                 .now_ns = host_now,
                                 .trace_span = host_span,
                                 .run_parallel = host_parallel,
                                 .parallelism = host_threads};

hand_plugin hand_open(const char *folder, const char *name) {
  char path[4096];
  heddle_error err;
  snprintf(path, sizeof path, "%s/libheddle_plugin_%s.so", folder, name);
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  heddle_plugin_entry_fn entry;
  void *symbol = dlsym(lib, "heddle_plugin_entry");
  memcpy(&entry, &symbol, sizeof entry);
  hand_plugin h = {0};
  h.p = entry(&host, &err);
  if (h.p == NULL) check(HEDDLE_EABI, &err);
  check(h.p->open_instance(&host, &h.self, &err), &err);
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 1};
  check(h.p->device->open(h.self, 0, &options, &h.dev, &err), &err);
  return h;
}

heddle_pfence hand_fence(void) {
  return fences++;
}

void hand_wait(heddle_pfence fence, uint64_t value) {
  if (atomic_load(&values[fence]) >= value) return;
  pthread_mutex_lock(&lock);
  while (atomic_load(&values[fence]) < value) pthread_cond_wait(&cond, &lock);
  pthread_mutex_unlock(&lock);
}

heddle_pbuffer *hand_alloc(const hand_plugin *h, uint32_t kind, uint64_t bytes) {
  heddle_error err;
  heddle_pbuffer *b = NULL;
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = kind, .bytes = bytes, .align = 256};
  check(h->p->memory->alloc(h->dev, &desc, &b, &err), &err);
  return b;
}

static heddle_status plain_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  (void)err;
  int32_t *state = sink; /* [0] offers so far, [1] the one with plain layouts */
  int plain = 1;
  for (int i = 0; i < 2; i++) plain = plain && (offer->input_layouts == NULL || offer->input_layouts[i] == 0);
  plain = plain && (offer->output_layouts == NULL || offer->output_layouts[0] == 0) && offer->workspace_bytes == 0;
  if (plain && state[1] < 0) state[1] = state[0];
  state[0]++;
  return HEDDLE_OK;
}

heddle_plaunch *hand_add(const hand_plugin *h, heddle_pstream *stream, int64_t n, heddle_pslice a, heddle_pslice b,
                         heddle_pslice out) {
  heddle_error err;
  heddle_pvalue values3[3];
  memset(values3, 0, sizeof values3);
  for (int i = 0; i < 3; i++) {
    values3[i].struct_size = sizeof values3[i];
    values3[i].dtype = (heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1};
    values3[i].shape = &n;
    values3[i].ndim = 1;
  }
  int32_t in[2] = {0, 1}, outs[1] = {2};
  heddle_pnode node = {.struct_size = sizeof node,
                       .opset = 17,
                       .domain = "",
                       .op = "Add",
                       .name = "add",
                       .inputs = in,
                       .outputs = outs,
                       .n_inputs = 2,
                       .n_outputs = 1};
  node.attrs.stride = sizeof(heddle_pattr);
  heddle_pregion region = {.struct_size = sizeof region, .inputs = in, .outputs = outs, .n_inputs = 2, .n_outputs = 1};
  region.nodes = (heddle_parray){&node, 1, sizeof node};
  region.values = (heddle_parray){values3, 3, sizeof values3[0]};
  int32_t state[2] = {0, -1};
  check(h->p->op->query(h->self, 0, &region, plain_offer, state, &err), &err);
  if (state[1] < 0) {
    fprintf(stderr, "no plain offer\n");
    exit(1);
  }
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  check(h->p->op->prepare(h->dev, &region, (uint32_t)state[1], &op, &err), &err);
  heddle_pslice inputs[2] = {a, b};
  heddle_pbind bind = {.struct_size = sizeof bind, .inputs = inputs, .outputs = &out, .n_inputs = 2, .n_outputs = 1};
  check(h->p->op->bind(op, stream, &bind, &launch, &err), &err);
  return launch;
}
