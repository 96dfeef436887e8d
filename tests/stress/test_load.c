/* tests/stress/test_load.c: load: eight threads run four models on three plugins at once, and executors are made and
 * released again and again; every output is checked, and memory, threads, descriptors and mappings stay as they were. The
 * whole of it is slow: 10,000 runs a thread, and 10,000 executors.
 * timeout: 3000
 */
#include <dirent.h>
#include <pthread.h>

#include "cases.h"

#include "core/alloc.h"
#include "job.h"

enum { THREADS = 8, MODELS = 4 };

static heddle_context *context(void) {
  heddle_context *ctx = NULL;
  heddle_error err;
  const heddle_setting settings[] = {{"log", "off"}, {"threads", "2"}, {"sim.devices", "2"}};
  if (heddle_context_create(settings, 3, NULL, NULL, &ctx, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return ctx;
}

/* ---- threads */

typedef struct runner {
  job jobs[MODELS]; /* an executor of each model */
  unsigned number, rounds;
  heddle_status status;
  heddle_error err;
  pthread_t thread;
} runner;

/* A model after the other, each run with another input; every third without waiting in run. */
static void *run_all(void *arg) {
  runner *r = arg;
  for (unsigned i = 0; i < r->rounds && r->status == HEDDLE_OK; i++) {
    job *j = &r->jobs[(r->number + i) % MODELS];
    r->status = job_set(j->executor, j->x, (float)((i + r->number * 7) % 100) - 50, &r->err);
    if (r->status == HEDDLE_OK && i % 3 == 2) {
      r->status = heddle_executor_start(j->executor, &r->err);
      if (r->status == HEDDLE_OK) r->status = heddle_executor_wait(j->executor, JOB_LONG, &r->err);
      if (r->status == HEDDLE_OK) r->status = job_read(j->executor, j->d, &r->err);
      if (r->status == HEDDLE_OK) r->status = job_check(j->x, j->d, &r->err);
    } else if (r->status == HEDDLE_OK) {
      r->status = job_run(j, &r->err);
    }
  }
  return NULL;
}

/* lists: the devices of each model; NULL: cpu and two devices, as annotated. */
static void many_runs(const char *const lists[MODELS], unsigned rounds) {
  size_t before = heddle__alloc_live();
  heddle_context *ctx = context();
  heddle_error err = {0};
  job models[MODELS] = {{0}};
  static runner all[THREADS];
  memset(all, 0, sizeof all);
  for (int m = 0; m < MODELS; m++)
    if (job_model(ctx, &models[m], lists[m], 0, &err) != HEDDLE_OK) fail_msg("model %d: %s", m, err.text);
  for (unsigned i = 0; i < THREADS; i++) {
    all[i].number = i;
    all[i].rounds = rounds;
    for (int m = 0; m < MODELS; m++)
      if (heddle_executor_create(models[m].model, &all[i].jobs[m].executor, &err) != HEDDLE_OK)
        fail_msg("model %d: %s", m, err.text);
  }
  for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&all[i].thread, NULL, run_all, &all[i]), 0);
  for (unsigned i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
  for (unsigned i = 0; i < THREADS; i++) {
    if (all[i].status != HEDDLE_OK) fail_msg("thread %u: status %d: %s", i, all[i].status, all[i].err.text);
    for (int m = 0; m < MODELS; m++) heddle_executor_release(all[i].jobs[m].executor);
  }
  for (int m = 0; m < MODELS; m++) job_drop(&models[m]);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), before);
  printf("%u runs by %d threads\n", THREADS * rounds, (int)THREADS);
}

static void threads_on_cpu_and_sim(void **state) {
  (void)state;
  many_runs((const char *const[MODELS]){NULL, "cpu", "sim:0", "sim:1,cpu"}, 100);
}

/* The case's accelerator is opencl, so that PoCL is there; its names and those of sim's are meant as they stand. */
static inline void on_three_plugins(unsigned rounds) {
  accelerator = "sim";
  many_runs((const char *const[MODELS]){NULL, "cpu", "sim:0", "opencl:0,cpu"}, rounds);
}

static inline void threads_on_three_plugins(void **state) {
  (void)state;
  on_three_plugins(60);
}

static inline void ten_thousand_runs_a_thread(void **state) {
  (void)state;
  on_three_plugins(10000);
}

/* ---- executors */

/* What the process has: pages of its own memory, threads, descriptors, mappings. */
typedef struct holdings {
  unsigned long kib, threads, descriptors, mappings;
  size_t blocks;
} holdings;

static unsigned long count_in(const char *folder) {
  DIR *d = opendir(folder);
  unsigned long n = 0;
  if (d == NULL) fail_msg("%s cannot be read", folder);
  while (readdir(d) != NULL) n++;
  closedir(d);
  return n;
}

static holdings holdings_now(void) {
  holdings h = {.threads = count_in("/proc/self/task"), .descriptors = count_in("/proc/self/fd")};
  char line[512];
  FILE *f = fopen("/proc/self/status", "r");
  if (f == NULL) fail_msg("/proc/self/status cannot be read");
  while (fgets(line, sizeof line, f) != NULL) (void)sscanf(line, "RssAnon: %lu", &h.kib);
  fclose(f);
  f = fopen("/proc/self/maps", "r");
  if (f == NULL) fail_msg("/proc/self/maps cannot be read");
  while (fgets(line, sizeof line, f) != NULL) h.mappings++;
  fclose(f);
  h.blocks = heddle__alloc_live();
  return h;
}

static void make_one(job *models, unsigned i) {
  heddle_error err = {0};
  job *j = &models[i % MODELS];
  heddle_status s = job_executor(j, (float)(i % 100), &err);
  if (s == HEDDLE_OK && i % 5 == 4) { /* one that has had a thread of its own */
    s = heddle_executor_start(j->executor, &err);
    if (s == HEDDLE_OK) s = heddle_executor_wait(j->executor, JOB_LONG, &err);
  } else if (s == HEDDLE_OK && i % 5 != 3) {
    s = job_run(j, &err);
  }
  if (s != HEDDLE_OK) fail_msg("executor %u: %s", i, err.text);
  heddle_executor_release(j->executor);
  j->executor = NULL;
}

/* A thread that has ended is seen for a moment still. */
static void let_threads_end(unsigned long most) {
  for (int i = 0; i < 2000 && count_in("/proc/self/task") > most; i++) job_sleep_ms(5);
}

/* Streams that sim keeps for the next executor: how many there are depends on how fast its threads are. */
enum { MORE_THREADS = 12, MORE_BLOCKS = 60, MORE_MAPPINGS = 60, MORE_KIB = 4096 };

static void come_and_go(unsigned n) {
  static const char *const lists[MODELS] = {NULL, "cpu", "sim:0", "sim:1,cpu"};
  size_t first = heddle__alloc_live();
  heddle_context *ctx = context();
  heddle_error err = {0};
  job models[MODELS] = {{0}};
  for (int m = 0; m < MODELS; m++)
    if (job_model(ctx, &models[m], lists[m], 0, &err) != HEDDLE_OK) fail_msg("model %d: %s", m, err.text);
  for (unsigned i = 0; i < n / 10; i++) make_one(models, i); /* caches, pools and the allocator's own are made now */
  holdings before = holdings_now();
  for (unsigned i = 0; i < n; i++) make_one(models, i);
  let_threads_end(before.threads + MORE_THREADS);
  holdings after = holdings_now();
  printf("%u executors: memory %lu KiB to %lu KiB, threads %lu to %lu, descriptors %lu to %lu, mappings %lu to %lu, "
         "blocks %zu to %zu\n",
         n, before.kib, after.kib, before.threads, after.threads, before.descriptors, after.descriptors,
         before.mappings, after.mappings, before.blocks, after.blocks);
  assert_int_equal(after.descriptors, before.descriptors);
  if (after.blocks > before.blocks + MORE_BLOCKS) fail_msg("blocks grew");
  if (after.threads > before.threads + MORE_THREADS) fail_msg("threads grew");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* those have pages of their own */
  if (after.mappings > before.mappings + MORE_MAPPINGS) fail_msg("mappings grew");
  if (after.kib > before.kib + MORE_KIB) fail_msg("memory grew");
#endif
  for (int m = 0; m < MODELS; m++) job_drop(&models[m]);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), first);
}

static void executors_come_and_go(void **state) {
  (void)state;
  come_and_go(300);
}

static void ten_thousand_executors(void **state) {
  (void)state;
  come_and_go(10000);
}

#ifdef HEDDLE_TEST_OPENCL
#define ON_OPENCL \
  , CASE_OPENCL(threads_on_three_plugins), { \
    "ten_thousand_runs_a_thread@opencl", ten_thousand_runs_a_thread, "opencl slow", "opencl" \
  }
#else
#define ON_OPENCL
#endif

CASES(CASE_LABELS(threads_on_cpu_and_sim, "threads"), CASE(executors_come_and_go),
      CASE_LABELS(ten_thousand_executors, "slow") ON_OPENCL)
