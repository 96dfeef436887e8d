/* graph/json_out.h: parts of JSON text on a sheet (core/sheet.h): floats as short as they can be and independent of the
 * locale, and values that the reader kept. Private to graph/. */
#ifndef HEDDLE_GRAPH_JSON_OUT_H
#define HEDDLE_GRAPH_JSON_OUT_H

#include <jansson.h>

#include "core/sheet.h"

void heddle__out_float(heddle__sheet *out, double x); /* infinities and NaN as strings */

/* A value on one line; of an object all members but those of skip, a list that ends with NULL (or NULL). members writes
 * them without braces, each with ", " before it if *count > 0, and counts. */
void heddle__out_value(heddle__sheet *out, const json_t *value);
void heddle__out_members(heddle__sheet *out, const json_t *object, const char *const *skip, size_t *count);

/* ", " unless it is the first, then "key": */
void heddle__out_key(heddle__sheet *out, const char *key, size_t *count);

#endif
