/* modules/tvm/blob_body.h: the cursor that the blob's two files share. Private to them. */
#ifndef HEDDLE_MODULES_TVM_BLOB_BODY_H
#define HEDDLE_MODULES_TVM_BLOB_BODY_H

#include "modules/tvm/blob.h"

typedef struct heddle__cursor {
  const unsigned char *start, *at, *end;
  heddle__blob_layout layout;
  heddle_error *err;
  const heddle__blob_loaders *loaders; /* may be NULL */
} heddle__cursor;

static inline uint64_t heddle__left(const heddle__cursor *c) {
  return (uint64_t)(c->end - c->at);
}

/* "byte 41 of 300: expected what" */
heddle_status heddle__blob_bad(const heddle__cursor *c, const char *expected);
heddle_status heddle__take_u64(heddle__cursor *c, const char *what, uint64_t *out);
heddle_status heddle__take_string(heddle__cursor *c, const char *what, heddle__span *out);
heddle_status heddle__take_name(heddle__cursor *c, const char *what, char **out); /* a copy, without zero bytes */
/* A count of things of at least least bytes each. */
heddle_status heddle__take_count(heddle__cursor *c, uint64_t least, const char *what, uint64_t *out);

/* The body of a module of m->kind. */
heddle_status heddle__blob_body(heddle__cursor *c, heddle__submodule *m);

#endif
