/* executor/budget.h: how much memory a plan takes of each device, exact to the byte, and plans that keep limits on it;
 * docs/memory.md. executor/budget/ reads the limits and searches for plans that take less. */
#ifndef HEDDLE_EXECUTOR_BUDGET_H
#define HEDDLE_EXECUTOR_BUDGET_H

#include "core/config.h"
#include "executor/model.h"

/* Bytes that a device's memory of a kind (HEDDLE_MEMORY_*) gives to a program and one executor of it: what the executor
 * allocates and the constants, unless a constant is used where it lies. Reads the plan only; opens nothing. */
uint64_t heddle__plan_bytes(const heddle__plan *plan, uint32_t device, uint32_t kind);

/* Those that count against a limit: of the kinds DEVICE and UNIFIED. */
uint64_t heddle__plan_counted(const heddle__plan *plan, uint32_t device);

/* Reads limits ("sim:0=64MiB,opencl:0=2GiB") into limits, one per device of the model. list NULL: the settings under
 * "limit.memory." hold them. Of a list in a call (strict) every device must be among the model's; others pass over
 * devices that are not. HEDDLE_EINVAL, HEDDLE_ENODEV. */
heddle_status heddle__limits_read(const heddle_model *m, const char *list, const char *from, bool strict,
                                  uint64_t *limits, heddle_error *err);

/* heddle__plan_make, and where the plan is over a limit, again and again with less. HEDDLE_ELIMIT where no plan fits:
 * by how much, what takes it, and which rules would make it fit. Any thread. */
heddle_status heddle__budget_fit(const heddle__request *request, heddle__plan **out, heddle_error *err);

/* Fills m->limits from a list, else from the settings; part of a model's creation, after its devices are known. */
heddle_status heddle__budget_read(heddle_model *m, const char *list, heddle_error *err);

/* heddle__plan_make within the model's limits. */
heddle_status heddle__budget_plan(const heddle_model *m, const heddle__request *request, heddle__plan **out,
                                  heddle_error *err);

#endif
