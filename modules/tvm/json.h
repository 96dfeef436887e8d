/* modules/tvm/json.h: JSON text written bit by bit, as results that TVM gives as C++ maps. */
#ifndef HEDDLE_MODULES_TVM_JSON_H
#define HEDDLE_MODULES_TVM_JSON_H

#include "modules/tvm/thread.h"

/* Zeroed it is empty. Where memory is out it is lost, and stays so: _give then fails. */
typedef struct heddle__json {
  char *data; /* terminated, once something was added */
  size_t used, room;
  bool lost;
} heddle__json;

void heddle__json_add(heddle__json *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
void heddle__json_string(heddle__json *j, const char *s); /* quoted */
void heddle__json_microseconds(heddle__json *j, uint64_t ns);
void heddle__json_shape(heddle__json *j, const int64_t *shape, uint32_t ndim);
void heddle__json_dtype(heddle__json *j, heddle_dtype dtype); /* by TVM's name: "float32", "bool" */

/* As the result of a call; frees the text. 0, or -1 with words. */
int heddle__json_give(heddle__json *j, heddle__word *ret, int32_t *ret_code);

#endif
