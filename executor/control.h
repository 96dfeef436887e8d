/* executor/control.h: models in stages (executor/control/), those whose nodes run graphs of their own, or whose shapes only a run
 * gives: what executor/stages.c calls of that room. */
#ifndef HEDDLE_EXECUTOR_CONTROL_H
#define HEDDLE_EXECUTOR_CONTROL_H

#include "executor/stages.h"

typedef struct heddle__stages heddle__stages; /* of a model; immutable */
typedef struct heddle__staged heddle__staged; /* of an executor */

/* ---- cut.c: m is whole but for its stages, and outlives them. optimize: the wish, settled; NULL: none. May block: models
 * are made. */
heddle_status ctl_make(heddle_model *m, const char *optimize, heddle__stages **out, heddle_error *err);
void ctl_free(heddle__stages *s); /* takes NULL */

/* ---- staged.c: the work of a drive (self is a heddle__staged), and its state */
void ctl_reset(void *self);
heddle__run_end ctl_drive(void *self, const heddle__helm *helm, heddle_status *status, heddle_error *err);
bool ctl_drain(void *self, heddle__waker *waker, char *what, size_t size);
void ctl_late(const void *self, char *what, size_t size); /* what a late run waits for */
heddle_status ctl_start(const heddle__stages *s, heddle_executor *ex, heddle__staged **out, heddle_error *err);
void ctl_end(heddle__staged *st);                                              /* takes NULL */
heddle_status ctl_check(heddle__staged *st, uint32_t *arg, heddle_error *err); /* arg: an input that was never set */
heddle_tensor *ctl_result(heddle__staged *st, uint32_t i);

/* ---- timed.c: whether runs from now on are timed; and the steps of the last one that was, in order of their start, valid
 * until the next. */
void ctl_time(heddle__staged *st, bool timed);
void ctl_profile(const heddle__staged *st, const heddle_profile_entry **out, size_t *n);

/* ---- tell.c */
heddle_status ctl_value(heddle__staged *st, const heddle__keep *target, heddle_tensor **out, heddle_error *err);
heddle_status ctl_explain(const heddle__stages *s, heddle__staged *st, heddle_explain_format format, char **out,
                          heddle_error *err);
void ctl_stats(heddle__staged *st, heddle_executor_stats *all);

#endif
