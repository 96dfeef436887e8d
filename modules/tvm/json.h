/* modules/tvm/json.h: results as JSON text where TVM returns C++ maps. */
#ifndef HEDDLE_MODULES_TVM_JSON_H
#define HEDDLE_MODULES_TVM_JSON_H

#include "core/sheet.h"
#include "modules/tvm/thread.h"

void heddle__json_shape(heddle__sheet *j, const int64_t *shape, uint32_t ndim);

/* TVM's name of a dtype, "float32", "bool"; "" for its void, which has no bits. _json_dtype: in quotes. */
void heddle__tvm_dtype_text(heddle_dtype dtype, char text[40]);
void heddle__json_dtype(heddle__sheet *j, heddle_dtype dtype);

/* Returns the text as the result of a call and frees it. 0, or -1 with a message, as where memory was out. */
int heddle__json_give(heddle__sheet *j, heddle__word *ret, int32_t *ret_code);

#endif
