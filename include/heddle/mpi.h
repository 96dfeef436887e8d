/* heddle/mpi.h: contexts whose models run over the ranks of an MPI communicator. In libheddle_mpi.so, which is built where
 * MPI is found. docs/cluster.md describes the whole. */
#ifndef HEDDLE_MPI_H
#define HEDDLE_MPI_H

#include "heddle/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a context on a duplicate of a communicator: heddle_context_create_ranks with MPI as its transport. comm is the
 * address of an MPI_Comm (of the MPI that libheddle_mpi was built with); NULL: MPI_COMM_WORLD. Where MPI is not initialised
 * this initialises it, and the end of the context finalises it. MPI has at least MPI_THREAD_SERIALIZED; a program that
 * calls MPI itself while the context is there has MPI_THREAD_MULTIPLE. All ranks of comm call this. HEDDLE_EINVAL for the null
 * communicator and for a lower level of threads, HEDDLE_EFAILED where MPI fails. */
HEDDLE_API heddle_status heddle_context_create_mpi(const void *comm, const heddle_setting *settings, size_t n_settings,
                                                   heddle_log_fn log, void *log_user, heddle_context **out,
                                                   heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
