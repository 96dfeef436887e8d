/* core/probe/limits.h: the limits that a process runs under, as far as a driver may fail for them. A failed try says something of
 * a plugin under such limits only. */
#ifndef HEDDLE_CORE_PROBE_LIMITS_H
#define HEDDLE_CORE_PROBE_LIMITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { HEDDLE_LIMITS = 9 };

/* By position, INT64_MAX where there is none: address space, data, stack, processes, descriptors, size of files, CPU time,
 * memory of the control group, locked memory. 0: not known, and tighter than any. */
typedef struct heddle__limits {
  int64_t value[HEDDLE_LIMITS];
} heddle__limits;

/* Those of this process now. Any thread. */
heddle__limits heddle__limits_now(void);

/* Whether one of a is above that of b. */
bool heddle__limits_looser(const heddle__limits *a, const heddle__limits *b);

/* The higher of each. */
heddle__limits heddle__limits_most(const heddle__limits *a, const heddle__limits *b);

/* As an object, -1 for what has no limit; NULL where memory is out. What is not in an object, or is no number, is 0. */
json_t *heddle__limits_json(const heddle__limits *limits);
heddle__limits heddle__limits_of(const json_t *object);

#endif
