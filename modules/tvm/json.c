/* modules/tvm/json.c: JSON text that grows. Numbers are integers, so that no locale changes them. */
#include "modules/tvm/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/args.h"

void heddle__json_add(heddle__json *j, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  size_t need = j->used + (n > 0 ? (size_t)n : 0) + 1;
  if (n >= 0 && need > j->room && !j->lost) {
    size_t room = need + need / 2 + 64;
    char *more = heddle__grow(j->data, j->room, room, 1);
    j->lost = more == NULL;
    if (more != NULL) {
      j->data = more;
      j->room = room;
    }
  }
  if (n >= 0 && !j->lost) {
    vsnprintf(j->data + j->used, j->room - j->used, format, again);
    j->used += (size_t)n;
  }
  va_end(again);
}

void heddle__json_string(heddle__json *j, const char *s) {
  heddle__json_add(j, "\"");
  while (*s != '\0') {
    size_t plain = 0;
    while ((unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\') plain++;
    if (plain > 0) heddle__json_add(j, "%.*s", (int)plain, s);
    s += plain;
    if (*s == '\0') break;
    if (*s == '"' || *s == '\\') heddle__json_add(j, "\\%c", *s);
    else heddle__json_add(j, "\\u%04x", (unsigned)(unsigned char)*s);
    s++;
  }
  heddle__json_add(j, "\"");
}

void heddle__json_microseconds(heddle__json *j, uint64_t ns) {
  heddle__json_add(j, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

void heddle__json_shape(heddle__json *j, const int64_t *shape, uint32_t ndim) {
  heddle__json_add(j, "[");
  for (uint32_t i = 0; i < ndim; i++) heddle__json_add(j, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
  heddle__json_add(j, "]");
}

void heddle__json_dtype(heddle__json *j, heddle_dtype t) {
  static const char *const names[] = {[HEDDLE_DTYPE_INT] = "int",
                                      [HEDDLE_DTYPE_UINT] = "uint",
                                      [HEDDLE_DTYPE_FLOAT] = "float",
                                      [HEDDLE_DTYPE_BFLOAT] = "bfloat"};
  if (t.code == HEDDLE_DTYPE_BOOL) heddle__json_add(j, "\"bool");
  else if (t.code < sizeof names / sizeof names[0] && names[t.code] != NULL)
    heddle__json_add(j, "\"%s%u", names[t.code], (unsigned)t.bits);
  else heddle__json_add(j, "\"custom[%u]%u", (unsigned)t.code, (unsigned)t.bits);
  if (t.lanes != 1) heddle__json_add(j, "x%u", (unsigned)t.lanes);
  heddle__json_add(j, "\"");
}

int heddle__json_give(heddle__json *j, heddle__word *ret, int32_t *ret_code) {
  int rc = -1;
  if (j->lost) heddle__tvm_say(NULL, "out of memory: the text of a result");
  else rc = heddle__give_text(j->data != NULL ? j->data : "", j->used, ret, ret_code);
  heddle__free(j->data);
  *j = (heddle__json){.data = NULL};
  return rc;
}
