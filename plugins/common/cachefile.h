/* Files of caches: the one way in which Heddle and its plugins read and write them, with no call but the system's, so that
 * libraries beside libheddle compile this file in too.
 *
 * A folder is used where it is this user's own and neither it nor one above it can be written to by others: the rule for
 * folders of plugins (core/trust.c). Who owns a folder above does not count: others cannot give this user files. No
 * link is followed in place of the folder or of a file, and a file must be this user's own, a regular one, and of no
 * more bytes than its reader takes.
 *
 * A file is written beside its place, under a lock that ends with the process, synchronised and renamed: readers see the
 * old or the new one, and what a dead process left is removed by the next writer. A file beyond the process's limit of
 * file sizes (RLIMIT_FSIZE) is not begun, since the system would end the process with a signal. The folder itself is not
 * synchronised: a name that is lost with the power is a file that is made again. */
#ifndef HEDDLE_PLUGINS_COMMON_CACHEFILE_H
#define HEDDLE_PLUGINS_COMMON_CACHEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { CACHEFILE_NAME = 160, CACHEFILE_WHY = 512 };

/* Where files of one kind lie. prefix and suffix are of their names; other files of the folder are left alone. limit is how
 * many bytes they may have together: where one more is written, those that were read or written longest ago are removed. */
typedef struct cachefile_place {
  const char *folder; /* absolute */
  const char *prefix, *suffix;
  uint64_t limit;
} cachefile_place;

/* A file in the making. */
typedef struct cachefile {
  const cachefile_place *place;
  int folder, file; /* descriptors */
  uint64_t bytes, put;
  uint32_t removed; /* how many others, to make room */
  char name[CACHEFILE_NAME], aside[CACHEFILE_NAME + 48];
} cachefile;

/* Can the group of a file or folder write to it, where that is more than this user or root? */
static inline bool cachefile_group_may_write(const struct stat *at) {
  return (at->st_mode & S_IWGRP) != 0 && at->st_gid != 0 && at->st_gid != at->st_uid; /* a user's own group */
}

/* In all of these, why is room for CACHEFILE_WHY bytes and gets one line; empty where a file or folder is not there. Any
 * thread, any number of processes. */

/* A descriptor of the folder; -1 where it cannot be used. make: what is missing of it is made, for this user alone. */
int cachefile_folder(const char *path, bool make, char *why);

/* A descriptor to read from, and the file's size; -1 where no usable one exists. Counts as a use. */
int cachefile_open(const cachefile_place *place, const char *name, uint64_t most, uint64_t *bytes, char *why);
/* Reads so many bytes; false where there are fewer. */
bool cachefile_read(int file, void *to, size_t bytes);

/* Writes so many bytes to any descriptor; false, with errno, where that fails. */
bool cachefile_write_all(int file, const void *data, size_t bytes);

/* May the process write a file of so many bytes? */
bool cachefile_fits(uint64_t bytes, char *why);

/* Begins a file of so many bytes, whose name has the place's prefix and suffix. Makes the folder, and room in it. After
 * true, cachefile_keep or cachefile_drop ends it. place stays until then. */
bool cachefile_begin(cachefile *f, const cachefile_place *place, const char *name, uint64_t bytes, char *why);
/* The next bytes of the file; of no more than were begun. */
bool cachefile_put(cachefile *f, const void *data, size_t bytes, char *why);
/* Gives the file its name. sync: its bytes are on the disk before; without, for large files that their reader checks
 * where the machine was started since. False: it is dropped. */
bool cachefile_keep(cachefile *f, bool sync, char *why);
void cachefile_drop(cachefile *f);

/* begin, put and keep in one. */
bool cachefile_write(const cachefile_place *place, const char *name, const void *data, uint64_t bytes, char *why);

#endif
