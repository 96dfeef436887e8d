/* bench/bench_crossing.c: cpu and sim alternating 100 times on 4 KB, by Heddle and by hand, and sim's round trip against
 * two threads that pass a condition variable to and fro. Usage: bench_crossing PLUGIN_FOLDER; then on standard input
 * "WHAT COUNT" with WHAT one of heddle, blocking, callback, trip, pingpong, answered with nanoseconds of one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hand_chain.h"
#include "hand_host.h"

enum { PAIRS = 100, ELEMENTS = 1024, BYTES = 4 * ELEMENTS };

/* ---------------------------------------------------------------- by hand, on the plugins' own tables */

static hand_plugin cpu, sim;
static heddle_pstream *cpu_stream, *sim_stream;
static heddle_pbuffer *pinned, *device;
static heddle_plaunch *on_cpu[PAIRS], *on_sim[PAIRS];
static heddle_pfence fence;
static uint64_t ticks;

static void prepare_by_hand(const char *folder) {
  heddle_error err;
  cpu = hand_open(folder, "cpu");
  sim = hand_open(folder, "sim");
  check(cpu.p->stream->create(cpu.dev, HEDDLE_STREAM_COMPUTE, 0, &cpu_stream, &err), &err);
  check(sim.p->stream->create(sim.dev, HEDDLE_STREAM_COMPUTE, 0, &sim_stream, &err), &err);
  pinned = hand_alloc(&sim, HEDDLE_MEMORY_PINNED, 4 * BYTES);
  device = hand_alloc(&sim, HEDDLE_MEMORY_DEVICE, 4 * BYTES);
  void *p = NULL;
  heddle_pbuffer *host = NULL;
  check(sim.p->memory->map(sim.dev, pinned, &p, &err), &err);
  memset(p, 0, 4 * BYTES);
  check(cpu.p->memory->import_host(cpu.dev, p, 4 * BYTES, &host, &err), &err);
  check(sim.p->copy->fill(sim_stream, device, 0, 4 * BYTES, 0, &err), &err);
  fence = hand_fence();
  /* cpu: pinned[1] = pinned[0] + pinned[2]; sim: device[1] = device[0] + device[2]; both results go back to slot 0. */
  for (int i = 0; i < PAIRS; i++) {
    on_cpu[i] = hand_add(&cpu, cpu_stream, ELEMENTS, (heddle_pslice){host, 0, BYTES},
                         (heddle_pslice){host, 2 * BYTES, BYTES}, (heddle_pslice){host, BYTES, BYTES});
    on_sim[i] = hand_add(&sim, sim_stream, ELEMENTS, (heddle_pslice){device, 0, BYTES},
                         (heddle_pslice){device, 2 * BYTES, BYTES}, (heddle_pslice){device, BYTES, BYTES});
  }
}

static void by_hand(int blocking) {
  heddle_error err;
  for (int i = 0; i < PAIRS; i++) {
    check(cpu.p->op->run(on_cpu[i], &err), &err);
    check(sim.p->copy->h2d(sim_stream, device, 0, pinned, BYTES, BYTES, &err), &err);
    check(sim.p->op->run(on_sim[i], &err), &err);
    check(sim.p->copy->d2h(sim_stream, pinned, 0, device, BYTES, BYTES, &err), &err);
    if (blocking) {
      check(sim.p->stream->sync(sim_stream, UINT64_MAX, &err), &err);
    } else {
      check(sim.p->fence->signal(sim_stream, fence, ++ticks, &err), &err);
      hand_wait(fence, ticks);
    }
  }
}

static void trip(void) {
  heddle_error err;
  check(sim.p->fence->signal(sim_stream, fence, ++ticks, &err), &err);
  hand_wait(fence, ticks);
}

/* ---------------------------------------------------------------- a bare ping-pong */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards turn */
static pthread_cond_t ping = PTHREAD_COND_INITIALIZER, pong = PTHREAD_COND_INITIALIZER;
static int turn;

static void *answer(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  while (turn >= 0) { /* the process ends before it does */
    while (turn != 1) pthread_cond_wait(&ping, &lock);
    turn = 0;
    pthread_cond_signal(&pong);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void ping_pong(void) {
  pthread_mutex_lock(&lock);
  turn = 1;
  pthread_cond_signal(&ping);
  while (turn != 0) pthread_cond_wait(&pong, &lock);
  pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: bench_crossing PLUGIN_FOLDER\n");
    return 2;
  }
  heddle_error err;
  heddle_context *ctx;
  heddle_setting settings[] = {{"threads", "1"}};
  check(heddle_context_create(settings, 1, NULL, NULL, &ctx, &err), &err);
  static const char *const devices[2] = {"cpu", "sim:0"};
  heddle_executor *ex = hand_chain(ctx, 2 * PAIRS, ELEMENTS, devices);
  prepare_by_hand(argv[1]);
  pthread_t thread;
  if (pthread_create(&thread, NULL, answer, NULL) != 0) return 1;
  char line[128], what[32];
  int count;
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%31s %d", what, &count) == 2 && count > 0) {
    double start = now_ns();
    for (int i = 0; i < count; i++) {
      if (strcmp(what, "heddle") == 0) check(heddle_executor_run(ex, HEDDLE_FOREVER, &err), &err);
      else if (strcmp(what, "blocking") == 0) by_hand(1);
      else if (strcmp(what, "callback") == 0) by_hand(0);
      else if (strcmp(what, "trip") == 0) trip();
      else ping_pong();
    }
    printf("%.1f\n", (now_ns() - start) / count);
    fflush(stdout);
  }
  heddle_executor_release(ex);
  heddle_context_release(ctx);
  return 0;
}
