/* tools/critical_path.h: the chain of steps that the length of a run is made of, and what lies between them.
 * Knows times and order alone, so that tests can give it runs of their own. */
#ifndef HEDDLE_TOOLS_CRITICAL_PATH_H
#define HEDDLE_TOOLS_CRITICAL_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a step comes after another: it is the next of its stream, or waits for it; BEGIN: it comes after none. */
typedef enum path_by { PATH_BEGIN, PATH_STREAM, PATH_EVENT, PATH_FENCE, PATH_HOST } path_by;

typedef struct path_wait {
  uint32_t step;
  path_by by;
} path_wait;

/* A step of the plan, in the plan's order. Times are nanoseconds on one clock. */
typedef struct path_step {
  const path_wait *waits;
  size_t n_waits;
  uint64_t start, end;
  uint32_t stream;
  bool is_host; /* the calling thread runs it; it runs one at a time */
  bool ran;     /* false: it has no times, and is passed over */
} path_step;

/* One step of the path and the time before it. Where clocks of two devices contradict the order, the step that came
 * first is cut at the start of the next, so that parts never overlap. */
typedef struct path_part {
  uint32_t step;
  path_by by;            /* after the part before this one */
  uint64_t start, takes; /* of the step, as far as it counts */
  uint64_t busy;         /* before it: the calling thread, that has to run or send it, ran other steps */
  uint64_t gap;          /* before it: the rest */
} path_part;

/* Walks back from the step that ended last, each time to the one that ended last of those it comes after: the step
 * before it on its stream and those it waits for. The sum of takes, busy and gap of all parts is the time from the first
 * start of all steps to the last end. order has the numbers of the steps that ran, n_ran of them, by start; out has room
 * for n_ran parts. Gives how many it wrote, in order of time. */
size_t critical_path(const path_step *steps, const uint32_t *order, size_t n_ran, path_part *out);

#endif
