/* executor/profile.h: times the steps of a run, on the device's clock where it has one, and turns them into entries
 * and into spans of an open trace. */
#ifndef HEDDLE_EXECUTOR_PROFILE_H
#define HEDDLE_EXECUTOR_PROFILE_H

#include "executor/bind.h"

typedef struct heddle__profile heddle__profile;

/* For runs of one bound program; kept for later runs of the same. lane: which of the runs in flight they are, each of
 * which has its own streams. *out is freed before the bound program. Blocks. */
heddle_status heddle__profile_create(heddle__bound *b, uint32_t lane, heddle__profile **out, heddle_error *err);
void heddle__profile_release(heddle__profile *p); /* takes NULL */

/* Forgets what a run that failed has left. Before each run. */
void heddle__profile_begin(heddle__profile *p);

/* Runs one action and times it: with marks around it where the device has a clock; else by the host's clock, waiting
 * for the stream. */
heddle_status heddle__profile_action(heddle__profile *p, heddle__bound *b, const heddle__line *line,
                                     const heddle__action *a, heddle_error *err);

/* After the run: reads the devices' clocks and sorts by start. Borrowed until the next finish or the release. Writes
 * to the context's trace where one is open. */
heddle_status heddle__profile_finish(heddle__profile *p, heddle__bound *b, const heddle_profile_entry **out, size_t *n,
                                     heddle_error *err);

#endif
