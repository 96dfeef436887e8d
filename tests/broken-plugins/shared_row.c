/* All launches of the process add up in one row.
 * caught by: numerics/threads
 * and by: numerics/%
 * says: expected */
#include "base.h"

static float row[4096];

static heddle_status run_launch(heddle_pstream *stream, base_task *task, heddle_error *err) {
  const heddle_plaunch *l = task->launch;
  if (l->op->kind != BASE_MATMUL || l->n > sizeof row / sizeof row[0]) return base_run_launch(stream, task, err);
  for (uint64_t i = 0; i < l->m; i++) {
    for (uint64_t j = 0; j < l->n; j++) row[j] = 0;
    for (uint64_t k = 0; k < l->k; k++)
      for (uint64_t j = 0; j < l->n; j++) row[j] += l->a[i * l->k + k] * l->b[k * l->n + j];
    if (l->n > 0) memcpy(l->out + i * l->n, row, l->n * sizeof row[0]);
  }
  return HEDDLE_OK;
}

static heddle_status run(heddle_plaunch *launch, heddle_error *err) {
  base_task task = {.run = run_launch, .launch = launch};
  return base_push(launch->stream, &task, err);
}

#define base_op_run run
#include "tables.h"
