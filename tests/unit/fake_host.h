/* A small host for tests of one plugin: memory from libc, counted, failing at the n-th call if asked; threads made for
 * each run_parallel; fences and faults recorded. And the loading of a plugin as a stranger would do it. */
#ifndef HEDDLE_TESTS_UNIT_FAKE_HOST_H
#define HEDDLE_TESTS_UNIT_FAKE_HOST_H

#include "cases.h"

#include "heddle/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { FAKE_THREADS = 8 };
#define FAKE_MOST_BYTES (UINT64_C(1) << 32) /* a sanitizer ends the process over larger requests */

typedef struct fake_host {
  heddle_host table;
  atomic_long live, calls; /* allocations not yet freed; calls of alloc */
  long fail_at;            /* the call of alloc that fails, counted from 1; 0: none */
  uint32_t threads;        /* what parallelism answers, at most FAKE_THREADS */
  bool backwards;          /* run tasks one after the other, last first */
  atomic_long parallel_calls;
  const char
      *onednn; /* the cpu plugin's setting: "off" unless a test says otherwise, so that its own kernels are met */
} fake_host;

static inline void fake_log(void *ctx, int32_t level, const char *component, const char *text) {
  (void)ctx, (void)level, (void)component, (void)text;
}

static inline void *fake_alloc(void *ctx, uint64_t bytes, uint64_t align) {
  fake_host *host = ctx;
  void *p = NULL;
  if (atomic_fetch_add(&host->calls, 1) + 1 == host->fail_at) return NULL;
  if (align < sizeof(void *)) align = sizeof(void *);
  if (bytes > FAKE_MOST_BYTES || posix_memalign(&p, align, bytes > 0 ? bytes : 1) != 0) return NULL;
  memset(p, 0xa5, bytes);
  atomic_fetch_add(&host->live, 1);
  return p;
}

static inline void fake_free(void *ctx, void *p) {
  if (p != NULL) atomic_fetch_sub(&((fake_host *)ctx)->live, 1);
  free(p);
}

static inline int64_t fake_config(void *ctx, const char *key, char *buf, uint64_t bytes) {
  const fake_host *host = ctx;
  if (strcmp(key, "onednn") != 0) return -1;
  return snprintf(buf, bytes, "%s", host->onednn);
}

static inline void fake_fence_signal(void *ctx, heddle_pfence fence, uint64_t value) {
  (void)ctx, (void)fence, (void)value;
}

static inline void fake_fence_fail(void *ctx, heddle_pfence fence, heddle_status status, const char *text) {
  (void)ctx, (void)fence, (void)status, (void)text;
}

static inline heddle_status fake_fence_query(void *ctx, heddle_pfence fence, uint64_t value) {
  (void)ctx, (void)fence, (void)value;
  return HEDDLE_EBUSY;
}

static inline void fake_device_fault(void *ctx, uint64_t cookie, int32_t api_code, const char *text) {
  (void)ctx, (void)cookie, (void)api_code, (void)text;
}

static inline uint64_t fake_now_ns(void *ctx) {
  struct timespec t;
  (void)ctx;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline void fake_trace_span(void *ctx, const char *track, const char *name, uint64_t t0_ns, uint64_t t1_ns) {
  (void)ctx, (void)track, (void)name, (void)t0_ns, (void)t1_ns;
}

typedef struct fake_task {
  heddle_task_fn task;
  void *arg;
  uint32_t i, n;
} fake_task;

static inline void *fake_thread(void *arg) {
  fake_task *t = arg;
  t->task(t->arg, t->i, t->n);
  return NULL;
}

static inline void fake_run_parallel(void *ctx, uint32_t n, uint32_t flags, heddle_task_fn task, void *arg,
                                     uint32_t *granted) {
  fake_host *host = ctx;
  fake_task tasks[FAKE_THREADS];
  pthread_t threads[FAKE_THREADS];
  (void)flags;
  atomic_fetch_add(&host->parallel_calls, 1);
  if (n > FAKE_THREADS) n = FAKE_THREADS;
  if (granted != NULL) *granted = n;
  for (uint32_t i = 0; i < n; i++) tasks[i] = (fake_task){task, arg, i, n};
  if (host->backwards) {
    for (uint32_t i = n; i-- > 0;) fake_thread(&tasks[i]);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (pthread_create(&threads[i], NULL, fake_thread, &tasks[i]) != 0) exit(1);
  }
  for (uint32_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static inline uint32_t fake_parallelism(void *ctx) {
  return ((fake_host *)ctx)->threads;
}

static inline void fake_host_init(fake_host *host) {
  memset(host, 0, sizeof *host);
  host->threads = 1;
  host->onednn = "off";
  host->table = (heddle_host){
      .struct_size = sizeof host->table,
      .abi_major = HEDDLE_ABI_MAJOR,
      .abi_minor = HEDDLE_ABI_MINOR,
      .build = "fake host",
      .ctx = host,
      .log = fake_log,
      .alloc = fake_alloc,
      .free = fake_free,
      .config = fake_config,
      .fence_signal = fake_fence_signal,
      .fence_fail = fake_fence_fail,
      .fence_query = fake_fence_query,
      .device_fault = fake_device_fault,
      .now_ns = fake_now_ns,
      .trace_span = fake_trace_span,
      .run_parallel = fake_run_parallel,
      .parallelism = fake_parallelism,
  };
}

/* The entry of a plugin of the build tree. */
static inline heddle_plugin_entry_fn fake_entry(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/lib/heddle/plugins/libheddle_plugin_%s.so", HEDDLE_TEST_BUILD, name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return NULL;
  }
  /* POSIX has dlsym give functions as void *, which ISO C cannot cast. */
  void *symbol = dlsym(library, "heddle_plugin_entry");
  heddle_plugin_entry_fn entry = NULL;
  memcpy(&entry, &symbol, sizeof entry);
  return entry;
}

/* A plugin with its first device open, and a stream where it gives one. */
typedef struct fake_device {
  fake_host host;
  const heddle_plugin *plugin;
  heddle_pinstance *self;
  heddle_pdevice *dev;
  heddle_pstream *stream;
  heddle_error err;
} fake_device;

static inline void fake_device_open_with(fake_device *d, const char *name, const char *onednn) {
  memset(d, 0, sizeof *d);
  fake_host_init(&d->host);
  d->host.onednn = onednn;
  heddle_plugin_entry_fn entry = fake_entry(name);
  assert_non_null(entry);
  d->plugin = entry(&d->host.table, &d->err);
  assert_non_null(d->plugin);
  assert_int_equal(d->plugin->open_instance(&d->host.table, &d->self, &d->err), HEDDLE_OK);
  heddle_pdevice_options options = {.struct_size = sizeof options};
  assert_int_equal(d->plugin->device->open(d->self, 0, &options, &d->dev, &d->err), HEDDLE_OK);
  if (d->plugin->stream->create(d->dev, HEDDLE_STREAM_COMPUTE, 0, &d->stream, &d->err) != HEDDLE_OK) d->stream = NULL;
}

static inline void fake_device_open(fake_device *d, const char *name) {
  fake_device_open_with(d, name, "off");
}

/* Closes it and checks that nothing is left. */
static inline void fake_device_close(fake_device *d) {
  int64_t live = -1;
  d->plugin->stream->close(d->stream);
  assert_int_equal(d->plugin->device->query(d->dev, HEDDLE_QUERY_LIVE_OBJECTS, &live, &d->err), HEDDLE_OK);
  assert_int_equal(live, 0);
  assert_int_equal(d->plugin->device->query(d->dev, HEDDLE_QUERY_LIVE_BUFFERS, &live, &d->err), HEDDLE_OK);
  assert_int_equal(live, 0);
  assert_int_equal(d->plugin->device->query(d->dev, HEDDLE_QUERY_LIVE_BYTES, &live, &d->err), HEDDLE_OK);
  assert_int_equal(live, 0);
  d->plugin->device->close(d->dev);
  d->plugin->close_instance(d->self);
  assert_int_equal(atomic_load(&d->host.live), 0);
}

#endif
