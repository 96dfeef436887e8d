/* executor/ranks/own.h: a model's spread as the files of this room see it. */
#ifndef HEDDLE_EXECUTOR_RANKS_OWN_H
#define HEDDLE_EXECUTOR_RANKS_OWN_H

#include "executor/ranks/ranks.h"
#include "executor/ranks/script.h"
#include "executor/ranks/spread.h"

typedef struct heddle__rank_device {
  uint32_t rank;
  char *name; /* as its rank calls it */
} heddle__rank_device;

typedef struct heddle__spread_rule {
  char *pattern, *text;
  uint32_t device; /* position in devices */
} heddle__spread_rule;

struct heddle__spread {
  heddle__ranks *ranks;
  heddle__rank_device *devices; /* of all ranks, in order of preference */
  heddle__spread_rule *rules;   /* later ones take precedence */
  uint32_t n_devices, n_rules;
  bool automatic; /* nodes that nothing places are spread in the order of the graph */
  bool measures;  /* then messages have the times that are measured; the setting routes.test turns it off */
  bool ignore_annotations;
  const char **own_rules;         /* with one rank: "off", and rules with names of its own devices */
  char *own_devices, *own_memory; /* this rank's, for its own models; NULL: none */
  uint32_t *device_of;  /* per node of the graph: position in devices; HEDDLE__NONE: an input, or not needed */
  bool *fixed;          /* per node: a rule, an annotation or the automatic placement says so */
  heddle__known *types; /* per entry of the graph; of those that cross ranks, and results */
  uint32_t *entry_of;   /* per value of the script: its entry */
  const char **names;   /* and its node's name, borrowed from the graph */
  heddle__script script;
  heddle__script_stage *stages;
  uint32_t n_entries;
};

/* list.c: whether an item of a list, of n characters, is for a rank: what is before '/' is a pattern of ranks. rest: what is
 * behind it. */
bool heddle__spread_is_for(const char *item, size_t n, uint32_t rank, const char **rest);

/* list.c: calls each for every item of a list with commas; begin and length without blanks. */
typedef heddle_status (*heddle__spread_item_fn)(void *user, const char *item, size_t n, heddle_error *err);
heddle_status heddle__spread_each(const char *list, heddle__spread_item_fn each, void *user, heddle_error *err);

/* list.c: a device of a rank, unless it is there. */
heddle_status heddle__spread_add(heddle__spread *s, uint32_t rank, const char *name, heddle_error *err);

/* said.c: resolves the list's items that are this rank's, agrees with the other ranks, compares what they were given, and
 * adds the devices of all. HEDDLE__SPREAD_DEFAULT is an item for what a rank uses by default. */
#define HEDDLE__SPREAD_DEFAULT "*/default"
heddle_status heddle__spread_exchange(heddle__spread *s, heddle_context *ctx, const heddle_graph *graph,
                                      const heddle_params *params, const heddle_model_options *o, const char *list,
                                      heddle_error *err);

/* list.c: position in devices of "RANK/NAME" or NAME, which means the first rank that has it; HEDDLE__NONE. */
uint32_t heddle__spread_find(const heddle__spread *s, const char *name);

#endif
