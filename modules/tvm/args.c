/* modules/tvm/args.c: what methods take and give: ints, text, modules, devices, arrays. */
#include "modules/tvm/args.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int heddle__refuse(const char *method, const char *format, ...) {
  char words[800];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  heddle__tvm_say(method, words);
  return -1;
}

int heddle__refuse_error(const char *method, const heddle_error *err) {
  heddle__tvm_say_error(method, err);
  return -1;
}

/* ---- arguments */

bool heddle__args_count(const heddle__args *a, int32_t least, int32_t most) {
  if (a->n >= least && a->n <= most) return true;
  char wants[48];
  if (least == most) snprintf(wants, sizeof wants, "%d", (int)least);
  else if (most == INT32_MAX) snprintf(wants, sizeof wants, "at least %d", (int)least);
  else snprintf(wants, sizeof wants, "%d to %d", (int)least, (int)most);
  heddle__refuse(a->method, "it takes %s argument%s, and was given %d", wants, most == 1 ? "" : "s", (int)a->n);
  return false;
}

static bool unlike(const heddle__args *a, int32_t i, const char *expected) {
  if (i >= a->n) heddle__refuse(a->method, "argument %d: expected %s, and there is none", (int)i, expected);
  else
    heddle__refuse(a->method, "argument %d: expected %s, and it is a value of code %d", (int)i, expected,
                   (int)a->codes[i]);
  return false;
}

bool heddle__args_int(const heddle__args *a, int32_t i, int64_t low, int64_t high, int64_t *out) {
  if (i >= a->n || (a->codes[i] != PACKED_INT && a->codes[i] != PACKED_BOOL)) return unlike(a, i, "an int");
  *out = a->args[i].i;
  if (*out >= low && *out <= high) return true;
  if (high < low) heddle__refuse(a->method, "argument %d: %" PRId64 " is given, and there are none", (int)i, *out);
  else
    heddle__refuse(a->method, "argument %d: expected an int from %" PRId64 " to %" PRId64 ", and it is %" PRId64,
                   (int)i, low, high, *out);
  return false;
}

bool heddle__args_name(const heddle__args *a, int32_t i, const char **out) {
  if (i >= a->n || a->codes[i] != PACKED_STRING || a->args[i].s == NULL) return unlike(a, i, "a string");
  *out = a->args[i].s;
  return true;
}

bool heddle__args_text(const heddle__args *a, int32_t i, const char **out, size_t *bytes) {
  const char *expected = "a string or bytes";
  if (i >= a->n || a->args[i].p == NULL) return unlike(a, i, expected);
  if (a->codes[i] == PACKED_STRING) {
    *out = a->args[i].s;
    *bytes = strlen(*out);
    return true;
  }
  if (a->codes[i] != PACKED_BYTES) return unlike(a, i, expected);
  const heddle__bytes *b = a->args[i].p;
  *out = b->data != NULL ? b->data : "";
  *bytes = b->data != NULL ? b->size : 0;
  return true;
}

bool heddle__args_object(const heddle__args *a, int32_t i, heddle_object **out) {
  *out = NULL;
  if (i < a->n && a->codes[i] == PACKED_NULL) return true;
  if (i >= a->n || a->codes[i] != PACKED_MODULE) return unlike(a, i, "a module");
  heddle_object *o = a->args[i].p;
  if (o == NULL || o->mark != HEDDLE__OBJECT_MARK) {
    heddle__refuse(a->method, "argument %d: expected a module, and it is %s", (int)i,
                   o == NULL ? "NULL" : "a handle of another kind");
    return false;
  }
  *out = o;
  return true;
}

heddle_tensor *heddle__args_tensor(const heddle__args *a, int32_t i) {
  if (i >= a->n) {
    unlike(a, i, "an array");
    return NULL;
  }
  heddle_tensor *t = heddle__argument_tensor(a->args, a->codes, i);
  if (t == NULL) heddle__refuse(a->method, "%s", heddle__tvm_self()->error);
  return t;
}

bool heddle__args_devices(const heddle__args *a, int32_t i, int32_t (*out)[2], uint32_t *n) {
  *n = 0;
  if (i >= a->n) return unlike(a, i, "a device, or its type and number");
  while (i < a->n) {
    if (a->codes[i] == PACKED_DEVICE) {
      memcpy(out[*n], &a->args[i], sizeof out[*n]);
      i++;
    } else {
      int64_t type = 0, number = 0;
      if (!heddle__args_int(a, i, 1, INT32_MAX, &type)) return false;
      if (!heddle__args_int(a, i + 1, 0, INT32_MAX, &number)) return false;
      out[*n][0] = (int32_t)type;
      out[*n][1] = (int32_t)number;
      i += 2;
    }
    ++*n;
  }
  return true;
}

/* ---- results */

int heddle__give_int(int64_t value, heddle__word *ret, int32_t *ret_code) {
  ret->i = value;
  *ret_code = PACKED_INT;
  return 0;
}

int heddle__give_text(const char *text, size_t n, heddle__word *ret, int32_t *ret_code) {
  const char *kept = heddle__tvm_keep(text, n);
  if (kept == NULL) return -1;
  ret->s = kept;
  *ret_code = PACKED_STRING;
  return 0;
}

int heddle__give_bytes(const void *bytes, size_t n, heddle__word *ret, int32_t *ret_code) {
  heddle__bytes *kept = heddle__tvm_keep_bytes(bytes, n);
  if (kept == NULL) return -1;
  ret->p = kept;
  *ret_code = PACKED_BYTES;
  return 0;
}

int heddle__give_tensor(heddle_tensor *t, heddle__word *ret, int32_t *ret_code) {
  heddle__array *a = heddle__array_new(t);
  if (a == NULL) {
    heddle_tensor_release(t);
    heddle__tvm_say(NULL, "out of memory: an array");
    return -1;
  }
  ret->p = a;
  *ret_code = PACKED_NDARRAY;
  return 0;
}

int heddle__give_object(heddle_object *o, heddle__word *ret, int32_t *ret_code) {
  if (o == NULL) return -1;
  ret->p = o;
  *ret_code = PACKED_MODULE;
  return 0;
}

/* ---- methods */

int heddle__method_find(const heddle__method *methods, size_t n, heddle_object *o, const char *name,
                        heddle_function **out) {
  for (size_t i = 0; i < n; i++) {
    if (strcmp(methods[i].name, name) != 0) continue;
    *out = heddle__object_method(o, name, methods[i].call);
    if (*out == NULL) heddle__tvm_say(NULL, "out of memory: a method of a module");
    return *out != NULL ? 0 : -1;
  }
  return 0;
}
