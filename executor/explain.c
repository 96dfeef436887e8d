/* executor/explain.c: the explanation of a plan, in a build without executor/explain/. */
#include "executor/explain.h"

#include "core/parts.h"

#if !HEDDLE_HAS_EXPLAIN
heddle_status heddle__explain(const heddle__plan *plan, heddle_explain_format format, char **out, heddle_error *err) {
  (void)plan, (void)format;
  *out = NULL;
  return heddle__left_out(err, "explanations of plans", "HEDDLE_EXPLAIN");
}
#endif
