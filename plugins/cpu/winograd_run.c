/* Launches of convolutions through Winograd. Parts are rows of tiles, which each thread takes through all steps chunk by
 * chunk so that they stay in its cache; or, where weights are most of the data, groups of result channels, so that each
 * weight is read by one thread: then the inputs are transformed by all before. */
#include "cpu.h"
#include "winograd.h"

struct winograd_launch {
  const heddle_host *host;
  const winograd_plan *plan;
  const float *src, *weights, *bias;
  float *dst;
  const float *adds[WINOGRAD_POSTS];
  char *workspace;
};

uint64_t winograd_workspace(const winograd_plan *plan) {
  return plan->shared_bytes + plan->parts * plan->part_bytes;
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

/* ---------------------------------------------------------------- steps of a part */

static void transform(const winograd_launch *launch, int64_t from, int64_t rows, int64_t block, int64_t end, float *v) {
  const int64_t tiles = rows * launch->plan->tiles_x;
  for (; block < end; block++)
    winograd_input(launch->plan, launch->src, from, rows, block, v + block * tiles * WINOGRAD_LANES);
}

static void multiply(const winograd_launch *launch, int64_t from, int64_t rows, int64_t group, int64_t end,
                     const float *v, float *m) {
  const winograd_plan *plan = launch->plan;
  const int64_t points = plan->kind.tile * plan->kind.tile, tiles = rows * plan->tiles_x;
  const int64_t channels = plan->in_blocks * WINOGRAD_LANES;
  for (; group < end; group++) {
    const int64_t first = group * WINOGRAD_GROUP, left = plan->out_blocks * WINOGRAD_LANES - first;
    const int64_t lanes = left < WINOGRAD_GROUP ? left : WINOGRAD_GROUP;
    const float *weights = launch->weights + first * channels * points;
    for (int64_t p = 0; p < points; p++)
      winograd_product(v + p * plan->v_point, tiles, plan->in_blocks, weights + p * channels * lanes, lanes,
                       m + p * plan->m_point);
    winograd_output(plan, m, from, rows, group, launch->bias, launch->adds, launch->dst);
  }
}

static float *scratch_of(const winograd_launch *launch, uint32_t part) {
  return (float *)(void *)(launch->workspace + launch->plan->shared_bytes + part * launch->plan->part_bytes);
}

/* ---------------------------------------------------------------- parts: i, i + n, ... of a call */

static void run_rows(void *arg, uint32_t i, uint32_t n) {
  const winograd_launch *launch = arg;
  const winograd_plan *plan = launch->plan;
  const int64_t all = plan->images * plan->tiles_y;
  for (uint32_t part = i; part < plan->parts; part += n) {
    const int64_t end = all * (part + 1) / plan->parts;
    float *v = scratch_of(launch, part), *m = v + plan->kind.tile * plan->kind.tile * plan->v_point;
    for (int64_t from = all * part / plan->parts; from < end; from += plan->chunk_rows) {
      const int64_t rows = end - from < plan->chunk_rows ? end - from : plan->chunk_rows;
      transform(launch, from, rows, 0, plan->in_blocks, v);
      multiply(launch, from, rows, 0, plan->groups, v, m);
    }
  }
}

static void run_blocks(void *arg, uint32_t i, uint32_t n) {
  const winograd_launch *launch = arg;
  const winograd_plan *plan = launch->plan;
  for (uint32_t part = i; part < plan->parts; part += n)
    transform(launch, 0, plan->images * plan->tiles_y, plan->in_blocks * part / plan->parts,
              plan->in_blocks * (part + 1) / plan->parts, (float *)(void *)launch->workspace);
}

static void run_groups(void *arg, uint32_t i, uint32_t n) {
  const winograd_launch *launch = arg;
  const winograd_plan *plan = launch->plan;
  for (uint32_t part = i; part < plan->parts; part += n)
    multiply(launch, 0, plan->images * plan->tiles_y, plan->groups * part / plan->parts,
             plan->groups * (part + 1) / plan->parts, (const float *)(const void *)launch->workspace,
             scratch_of(launch, part));
}

static void run_all(winograd_launch *launch, heddle_task_fn task) {
  const heddle_host *host = launch->host;
  if (launch->plan->parts > 1) host->run_parallel(host->ctx, launch->plan->parts, 0, task, launch, NULL);
  else task(launch, 0, 1);
}

void winograd_run(winograd_launch *launch) {
  if (launch->plan->by_groups) run_all(launch, run_blocks);
  run_all(launch, launch->plan->by_groups ? run_groups : run_rows);
}
