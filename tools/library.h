/* tools/library.h: compiled libraries, as heddle info shows them. */
#ifndef HEDDLE_TOOLS_LIBRARY_H
#define HEDDLE_TOOLS_LIBRARY_H

#include <jansson.h>
#include <stdbool.h>

#include "heddle/heddle.h"

/* Whether a file begins as a library does. */
bool library_is(const char *path);

/* Opens a library for looking at it: no plugin is loaded. *ctx is released by the caller after *out. */
heddle_status library_open(const char *path, heddle_context **ctx, heddle_module **out, heddle_error *err);

/* How many models it holds. */
uint32_t library_models(const heddle_module *library);

/* Whether it has a function of this name. library may be NULL: it has none. */
bool library_has(const heddle_module *library, const char *function);

/* Its generation, functions, models, and the modules that it carries with their kernels; all: every row of a long list.
 * library may be NULL. */
void library_print(const heddle_module *library, bool all);
json_t *library_object(const heddle_module *library);

/* What a device is called that has this number of DLPack's: "opencl"; else "type 42", in scratch. */
const char *device_type_text(int32_t type, char scratch[24]);

#endif
