/* modules/tvm/json.c: shapes and types as JSON, and JSON as the result of a call. */
#include "modules/tvm/json.h"

#include <inttypes.h>

#include "core/alloc.h"
#include "modules/tvm/args.h"

void heddle__json_shape(heddle__sheet *j, const int64_t *shape, uint32_t ndim) {
  heddle__say_text(j, "[");
  for (uint32_t i = 0; i < ndim; i++) heddle__say(j, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
  heddle__say_text(j, "]");
}

void heddle__json_dtype(heddle__sheet *j, heddle_dtype t) {
  static const char *const names[] = {[HEDDLE_DTYPE_INT] = "int",
                                      [HEDDLE_DTYPE_UINT] = "uint",
                                      [HEDDLE_DTYPE_FLOAT] = "float",
                                      [HEDDLE_DTYPE_BFLOAT] = "bfloat"};
  if (t.code == HEDDLE_DTYPE_BOOL) heddle__say(j, "\"bool");
  else if (t.code < sizeof names / sizeof names[0] && names[t.code] != NULL)
    heddle__say(j, "\"%s%u", names[t.code], (unsigned)t.bits);
  else heddle__say(j, "\"custom[%u]%u", (unsigned)t.code, (unsigned)t.bits);
  if (t.lanes != 1) heddle__say(j, "x%u", (unsigned)t.lanes);
  heddle__say(j, "\"");
}

int heddle__json_give(heddle__sheet *j, heddle__word *ret, int32_t *ret_code) {
  int rc = -1;
  if (j->failed) heddle__tvm_say(NULL, "out of memory: the text of a result");
  else rc = heddle__give_text(j->text != NULL ? j->text : "", j->used, ret, ret_code);
  heddle__free(j->text);
  *j = (heddle__sheet){0};
  return rc;
}
