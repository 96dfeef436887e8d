/* A host for tests of sim: the fake host with settings, fences that can be waited for, and recorded faults; and sim's
 * devices, buffers and copies in one line each. */
#ifndef HEDDLE_TESTS_UNIT_SIM_HOST_H
#define HEDDLE_TESTS_UNIT_SIM_HOST_H

#include "fake_host.h"

enum { SIM_TEST_DEVICES = 3, SIM_TEST_FENCES = 512, SIM_TEST_SETTINGS = 8 };
#define SECOND UINT64_C(1000000000)

typedef struct sim_fence {
  uint64_t value;
  heddle_status failed;
  char text[256];
} sim_fence;

typedef struct sim_test {
  fake_host fake; /* first: its functions take it as ctx */
  const char *settings[SIM_TEST_SETTINGS][2];
  uint32_t n_settings;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  sim_fence fences[SIM_TEST_FENCES];
  uint32_t faults;
  uint64_t fault_cookie;
  char fault_text[256];
  uint32_t errors_logged;

  const heddle_plugin *p;
  heddle_pinstance *self;
  heddle_pdevice *dev[SIM_TEST_DEVICES];
  heddle_error err;
} sim_test;

#define OK(t, call) \
  do { \
    heddle_status ok_status = (call); \
    if (ok_status != HEDDLE_OK) fail_msg("%s: status %d: %s", #call, ok_status, (t)->err.text); \
  } while (0)
#define FAILS(t, status, word, call) \
  do { \
    memset((t)->err.text, 0, sizeof(t)->err.text); \
    heddle_status fails_status = (call); \
    if (fails_status != (status)) fail_msg("%s: status %d, not %s: %s", #call, fails_status, #status, (t)->err.text); \
    if (strstr((t)->err.text, (word)) == NULL) fail_msg("%s: no '%s' in: %s", #call, (word), (t)->err.text); \
  } while (0)

static inline int64_t sim_test_config(void *ctx, const char *key, char *buf, uint64_t bytes) {
  sim_test *t = ctx;
  for (uint32_t i = 0; i < t->n_settings; i++)
    if (strcmp(t->settings[i][0], key) == 0) return snprintf(buf, bytes, "%s", t->settings[i][1]);
  return -1;
}

static inline void sim_test_log(void *ctx, int32_t level, const char *component, const char *text) {
  sim_test *t = ctx;
  (void)component, (void)text;
  if (level != HEDDLE_LOG_ERROR) return;
  pthread_mutex_lock(&t->lock);
  t->errors_logged++;
  pthread_mutex_unlock(&t->lock);
}

static inline void sim_test_signal(void *ctx, heddle_pfence fence, uint64_t value) {
  sim_test *t = ctx;
  pthread_mutex_lock(&t->lock);
  if (t->fences[fence].value < value) t->fences[fence].value = value;
  pthread_mutex_unlock(&t->lock);
  pthread_cond_broadcast(&t->changed);
}

static inline void sim_test_fail(void *ctx, heddle_pfence fence, heddle_status status, const char *text) {
  sim_test *t = ctx;
  pthread_mutex_lock(&t->lock);
  t->fences[fence].failed = status;
  snprintf(t->fences[fence].text, sizeof t->fences[fence].text, "%s", text);
  pthread_mutex_unlock(&t->lock);
  pthread_cond_broadcast(&t->changed);
}

static inline heddle_status sim_test_fence(void *ctx, heddle_pfence fence, uint64_t value) {
  sim_test *t = ctx;
  pthread_mutex_lock(&t->lock);
  const sim_fence *f = &t->fences[fence];
  heddle_status status = f->failed != HEDDLE_OK ? f->failed : f->value >= value ? HEDDLE_OK : HEDDLE_EBUSY;
  pthread_mutex_unlock(&t->lock);
  return status;
}

/* Sleeps until a fence has the value or has failed, half a minute at most; its status. */
static inline heddle_status sim_wait(sim_test *t, heddle_pfence fence, uint64_t value) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 30;
  pthread_mutex_lock(&t->lock);
  heddle_status status = HEDDLE_OK;
  while (t->fences[fence].failed == HEDDLE_OK && t->fences[fence].value < value && status == HEDDLE_OK)
    if (pthread_cond_timedwait(&t->changed, &t->lock, &deadline) != 0) status = HEDDLE_ETIMEOUT;
  if (status == HEDDLE_OK) status = t->fences[fence].failed;
  pthread_mutex_unlock(&t->lock);
  return status;
}

static inline void sim_test_fault(void *ctx, uint64_t cookie, int32_t api_code, const char *text) {
  sim_test *t = ctx;
  (void)api_code;
  pthread_mutex_lock(&t->lock);
  t->faults++;
  t->fault_cookie = cookie;
  snprintf(t->fault_text, sizeof t->fault_text, "%s", text);
  pthread_mutex_unlock(&t->lock);
}

/* Enters the plugin with settings: key, value, ..., NULL. Opens no instance. */
static inline void sim_enter_v(sim_test *t, va_list args) {
  memset(t, 0, sizeof *t);
  fake_host_init(&t->fake);
  t->fake.table.ctx = t;
  t->fake.table.config = sim_test_config;
  t->fake.table.log = sim_test_log;
  t->fake.table.fence_signal = sim_test_signal;
  t->fake.table.fence_fail = sim_test_fail;
  t->fake.table.fence_query = sim_test_fence;
  t->fake.table.device_fault = sim_test_fault;
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
  for (const char *key; t->n_settings < SIM_TEST_SETTINGS && (key = va_arg(args, const char *)) != NULL;) {
    t->settings[t->n_settings][0] = key;
    t->settings[t->n_settings++][1] = va_arg(args, const char *);
  }
  heddle_plugin_entry_fn entry = fake_entry("sim");
  assert_non_null(entry);
  t->p = entry(&t->fake.table, &t->err);
  assert_non_null(t->p);
}

static inline void sim_enter(sim_test *t, ...) {
  va_list args;
  va_start(args, t);
  sim_enter_v(t, args);
  va_end(args);
}

/* The same with an instance and n devices open; cookies are 100, 101, ... */
static inline void sim_open(sim_test *t, uint32_t n, ...) {
  va_list args;
  va_start(args, n);
  sim_enter_v(t, args);
  va_end(args);
  OK(t, t->p->open_instance(&t->fake.table, &t->self, &t->err));
  for (uint32_t i = 0; i < n; i++) {
    heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 100 + i};
    OK(t, t->p->device->open(t->self, i, &options, &t->dev[i], &t->err));
  }
}

/* Opens one more device, with a setting of its own. */
static inline void sim_open_with(sim_test *t, uint32_t index, const char *key, const char *value) {
  heddle_pkeyvalue pair = {key, value};
  heddle_pdevice_options options = {
      .struct_size = sizeof options, .cookie = 100 + index, .settings = {&pair, 1, sizeof pair}};
  OK(t, t->p->device->open(t->self, index, &options, &t->dev[index], &t->err));
}

static inline int64_t sim_query(sim_test *t, heddle_pdevice *dev, uint32_t key) {
  int64_t n = -1;
  OK(t, t->p->device->query(dev, key, &n, &t->err));
  return n;
}

/* Closes all, and checks that the host forgot nothing and sim neither. */
static inline void sim_close(sim_test *t) {
  for (uint32_t i = 0; i < SIM_TEST_DEVICES; i++) {
    if (t->dev[i] == NULL) continue;
    assert_int_equal(sim_query(t, t->dev[i], HEDDLE_QUERY_LIVE_OBJECTS), 0);
    assert_int_equal(sim_query(t, t->dev[i], HEDDLE_QUERY_LIVE_BUFFERS), 0);
    assert_int_equal(sim_query(t, t->dev[i], HEDDLE_QUERY_LIVE_BYTES), 0);
    t->p->device->close(t->dev[i]);
  }
  t->p->close_instance(t->self);
  assert_int_equal(atomic_load(&t->fake.live), 0);
}

/* ---- one line each ---- */

static inline heddle_pbuffer *sim_buf(sim_test *t, heddle_pdevice *dev, uint32_t kind, uint64_t bytes) {
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = kind, .bytes = bytes, .align = 64};
  heddle_pbuffer *b = NULL;
  OK(t, t->p->memory->alloc(dev, &desc, &b, &t->err));
  return b;
}

static inline heddle_pstream *sim_stream(sim_test *t, heddle_pdevice *dev) {
  heddle_pstream *s = NULL;
  OK(t, t->p->stream->create(dev, HEDDLE_STREAM_COMPUTE, 0, &s, &t->err));
  return s;
}

static inline heddle_pevent *sim_event(sim_test *t, heddle_pdevice *dev) {
  heddle_pevent *e = NULL;
  OK(t, t->p->event->create(dev, &e, &t->err));
  return e;
}

static inline uint8_t *sim_map(sim_test *t, heddle_pdevice *dev, heddle_pbuffer *b) {
  void *p = NULL;
  OK(t, t->p->memory->map(dev, b, &p, &t->err));
  return p;
}

static inline void sim_sync(sim_test *t, heddle_pstream *s) {
  OK(t, t->p->stream->sync(s, 20 * SECOND, &t->err));
}

static inline void sim_fill(sim_test *t, heddle_pstream *s, heddle_pbuffer *b, uint64_t bytes, uint32_t word) {
  OK(t, t->p->copy->fill(s, b, 0, bytes, word, &t->err));
}

/* Reads n words and checks that all are word. */
static inline void sim_expect(sim_test *t, heddle_pstream *s, heddle_pbuffer *b, uint64_t words, uint32_t word) {
  uint32_t *got = malloc(words * 4);
  OK(t, t->p->copy->read(s, got, b, 0, words * 4, &t->err));
  for (uint64_t i = 0; i < words; i++)
    if (got[i] != word) fail_msg("word %u is %08x, not %08x", (unsigned)i, got[i], word);
  free(got);
}

#endif
