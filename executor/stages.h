/* executor/stages.h: models that one program cannot run, since nodes of theirs run graphs (If, Loop, Scan), or since
 * shapes in them are values that only the run gives: they are cut into stages, each a model of its own. What is done
 * with stages is in executor/control/; here is what the model and the
 * executor ask of it. */
#ifndef HEDDLE_EXECUTOR_STAGES_H
#define HEDDLE_EXECUTOR_STAGES_H

#include "executor/course.h"

/* A node whose output's shape is a value that only the run gives is in a later stage than what makes the value; where it
 * is the data itself that decides (NonZero), what follows is in a later one still, so that only the node is planned anew
 * for each value. */
#define HEDDLE__CUT_BEFORE 1
#define HEDDLE__CUT_AFTER 2

/* Which nodes those are, per node of the graph, unless cuts is NULL; constants: per arg. *any: there are some. */
heddle_status heddle__graph_cuts(const heddle_graph *g, const heddle__constant *const *constants, unsigned char *cuts,
                                 bool *any, heddle_error *err);

/* Cuts the model's graph; optimize is the caller's wish for all stages. A last step of the model's creation. */
heddle_status heddle__stages_make(heddle_model *m, const char *optimize, heddle_error *err);
void heddle__stages_free(heddle_model *m); /* a model without stages too */

/* The plans of all stages that are planned, one after another. */
heddle_status heddle__stages_explain(heddle_model *m, heddle_explain_format format, char **out, heddle_error *err);

/* An executor's state of its stages, and its course. */
heddle_status heddle__staged_make(heddle_executor *ex, heddle_error *err);
void heddle__staged_free(heddle_executor *ex); /* an executor without stages too */

/* The steps of the last timed run of an executor with stages; borrowed until the next. */
void heddle__staged_profile(const heddle_executor *ex, const heddle_profile_entry **out, size_t *n);

/* objects.c: an executor's objects, where its graph has such; those of an outer one in their place. */
heddle_status heddle__objects_make(heddle_executor *ex, heddle_error *err);
void heddle__objects_free(heddle_executor *ex);
void heddle__objects_lend(heddle_executor *ex, struct heddle__objects *objects);
/* Before a run: what no input has is dropped. */
heddle_status heddle__objects_settle(heddle_executor *ex, heddle_error *err);

/* Whether a tensor still is the output's memory: so that a run that changes nothing makes no tensor. */
bool heddle__executor_is_view(heddle_executor *ex, uint32_t i, const heddle_tensor *t);

#endif
