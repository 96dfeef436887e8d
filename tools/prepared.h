/* tools/prepared.h: what a package has prepared for devices, as heddle info shows it. */
#ifndef HEDDLE_TOOLS_PREPARED_H
#define HEDDLE_TOOLS_PREPARED_H

#include <jansson.h>
#include <stdbool.h>

#include "heddle/graph.h"

/* The object of heddle_params_prepared, compared with the devices that are here; null where nothing was prepared. */
heddle_status prepared_read(const heddle_params *params, json_t **out, heddle_error *err);
void prepared_print(const json_t *prepared, bool all);

#endif
