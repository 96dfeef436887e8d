/* executor/place/placement.h: what the parts of a plan's automatic placement share. */
#ifndef HEDDLE_EXECUTOR_PLACE_PLACEMENT_H
#define HEDDLE_EXECUTOR_PLACE_PLACEMENT_H

#include "executor/place/costs.h"
#include "executor/place/problem.h"

typedef enum heddle__measuring {
  HEDDLE__MEASURE_NOTHING,
  HEDDLE__MEASURE_MISSING,
  HEDDLE__MEASURE_AGAIN
} heddle__measuring;

typedef struct heddle__placer {
  heddle_context *ctx;
  heddle__costs costs;
  heddle__measuring measuring;
  uint64_t most_ns; /* of measuring, in one plan */
  bool any_gain;    /* the setting place.sure is 0 */
  bool overlap;     /* devices on the host's cores work at the same time */
} heddle__place_room;

/* A region on a device, and what it takes there. Regions with the same digest are one. */
typedef struct heddle__item {
  heddle__digest digest;
  uint32_t device;
  const heddle__answer *answer;
  heddle__time time;
  double guess_ns; /* by the plugin; 0: it does not say */
  bool known;      /* measured, now or before */
  bool fresh;      /* measured now, once */
  bool whole;      /* as a plan would have it; false: a node of a larger group, on its own */
  bool foreign;    /* of a compiled library: it is not run outside of a plan */
  bool refused;    /* offered, and then not prepared or run */
  char label[120];
} heddle__item;

/* The plan's nodes that are placed at all, without views, and what each could be on each device. */
typedef struct heddle__survey {
  const heddle__place_room *room;
  heddle__plan *plan;
  uint32_t n_nodes, n_devices, n_free;
  uint32_t *node;          /* per node of the problem: its number in the graph */
  uint32_t *prefer;        /* the device that it has */
  bool *can;               /* [node][device] */
  heddle__answer *answers; /* [node][device] */
  uint32_t *item;          /* [node][device]: alone */
  uint32_t *group;         /* [node][device], or HEDDLE__NOWHERE */
  heddle__answer *group_answers;
  uint32_t *group_item, *members; /* per group */
  uint32_t n_groups, room_groups;
  heddle__item *items;
  uint32_t n_items, room_items, measured, kept, estimated;
} heddle__survey;

/* survey.c: asks every device about every free node, and its plugin about the groups that it would make if it had all that
 * it can run. Memory is the plan's. */
heddle_status heddle__survey_make(const heddle__place_room *room, heddle__plan *plan, heddle__survey *out,
                                  heddle_error *err);

/* times.c: what each item takes: from what is known, by measuring as long as the time allows, and by estimates for the
 * rest. A device is opened while it is measured. */
heddle_status heddle__survey_times(heddle__place_room *room, heddle__survey *s, heddle_error *err);

/* problem.c: the survey as a problem. Memory is the plan's. */
heddle_status heddle__survey_problem(const heddle__survey *s, heddle__problem *out, heddle_error *err);

/* report.c: causes of the nodes, and what the plan says of the prediction. */
heddle_status heddle__survey_report(const heddle__survey *s, const heddle__problem *p, const heddle__found *found,
                                    heddle_error *err);

#endif
