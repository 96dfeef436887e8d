// heddle/mpi.hpp: contexts over the ranks of an MPI communicator (heddle/mpi.h). Programs link libheddle_mpi too.
#ifndef HEDDLE_MPI_HPP
#define HEDDLE_MPI_HPP

#include "heddle/cpp/context.hpp"
#include "heddle/mpi.h"

namespace heddle {

// comm: the address of an MPI_Comm; nullptr: MPI_COMM_WORLD. All of its ranks call this.
inline Result<Context> try_create_mpi(const void *comm = nullptr, const Settings &settings = {}, Log log = nullptr) {
  return Context::try_create_on(
      [comm](const heddle_setting *list, std::size_t n, heddle_log_fn fn, void *user, heddle_context **out,
             heddle_error *err) { return heddle_context_create_mpi(comm, list, n, fn, user, out, err); },
      settings, std::move(log));
}

} // namespace heddle

#endif
