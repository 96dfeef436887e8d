/* op.list answers for devices that there are not.
 * caught by: errors/words
 * and by: errors/%
 * says: op.list */
#include "base.h"

static heddle_status mine_op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                                  heddle_error *err) {
  index = 0;
  return base_op_list(self, index, list, sink, err);
}

#define base_op_list mine_op_list
#include "tables.h"
