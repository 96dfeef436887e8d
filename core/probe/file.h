/* core/probe/file.h: small files that are read whole, and records of tries that are written. */
#ifndef HEDDLE_CORE_PROBE_FILE_H
#define HEDDLE_CORE_PROBE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

/* Reads a regular file of at most limit bytes; *text is malloc's, with a zero behind it. ours: it is a file of a
 * cache (plugins/common/cachefile.h). HEDDLE_ENOTFOUND where there is none; HEDDLE_EIO, HEDDLE_ELIMIT,
 * HEDDLE_ENOMEM. Any thread. */
heddle_status heddle__probe_file_read(const char *path, bool ours, size_t limit, char **text, size_t *bytes,
                                      heddle_error *err);

/* Writes all of it; false: errno says why. A limit on the size of files is an error here, not the signal that ends the
 * process. */
bool heddle__file_put(int fd, const char *data, size_t bytes);

/* Writes probe-*.json of the folder as plugins/common/cachefile.h has it; limit is for all such files. HEDDLE_EIO with
 * why. */
heddle_status heddle__probe_file_write(const char *folder, const char *name, uint64_t limit, const char *text,
                                       heddle_error *err);

#endif
