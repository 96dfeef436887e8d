/* Launches of convolutions through Winograd. The work comes in units: rows of tiles, which go through all steps together so
 * that they stay in a core's cache; or, where weights are most of the data, groups of result channels, so that each weight
 * is read once. Tasks on the pool take the next unit when they are free; each has scratch memory of its own, and
 * transforms the inputs that it needs itself: another core's would take longer to fetch. */
#include "cpu.h"
#include "winograd.h"

#include <stdatomic.h>

struct winograd_launch {
  const heddle_host *host;
  const winograd_plan *plan;
  const float *src, *weights, *bias;
  float *dst;
  const float *adds[WINOGRAD_POSTS];
  char *workspace;
  _Atomic(int64_t) next; /* unit of the run */
};

uint64_t winograd_workspace(const winograd_plan *plan) {
  return plan->tasks * plan->task_bytes;
}

heddle_status winograd_bind(const heddle_host *host, const winograd_plan *plan, void *const *inputs,
                            void *const *outputs, void *workspace, winograd_launch **out, heddle_error *err) {
  winograd_launch *launch = host->alloc(host->ctx, sizeof *launch, _Alignof(winograd_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  *launch = (winograd_launch){
      .host = host,
      .plan = plan,
      .src = inputs[plan->src],
      .weights = inputs[plan->weights],
      .bias = plan->has_bias ? inputs[plan->bias] : NULL,
      .dst = outputs[plan->dst],
      .workspace = workspace,
  };
  for (uint32_t i = 0; i < plan->n_posts; i++)
    if (plan->posts[i].kind == WINOGRAD_ADD) launch->adds[i] = inputs[plan->posts[i].slot];
  *out = launch;
  return HEDDLE_OK;
}

void winograd_launch_free(winograd_launch *launch) {
  if (launch != NULL) launch->host->free(launch->host->ctx, launch);
}

/* ---------------------------------------------------------------- steps */

static void transform(const winograd_launch *launch, int64_t from, int64_t rows, float *v) {
  const int64_t tiles = rows * launch->plan->tiles_x;
  for (int64_t block = 0; block < launch->plan->in_blocks; block++)
    winograd_input(launch->plan, launch->src, from, rows, block, v + block * tiles * WINOGRAD_LANES);
}

static void multiply(const winograd_launch *launch, int64_t from, int64_t rows, int64_t group, const float *v,
                     float *m) {
  const winograd_plan *plan = launch->plan;
  const int64_t points = plan->kind.tile * plan->kind.tile, tiles = rows * plan->tiles_x;
  const int64_t channels = plan->in_blocks * WINOGRAD_LANES;
  const int64_t first = group * WINOGRAD_GROUP, left = plan->out_blocks * WINOGRAD_LANES - first;
  const int64_t lanes = left < WINOGRAD_GROUP ? left : WINOGRAD_GROUP;
  const float *weights = launch->weights + first * channels * points;
  for (int64_t p = 0; p < points; p++)
    winograd_product(v + p * plan->v_point, tiles, plan->in_blocks, weights + p * channels * lanes, lanes,
                     m + p * plan->m_point);
  winograd_output(plan, m, from, rows, group, launch->bias, launch->adds, launch->dst);
}

/* ---------------------------------------------------------------- tasks */

static void run_task(void *arg, uint32_t i, uint32_t n) {
  winograd_launch *launch = arg;
  const winograd_plan *plan = launch->plan;
  const int64_t all = plan->images * plan->tiles_y, points = plan->kind.tile * plan->kind.tile;
  float *v = (float *)(void *)(launch->workspace + i * plan->task_bytes), *m = v + points * plan->v_point;
  bool ready = false;
  (void)n;
  for (;;) {
    const int64_t unit = atomic_fetch_add_explicit(&launch->next, 1, memory_order_relaxed);
    if (unit >= plan->units) return;
    const int64_t from = plan->by_groups ? 0 : unit * plan->unit_rows, left = all - from;
    const int64_t rows = left < plan->unit_rows ? left : plan->unit_rows;
    if (!ready) transform(launch, from, rows, v);
    ready = plan->by_groups;
    for (int64_t g = ready ? unit : 0; g < (ready ? unit + 1 : plan->groups); g++)
      multiply(launch, from, rows, g, v, m);
  }
}

void winograd_run(winograd_launch *launch) {
  const heddle_host *host = launch->host;
  atomic_store_explicit(&launch->next, 0, memory_order_relaxed);
  if (launch->plan->tasks > 1) host->run_parallel(host->ctx, launch->plan->tasks, 0, run_task, launch, NULL);
  else run_task(launch, 0, 1);
}
