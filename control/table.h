/* control/table.h: the functions of this room that libheddle calls; control.h says what they do. */
#ifndef HEDDLE_CONTROL_TABLE_H
#define HEDDLE_CONTROL_TABLE_H

#include "executor/control.h"

/* cut.c */
heddle_status ctl_make(heddle_model *m, const char *optimize, heddle__stages **out, heddle_error *err);
void ctl_free(heddle__stages *s);
/* staged.c */
void ctl_reset(void *self);
heddle__run_end ctl_drive(void *self, const heddle__helm *helm, heddle_status *status, heddle_error *err);
bool ctl_drain(void *self, char *what, size_t size);
heddle_status ctl_start(const heddle__stages *s, heddle_executor *ex, heddle__staged **out, heddle_error *err);
void ctl_end(heddle__staged *st);
heddle_status ctl_check(heddle__staged *st, uint32_t *arg, heddle_error *err);
heddle_tensor *ctl_result(heddle__staged *st, uint32_t i);
/* tell.c */
heddle_status ctl_value(heddle__staged *st, const heddle__keep *target, heddle_tensor **out, heddle_error *err);
heddle_status ctl_explain(const heddle__stages *s, heddle__staged *st, heddle_explain_format format, char **out,
                          heddle_error *err);
void ctl_stats(heddle__staged *st, heddle_executor_stats *all);

#endif
