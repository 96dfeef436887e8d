/* Nothing is broken here: every case of the kit passes or does not apply. */
#include "base.h"

#include "tables.h"
