/* executor/budget/net.h: a plan as the search for an order sees it: tasks (operators with a step), what must come before
 * each, and the values that take bytes of a device with a limit while they are needed. Private to executor/budget/. */
#ifndef HEDDLE_EXECUTOR_BUDGET_NET_H
#define HEDDLE_EXECUTOR_BUDGET_NET_H

#include "core/registry.h"
#include "executor/budget.h"

/* A part of net.lists. */
typedef struct budget_list {
  uint32_t first, count;
} budget_list;

typedef struct budget_task {
  uint32_t region;
  uint32_t slot;      /* of its device; HEDDLE__NONE where that has no limit */
  uint64_t workspace; /* bytes of the slot while it runs */
  budget_list before; /* tasks that must have run */
  budget_list after;  /* tasks that it must have run for */
  budget_list reads;  /* values */
  budget_list writes; /* values */
  budget_list heirs;  /* pairs: a value that it reads, and one that may be written over that */
} budget_task;

/* It takes its bytes from its maker's run, or where no task makes it from the run of its first user, to that of its
 * last: what leaves a device is copied at once. */
typedef struct budget_value {
  uint64_t bytes;
  uint32_t slot;
  uint32_t maker;   /* task, or HEDDLE__NONE: it is brought from elsewhere */
  budget_list uses; /* tasks */
} budget_value;

typedef struct budget_net {
  budget_task *tasks; /* in the order of the plan's list */
  budget_value *values;
  uint32_t *lists;
  uint32_t n_tasks, n_values, n_slots, n_lists, cap_lists;
  uint32_t *device; /* per slot: of the plan */
  uint64_t *room;   /* per slot: what the limit leaves each run in flight beside constants, inputs and outputs */
} budget_net;

/* Reads a finished plan. HEDDLE_ENOMEM leaves what budget_net_finish frees. */
heddle_status budget_net_init(budget_net *net, const heddle__plan *plan, heddle_error *err);
void budget_net_finish(budget_net *net);

/* search.c: an order of the tasks whose most bytes at a time go over the rooms as little as the search finds; order gets
 * n_tasks numbers, and *better is false where it found no better one than the plan's own. thorough: looks longer
 * for one that goes over none. Reads no clock: the same net gives the same order. */
heddle_status budget_search(const budget_net *net, bool thorough, uint32_t *order, bool *better, heddle_error *err);

/* suggest.c: rules that, added to the request's, make a plan fit, as text ("--place 'a=cpu'"): where moving a few nodes
 * is enough, or all of them; how many, where there is no room for their names; over is the smallest plan that was found
 * without them. What it suggests it has planned. words is empty where nothing was found. */
heddle_status budget_suggest(const heddle__request *request, const heddle__plan *over, char *words, size_t size,
                             heddle_error *err);

/* fit.c: the smallest plan of a request that is found; *over is by how many bytes it is over its limits. */
heddle_status budget_fit(const heddle__request *request, bool thorough, heddle__plan **out, uint64_t *over,
                         heddle_error *err);

/* peak.c: where a device's memory is fullest, in the order of the list of steps. */
typedef struct budget_peak {
  uint32_t step;
  bool *live; /* per instance: it takes bytes of the device's there; constants, inputs and outputs always do */
} budget_peak;

heddle_status budget_peak_init(budget_peak *peak, const heddle__plan *plan, uint32_t device, heddle_error *err);

static inline uint64_t budget_excess(const heddle__plan *plan, uint32_t device) {
  uint64_t limit = plan->req.limits[device], bytes = limit != 0 ? heddle__plan_counted(plan, device) : 0;
  return bytes > limit ? bytes - limit : 0;
}

/* Whether an instance counts against the limit of a device. A constant that is used where it lies does not. */
static inline bool budget_counts(const heddle__plan *plan, const heddle__instance *it, uint32_t device) {
  const heddle__space *space = &plan->spaces[it->space];
  return space->device == device && space->kind != HEDDLE_MEMORY_PINNED &&
         (it->role != HEDDLE__ROLE_CONSTANT || !heddle__constant_lent(plan, it));
}

static inline void budget_log(const heddle__log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void budget_log(const heddle__log *log, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vlogf(log, HEDDLE_LOG_INFO, "memory", format, args);
  va_end(args);
}

#endif
