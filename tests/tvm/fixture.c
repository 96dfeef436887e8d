/* A library as TVM v0.14 compiled it, written by hand: total(x, y) sets every y to the sum of x in a parallel loop with
 * a barrier and scratch memory; fails(x, y) fails in the last task while the others are at a barrier. */
#define ERA 14
#include "era.h"

enum { N = 256 };

typedef struct job {
  const float *x;
  float *y;
  float sums[64];
} job;

static int work(int task, Group *g, void *data) {
  job *j = data;
  int from = N * task / g->num_task, to = N * (task + 1) / g->num_task;
  float *scratch = TVMBackendAllocWorkspace(1, 0, N * sizeof(float), 2, 32);
  float *large = TVMBackendAllocWorkspace(1, 0, 300000, 2, 32);
  if (scratch == NULL || large == NULL) return -1;
  for (int i = from; i < to; i++) scratch[i] = j->x[i];
  memset(large, task, 300000);
  j->sums[task] = 0;
  for (int i = from; i < to; i++) j->sums[task] += scratch[i];
  if (TVMBackendFreeWorkspace(1, 0, large) != 0 || TVMBackendFreeWorkspace(1, 0, scratch) != 0) return -1;
  if (TVMBackendParallelBarrier(task, g) != 0) return -1;
  float sum = 0;
  for (int i = 0; i < g->num_task; i++) sum += j->sums[i];
  for (int i = from; i < to; i++) j->y[i] = sum;
  return TVMBackendParallelBarrier(task, g);
}

static int unlucky(int task, Group *g, void *data) {
  (void)data;
  if (task < g->num_task - 1) return TVMBackendParallelBarrier(task, g);
  TVMAPISetLastError("no luck");
  return -1;
}

FUNCTION(total);
FUNCTION(total) {
  TVMValue *args = args_;
  (void)codes, (void)out_ret, (void)out_code, (void)resource;
  CHECK(num_args == 2, "total: num_args should be 2");
  job j = {.x = ((DLTensor *)args[0].v_handle)->data, .y = ((DLTensor *)args[1].v_handle)->data};
  CHECK(is_compact(args[0].v_handle), "x.strides");
  return TVMBackendParallelLaunch(work, &j, 0);
}

FUNCTION(fails);
FUNCTION(fails) {
  (void)args_, (void)codes, (void)num_args, (void)out_ret, (void)out_code, (void)resource;
  return TVMBackendParallelLaunch(unlucky, NULL, 0);
}
