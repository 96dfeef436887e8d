/* Threads that ask for devices of a new context at once: each plugin is loaded once, whichever thread comes first.
 * labels: threads */
#include <pthread.h>

#include "cases.h"
#include "heddle/heddle.h"

enum { THREADS = 6, ROUNDS = 20 };

typedef struct job {
  heddle_context *ctx;
  heddle_device *found;
  size_t count;
  int number;
  heddle_status status;
} job;

static void *ask(void *user) {
  job *j = user;
  heddle_error err;
  const char *value;
  j->status = heddle_context_find_device(j->ctx, j->number % 2 == 0 ? "cpu" : "sim:1", &j->found, &err);
  if (j->number == 3) j->count = heddle_context_device_count(j->ctx);
  (void)heddle_context_setting(j->ctx, "threads", &value, NULL, &err);
  return NULL;
}

static void plugins_are_loaded_once(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    const heddle_setting settings[] = {{"opencl.driver", "off"}, {"log", "error"}};
    heddle_context *ctx;
    heddle_error err;
    assert_int_equal(heddle_context_create(settings, 2, NULL, NULL, &ctx, &err), HEDDLE_OK);
    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
      jobs[i] = (job){.ctx = ctx, .number = i};
      assert_int_equal(pthread_create(&threads[i], NULL, ask, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    const size_t count = heddle_context_device_count(ctx);
    for (int i = 0; i < THREADS; i++) {
      assert_int_equal(jobs[i].status, HEDDLE_OK);
      assert_string_equal(heddle_device_name(jobs[i].found), i % 2 == 0 ? "cpu:0" : "sim:1");
      assert_ptr_equal(jobs[i].found, jobs[i % 2].found);
    }
    assert_int_equal(jobs[3].count, count);
    for (size_t i = 0; i < count; i++)
      for (size_t k = 0; k < i; k++)
        assert_string_not_equal(heddle_device_name(heddle_context_device(ctx, i)),
                                heddle_device_name(heddle_context_device(ctx, k)));
    heddle_context_release(ctx);
  }
}

/* The application's log function may ask too, while its own thread loads. */
static void ask_again(void *user, int32_t level, const char *component, const char *text) {
  heddle_context **ctx = user;
  (void)level, (void)component, (void)text;
  if (*ctx != NULL) (void)heddle_context_device_count(*ctx);
}

static void a_log_function_may_ask(void **state) {
  (void)state;
  const heddle_setting settings[] = {{"opencl.driver", "off"}, {"log", "trace"}};
  heddle_context *ctx = NULL;
  heddle_device *cpu;
  heddle_error err;
  assert_int_equal(heddle_context_create(settings, 2, ask_again, &ctx, &ctx, &err), HEDDLE_OK);
  assert_int_equal(heddle_context_find_device(ctx, "cpu", &cpu, &err), HEDDLE_OK);
  assert_true(heddle_context_device_count(ctx) >= 3);
  heddle_context_release(ctx);
}

CASES(CASE(plugins_are_loaded_once), CASE(a_log_function_may_ask))
