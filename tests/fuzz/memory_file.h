/* The bytes of a fuzz input as a file, for readers that take a path or a descriptor: one file in memory a process, written
 * anew for each input. */
#ifndef HEDDLE_TESTS_FUZZ_MEMORY_FILE_H
#define HEDDLE_TESTS_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The descriptor, at the file's begin. */
static inline int memory_file(const uint8_t *data, size_t size) {
  static int file = -1;
  if (file < 0) file = memfd_create("fuzz", 0);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size ||
      lseek(file, 0, SEEK_SET) != 0)
    abort();
  return file;
}

/* A path that opens the same file, in path. */
static inline void memory_path(int file, char path[40]) {
  snprintf(path, 40, "/proc/self/fd/%d", file);
}

#endif
