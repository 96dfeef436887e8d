/* tools/profile.h: runs whose steps are timed, for heddle run --profile and --profile-json: what they took, step by step,
 * operator by operator, and the critical path. */
#ifndef HEDDLE_TOOLS_PROFILE_H
#define HEDDLE_TOOLS_PROFILE_H

#include "critical_path.h"
#include "session.h"

enum { PROFILE_RUNS = 5, PROFILE_MOST_RUNS = 1000 };

/* A step of the plan. Texts are borrowed from the executor and hold until its next profile. */
typedef struct profile_step {
  const char *name, *op, *device;
  uint64_t bytes;     /* that a copy moves; 0 of others */
  uint64_t median_ns; /* of what it took in each of the runs */
} profile_step;

/* Steps of one operator on one device. */
typedef struct profile_operator {
  const char *op, *device;
  size_t count;
  uint64_t total_ns; /* of their medians */
} profile_operator;

typedef struct profile {
  uint64_t n_runs;
  uint64_t *walls; /* a run: from the first start to the last end */
  uint64_t *plain; /* as many runs that were not timed inside, by the host's clock around the call */
  uint64_t plain_median;
  uint64_t replays; /* recordings that one of those runs replays */
  uint64_t shown;   /* the run whose wall is the median: the one that path and starts are of */

  size_t n_steps; /* of the plan, those without times among them */
  size_t n_ran;
  profile_step *steps; /* n_steps */
  path_step *times;    /* n_steps: of the shown run */
  uint32_t *order;     /* n_ran, by start */
  profile_operator *operators;
  size_t n_operators; /* by total, the longest first */
  uint64_t total_ns;  /* of all of them */
  path_part *path;
  bool *reads; /* a part of the path: the step reads what the one before it wrote */
  size_t n_path;

  /* what the above is made of */
  path_wait *waits;
  uint64_t *starts, *ends; /* n_runs rows of n_steps; of a step that has no times start is UINT64_MAX */
} profile;

/* Runs n_runs times with times and, alternating, as often without. out is finished with profile_finish in any case.
 * Gives an exit status, and says what went wrong. */
int profile_take(session *s, uint64_t n_runs, profile *out);
void profile_finish(profile *p);

/* tools/profile_report.c: for people; and as JSON into a file (docs/cli.md has the keys). */
void profile_print(const profile *p);
int profile_save(const profile *p, const char *model, const char *path);

#endif
