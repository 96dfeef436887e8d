/* core/pool.h: the one thread pool: run_parallel for plugins and, later, ParallelLaunch for compiled libraries.
 * Workers start on first use, block all signals, look out for the next job for a short time and then sleep. */
#ifndef HEDDLE_CORE_POOL_H
#define HEDDLE_CORE_POOL_H

#include "heddle/status.h"

typedef struct heddle__pool heddle__pool;

/* threads: how many run at most, the caller included; at least 1. spin_ns: for how long a worker without a job, and a
 * caller whose last tasks are with the workers, keep a core before they sleep; 0: not at all. */
heddle_status heddle__pool_create(uint32_t threads, uint64_t spin_ns, heddle__pool **out, heddle_error *err);
void heddle__pool_release(heddle__pool *pool); /* joins; takes NULL */
uint32_t heddle__pool_threads(const heddle__pool *pool);

/* The contract of heddle_host.run_parallel. */
void heddle__pool_run(heddle__pool *pool, uint32_t n, uint32_t flags, heddle_task_fn task, void *arg,
                      uint32_t *granted);

#endif
