/* tools/signature.h: what a file says of its signature and its encryption. */
#ifndef HEDDLE_TOOLS_SIGNATURE_H
#define HEDDLE_TOOLS_SIGNATURE_H

#include <jansson.h>
#include <stdbool.h>

#include "heddle/sign.h"

bool signature_says(const char *path, uint32_t flag);
void signature_print(const char *path);
json_t *signature_object(const char *path); /* null where it has neither */

#endif
