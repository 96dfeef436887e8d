/* executor/drive.h: who drives a run: the thread that called run or wait, or the executor's own thread.
 * A run has one driver, held by an atomic; wait takes it over from the executor's thread between two steps. */
#ifndef HEDDLE_EXECUTOR_DRIVE_H
#define HEDDLE_EXECUTOR_DRIVE_H

#include <pthread.h>

#include "executor/run.h"

#define HEDDLE__DRAIN_NS UINT64_C(2000000000) /* for what a failed run left on devices to end */

/* A waiting thread; on its stack, in the list of the drive. */
typedef struct heddle__waiter {
  struct heddle__waiter *next;
  uint64_t run;
  bool done;
  heddle_status status;
  heddle_error *err;
} heddle__waiter;

/* Called with the end of a run by its driver, before any other thread sees it: hung is where a stream did not drain
 * after a failure, or NULL. Gives the run's status, which it may change together with the words. */
typedef heddle_status (*heddle__ended_fn)(void *user, heddle_status status, const char *hung, heddle_error *words);

/* Asked by its driver when a run has failed: HEDDLE_OK where it shall begin again, with what self and profile are then;
 * else its end, with the words. What was carried may be gone: then self is NULL. */
typedef heddle_status (*heddle__again_fn)(void *user, heddle_status status, heddle_error *words);

/* What a drive carries through a run: a bound program (plain.c), or a model in stages (stages.c). self is given with it. */
typedef struct heddle__work {
  heddle__run_end (*drive)(void *self, const heddle__helm *helm, heddle_status *status, heddle_error *err);
  /* After a failure: waits until nothing of the run is on a device, at most HEDDLE__DRAIN_NS. false: see run.h. */
  bool (*drain)(void *self, heddle__waker *waker, char *what, size_t size);
  /* Which step a late run waits for, as text and by number; HEDDLE__NONE: none. program: which it is of, borrowed. */
  uint32_t (*say)(const void *self, char *what, size_t size);
  heddle__program *(*program)(const void *self); /* NULL where there are several */
} heddle__work;

typedef struct heddle__drive {
  heddle__waker waker;    /* what completions wake */
  atomic_int pending;     /* 1 between start and end of a run */
  atomic_int driven;      /* 1 while a thread drives */
  atomic_uint attention;  /* not 0: the driver looks at cancel and wanted */
  atomic_uint watchers;   /* threads that must learn of the end, or of a free helm */
  atomic_uint wanted;     /* threads that would drive; the executor's own gives way to them */
  atomic_ullong run;      /* number of the present or last run, from 1 */
  atomic_ullong cancel;   /* number of the run to be cancelled */
  atomic_int result;      /* of the last run */
  atomic_bool own_drives; /* the driver is the executor's thread */
  atomic_uint step;       /* which its thread is at, of a run with long steps; HEDDLE__NONE */
  atomic_bool lengthy;    /* the run has steps that may hold up who drives it */
  bool ready;             /* waker, lock and cond are there */
  pthread_mutex_t lock;   /* guards what follows; no plugin is called with it held */
  pthread_cond_t cond;
  heddle__waiter *waiters;
  heddle_error error;     /* of the last run that failed */
  heddle__program *shown; /* what its thread drives and step is of; retained, or NULL */
  bool has_thread, quit;
  pthread_t thread;
  /* the driver's */
  const heddle__work *work;        /* of the pending run */
  void *self;                      /* of work; NULL: a failure has left nothing of it */
  struct heddle__profile *profile; /* of the pending run, or NULL */
  heddle_error words;              /* what plugins write to */
  heddle__ended_fn ended;
  heddle__again_fn again; /* NULL: a run that failed has ended */
  void *user;
} heddle__drive;

heddle_status heddle__drive_init(heddle__drive *d, heddle__ended_fn ended, void *user, heddle_error *err);
/* No run is pending and no thread waits: joins the thread. Then the fences that wake it are freed, then it is
 * finished. */
void heddle__drive_stop(heddle__drive *d);
void heddle__drive_finish(heddle__drive *d);

/* Begins a run of work, which is at its start; the caller knows that none is pending. lengthy: it has steps that may hold up who drives it.
 * profile may be NULL. */
void heddle__drive_begin(heddle__drive *d, const heddle__work *work, void *self, bool lengthy,
                         struct heddle__profile *profile);

/* Drives the pending run, or waits for who does, at most until deadline_ns; may be late by a step. HEDDLE_ETIMEOUT leaves it pending; without a pending run, the last one's result. Any thread. */
heddle_status heddle__drive_wait(heddle__drive *d, uint64_t deadline_ns, heddle_error *err);

/* The same, and not late: where the run has long steps and there is a deadline, the executor's thread drives. */
heddle_status heddle__drive_attend(heddle__drive *d, uint64_t deadline_ns, heddle_error *err);

/* Drives the pending run until all of it is submitted, and no further; to_hand false: as far as that can be done without a
 * wait and work of the host's. Its end is reported by wait. */
void heddle__drive_hand(heddle__drive *d, bool to_hand);

/* Leaves the pending run to the executor's thread, which is started where there is none. */
heddle_status heddle__drive_leave(heddle__drive *d, heddle_error *err);

/* Ends the pending run with HEDDLE_ECANCELED, as soon as its driver sees it; where no thread drives, here. Any
 * thread. */
void heddle__drive_cancel(heddle__drive *d);

static inline bool heddle__drive_pending(heddle__drive *d) {
  return atomic_load_explicit(&d->pending, memory_order_acquire) != 0;
}

#endif
