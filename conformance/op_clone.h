/* A copy of a region in pages of its own, in the form that a host of another minor would give it, and which can be gone. */
#ifndef HEDDLE_CONFORMANCE_OP_CLONE_H
#define HEDDLE_CONFORMANCE_OP_CLONE_H

#include "op_case.h"

/* SAME: as it is. NEWER: the elements of the arrays have more bytes than this kit knows, all set. OLDER: they end where those
 * of 1.0 do. */
enum { OP_CLONE_SAME, OP_CLONE_NEWER, OP_CLONE_OLDER };

typedef struct op_clone {
  const heddle_pregion *region;
  void *pages;
  size_t bytes;
} op_clone;

op_clone op_clone_make(kit *k, const heddle_pregion *region, int form);
/* After this an access to it ends the process. */
void op_clone_gone(op_clone *c);
void op_clone_free(op_clone *c);

#endif
