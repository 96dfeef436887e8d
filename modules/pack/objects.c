/* modules/pack/objects.c: takes objects from files and archives. Archives are untrusted: sizes are checked, and names in them
 * are looked at for their end only. */
#include "modules/pack/objects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/whole_file.h"
#include "modules/pack/elf_file.h"

static const char ar_magic[8] = {'!', '<', 'a', 'r', 'c', 'h', '>', '\n'};

/* A tar archive's header is 512 bytes with "ustar" in them. */
static bool is_tar(const unsigned char *data, size_t bytes) {
  return bytes >= 512 && memcmp(data + 257, "ustar", 5) == 0;
}

heddle__file_kind heddle__file_kind_of(const void *data, size_t bytes) {
  Elf64_Ehdr h;
  if (bytes >= sizeof ar_magic && memcmp(data, ar_magic, sizeof ar_magic) == 0) return HEDDLE__FILE_OBJECTS;
  if (is_tar(data, bytes)) return HEDDLE__FILE_OBJECTS;
  if (bytes < 4 || memcmp(data, ELFMAG, 4) != 0) return HEDDLE__FILE_OTHER;
  if (bytes < sizeof h) return HEDDLE__FILE_LIBRARY;
  memcpy(&h, data, sizeof h);
  return h.e_type == ET_REL ? HEDDLE__FILE_OBJECTS : HEDDLE__FILE_LIBRARY;
}

static heddle_status make_folder(heddle__objects *o, heddle_error *err) {
  const char *where = getenv("TMPDIR");
  if (o->folder[0] != '\0') return HEDDLE_OK;
  int n = snprintf(o->folder, sizeof o->folder, "%s/heddle-pack-XXXXXX", where != NULL && where[0] ? where : "/tmp");
  if (n > 0 && (size_t)n < sizeof o->folder - 40 && mkdtemp(o->folder) != NULL) return HEDDLE_OK;
  int problem = errno;
  o->folder[0] = '\0';
  return heddle__fail(err, HEDDLE_EIO, "a folder for objects could not be made: %s", strerror(problem));
}

static heddle_status add_file(heddle__objects *o, const char *suffix, const void *data, size_t bytes,
                              heddle_error *err) {
  heddle_status s = make_folder(o, err);
  if (s != HEDDLE_OK) return s;
  if (o->n_files == HEDDLE__MOST_OBJECTS) return heddle__fail(err, HEDDLE_ELIMIT, "there are more than 4,096 objects");
  char **more = heddle__grow((void *)o->files, o->n_files, (size_t)o->n_files + 1, sizeof *more);
  if (more == NULL) return heddle__no_memory(err, "objects");
  o->files = more;
  size_t room = strlen(o->folder) + 24;
  char *path = heddle__alloc(room, 1);
  if (path == NULL) return heddle__no_memory(err, "objects");
  o->files[o->n_files] = path;
  snprintf(path, room, "%s/%u%s", o->folder, (unsigned)o->n_files++, suffix);
  return heddle__file_write(path, data, bytes, err);
}

static heddle_status keep_blob(heddle__objects *o, void *image, heddle__span blob, heddle__blob_layout layout,
                               heddle_error *err) {
  size_t n = (size_t)o->n_blobs + 1;
  void **images = heddle__grow((void *)o->images, o->n_blobs, n, sizeof *images);
  if (images != NULL) o->images = images;
  heddle__span *blobs = heddle__grow(o->blobs, o->n_blobs, n, sizeof *blobs);
  if (blobs != NULL) o->blobs = blobs;
  heddle__blob_layout *layouts = heddle__grow(o->layouts, o->n_blobs, n, sizeof *layouts);
  if (layouts != NULL) o->layouts = layouts;
  if (images == NULL || blobs == NULL || layouts == NULL) {
    heddle__free(image);
    return heddle__no_memory(err, "objects");
  }
  o->images[o->n_blobs] = image;
  o->blobs[o->n_blobs] = blob;
  o->layouts[o->n_blobs++] = layout;
  return HEDDLE_OK;
}

/* One that holds modules and no code is not linked: several libraries have one each, of the same name. */
static heddle_status add_object(heddle__objects *o, const unsigned char *data, size_t bytes, heddle_error *err) {
  heddle__elf_file f;
  heddle__span blob = {NULL, 0};
  heddle__blob_layout layout = HEDDLE__BLOB_PACKED;
  const char *symbol;
  void *image = heddle__alloc_aligned(bytes, 64);
  if (image == NULL) return heddle__no_memory(err, "objects");
  memcpy(image, data, bytes);
  heddle_status s = heddle__elf_read(image, bytes, true, &f, err);
  if (s == HEDDLE_OK && f.symbols != 0) s = heddle__elf_blob(&f, &blob, &layout, &symbol, err);
  bool only_modules = s == HEDDLE_OK && blob.data != NULL && !heddle__elf_has_functions(&f);
  heddle__elf_finish(&f);
  if (only_modules) return keep_blob(o, image, blob, layout, err);
  heddle__free(image);
  return s == HEDDLE_OK ? add_file(o, ".o", data, bytes, err) : s;
}

static bool ends_in(const char *name, const char *end) {
  size_t n = strlen(name), m = strlen(end);
  return n >= m && strcmp(name + n - m, end) == 0;
}

/* Numbers of headers: digits and spaces. */
static uint64_t number(const unsigned char *text, size_t n, unsigned base) {
  uint64_t value = 0;
  for (size_t i = 0; i < n && value < UINT64_MAX / 64; i++)
    if (text[i] >= '0' && text[i] < '0' + base) value = value * base + (uint64_t)(text[i] - '0');
  return value;
}

static heddle_status cut(heddle_error *err, const char *what) {
  return heddle__fail(err, HEDDLE_EFORMAT, "the archive is cut off in %s", what);
}

/* 60 bytes before each member, which is followed by a byte where its size is odd. */
static heddle_status add_ar(heddle__objects *o, const unsigned char *data, size_t bytes, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t at = sizeof ar_magic; at < bytes && s == HEDDLE_OK;) {
    if (bytes - at < 60) return cut(err, "a header");
    const unsigned char *head = data + at;
    uint64_t n = number(head + 48, 10, 10);
    at += 60;
    if (n > bytes - at) return cut(err, "a member");
    if (n >= 4 && memcmp(data + at, ELFMAG, 4) == 0) s = add_object(o, data + at, (size_t)n, err);
    at += (size_t)n + (n % 2 != 0 && at + n < bytes);
  }
  return s;
}

static heddle_status add_tar(heddle__objects *o, const unsigned char *data, size_t bytes, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t at = 0; bytes - at >= 512 && data[at] != 0 && s == HEDDLE_OK;) {
    const unsigned char *head = data + at;
    char name[101] = "";
    memcpy(name, head, 100);
    uint64_t n = number(head + 124, 12, 8);
    if (memcmp(head + 257, "ustar", 5) != 0) return heddle__fail(err, HEDDLE_EFORMAT, "the archive is malformed");
    at += 512;
    if (n > bytes - at) return cut(err, "a member");
    bool is_file = head[156] == '0' || head[156] == 0;
    if (is_file && n >= 4 && memcmp(data + at, ELFMAG, 4) == 0) s = add_object(o, data + at, (size_t)n, err);
    else if (is_file && ends_in(name, ".c")) s = add_file(o, ".c", data + at, (size_t)n, err);
    else if (is_file && ends_in(name, ".cc")) s = add_file(o, ".cc", data + at, (size_t)n, err);
    uint64_t whole = (n + 511) & ~UINT64_C(511);
    if (whole > bytes - at) return s;
    at += (size_t)whole;
  }
  return s;
}

heddle_status heddle__objects_add(heddle__objects *o, const void *data, size_t bytes, heddle_error *err) {
  if (is_tar(data, bytes)) return add_tar(o, data, bytes, err);
  if (memcmp(data, ar_magic, sizeof ar_magic) == 0) return add_ar(o, data, bytes, err);
  return add_object(o, data, bytes, err);
}

void heddle__objects_finish(heddle__objects *o) {
  for (uint32_t i = 0; i < o->n_files; i++) {
    unlink(o->files[i]);
    heddle__free(o->files[i]);
  }
  for (uint32_t i = 0; i < o->n_blobs; i++) heddle__free(o->images[i]);
  if (o->folder[0] != '\0') rmdir(o->folder);
  heddle__free((void *)o->files);
  heddle__free((void *)o->images);
  heddle__free(o->blobs);
  heddle__free(o->layouts);
  memset(o, 0, sizeof *o);
}
