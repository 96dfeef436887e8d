/* executor/objects.h: what numbers of an executor's values stand for beyond the graph's own list of texts: texts
 * that an input has or a run makes, and sequences of tensors. A text's number is its position behind those of the graph;
 * a sequence's is below HEDDLE_NO_OBJECT. What no input holds goes when the next run begins. One thread at a time.
 * Private to executor/. */
#ifndef HEDDLE_EXECUTOR_OBJECTS_H
#define HEDDLE_EXECUTOR_OBJECTS_H

#include "executor/course.h"

typedef struct heddle__objects heddle__objects;

/* With the graph's own texts. */
heddle_status ctl_objects_make(const heddle_graph *g, heddle__objects **out, heddle_error *err);
void ctl_objects_free(heddle__objects *o); /* takes NULL */

/* The number of a text: the same for the same text. HEDDLE_ELIMIT where there are 2^31. */
heddle_status ctl_text_code(heddle__objects *o, const char *text, size_t bytes, int64_t *code, heddle_error *err);

/* The text of a number. HEDDLE_EINVAL where it stands for none. */
heddle_status ctl_text(const heddle__objects *o, int64_t code, const char **text, size_t *bytes, heddle_error *err);

/* A sequence of tensors of the host, which it retains: their memory must stay as it is. */
heddle_status ctl_list_make(heddle__objects *o, heddle_tensor *const *items, size_t n, int64_t *handle,
                            heddle_error *err);
heddle_status ctl_list(const heddle__objects *o, int64_t handle, heddle_tensor *const **items, size_t *n,
                       heddle_error *err);

/* Drops what is in no tensor of these: every number of theirs that may stand for an object holds it. */
heddle_status ctl_objects_sweep(heddle__objects *o, heddle_tensor *const *holders, size_t n, heddle_error *err);

#endif
