/* tests/stress/test_storm.c: contexts, models, executors and devices opened and closed in loops by four threads, with
 * runs in between and runs left pending; at the end nothing is left over.
 * labels: threads timeout: 300
 */
#include <pthread.h>

#include "cases.h"

#include "core/alloc.h"
#include "core/context.h"
#include "core/device.h"
#include "job.h"

enum { THREADS = 4 };

typedef struct thrower {
  heddle_context *ctx;
  heddle_model *model;
  unsigned number, rounds;
  heddle_status status;
  heddle_error err;
  pthread_t thread;
} thrower;

/* Every thread runs body; the first failure is reported here. */
static void storm(void *(*body)(void *), heddle_context *ctx, heddle_model *model, unsigned rounds) {
  thrower all[THREADS] = {{0}};
  for (unsigned i = 0; i < THREADS; i++) {
    all[i] = (thrower){.ctx = ctx, .model = model, .number = i, .rounds = rounds};
    assert_int_equal(pthread_create(&all[i].thread, NULL, body, &all[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
  for (unsigned i = 0; i < THREADS; i++)
    if (all[i].status != HEDDLE_OK) fail_msg("thread %u: status %d: %s", i, all[i].status, all[i].err.text);
}

static heddle_context *context(void) {
  heddle_context *ctx = NULL;
  heddle_error err;
  const heddle_setting settings[] = {{"log", "off"}};
  if (heddle_context_create(settings, 1, NULL, NULL, &ctx, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return ctx;
}

/* ---- contexts */

static void *throw_contexts(void *arg) {
  thrower *t = arg;
  const heddle_setting settings[] = {{"log", "off"}};
  for (unsigned i = 0; i < t->rounds && t->status == HEDDLE_OK; i++) {
    heddle_context *ctx = NULL;
    t->status = heddle_context_create(settings, 1, NULL, NULL, &ctx, &t->err);
    if (t->status == HEDDLE_OK && i % 3 != 0)
      t->status = job_whole(ctx, i % 3 == 1 ? "sim:1,cpu" : NULL, (float)i, &t->err);
    heddle_context_release(ctx);
  }
  return NULL;
}

static void contexts(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  storm(throw_contexts, NULL, NULL, 40);
  assert_int_equal(heddle__alloc_live(), before);
}

/* ---- devices and models of one context */

static void *throw_devices(void *arg) {
  thrower *t = arg;
  for (unsigned i = 0; i < t->rounds && t->status == HEDDLE_OK; i++) {
    heddle_device *dev = heddle_context_device(t->ctx, (t->number + i) % heddle_context_device_count(t->ctx));
    t->status = heddle__device_open(dev, &t->err);
    if (t->status != HEDDLE_OK) break;
    t->status = heddle_device_health(dev, &t->err);
    heddle__device_close(dev);
    heddle_error busy;
    heddle_status s = heddle_device_reopen(dev, &busy);
    if (t->status == HEDDLE_OK && s != HEDDLE_OK && s != HEDDLE_EBUSY) {
      t->status = s;
      t->err = busy;
    }
  }
  return NULL;
}

static void *throw_models(void *arg) {
  thrower *t = arg;
  static const char *const lists[] = {NULL, "sim:0", "cpu", "sim:1,cpu"};
  for (unsigned i = 0; i < t->rounds && t->status == HEDDLE_OK; i++)
    t->status = job_whole(t->ctx, lists[(t->number + i) % 4], (float)i, &t->err);
  return NULL;
}

/* Nothing of the devices' is alive. */
static void check_devices(heddle_context *ctx) {
  for (size_t i = 0; i < heddle_context_device_count(ctx); i++) {
    heddle_device *dev = heddle_context_device(ctx, i);
    heddle_error err;
    if (strncmp(dev->name, "cpu", 3) != 0 && strncmp(dev->name, accelerator, strlen(accelerator)) != 0) continue;
    if (heddle__device_open(dev, &err) != HEDDLE_OK) fail_msg("%s", err.text);
    for (uint32_t key = HEDDLE_QUERY_LIVE_BUFFERS; key <= HEDDLE_QUERY_LIVE_OBJECTS; key++) {
      int64_t live = -1;
      assert_int_equal(dev->t->device.query(dev->handle, key, &live, &err), HEDDLE_OK);
      if (live != 0) fail_msg("%s: %lld alive of kind %u", dev->name, (long long)live, (unsigned)key);
    }
    heddle__device_close(dev);
  }
}

static void devices(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  heddle_context *ctx = context();
  storm(throw_devices, ctx, NULL, 200);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), before);
}

static void models(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  heddle_context *ctx = context();
  heddle_device *held[2] = {heddle_context_device(ctx, 0), NULL};
  heddle_error err;
  assert_int_equal(heddle_context_find_device(ctx, on("sim:0"), &held[1], &err), HEDDLE_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(heddle__device_open(held[i], &err), HEDDLE_OK);
  storm(throw_models, ctx, NULL, 60);
  check_devices(ctx);
  for (int i = 0; i < 2; i++) heddle__device_close(held[i]);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), before);
}

/* ---- executors of one model, half of them left in the middle of a run */

static void *throw_executors(void *arg) {
  thrower *t = arg;
  for (unsigned i = 0; i < t->rounds && t->status == HEDDLE_OK; i++) {
    job j = {.model = heddle_model_retain(t->model)};
    t->status = job_executor(&j, (float)i, &t->err);
    if (t->status == HEDDLE_OK && i % 2 == 0) t->status = job_run(&j, &t->err);
    if (t->status == HEDDLE_OK && i % 4 != 0) t->status = heddle_executor_start(j.executor, &t->err);
    if (t->status == HEDDLE_OK && i % 4 == 3) t->status = heddle_executor_wait(j.executor, JOB_LONG, &t->err);
    job_drop(&j);
  }
  return NULL;
}

static void executors(void **state) {
  (void)state;
  size_t before = heddle__alloc_live();
  heddle_context *ctx = context();
  heddle_error err;
  job shared = {0};
  if (job_model(ctx, &shared, NULL, 0, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  storm(throw_executors, ctx, shared.model, 120);
  job_drop(&shared);
  check_devices(ctx);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), before);
}

CASES(CASE_TWICE(contexts), CASE_TWICE(devices), CASE_TWICE(models), CASE_TWICE(executors))
