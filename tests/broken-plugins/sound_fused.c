/* Nothing is broken here: regions of several nodes give what their nodes give one by one. */
#include "fused.h"

#include "tables.h"
