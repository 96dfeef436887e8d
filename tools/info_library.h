/* tools/info_library.h: what heddle info says of a compiled library. */
#ifndef HEDDLE_TOOLS_INFO_LIBRARY_H
#define HEDDLE_TOOLS_INFO_LIBRARY_H

#include <jansson.h>
#include <stdbool.h>

#include "heddle/heddle.h"

/* Opens a library for looking at it: no plugin is loaded. *ctx is released by the caller after *out. */
heddle_status info_library_open(const char *path, heddle_context **ctx, heddle_module **out, heddle_error *err);

/* Whether a file begins as a library does. */
bool info_is_library(const char *path);

/* Its generation, functions, and the modules that it carries with their kernels. library may be NULL. */
void info_library_print(const heddle_module *library);
json_t *info_library_object(const heddle_module *library);

#endif
