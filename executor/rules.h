/* executor/rules.h: the placement rules of a model. */
#ifndef HEDDLE_EXECUTOR_RULES_H
#define HEDDLE_EXECUTOR_RULES_H

#include "executor/model.h"

/* Takes the rules of the settings "place" and "annotations", and then those of the options; "off" among these ends all that
 * came before. The devices in use are known. */
heddle_status heddle__rules_take(heddle_model *m, const char *const *place, size_t n, heddle_error *err);
void heddle__rules_forget(heddle_model *m);

#endif
