/* Each launch leaves a page of memory mapped.
 * caught by: leaks/launches
 * and by: leaks/%
 * says: mappings */
#define _GNU_SOURCE
#include "base.h"

#include <sys/mman.h>

static heddle_status mine_op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands,
                                  heddle_plaunch **out, heddle_error *err) {
  if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
    return p_fail(err, HEDDLE_ENOMEM, 0, "no page");
  return base_op_bind(op, stream, operands, out, err);
}

#define base_op_bind mine_op_bind
#include "tables.h"
