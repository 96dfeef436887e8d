/* For tests of a GPU plugin's streams: a gate that holds a stream back until the test opens it, by a fence whose signal
 * waits on the driver's thread; how often each fence was reported; and what the double of the driver counted. */
#ifndef HEDDLE_TESTS_UNIT_CUDA_GATE_H
#define HEDDLE_TESTS_UNIT_CUDA_GATE_H

#include "cuda_host.h"

enum { GATE_FENCE = SIM_TEST_FENCES - 1 };

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static pthread_cond_t gate_change = PTHREAD_COND_INITIALIZER;
static bool gate_is_shut;
static int gate_told[SIM_TEST_FENCES]; /* how often a fence was signalled or failed */

static inline void gate_tell(heddle_pfence fence) {
  pthread_mutex_lock(&gate_lock);
  gate_told[fence]++;
  if (fence == GATE_FENCE) pthread_cond_broadcast(&gate_change);
  while (fence == GATE_FENCE && gate_is_shut) pthread_cond_wait(&gate_change, &gate_lock);
  pthread_mutex_unlock(&gate_lock);
}

static inline void gate_signal(void *ctx, heddle_pfence fence, uint64_t value) {
  gate_tell(fence);
  sim_test_signal(ctx, fence, value);
}

static inline void gate_fail(void *ctx, heddle_pfence fence, heddle_status status, const char *text) {
  if (fence != GATE_FENCE) gate_tell(fence);
  sim_test_fail(ctx, fence, status, text);
}

/* Counts reports to the host from now on. */
static inline void gate_watch(sim_test *t) {
  t->fake.table.fence_signal = gate_signal;
  t->fake.table.fence_fail = gate_fail;
}

/* Work that is put into the stream from now on does not begin before the gate is opened. */
static inline void gate_shut(sim_test *t, heddle_pstream *stream) {
  static uint64_t value;
  pthread_mutex_lock(&gate_lock);
  gate_is_shut = true;
  pthread_mutex_unlock(&gate_lock);
  t->p->fence->signal(stream, GATE_FENCE, ++value, NULL);
}

/* Returns when a stream stands at the gate: a fault before that would take the gate away with all later work. */
static inline void gate_await(void) {
  pthread_mutex_lock(&gate_lock);
  while (gate_told[GATE_FENCE] == 0) pthread_cond_wait(&gate_change, &gate_lock);
  pthread_mutex_unlock(&gate_lock);
}

static inline void gate_open(sim_test *t) {
  (void)t;
  pthread_mutex_lock(&gate_lock);
  gate_is_shut = false;
  pthread_mutex_unlock(&gate_lock);
  pthread_cond_broadcast(&gate_change);
}

/* How often a driver's call was made, by its symbol, or another count of the double's; a skip without it. */
static inline int gate_calls(const char *name) {
  const char *driver = gpu_counting_driver();
  char own[64];
  void *library = driver != NULL ? dlopen(driver, RTLD_NOW | RTLD_NOLOAD) : NULL;
  void *symbol = library != NULL ? dlsym(library, "fake_gpu_calls") : NULL;
  int (*calls)(const char *name) = NULL;
  if (symbol == NULL) SKIP("the driver is no double, and counts nothing");
  memcpy(&calls, &symbol, sizeof calls);
  dlclose(library);
  gpu_name(name, strlen(name), own, sizeof own);
  return calls(own);
}

#endif
