/* modules/tvm/json.c: shapes and types as JSON, and JSON as the result of a call. */
#include "modules/tvm/json.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/alloc.h"
#include "modules/tvm/args.h"

void heddle__json_shape(heddle__sheet *j, const int64_t *shape, uint32_t ndim) {
  heddle__say_text(j, "[");
  for (uint32_t i = 0; i < ndim; i++) heddle__say(j, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
  heddle__say_text(j, "]");
}

void heddle__tvm_dtype_text(heddle_dtype t, char text[40]) {
  static const char *const names[] = {"int", "uint", "float", "handle", "bfloat", "complex"};
  char lanes[8] = "";
  if (t.lanes != 1) snprintf(lanes, sizeof lanes, "x%u", (unsigned)t.lanes);
  if (t.bits == 0) text[0] = '\0'; /* TVM's void */
  else if (t.code == HEDDLE_DTYPE_BOOL || (t.code == HEDDLE_DTYPE_UINT && t.bits == 1))
    snprintf(text, 40, "bool%s", lanes);
  else if (t.code == HEDDLE_DTYPE_HANDLE) snprintf(text, 40, "handle%s", lanes);
  else if (t.code < sizeof names / sizeof names[0])
    snprintf(text, 40, "%s%u%s", names[t.code], (unsigned)t.bits, lanes);
  else snprintf(text, 40, "custom[%u]%u%s", (unsigned)t.code, (unsigned)t.bits, lanes);
}

void heddle__json_dtype(heddle__sheet *j, heddle_dtype dtype) {
  char text[40];
  heddle__tvm_dtype_text(dtype, text);
  heddle__say_string(j, text);
}

int heddle__json_give(heddle__sheet *j, heddle__word *ret, int32_t *ret_code) {
  int rc = -1;
  if (j->failed) heddle__tvm_say(NULL, "out of memory: the text of a result");
  else rc = heddle__give_text(j->text != NULL ? j->text : "", j->used, ret, ret_code);
  heddle__free(j->text);
  *j = (heddle__sheet){0};
  return rc;
}
