/* What chain.c and chain_propose.c both ask of a node. Not for other files. */
#ifndef HEDDLE_PLUGINS_COMMON_CHAIN_NODE_H
#define HEDDLE_PLUGINS_COMMON_CHAIN_NODE_H

#include "expr.h"

/* Can the node be a part of a chain, apart from its shape: operator, types, attributes, operands? */
bool chain_node_read(const heddle_pregion *region, const heddle_pnode *node, int32_t *op, float params[2]);

/* The number of a constant of one element; NULL for other values. value is float32. */
const float *chain_number(const heddle_pvalue *value);

#endif
