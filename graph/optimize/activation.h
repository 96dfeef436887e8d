/* graph/optimize/activation.h: a few elementwise nodes of one value and numbers, and what they compute. */
#ifndef HEDDLE_GRAPH_OPTIMIZE_ACTIVATION_H
#define HEDDLE_GRAPH_OPTIMIZE_ACTIVATION_H

#include "graph/optimize/net.h"

enum { OPT_CONE_NODES = 12 };

typedef struct opt_cone {
  opt_net *net;
  opt_node *nodes[OPT_CONE_NODES]; /* the last first */
  uint32_t n_nodes;
  const opt_value *x;
} opt_cone;

/* Whether a node may be one of them; n may be NULL. */
bool opt_is_part(const opt_node *n);

/* Adds n and what it needs, down to x and numbers; false where there is something else. root: which stands where n is
 * to. */
bool opt_cone_grow(opt_cone *c, opt_node *n, const opt_node *root);

/* Nothing else reads what is inside. */
bool opt_cone_closed(const opt_cone *c);

/* The result of the first node for a number x; false where a number is not known. */
bool opt_cone_result(opt_cone *c, double x, double *out);

#endif
