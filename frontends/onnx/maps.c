/* frontends/onnx/maps.c: maps files, each once, and keeps weights inside of the model's folder. */
#define _GNU_SOURCE /* realpath, madvise */
#include "frontends/onnx/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"

typedef struct map {
  dev_t device;
  ino_t file;
  void *data;
  size_t bytes;
  struct timespec content, entry; /* changed */
  bool is_settled;
} map;

struct heddle__onnx_maps {
  map *maps;
  size_t n;
  uint64_t left; /* bytes that may still be mapped */
  heddle__file_access access;
};

heddle__onnx_maps *heddle__onnx_maps_new(uint64_t max_bytes, const heddle__file_access *access) {
  heddle__onnx_maps *m = heddle__alloc(1, sizeof *m);
  if (m == NULL) return NULL;
  m->left = max_bytes;
  m->access = *access;
  return m;
}

void heddle__onnx_maps_free(void *maps) {
  heddle__onnx_maps *m = maps;
  if (m == NULL) return;
  for (size_t i = 0; i < m->n; i++)
    if (m->maps[i].data != NULL) munmap(m->maps[i].data, m->maps[i].bytes);
  heddle__free(m->maps);
  heddle__free(m);
}

/* Clocks of file systems are as coarse as two seconds: a file younger than that may be written to again in the same tick.
 * Images (squashfs, erofs, iso9660) have one time for both, in whole seconds, and two of them may have the same. */
static bool is_settled(const struct stat *info) {
  const time_t now = time(NULL);
  const struct timespec *bytes = &info->st_mtim, *entry = &info->st_ctim;
  if (bytes->tv_sec == entry->tv_sec && bytes->tv_nsec == 0 && entry->tv_nsec == 0) return false;
  return info->st_mtim.tv_sec + 2 < now && info->st_ctim.tv_sec + 2 < now;
}

/* *found: the file is mapped already; *info is filled. */
static heddle_status look(heddle__onnx_maps *m, int fd, const char *path, struct stat *info, const map **found,
                          heddle_error *err) {
  *found = NULL;
  if (fstat(fd, info) != 0) return heddle__fail(err, HEDDLE_EIO, "%s: %s", path, strerror(errno));
  if (!S_ISREG(info->st_mode)) return heddle__fail(err, HEDDLE_EIO, "%s: not a regular file", path);
  for (size_t i = 0; i < m->n && *found == NULL; i++)
    if (m->maps[i].device == info->st_dev && m->maps[i].file == info->st_ino) *found = &m->maps[i];
  return HEDDLE_OK;
}

/* Maps a file that the file at path, of info, is read from: itself, or its sealed copy. */
static heddle_status map_file(heddle__onnx_maps *m, int fd, bool is_copy, const struct stat *info, const char *path,
                              const map **out, heddle_error *err) {
  struct stat own;
  if (fstat(fd, &own) != 0) return heddle__fail(err, HEDDLE_EIO, "%s: %s", path, strerror(errno));
  uint64_t bytes = (uint64_t)own.st_size;
  if (bytes > m->left || bytes > SIZE_MAX)
    return heddle__fail(err, HEDDLE_ELIMIT,
                        "%s: %llu bytes, and of the limit of a model's parameters %llu are left; it is an option of "
                        "the reader",
                        path, (unsigned long long)bytes, (unsigned long long)m->left);
  map *grown = heddle__grow(m->maps, m->n, m->n + 1, sizeof *grown);
  if (grown == NULL) return heddle__no_memory(err, "the files of a model");
  m->maps = grown;
  map *new = &grown[m->n];
  *new = (map){
      info->st_dev, info->st_ino, NULL, (size_t)bytes, info->st_mtim, info->st_ctim, !is_copy && is_settled(info)};
  if (bytes > 0) {
    new->data = mmap(NULL, new->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (new->data == MAP_FAILED)
      return heddle__fail(err, errno == ENOMEM ? HEDDLE_ENOMEM : HEDDLE_EIO, "%s: it cannot be mapped: %s", path,
                          strerror(errno));
  }
  m->n++;
  m->left -= bytes;
  *out = new;
  return HEDDLE_OK;
}

heddle_status heddle__onnx_map(heddle__onnx_maps *maps, const char *path, const unsigned char **data, uint64_t *bytes,
                               heddle_error *err) {
  const map *found = NULL;
  struct stat info;
  heddle__sealed file = {.file = -1};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return heddle__fail(err, HEDDLE_EIO, "%s: %s", path, strerror(errno));
  heddle_status s = look(maps, fd, path, &info, &found, err);
  if (s == HEDDLE_OK && found == NULL) {
    s = heddle__sealed_open(path, &maps->access, maps->left, &file, err);
    bool is_copy = s == HEDDLE_OK && file.file >= 0;
    if (s == HEDDLE_OK) s = map_file(maps, is_copy ? file.file : fd, is_copy, &info, path, &found, err);
    heddle__sealed_close(&file);
  }
  close(fd);
  if (s != HEDDLE_OK) return s;
  *data = found->data;
  *bytes = found->bytes;
  return HEDDLE_OK;
}

/* The real path of the model's folder, with '/' at its end, from malloc. */
static char *folder_of(const char *model) {
  const char *slash = strrchr(model, '/');
  char *name = slash != NULL ? strndup(model, (size_t)(slash - model) + 1) : strdup(".");
  char *real = name != NULL ? realpath(name, NULL) : NULL;
  free(name);
  size_t n = real != NULL ? strlen(real) : 0;
  char *with = real != NULL ? realloc(real, n + 2) : NULL;
  if (with == NULL) {
    free(real);
    return NULL;
  }
  if (n == 0 || with[n - 1] != '/') memcpy(with + n, "/", 2);
  return with;
}

heddle_status heddle__onnx_map_beside(heddle__onnx_maps *maps, const char *model, const char *location,
                                      const unsigned char **data, uint64_t *bytes, heddle_error *err) {
  if (location[0] == '\0' || location[0] == '/')
    return heddle__fail(err, HEDDLE_EFORMAT,
                        "external data at '%.200s': expected a path relative to the model's folder", location);
  errno = 0;
  char *folder = folder_of(model), *path = NULL, *real = NULL;
  if (folder == NULL && errno != 0 && errno != ENOMEM)
    return heddle__fail(err, HEDDLE_EIO, "external data at '%.200s', and the folder that it is to be in: %s", location,
                        strerror(errno));
  size_t n = folder != NULL ? strlen(folder) : 0, room = n + strlen(location) + 1;
  if (folder != NULL) path = malloc(room);
  if (path == NULL) {
    free(folder);
    return heddle__no_memory(err, "the path of external data");
  }
  snprintf(path, room, "%s%s", folder, location);
  real = realpath(path, NULL);
  heddle_status s;
  if (real == NULL)
    s = heddle__fail(err, HEDDLE_EIO, "external data at '%.200s', which the model's folder does not hold: %s", location,
                     strerror(errno));
  else if (strncmp(real, folder, n) != 0)
    s = heddle__fail(err, HEDDLE_EFORMAT, "external data at '%.200s', which is outside of the model's folder: refused",
                     location);
  else s = heddle__onnx_map(maps, real, data, bytes, err);
  free(real);
  free(path);
  free(folder);
  return s;
}

/* The map that bytes are of, or NULL. */
static const map *find_map(const heddle__onnx_maps *m, const void *data, uint64_t bytes, uint64_t *offset) {
  for (size_t i = 0; i < m->n; i++) {
    uintptr_t start = (uintptr_t)m->maps[i].data, at = (uintptr_t)data;
    if (m->maps[i].data == NULL || at < start || at - start > m->maps[i].bytes) continue;
    *offset = at - start;
    if (bytes <= m->maps[i].bytes - (at - start)) return &m->maps[i];
  }
  return NULL;
}

void heddle__onnx_maps_forget(void *maps, const void *data, uint64_t bytes) {
  uint64_t offset;
  if (find_map(maps, data, bytes, &offset) != NULL) heddle__onnx_forget(data, bytes);
}

bool heddle__onnx_maps_where(void *maps, const void *data, uint64_t bytes, heddle__file_place *out) {
  uint64_t offset = 0;
  const map *m = find_map(maps, data, bytes, &offset);
  if (m == NULL || !m->is_settled) return false;
  *out = (heddle__file_place){m->device, m->file,
                              m->bytes,  offset,
                              bytes,     {m->content.tv_sec, m->content.tv_nsec, m->entry.tv_sec, m->entry.tv_nsec}};
  return true;
}

void heddle__onnx_forget(const unsigned char *data, uint64_t bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = ((uintptr_t)data + page - 1) / page * page;
  uintptr_t end = ((uintptr_t)data + bytes) / page * page;
  if (end > start) (void)madvise((void *)start, end - start, MADV_DONTNEED);
}
