/* executor/range.h: programs that cover ranges of shapes. Where shapes change from run to run, a model plans one program, the
 * root, for a bound of each dimension that changes, and makes the programs of all smaller shapes of it: they keep the
 * root's regions, steps, streams, offsets and proof, and have shapes, sizes and operators of their own. A bound program
 * goes from one to the other in its memory and on its streams. */
#ifndef HEDDLE_EXECUTOR_RANGE_H
#define HEDDLE_EXECUTOR_RANGE_H

#include "executor/bind.h"

/* A program for an order whose shapes a root covers; where the shapes exceed all roots, a root is planned for the next
 * power of two of each dimension that changed. *out stays NULL where the order is the first of its form, or is to be
 * planned for itself, which is logged. Any thread; blocks. */
heddle_status heddle__range_program(heddle_model *m, const heddle__wish *wish, heddle__order *order,
                                    heddle__program **out, heddle_error *err);

/* Takes a root out of use: there is no memory for its bound. Any thread. */
void heddle__range_refuse(heddle__program *root);

/* Notes, and logs, that a plugin does not take some shape that a root covers. After some in a row no more of them are made by
 * it. Any thread. */
void heddle__range_miss(heddle__program *root, const char *why);

/* resize.c: the program of a smaller order by the root's plan; takes over order on success. HEDDLE_EUNSUPPORTED where a
 * plugin offers something else for these shapes, or a value would need more bytes than the root gave it. open, which may be
 * NULL, has per value whether it will change later (sizes.h): regions that are resized then have shapes of their own. Any
 * thread. */
heddle_status heddle__program_resize(heddle_model *m, heddle__program *root, heddle__order *order, const bool *open,
                                     heddle__program **out, heddle_error *err);

/* resize.c: the size of a value in its layout, which a region of the device gives it. */
heddle_status heddle__value_measure(heddle__plan *plan, uint32_t value, uint32_t device, heddle_error *err);

/* resize.c: prepares a region for the shapes of a program, where op.resize does not serve them; heddle__program_op gives the
 * operator from then on. HEDDLE_EUNSUPPORTED as above. Any thread. */
heddle_status heddle__program_late(heddle__program *p, uint32_t region, heddle_error *err);

/* Whether a shape differs from that of the bound in open dimensions alone; they have equally many. */
static inline bool heddle__is_within(const heddle__value *bound, const heddle__known *now) {
  for (uint32_t d = 0; d < now->ndim; d++)
    if (now->shape[d] != bound->known.shape[d] && (bound->open_dims >> d & 1) == 0) return false;
  return true;
}

/* Whether what is bound for one program can go on with the other. */
static inline bool heddle__program_related(const heddle__program *a, const heddle__program *b) {
  return (a->root != NULL ? a->root : a) == (b->root != NULL ? b->root : b);
}

/* Puts a related program under what is bound: launches and copies are resized, and segments where
 * that does not do are bound again by heddle__bound_refresh. Between runs. Cannot fail. */
void heddle__bound_retarget(heddle__bound *b, heddle__program *program);

/* The same for the side that runs, where the program was changed while the other one ran. */
void heddle__bound_adapt(heddle__bound *b);

/* Frees what a program prepared late, and what is bound of it. */
void heddle__bound_forget_late(heddle__bound *b, heddle__program *program);

#endif
