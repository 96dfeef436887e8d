/* Walking through the lines of the tables, for the groups that ask about operators. */
#ifndef HEDDLE_CONFORMANCE_OP_EACH_H
#define HEDDLE_CONFORMANCE_OP_EACH_H

#include "op_case.h"

/* The name of a line's operator as cases have it: "Conv", "heddle.Gelu". */
void op_word(const op_line *line, char out[64]);

/* Gives every operator of the tables of which query takes at least one region, once, for kit_case.words; all of them
 * where query needs an open device. Nothing where the plugin has no operators. */
void op_words(kit *k, void (*each)(void *sink, const char *word), void *sink);

/* The n-th line of the operator that k->param names; NULL behind the last. */
const op_line *op_line_of(kit *k, uint32_t n);

/* Asks about a line with T as type; the status of query. */
heddle_status op_ask(kit *k, const op_line *line, char type, op_case *c, op_region *r, op_offers *o, uint32_t known);

/* Opens the device where query has answered that it needs that, or skips the case where there are no operators. */
heddle_pdevice *op_open_if_needed(kit *k);

/* The case query/partition (op_partition.c). */
void op_partition(kit *k);

/* The case numerics/resize (resize.c). */
void op_resize(kit *k);
void op_refused_resize(kit *k);

/* The case numerics/sizes (sizes.c). */
void op_sizes(kit *k);
void op_sizes_words(kit *k, void (*each)(void *sink, const char *word), void *sink);

/* The cases numerics/repeats and numerics/same-operands (repeats.c). */
void op_repeats(kit *k);
void op_same_operands(kit *k);

/* op_forms.c */
void op_newer(kit *k);
void op_older(kit *k);
void op_opsets(kit *k);
void op_kept(kit *k);
void op_quiet(kit *k);
void op_counts(kit *k);

#endif
