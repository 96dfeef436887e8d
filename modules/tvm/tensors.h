/* modules/tvm/tensors.h: the DLTensors of bound nodes, each kept once: many nodes read a value, and a run walks all of
 * its tensors, so that fewer of them are faster. */
#ifndef HEDDLE_MODULES_TVM_TENSORS_H
#define HEDDLE_MODULES_TVM_TENSORS_H

#include <pthread.h>
#include <stdbool.h>

#include "modules/tvm/abi.h"

struct heddle__shared;

/* One per library. */
typedef struct heddle__tensors {
  pthread_mutex_t lock; /* guards the rest; a leaf */
  struct heddle__shared **buckets;
  uint32_t n_buckets, count;
} heddle__tensors;

bool heddle__tensors_init(heddle__tensors *pool);
void heddle__tensors_finish(heddle__tensors *pool); /* all were given back */

/* A tensor like this one, with a copy of its shape; NULL where memory is out. give: takes NULL. Any thread. */
heddle__dltensor *heddle__tensors_take(heddle__tensors *pool, const heddle__dltensor *like);
void heddle__tensors_give(heddle__tensors *pool, heddle__dltensor *tensor);

#endif
