/* tools/described.h: the settings that plugins describe, for people, for programs, and for completion. */
#ifndef HEDDLE_TOOLS_DESCRIBED_H
#define HEDDLE_TOOLS_DESCRIBED_H

#include "heddle/device.h"
#include "text.h"

/* Prints one setting a line: key, default, what it may be, help. */
void described_print(heddle_context *ctx);

/* {"settings": [{...}]}; NULL when memory is out. */
json_t *described_json(heddle_context *ctx);

#endif
