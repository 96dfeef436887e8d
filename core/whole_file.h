/* core/whole_file.h: whole files in and out. Readers look at a limit before anything is allocated; writers write beside the
 * place, synchronise and rename, so that no reader sees half a file and what was there stays where writing fails. */
#ifndef HEDDLE_CORE_WHOLE_FILE_H
#define HEDDLE_CORE_WHOLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

/* HEDDLE_ELIMIT where bytes is over max_bytes. */
heddle_status heddle__check_bytes(const char *name, uint64_t bytes, uint64_t max_bytes, heddle_error *err);

/* The bytes of a file that is a regular one; *out is freed with heddle__free. HEDDLE_EIO, HEDDLE_ELIMIT. */
heddle_status heddle__file_read(const char *path, uint64_t max_bytes, void **out, size_t *bytes, heddle_error *err);

/* Writes a file anew. HEDDLE_EIO. */
heddle_status heddle__file_write(const char *path, const void *data, size_t bytes, heddle_error *err);

/* A file in the making. After HEDDLE_OK of begin, keep or drop ends it. */
typedef struct heddle__aside {
  int file; /* descriptor: writers may use it themselves */
  bool in_place;
  char *path, *aside;
} heddle__aside;

/* runs: the file is a program or a library, and gets the rights of one. A path that is there and no regular file (a pipe,
 * a terminal) is written to directly. */
heddle_status heddle__aside_begin(heddle__aside *a, const char *path, bool runs, heddle_error *err);
heddle_status heddle__aside_put(heddle__aside *a, const void *data, size_t bytes, heddle_error *err);
heddle_status heddle__aside_keep(heddle__aside *a, heddle_error *err); /* the file has its name */
void heddle__aside_drop(heddle__aside *a);

#endif
