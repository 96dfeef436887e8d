/* graph/json_out.h: JSON text that grows: strings escaped, numbers independent of the locale, floats as short as they
 * can be. The first failure of memory is kept, and nothing is written after it. Private to graph/. */
#ifndef HEDDLE_GRAPH_JSON_OUT_H
#define HEDDLE_GRAPH_JSON_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct heddle__json_out {
  char *text; /* of heddle__alloc; its owner frees it */
  size_t used, capacity;
  bool failed;
} heddle__json_out;

void heddle__out_text(heddle__json_out *out, const char *text);   /* as it is */
void heddle__out_string(heddle__json_out *out, const char *text); /* quoted */
void heddle__out_int(heddle__json_out *out, int64_t n);
void heddle__out_float(heddle__json_out *out, double x); /* infinities and NaN as strings */

/* A value on one line; of an object all members but those of skip, a list that ends with NULL (or NULL). members writes
 * them without braces, each with ", " before it if *count > 0, and counts. */
void heddle__out_value(heddle__json_out *out, const json_t *value);
void heddle__out_members(heddle__json_out *out, const json_t *object, const char *const *skip, size_t *count);

/* ", " unless it is the first, then "key": */
void heddle__out_key(heddle__json_out *out, const char *key, size_t *count);

#endif
