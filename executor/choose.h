/* executor/choose.h: which of its offers each region takes. */
#ifndef HEDDLE_EXECUTOR_CHOOSE_H
#define HEDDLE_EXECUTOR_CHOOSE_H

#include "executor/plan.h"

/* Sets regions[].offer so that offers and the Reorders between them cost little together; regions must be in an order
 * in which they can run, with values in no layout yet. The same plan gives the same choice. Fails only without memory. */
heddle_status heddle__choose_offers(heddle__plan *plan, heddle_error *err);

#endif
