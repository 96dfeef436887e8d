/* tools/ranks.h: contexts over the ranks of MPI, for lists of devices that name ranks. */
#ifndef HEDDLE_TOOLS_RANKS_H
#define HEDDLE_TOOLS_RANKS_H

#include "heddle/heddle.h"
#include "heddle/ranks.h"

/* An ordinary context; or one over MPI_COMM_WORLD, by libheddle_mpi, where the list (NULL: the variable HEDDLE_DEVICES) has an
 * item "RANK/DEVICE". */
heddle_status ranks_context(const char *devices, const heddle_setting *settings, size_t n, heddle_context **out,
                            heddle_error *err);

#endif
