/* The cases of the group "calls" share what a call under test needs: calls.c has the cases, calls_behind.c the way in which
 * a device that cannot be held is checked. */
#ifndef HEDDLE_CONFORMANCE_CALLS_H
#define HEDDLE_CONFORMANCE_CALLS_H

#include "conformance/op_any.h"
#include "conformance/tables.h"

enum { CALLS_BYTES = 4096, CALLS_HELD_MS = 1500 };

typedef struct calls_set {
  heddle_pstream *stream, *other;
  heddle_pbuffer *x, *y;
  kit_pinned page;
  heddle_pevent *event;
  heddle_pfence fence;
  uint64_t value;
  op_any *any;
  heddle_plaunch *launch;
} calls_set;

typedef struct calls_what {
  const char *name;
  heddle_status (*call)(kit *k, calls_set *c);
  bool copies; /* it is what the long work is made of */
} calls_what;

/* Fails the case where the call returns only when long work that was put in front of it has ended, each time. */
void calls_behind(kit *k, calls_set *c, const calls_what *what);

#endif
