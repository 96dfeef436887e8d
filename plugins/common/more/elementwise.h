/* What is done with a number or two, by name: for the elementwise operators and for reductions. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_ELEMENTWISE_H
#define HEDDLE_PLUGINS_COMMON_MORE_ELEMENTWISE_H

#include "more.h"

typedef struct more_lane {
  char name[20];
  double (*real)(double x, double y, const double *params); /* NULL: not of these types */
  int64_t (*whole)(int64_t x, int64_t y);
  int64_t (*without_sign)(int64_t x, int64_t y); /* uint64 as its bits */
  uint8_t truth, compares;                       /* takes bool; gives bool */
  double alpha, beta;                            /* defaults of the attributes; 0 and 0: it has none */
} more_lane;

const more_lane *more_lane_find(const char *name); /* NULL: there is none */

#endif
