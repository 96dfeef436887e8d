/* op.bind handles a signal of the process.
 * caught by: process/calls
 * says: op.bind changed the handler of signal 12 */
#include "base.h"

#include <signal.h>

static void nothing(int number) {
  (void)number;
}

static heddle_status bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                          heddle_error *err) {
  signal(SIGUSR2, nothing);
  return base_op_bind(op, stream, operands, out, err);
}

#define base_op_bind bind
#include "tables.h"
