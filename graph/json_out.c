/* graph/json_out.c: parts of JSON text; see json_out.h.
 * jansson's own writer is not used: it writes 17 digits where 3 would do. */
#include "graph/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void heddle__out_float(heddle__sheet *out, double x) {
  char text[64], plain[64];
  if (isnan(x) || isinf(x)) {
    heddle__say_text(out, isnan(x) ? "\"nan\"" : x > 0 ? "\"inf\"" : "\"-inf\"");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break; /* both in the locale's way */
  }
  size_t n = 0;
  bool is_real = false;
  for (const char *c = text; *c != '\0'; c++) { /* whatever the locale's point is made of becomes '.' */
    bool digit = *c >= '0' && *c <= '9', sign = *c == '-' || *c == '+', exponent = *c == 'e';
    if (digit || sign || exponent) plain[n++] = *c;
    else if (n == 0 || plain[n - 1] != '.') plain[n++] = '.';
    is_real = is_real || exponent || !(digit || sign);
  }
  plain[n] = '\0';
  heddle__say_text(out, plain);
  if (!is_real) heddle__say_text(out, ".0"); /* so that it is read as a number with a fraction again */
}

void heddle__out_key(heddle__sheet *out, const char *key, size_t *count) {
  if ((*count)++ > 0) heddle__say_text(out, ", ");
  heddle__say_string(out, key);
  heddle__say_text(out, ": ");
}

static bool is_skipped(const char *key, const char *const *skip) {
  for (; skip != NULL && *skip != NULL; skip++)
    if (strcmp(*skip, key) == 0) return true;
  return false;
}

void heddle__out_members(heddle__sheet *out, const json_t *object, const char *const *skip, size_t *count) {
  json_t *walked = (json_t *)(uintptr_t)object; /* the iterator takes no const object, and changes nothing */
  for (void *at = json_object_iter(walked); at != NULL; at = json_object_iter_next(walked, at)) {
    if (is_skipped(json_object_iter_key(at), skip)) continue;
    heddle__out_key(out, json_object_iter_key(at), count);
    heddle__out_value(out, json_object_iter_value(at));
  }
}

/* Recursion is as deep as the reader's limit of nesting lets it. */
void heddle__out_value(heddle__sheet *out, const json_t *value) {
  size_t count = 0;
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    heddle__say_text(out, "{");
    heddle__out_members(out, value, NULL, &count);
    heddle__say_text(out, "}");
    break;
  case JSON_ARRAY:
    heddle__say_text(out, "[");
    for (size_t i = 0; i < json_array_size(value); i++) {
      if (i > 0) heddle__say_text(out, ", ");
      heddle__out_value(out, json_array_get(value, i));
    }
    heddle__say_text(out, "]");
    break;
  case JSON_STRING: heddle__say_string(out, json_string_value(value)); break;
  case JSON_INTEGER: heddle__say_int(out, json_integer_value(value)); break;
  case JSON_REAL: heddle__out_float(out, json_real_value(value)); break;
  case JSON_TRUE: heddle__say_text(out, "true"); break;
  case JSON_FALSE: heddle__say_text(out, "false"); break;
  default: heddle__say_text(out, "null"); break;
  }
}
