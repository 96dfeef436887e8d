/* executor/budget.h: how much memory a plan takes of each device, exact to the byte, and plans that keep limits on it;
 * docs/memory.md. The search for plans that take less is done by libheddle_budget.so (executor/budget/), of libheddle's
 * version, which is opened for models that have a limit; this is also what crosses between the two. */
#ifndef HEDDLE_EXECUTOR_BUDGET_H
#define HEDDLE_EXECUTOR_BUDGET_H

#include "core/config.h"
#include "executor/model.h"

/* Bytes that a device's memory of a kind (HEDDLE_MEMORY_*) gives to a program and one executor of it: what the executor
 * allocates and the constants, unless a constant is used where it lies. Reads the plan only; opens nothing. */
uint64_t heddle__plan_bytes(const heddle__plan *plan, uint32_t device, uint32_t kind);

/* Those that count against a limit: of the kinds DEVICE and UNIFIED. */
uint64_t heddle__plan_counted(const heddle__plan *plan, uint32_t device);

/* What the library uses of libheddle's. */
typedef struct heddle__budget_host {
  void *(*alloc)(size_t count, size_t size);
  void *(*grow)(void *old, size_t old_count, size_t new_count, size_t size);
  void (*free)(void *p);
  void (*vlogf)(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args);
  heddle_status (*find_device)(heddle_context *ctx, const char *name, heddle_device **out, heddle_error *err);
  heddle_status (*each)(const heddle__config *config, const char *prefix, heddle__config_fn each, void *user,
                        heddle_error *err);
  heddle_status (*make)(const heddle__request *request, heddle__plan **out, heddle_error *err);
  void (*plan_free)(heddle__plan *plan);
  uint64_t (*counted)(const heddle__plan *plan, uint32_t device);
  bool (*lent)(const heddle__plan *plan, const heddle__instance *constant);
  char *(*format)(heddle__plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));
} heddle__budget_host;

/* libheddle looks up heddle_budget_entry (core/beside.h), which takes nothing. */
typedef struct heddle__budget_table {
  const char *version; /* heddle_version() of the library */

  /* Reads limits ("sim:0=64MiB,opencl:0=2GiB") into limits, one per device of the model. list NULL: the settings under
   * "limit.memory." hold them. Of a list in a call (strict) every device must be among the model's; others pass over
   * devices that are not. HEDDLE_EINVAL, HEDDLE_ENODEV. */
  heddle_status (*read)(const heddle__budget_host *host, const heddle_model *m, const char *list, const char *from,
                        bool strict, uint64_t *limits, heddle_error *err);

  /* heddle__plan_make, and where the plan is over a limit, again and again with less. HEDDLE_ELIMIT where no plan fits:
   * by how much, what takes it, and which rules would make it fit. Any thread. */
  heddle_status (*plan)(const heddle__budget_host *host, const heddle__request *request, heddle__plan **out,
                        heddle_error *err);
} heddle__budget_table;

/* Fills m->limits from a list, else from the settings; part of a model's creation, after its devices are known. */
heddle_status heddle__budget_read(heddle_model *m, const char *list, heddle_error *err);

/* heddle__plan_make within the model's limits. */
heddle_status heddle__budget_plan(const heddle_model *m, const heddle__request *request, heddle__plan **out,
                                  heddle_error *err);

#endif
