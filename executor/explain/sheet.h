/* executor/explain/sheet.h: what the three formats of an explanation share: the sheet, and words. */
#ifndef HEDDLE_EXECUTOR_EXPLAIN_SHEET_H
#define HEDDLE_EXECUTOR_EXPLAIN_SHEET_H

#include "core/sheet.h"
#include "executor/explain.h"

/* One file each. On failure the sheet is failed, or the status says what else went wrong. */
heddle_status heddle__explain_text(const heddle__plan *plan, heddle__sheet *sheet, heddle_error *err);
heddle_status heddle__explain_json(const heddle__plan *plan, heddle__sheet *sheet, heddle_error *err);
heddle_status heddle__explain_dot(const heddle__plan *plan, heddle__sheet *sheet, heddle_error *err);

/* Words for numbers, the same in all three. device may be HEDDLE__NONE: "host". */
const char *heddle__explain_device(const heddle__plan *plan, uint32_t device);
/* Nanoseconds that the plan expects of a crossing. */
uint64_t heddle__explain_time(const heddle__crossing *crossing);
const char *heddle__explain_step(heddle__step_kind kind);
const char *heddle__explain_memory(uint32_t kind); /* HEDDLE_MEMORY_* */

/* The short name of a layout ("plain", the plugin's own name, else the token) into name. */
enum { HEDDLE__LAYOUT_NAME = 64 };
void heddle__explain_layout(const heddle__plan *plan, uint32_t device, heddle_layout layout,
                            char name[HEDDLE__LAYOUT_NAME]);

/* What a step does, in a few words ("conv1 Conv", "x to sim:0"): for a person, and unique only with its number. */
void heddle__explain_label(const heddle__plan *plan, const heddle__step *step, heddle__sheet *sheet);

/* The region that a node became part of, for all nodes of the graph (HEDDLE__NONE where none): region_of has one
 * member a node. stream_of gets one member a region: the stream of its step, or HEDDLE__NONE for a view. */
void heddle__explain_regions(const heddle__plan *plan, uint32_t *region_of, uint32_t *stream_of);

/* The crossing that brings a value (or what it is a view of) to a device; NULL where there is none. */
const heddle__crossing *heddle__explain_crossing(const heddle__plan *plan, uint32_t value, uint32_t to);

/* An open dimension of an input that a plan uses. */
typedef struct heddle__explain_dim {
  const char *input;
  const char *name; /* NULL: it has none */
  uint32_t dim;
  int64_t value;
  int64_t bound; /* of the program that the plan is a size of, or is; 0: the plan is for this value alone */
  int64_t most;  /* of the options; 0: none */
} heddle__explain_dim;

/* The next one from input *arg, dimension *dim on, which begin at 0; false: there is none. */
bool heddle__explain_next_dim(const heddle__plan *plan, uint32_t *arg, uint32_t *dim, heddle__explain_dim *out);

/* How launches of a region get the shapes of a run: "resized" (by op.resize) or "prepared" (for each set of shapes); NULL
 * where the plan has no range, or where it makes no difference. */
const char *heddle__explain_sizes(const heddle__plan *plan, const heddle__region *r);

#endif
