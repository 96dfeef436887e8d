/* core/memory_file.c: memory files (memfd_create) that are sealed: their bytes never change again. */
#define _GNU_SOURCE /* memfd_create, F_ADD_SEALS */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/sealed.h"
#include "plugins/common/cachefile.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
enum { PIECE = 1 << 16 };

/* Kernels before 6.3 know neither flag, and their memory files can be run. */
heddle_status heddle__memory_file(const char *name, bool runs, int *out, heddle_error *err) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  *out = memfd_create("heddle", flags | (runs ? MFD_EXEC : MFD_NOEXEC_SEAL));
  if (*out < 0 && errno == EINVAL) *out = memfd_create("heddle", flags);
  if (*out >= 0) return HEDDLE_OK;
  if (errno == EACCES && runs)
    return heddle__fail(err, HEDDLE_EDENIED,
                        "%s: this system lets no memory file be run (vm.memfd_noexec is 2), so a library cannot be "
                        "loaded from bytes that were verified",
                        name);
  return heddle__fail(err,
                      errno == ENOSYS   ? HEDDLE_EUNSUPPORTED
                      : errno == ENOMEM ? HEDDLE_ENOMEM
                                        : HEDDLE_EIO,
                      "%s: no memory file can be made (memfd_create): %s", name, strerror(errno));
}

heddle_status heddle__memory_put(int file, const void *data, size_t bytes, heddle_error *err) {
  if (cachefile_write_all(file, data, bytes)) return HEDDLE_OK;
  return heddle__fail(err, errno == ENOSPC || errno == ENOMEM ? HEDDLE_ENOMEM : HEDDLE_EIO,
                      "its copy could not be written: %s", strerror(errno));
}

heddle_status heddle__memory_seal(int file, heddle_error *err) {
  const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (fcntl(file, F_ADD_SEALS, seals) == 0) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EUNSUPPORTED, "a memory file could not be sealed: %s", strerror(errno));
}

heddle_status heddle__each_piece(int file, uint64_t bytes, const char *name, heddle__take_piece take, void *user,
                                 heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  char *piece = heddle__alloc(PIECE, 1);
  if (piece == NULL) return heddle__no_memory(err, "a file's bytes");
  for (uint64_t done = 0; done < bytes && s == HEDDLE_OK;) {
    const ssize_t n = pread(file, piece, bytes - done < PIECE ? (size_t)(bytes - done) : PIECE, (off_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      s = heddle__fail(err, HEDDLE_EIO, "%s: could not be read: %s", name,
                       n < 0 ? strerror(errno) : "it became shorter while it was read");
    else s = take(user, piece, (size_t)n, err);
    if (n > 0) done += (uint64_t)n;
  }
  heddle__free(piece);
  return s;
}

static heddle_status put_piece(void *user, const void *data, size_t n, heddle_error *err) {
  return heddle__memory_put(*(const int *)user, data, n, err);
}

heddle_status heddle__memory_copy(int from, uint64_t bytes, const char *name, bool runs, int *out, heddle_error *err) {
  heddle_status s = heddle__memory_file(name, runs, out, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__each_piece(from, bytes, name, put_piece, out, err);
  if (s == HEDDLE_OK) s = heddle__memory_seal(*out, err);
  if (s == HEDDLE_OK) return s;
  close(*out);
  *out = -1;
  return s;
}
