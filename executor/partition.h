/* executor/partition.h: nodes in groups, which become regions, and how plugins join groups by proposals. */
#ifndef HEDDLE_EXECUTOR_PARTITION_H
#define HEDDLE_EXECUTOR_PARTITION_H

#include "executor/ask.h"

typedef struct heddle__group {
  const uint32_t *nodes; /* ascending */
  uint32_t count;        /* 0: its nodes went to another group */
  uint32_t device;
  bool is_view;
  heddle__answer answer; /* of more than one node; of one node it is in placed */
} heddle__group;

typedef struct heddle__grouping {
  heddle__plan *plan;
  uint32_t *group_of; /* per node; HEDDLE__NONE: not in the plan */
  heddle__group *groups;
  uint32_t n_groups;
  const uint32_t *users; /* per entry: heddle__count_users */
} heddle__grouping;

/* Makes groups of one node each to one, that of the first. nodes: ascending, the plan's memory. */
void heddle__group_join(heddle__grouping *all, const uint32_t *nodes, uint32_t count, const heddle__answer *answer);

/* regions.c: each node of the plan as it is placed in a group of its own, and then heddle__partition, or what a
 * precedent says. Fills *out, whose
 * memory is the plan's. */
heddle_status heddle__group_nodes(heddle__plan *plan, heddle__grouping *out, heddle_error *err);

/* Lets the plugin of every device in use propose groups, unless the setting PLUGIN.regions is 0. Each group has one node before, and their numbers ascend with
 * their nodes; after it some may be empty. The groups stay acyclic: a proposal that is not connected, that a path leaves
 * and enters again, also by way of groups that were joined before, or that overlaps another is refused and logged. Adds
 * to plan.proposal_visits. */
heddle_status heddle__partition(heddle__grouping *all, heddle_error *err);

#endif
