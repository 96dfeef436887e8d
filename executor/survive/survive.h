/* executor/survive/survive.h: what the files of this room share: one failure, and what is done about
 * it, step by step. Nothing here is kept between two failures but what the executor and its model hold. */
#ifndef HEDDLE_EXECUTOR_SURVIVE_SURVIVE_H
#define HEDDLE_EXECUTOR_SURVIVE_SURVIVE_H

#include "executor/survive.h"

/* The failure that is looked at. */
typedef struct scene {
  heddle_executor *ex;
  heddle_status status;   /* of the last failure: at first the run's, then that of what was done about it */
  bool quiet;             /* nothing of the run is on a device any more */
  heddle_device *culprit; /* where it failed; NULL: not known */
  heddle_error *words;    /* of the last failure */
  char why[400];          /* why nothing more can be done */
} scene;

/* Says why nothing more can be done; false. */
bool survive_no(scene *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line of the log, a warning. */
void survive_tell(const scene *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether a device of the model is lost; which input or output lies in memory of it, or NULL. */
bool survive_lost(const heddle_device *dev);
const char *survive_lies_on(const scene *c, const heddle_device *dev);

/* clear.c: takes from the executor what it is bound to, and frees programs of its model that are not in use. */
void survive_detach(scene *c);
void survive_forget(heddle_model *m);

/* clear.c: opens the lost devices of the model anew, which nothing else may use. false: why gives the reason. */
bool survive_reopen(scene *c);

/* spare.c: lets the executor run a model of the devices that are left: of all but the lost ones and without; small: with the
 * same devices and less memory. false: why gives the reason. */
bool survive_move(scene *c, heddle_device *without, bool small);

#endif
