/* executor/explain.c: opens libheddle_explain.so, which puts plans into words. */
#include "executor/explain.h"

#include "core/alloc.h"
#include "core/beside.h"
#include "executor/budget.h"

heddle_status heddle__explain(const heddle__plan *plan, heddle_explain_format format, char **out, heddle_error *err) {
  static const heddle__explain_host host = {.alloc = heddle__alloc,
                                            .grow = heddle__grow,
                                            .free = heddle__free,
                                            .dtype_text = heddle__dtype_text,
                                            .plan_bytes = heddle__plan_bytes};
  const void *table = NULL;
  *out = NULL;
  heddle_status s = heddle__open_beside("libheddle_explain.so.0", "the explanation of a plan needs",
                                        "heddle_explain_entry", 0, NULL, &table, err);
  return s == HEDDLE_OK ? ((const heddle__explain_table *)table)->explain(&host, plan, format, out, err) : s;
}
