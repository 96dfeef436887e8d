/* A launch of any operator that the plugin takes, for cases that are about calls and not about results. */
#ifndef HEDDLE_CONFORMANCE_OP_ANY_H
#define HEDDLE_CONFORMANCE_OP_ANY_H

#include "op_case.h"

typedef struct op_any {
  op_case c;
  op_offers *offers;
  op_ready ready;
  heddle_pbuffer *buffers[OP_IN + OP_OUT + 1];
  uint32_t n_buffers;
} op_any;

/* Prepares Relu, else the first line of the tables that query takes with plain layouts; skips the case where there is
 * none. op_any_bind makes a launch of it, with operands in buffers of their own. */
op_any *op_any_prepare(kit *k);
heddle_plaunch *op_any_bind(kit *k, op_any *any, heddle_pstream *stream);
/* After launch_free. */
void op_any_free(kit *k, op_any *any);

#endif
