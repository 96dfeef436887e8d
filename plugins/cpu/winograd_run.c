/* Launches of convolutions through Winograd. The work comes in units: rows of tiles, which go through all steps together so
 * that they stay in a core's cache; or, where weights are most of the data, groups of result channels, so that each weight
 * is read once. Tasks on the pool take the next unit when they are free; each has scratch memory of its own, and
 * transforms the inputs that it needs itself: another core's would take longer to fetch. */
#include "cpu.h"
#include "onednn_special.h"
#include "winograd.h"

#include <stdatomic.h>

typedef struct winograd_op {
  onednn_special special;
  const onednn *self;
  const heddle_host *host;
  winograd_plan plan;
} winograd_op;

typedef struct winograd_launch {
  onednn_special_launch special;
  const onednn *self;
  const heddle_host *host;
  const winograd_plan *plan;
  const float *src, *weights, *bias;
  float *dst;
  const float *adds[WINOGRAD_POSTS];
  char *workspace;
  _Atomic(int64_t) next; /* unit of the run */
  atomic_bool stopped;   /* units were left, since the run was to end */
} winograd_launch;

uint64_t winograd_workspace(const winograd_plan *plan) {
  return plan->tasks * plan->task_bytes;
}

/* ---------------------------------------------------------------- steps */

static void transform(const winograd_launch *launch, int64_t from, int64_t rows, float *v) {
  const int64_t tiles = rows * launch->plan->tiles_x;
  for (int64_t block = 0; block < launch->plan->in_blocks; block++)
    winograd_input(launch->plan, launch->src, from, rows, block, v + block * tiles * launch->plan->kind.lanes);
}

static void multiply(const winograd_launch *launch, int64_t from, int64_t rows, int64_t group, const float *v,
                     float *m) {
  const winograd_plan *plan = launch->plan;
  const int64_t points = plan->kind.tile * plan->kind.tile, tiles = rows * plan->tiles_x;
  const int64_t channels = plan->in_blocks * plan->kind.lanes;
  const int64_t whole = 2 * plan->kind.lanes, first = group * whole;
  const int64_t left = plan->out_blocks * plan->kind.lanes - first, lanes = left < whole ? left : whole;
  const float *weights = launch->weights + first * channels * points;
  for (int64_t p = 0; p < points; p++)
    winograd_product(&plan->kind, v + p * plan->v_point, tiles, plan->in_blocks, weights + p * channels * lanes, lanes,
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
    if (unit > 0 && onednn_stops(launch->self)) {
      atomic_store_explicit(&launch->stopped, true, memory_order_relaxed);
      return;
    }
    const int64_t from = plan->by_groups ? 0 : unit * plan->unit_rows, left = all - from;
    const int64_t rows = left < plan->unit_rows ? left : plan->unit_rows;
    if (!ready) transform(launch, from, rows, v);
    ready = plan->by_groups;
    for (int64_t g = ready ? unit : 0; g < (ready ? unit + 1 : plan->groups); g++)
      multiply(launch, from, rows, g, v, m);
  }
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  winograd_launch *launch = (winograd_launch *)special;
  const heddle_host *host = launch->host;
  atomic_store_explicit(&launch->next, 0, memory_order_relaxed);
  atomic_store_explicit(&launch->stopped, false, memory_order_relaxed);
  if (launch->plan->tasks > 1) host->run_parallel(host->ctx, launch->plan->tasks, 0, run_task, launch, NULL);
  else run_task(launch, 0, 1);
  return atomic_load_explicit(&launch->stopped, memory_order_relaxed) ? onednn_stopped(launch->self, err) : HEDDLE_OK;
}

/* ---------------------------------------------------------------- operators and launches */

static void free_launch(onednn_special_launch *special) {
  const heddle_host *host = ((winograd_launch *)special)->host;
  host->free(host->ctx, special);
}

static void move(onednn_special_launch *special, void *const *inputs, void *const *outputs) {
  winograd_launch *launch = (winograd_launch *)special;
  const winograd_plan *plan = launch->plan;
  launch->src = inputs[plan->src];
  launch->weights = inputs[plan->weights];
  launch->bias = plan->has_bias ? inputs[plan->bias] : NULL;
  launch->dst = outputs[plan->dst];
  for (uint32_t i = 0; i < plan->n_posts; i++)
    if (plan->posts[i].kind == WINOGRAD_ADD) launch->adds[i] = inputs[plan->posts[i].slot];
}

static heddle_status bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_special_launch **out, heddle_error *err) {
  const winograd_op *op = (const winograd_op *)special;
  const winograd_plan *plan = &op->plan;
  const heddle_host *host = op->host;
  winograd_launch *launch = host->alloc(host->ctx, sizeof *launch, _Alignof(winograd_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  *launch = (winograd_launch){
      .special = {.free = free_launch, .run = run, .move = move},
      .self = op->self,
      .host = host,
      .plan = plan,
      .workspace = workspace,
  };
  move(&launch->special, inputs, outputs);
  *out = &launch->special;
  return HEDDLE_OK;
}

static void free_op(onednn_special *special) {
  const heddle_host *host = ((winograd_op *)special)->host;
  host->free(host->ctx, special);
}

heddle_status winograd_hold(const onednn *self, const winograd_plan *plan, onednn_special **out, heddle_error *err) {
  const heddle_host *host = self->host;
  winograd_op *op = host->alloc(host->ctx, sizeof *op, _Alignof(winograd_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *op = (winograd_op){.special = {.workspace = winograd_workspace(plan), .free = free_op, .bind = bind},
                      .self = self,
                      .host = host,
                      .plan = *plan};
  *out = &op->special;
  return HEDDLE_OK;
}
