/* executor/most.h: maxima of open dimensions, as the model's options give them ("length<=512" among the dims). A program
 * is planned for them from the start, and an input beyond one is refused. */
#ifndef HEDDLE_EXECUTOR_MOST_H
#define HEDDLE_EXECUTOR_MOST_H

#include "executor/model.h"

/* Whether a rule of the options' dims is one of these. */
bool heddle__most_is(const char *rule);

/* Reads those among n rules. HEDDLE_ENOTFOUND where no input has a dimension of that name. */
heddle_status heddle__most_read(heddle_model *m, const char *const *rules, size_t n, heddle_error *err);

/* The maximum of a dimension of an input (by position in graph->args); 0: none. */
int64_t heddle__most_of(const heddle_model *m, uint32_t arg, uint32_t dim);

/* Sets the dimensions of an input that have a maximum to it; whether there is one. */
bool heddle__most_raise(const heddle_model *m, uint32_t arg, uint32_t ndim, int64_t *shape);

/* HEDDLE_EINVAL where a shape, of as many dimensions as the input has, is beyond a maximum: names the dimension. */
heddle_status heddle__most_check(const heddle_model *m, uint32_t arg, const int64_t *shape, heddle_error *err);

/* After a failure for want of memory: puts before the words which open dimensions were how large, or where there are none those
 * of the largest input. Returns s. */
heddle_status heddle__most_blame(const heddle_model *m, const heddle__wish *wish, heddle_status s, heddle_error *err);

/* The same where there is none for a copy of the value of one input. */
heddle_status heddle__most_blame_value(const heddle_model *m, uint32_t arg, const heddle_tensor *value, heddle_status s,
                                       heddle_error *err);

#if defined(__clang_analyzer__) && !defined(HEDDLE__MOST_C) /* as in core/error.h */
#define heddle__most_blame(m, wish, s, err) (heddle__most_blame(m, wish, s, err), (s))
#define heddle__most_blame_value(m, arg, value, s, err) (heddle__most_blame_value(m, arg, value, s, err), (s))
#endif

#endif
