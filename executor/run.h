/* executor/run.h: the loop that carries a bound program through one run.
 * It allocates nothing, formats nothing and takes no lock while all goes well; the only sleep is on the waker. */
#ifndef HEDDLE_EXECUTOR_RUN_H
#define HEDDLE_EXECUTOR_RUN_H

#include "executor/bind.h"

struct heddle__profile;

/* How far to drive: to the end; only to submit what is ready now; or until the run was handed on (chain.h). Both latter
 * return HEDDLE__RUN_LATE. */
typedef enum heddle__helm_aim { HEDDLE__AIM_END, HEDDLE__AIM_SUBMIT, HEDDLE__AIM_HAND } heddle__helm_aim;

/* What the driving thread waits on. */
typedef struct heddle__helm {
  heddle__waker *waker;     /* of the bound program's fences */
  atomic_uint *attention;   /* not 0: ask heed */
  bool (*heed)(void *user); /* whether to stop here and return HEDDLE__RUN_STOPPED */
  void *user;
  uint64_t deadline_ns;            /* monotonic; HEDDLE_FOREVER: none */
  struct heddle__profile *profile; /* times each step; NULL: nothing is timed */
  atomic_uint *step;               /* where the host's step is noted that is begun; NULL: nowhere */
  heddle__helm_aim aim;
} heddle__helm;

typedef enum heddle__run_end {
  HEDDLE__RUN_DONE,    /* all steps are through, with HEDDLE_OK */
  HEDDLE__RUN_LATE,    /* the deadline passed; go on by calling again */
  HEDDLE__RUN_STOPPED, /* heed asked for it; likewise */
  HEDDLE__RUN_FAILED   /* status and words are set; call heddle__run_drain */
} heddle__run_end;

/* Puts the counters back to the start of a run. All work of the one before is through. */
void heddle__run_reset(heddle__bound *b);

/* Goes on with a run until it ends. One thread at a time, not always the same. */
heddle__run_end heddle__run_drive(heddle__bound *b, const heddle__helm *helm, heddle_status *status, heddle_error *err);

/* After the last step: fence values of this run become the past. */
void heddle__run_finish(heddle__bound *b);

/* Waits, at most timeout_ns in all, until nothing of the run is on a device any more; failures are swallowed. false:
 * some stream did not end, and memory must be kept. */
bool heddle__run_drain(heddle__bound *b, uint64_t timeout_ns, char *what, size_t size);

/* Which step a late run waits for, as text and by number; HEDDLE__NONE: none. */
uint32_t heddle__run_say(const heddle__bound *b, char *out, size_t size);

#endif
