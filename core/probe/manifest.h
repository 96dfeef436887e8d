/* core/probe/manifest.h: a plugin's manifest, the JSON file beside its library: what it says, read from bytes that may be
 * anybody's. */
#ifndef HEDDLE_CORE_PROBE_MANIFEST_H
#define HEDDLE_CORE_PROBE_MANIFEST_H

#include "core/probe.h"

/* Reads the text of a manifest. HEDDLE_EFORMAT names what is wrong and where; HEDDLE_EABI where it is for another major
 * version of the plugin ABI, with out->name set. Any thread; opens nothing. */
heddle_status heddle__manifest_parse(const char *text, size_t bytes, heddle__manifest *out, heddle_error *err);

#endif
