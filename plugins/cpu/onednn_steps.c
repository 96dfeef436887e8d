/* Ladders planned, made, bound and run. */
#include "onednn_steps.h"

#include "cpu.h"
#include "onednn_run.h"
#include "onednn_sgemm.h"

/* ---------------------------------------------------------------- plans */

void onednn_ladder_drop(onednn_ladder *ladder) {
  for (uint32_t i = 0; i < ladder->n_rungs; i++) dnnl_primitive_desc_destroy(ladder->rungs[i]);
  ladder->n_rungs = 0;
}

static bool is_plain_loop(const_dnnl_primitive_desc_t pd) {
  const char *name = "ref";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return strstr(name, "ref") != NULL;
}

/* The value that an argument is, of a region in the shapes that it has now. */
static const heddle_pvalue *value_of(const heddle_pregion *region, const onednn_arg *arg) {
  return region_value(region, arg->output ? region->outputs[arg->slot] : region->inputs[arg->slot]);
}

static int64_t last_of(const heddle_pvalue *value) {
  return value->ndim > 0 ? value->shape[value->ndim - 1] : 0;
}

/* Reads what belongs to a row of each operand. false: the rows of one do not lie one after another, or not all of its
 * elements are of rows. */
static bool read_operands(const onednn_plan *plan, const onednn_chain *chain, const void *setup, onednn_cut cut,
                          int64_t rows, onednn_rows_of out[ONEDNN_ARGS], dnnl_status_t *status) {
  uint64_t at[2][ONEDNN_ARGS] = {{0}};
  for (int64_t i = 0; i < 2; i++) {
    const onednn_range range = {.from = i, .count = 1};
    int64_t unused[ONEDNN_SIGNATURE];
    *status = cut(plan, chain, setup, &range, unused, at[i], NULL);
    if (*status != dnnl_success) return false;
  }
  for (uint32_t i = 0; i < plan->n_args; i++) {
    const heddle_pvalue *value = value_of(plan->region, &plan->args[i]);
    onednn_rows_of *o = &out[i];
    *o = (onednn_rows_of){.row_bytes = at[1][i] - at[0][i]};
    if (!region_value_count(value, &o->count)) return false;
    if (o->row_bytes != 0) {
      const uint64_t row = o->count / (uint64_t)rows;
      if (o->count % (uint64_t)rows != 0 || (o->row_bytes != row * sizeof(float) && o->row_bytes != row * 2))
        return false;
      o->count = row;
    }
    o->last = o->count > 1 ? last_of(value) : 0;
  }
  return true;
}

dnnl_status_t onednn_ladder_plan(onednn_plan *plan, const onednn_chain *chain, const void *setup, onednn_cut cut,
                                 int64_t rows) {
  onednn_ladder *l = &plan->ladder;
  dnnl_status_t s = dnnl_success;
  if (rows < 2 || (plan->region->flags & HEDDLE_REGION_OPEN) == 0) return s;
  l->most = rows;
  plan->resizes = read_operands(plan, chain, setup, cut, rows, l->operands, &s);
  if (!plan->resizes || !plan->wants_ladder) return s == dnnl_out_of_memory ? s : dnnl_success;
  static const int64_t sizes[ONEDNN_RUNGS] = {1, 4, 16, 32, 64, 128};
  for (uint32_t i = 0; i < ONEDNN_RUNGS && sizes[i] <= rows && s == dnnl_success; i++) {
    const int64_t n = sizes[i];
    const onednn_range range = {.count = n};
    int64_t unused[ONEDNN_SIGNATURE];
    uint64_t offsets[ONEDNN_ARGS] = {0};
    dnnl_primitive_desc_t pd = NULL;
    s = cut(plan, chain, setup, &range, unused, offsets, &pd);
    if (s != dnnl_success) break;
    l->rows[l->n_rungs] = n;
    l->rungs[l->n_rungs++] = pd;
    if (is_plain_loop(pd)) s = dnnl_unimplemented;
  }
  if (s != dnnl_success) onednn_ladder_drop(l);
  return s == dnnl_out_of_memory ? s : dnnl_success;
}

/* ---------------------------------------------------------------- operators */

struct onednn_steps {
  onednn *self;
  onednn_ladder ladder;
  dnnl_primitive_t primitives[ONEDNN_RUNGS]; /* NULL: products has it */
  onednn_sgemm products[ONEDNN_RUNGS];
  uint64_t each; /* bytes of scratch memory of a task */
  uint32_t n_args, tasks;
  onednn_arg args[ONEDNN_ARGS];
};

static uint64_t scratch_of(const_dnnl_primitive_desc_t pd) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SCRATCHPAD);
  return md != NULL ? dnnl_memory_desc_get_size(md) : 0;
}

heddle_status onednn_steps_make(onednn *self, const onednn_plan *plan, uint64_t each, onednn_steps **out,
                                heddle_error *err) {
  const onednn_ladder *from = &plan->ladder;
  for (uint32_t i = 0; i < from->n_rungs; i++)
    if (scratch_of(from->rungs[i]) > each) return HEDDLE_OK;
  onednn_steps *steps = self->host->alloc(self->host->ctx, sizeof *steps, _Alignof(onednn_steps));
  if (steps == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *steps = (onednn_steps){.self = self, .ladder = *from, .each = each, .n_args = plan->n_args};
  steps->ladder.n_rungs = 0;
  steps->tasks = plan->n_parts > 0 ? onednn_tasks(plan->n_parts) : 1;
  if (steps->tasks > plan->threads) steps->tasks = plan->threads > 0 ? plan->threads : 1;
  memcpy(steps->args, plan->args, sizeof steps->args);
  const int before = onednn_threads_enter(self);
  dnnl_status_t s = dnnl_success;
  for (uint32_t i = 0; i < from->n_rungs && s == dnnl_success; i++) {
    s = dnnl_primitive_desc_clone(&steps->ladder.rungs[i], from->rungs[i]);
    if (s != dnnl_success) break;
    steps->ladder.n_rungs = i + 1;
    s = onednn_sgemm_or_primitive(self, steps->ladder.rungs[i], &steps->products[i], &steps->primitives[i]);
  }
  onednn_threads_leave(self, before);
  if (s == dnnl_success) *out = steps;
  else onednn_steps_free(steps);
  return onednn_fail(s, "making primitives for numbers of rows", err);
}

void onednn_steps_free(onednn_steps *steps) {
  if (steps == NULL) return;
  for (uint32_t i = 0; i < steps->ladder.n_rungs; i++)
    if (steps->primitives[i] != NULL) dnnl_primitive_destroy(steps->primitives[i]);
  onednn_ladder_drop(&steps->ladder);
  steps->self->host->free(steps->self->host->ctx, steps);
}

/* ---------------------------------------------------------------- launches */

/* A thread's own; args of each rung: those of the op, then the scratch memory where there is any. */
typedef struct task {
  dnnl_stream_t stream;
  dnnl_status_t status;
  bool skipped;
  dnnl_exec_arg_t args[ONEDNN_RUNGS][ONEDNN_ARGS + 1];
  int n_args[ONEDNN_RUNGS];
} task;

struct onednn_steps_launch {
  const onednn_steps *steps;
  int64_t rows;
  char *bases[ONEDNN_ARGS];
  task tasks[];
};

void onednn_steps_launch_free(onednn_steps_launch *launch) {
  if (launch == NULL) return;
  const onednn_steps *steps = launch->steps;
  for (uint32_t t = 0; t < steps->tasks; t++) {
    task *own = &launch->tasks[t];
    for (uint32_t i = 0; i < steps->ladder.n_rungs; i++)
      for (int k = 0; k < own->n_args[i]; k++) dnnl_memory_destroy(own->args[i][k].memory);
    if (own->stream != NULL) dnnl_stream_destroy(own->stream);
  }
  steps->self->host->free(steps->self->host->ctx, launch);
}

static dnnl_status_t add_memory(const onednn_steps *steps, task *own, uint32_t rung, int arg, void *at) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(steps->ladder.rungs[rung], dnnl_query_exec_arg_md, arg);
  dnnl_exec_arg_t *to = &own->args[rung][own->n_args[rung]];
  const dnnl_status_t s = dnnl_memory_create(&to->memory, md, steps->self->engine, at);
  if (s != dnnl_success) return s;
  to->arg = arg;
  own->n_args[rung]++;
  return s;
}

heddle_status onednn_steps_bind(const onednn_steps *steps, void *workspace, onednn_steps_launch **out,
                                heddle_error *err) {
  const heddle_host *host = steps->self->host;
  const size_t bytes = sizeof(onednn_steps_launch) + steps->tasks * sizeof(task);
  onednn_steps_launch *launch = host->alloc(host->ctx, bytes, _Alignof(onednn_steps_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, bytes);
  launch->steps = steps;
  dnnl_status_t s = dnnl_success;
  for (uint32_t t = 0; t < steps->tasks && s == dnnl_success; t++) {
    task *own = &launch->tasks[t];
    s = dnnl_stream_create(&own->stream, steps->self->engine, dnnl_stream_default_flags);
    for (uint32_t i = 0; i < steps->ladder.n_rungs && s == dnnl_success; i++) {
      for (uint32_t k = 0; k < steps->n_args && s == dnnl_success; k++)
        s = add_memory(steps, own, i, steps->args[k].arg, NULL);
      if (s == dnnl_success && scratch_of(steps->ladder.rungs[i]) > 0)
        s = add_memory(steps, own, i, DNNL_ARG_SCRATCHPAD, (char *)workspace + t * steps->each);
    }
  }
  if (s == dnnl_success) *out = launch;
  else onednn_steps_launch_free(launch);
  return onednn_fail(s, "binding operands", err);
}

/* The number of rows that a region has now; 0 where its shapes do not belong to the ladder. */
static int64_t count_rows(const onednn_steps *steps, const heddle_pregion *region) {
  const onednn_ladder *l = &steps->ladder;
  uint64_t rows = 0, count = 0;
  for (uint32_t k = 0; k < steps->n_args; k++)
    if (steps->args[k].arg == DNNL_ARG_DST && region_value_count(value_of(region, &steps->args[k]), &count))
      rows = count / l->operands[k].count;
  for (uint32_t k = 0; k < steps->n_args; k++) {
    const onednn_rows_of *o = &l->operands[k];
    const heddle_pvalue *value = value_of(region, &steps->args[k]);
    if (!region_value_count(value, &count) || count != (o->row_bytes != 0 ? rows * o->count : o->count) ||
        (o->last != 0 && last_of(value) != o->last))
      return 0;
  }
  return rows <= (uint64_t)l->most ? (int64_t)rows : 0;
}

heddle_status onednn_steps_resize(onednn_steps_launch *launch, const heddle_pregion *region, void *const *inputs,
                                  void *const *outputs, heddle_error *err) {
  const onednn_steps *steps = launch->steps;
  const onednn_ladder *l = &steps->ladder;
  const int64_t rows = count_rows(steps, region);
  if (rows < 1) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu: these shapes differ in more than the number of rows");
  launch->rows = rows;
  for (uint32_t k = 0; k < steps->n_args; k++) {
    const onednn_arg *a = &steps->args[k];
    char *base = a->output ? outputs[a->slot] : inputs[a->slot];
    const bool is_set = base == launch->bases[k];
    launch->bases[k] = base;
    if (l->operands[k].row_bytes != 0 || is_set) continue; /* those of rows are set for each step */
    for (uint32_t t = 0; t < steps->tasks; t++)
      for (uint32_t i = 0; i < l->n_rungs; i++)
        if (dnnl_memory_set_data_handle(launch->tasks[t].args[i][k].memory, launch->bases[k]) != dnnl_success)
          return p_fail(err, HEDDLE_EFAILED, 0, "cpu: oneDNN does not take an address");
  }
  return HEDDLE_OK;
}

static dnnl_status_t step(const onednn_steps_launch *launch, task *own, uint32_t rung, int64_t row) {
  const onednn_steps *steps = launch->steps;
  dnnl_status_t s = dnnl_success;
  for (uint32_t k = 0; k < steps->n_args && s == dnnl_success; k++)
    if (steps->ladder.operands[k].row_bytes != 0)
      s = dnnl_memory_set_data_handle(own->args[rung][k].memory,
                                      launch->bases[k] + (uint64_t)row * steps->ladder.operands[k].row_bytes);
  if (s != dnnl_success) return s;
  return onednn_sgemm_execute(&steps->products[rung], steps->primitives[rung], own->stream, own->n_args[rung],
                              own->args[rung]);
}

/* The rung for what is left of the rows [from, to) behind at: the largest that is not too large; or, as the last, one that
 * begins some rows earlier, where computing those again is cheaper than several small steps. */
static uint32_t next_rung(const onednn_ladder *l, int64_t from, int64_t to, int64_t at, int64_t *row) {
  enum { SMALL = 4 };
  const int64_t left = to - at;
  uint32_t i = 0;
  while (i + 1 < l->n_rungs && l->rows[i + 1] <= left) i++;
  *row = at;
  if (l->rows[i] == left || i + 1 == l->n_rungs) return i;
  const int64_t more = l->rows[i + 1];
  if (more > to - from || (more > SMALL && (more - left) * SMALL > left)) return i;
  *row = to - more;
  return i + 1;
}

/* Task i of n: rows that no other task writes. */
static void run_task(void *arg, uint32_t i, uint32_t n) {
  enum { GRANULE = 16 };
  onednn_steps_launch *launch = arg;
  const onednn *self = launch->steps->self;
  task *own = &launch->tasks[i];
  const int64_t units = (launch->rows + GRANULE - 1) / GRANULE;
  const int64_t from = units * i / n * GRANULE, end = units * (i + 1) / n * GRANULE;
  const int64_t to = end < launch->rows ? end : launch->rows;
  const int before = onednn_threads_enter(self);
  for (int64_t at = from; at < to && own->status == dnnl_success && !own->skipped;) {
    int64_t row;
    const uint32_t rung = next_rung(&launch->steps->ladder, from, to, at, &row);
    own->skipped = at > from && onednn_stops(self);
    if (own->skipped) break;
    own->status = step(launch, own, rung, row);
    at = row + launch->steps->ladder.rows[rung];
  }
  onednn_threads_leave(self, before);
}

heddle_status onednn_steps_run(onednn_steps_launch *launch, heddle_error *err) {
  const onednn_steps *steps = launch->steps;
  const heddle_host *host = steps->self->host;
  for (uint32_t i = 0; i < steps->tasks; i++) {
    launch->tasks[i].status = dnnl_success;
    launch->tasks[i].skipped = false;
  }
  if (steps->tasks > 1) host->run_parallel(host->ctx, steps->tasks, 0, run_task, launch, NULL);
  else run_task(launch, 0, 1);
  for (uint32_t i = 0; i < steps->tasks; i++) {
    if (launch->tasks[i].status != dnnl_success)
      return onednn_fail(launch->tasks[i].status, "running a primitive", err);
    if (launch->tasks[i].skipped) return onednn_stopped(steps->self, err);
  }
  return HEDDLE_OK;
}
