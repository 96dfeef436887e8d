/* modules/tvm/json.h: results as JSON text where TVM returns C++ maps. */
#ifndef HEDDLE_MODULES_TVM_JSON_H
#define HEDDLE_MODULES_TVM_JSON_H

#include "core/sheet.h"
#include "modules/tvm/thread.h"

void heddle__json_shape(heddle__sheet *j, const int64_t *shape, uint32_t ndim);
void heddle__json_dtype(heddle__sheet *j, heddle_dtype dtype); /* by TVM's name: "float32", "bool" */

/* Returns the text as the result of a call and frees it. 0, or -1 with a message, as where memory was out. */
int heddle__json_give(heddle__sheet *j, heddle__word *ret, int32_t *ret_code);

#endif
