/* core/sealed.c: decides of each file of a model whether it is read where it lies or from a sealed copy. */
#define _GNU_SOURCE /* secure_getenv */
#include "core/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/config.h"
#include "core/context.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/sign/sign.h"
#include "core/whole_file.h"
#include "heddle/pack.h"

const char heddle__verified[] = "";

enum { HEAD = 8 };

/* ---- signatures as bytes */

static bool read_signature(const unsigned char *raw, bool detached, heddle__signature *out) {
  if (memcmp(raw, HEDDLE_SIGNATURE_MAGIC, 8) != 0) return false;
  memcpy(out->raw, raw, sizeof out->raw);
  out->bytes = heddle__number_at(raw + 16, 8);
  out->sequence = heddle__number_at(raw + 24, 8);
  memcpy(out->key, raw + 32, sizeof out->key);
  out->is_detached = detached;
  return true;
}

static bool read_at(int file, uint64_t at, void *to, size_t bytes) {
  ssize_t n;
  do n = pread(file, to, bytes, (off_t)at);
  while (n < 0 && errno == EINTR);
  return n == (ssize_t)bytes;
}

bool heddle__signature_at_end(int file, uint64_t file_bytes, heddle__signature *out) {
  unsigned char raw[HEDDLE__SIGNATURE_BYTES];
  return file_bytes >= sizeof raw && read_at(file, file_bytes - sizeof raw, raw, sizeof raw) &&
         read_signature(raw, false, out) && out->bytes == file_bytes - sizeof raw;
}

uint64_t heddle__unsigned_bytes(int file, uint64_t file_bytes) {
  heddle__signature s;
  return heddle__signature_at_end(file, file_bytes, &s) ? s.bytes : file_bytes;
}

static bool read_detached(const char *path, heddle__signature *out) {
  unsigned char raw[HEDDLE__SIGNATURE_BYTES];
  struct stat info;
  char *beside = heddle__format("%s.sig", path);
  int file = beside != NULL ? open(beside, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  heddle__free(beside);
  if (file < 0) return false;
  bool good = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == sizeof raw &&
              read_at(file, 0, raw, sizeof raw) && read_signature(raw, true, out);
  close(file);
  return good;
}

bool heddle__signature_of(int file, uint64_t file_bytes, const char *path, heddle__signature *out) {
  return heddle__signature_at_end(file, file_bytes, out) || (path != NULL && read_detached(path, out));
}

void heddle__key_id(const unsigned char key[8], char out[20]) {
  for (int i = 0; i < 8; i++) sprintf(out + 2 * i, "%02x", key[i]);
}

bool heddle__is_encrypted(const unsigned char *head, size_t n) {
  return n >= 8 && memcmp(head, HEDDLE_ENCRYPTED_MAGIC, 8) == 0;
}

bool heddle__is_elf(const unsigned char *head, size_t n) {
  return n >= 4 && memcmp(head, "\177ELF", 4) == 0;
}

/* ---- what counts */

static const char *variable(const char *name) {
  const char *value = secure_getenv(name);
  return value != NULL && value[0] != '\0' && !heddle__config_is_off(value) ? value : NULL;
}

const char *heddle__trust_file(const char *given) {
  if (given == HEDDLE__VERIFIED) return NULL;
  return given != NULL && !heddle__config_is_off(given) ? given : variable("HEDDLE_TRUST");
}

heddle_status heddle__trust_given(const char *trust, heddle_error *err) {
  if (trust == NULL || trust == HEDDLE__VERIFIED || (trust[0] != '\0' && !heddle__config_is_off(trust)))
    return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EINVAL, "the option trust is '%s': it names a trust file, or is NULL", trust);
}

heddle__file_access heddle__access_of(heddle_context *ctx, const char *trust, const char *key) {
  heddle__file_access out = {trust, key};
  if (trust == NULL) (void)heddle__config_get(ctx->config, "trust", &out.trust, NULL);
  if (key == NULL) (void)heddle__config_get(ctx->config, "key_file", &out.key, NULL);
  out.trust = heddle__trust_file(out.trust);
  return out;
}

/* ---- opening */

static heddle_status name_it(heddle__sealed *s) {
  if (s->file < 0) {
    s->use = s->name;
    return HEDDLE_OK;
  }
  snprintf(s->own, sizeof s->own, "/proc/self/fd/%d", s->file);
  s->use = s->own;
  return HEDDLE_OK;
}

/* How a file is taken: trust NULL: nobody has to have signed it. */
typedef struct manner {
  const char *path; /* beside which a signature may lie; NULL: nowhere */
  const char *trust, *key;
  uint64_t max_bytes;
  bool is_kept; /* encrypted, if it is */
} manner;

/* A file that needs no verification: in place, unless a signature behind it would trouble its reader. */
static heddle_status take_plain(int file, uint64_t bytes, bool ends_anywhere, const manner *m, heddle__sealed *out,
                                heddle_error *err) {
  out->is_signed = heddle__signature_at_end(file, bytes, &out->signature);
  if (!out->is_signed || ends_anywhere) return name_it(out);
  heddle_status s = heddle__check_bytes(out->name, bytes, m->max_bytes, err);
  if (s == HEDDLE_OK) s = heddle__memory_copy(file, out->signature.bytes, out->name, false, &out->file, err);
  return s == HEDDLE_OK ? name_it(out) : s;
}

#if HEDDLE_HAS_SODIUM
static heddle_status take_sealed(int file, uint64_t bytes, bool runs, bool decrypts, const manner *m,
                                 heddle__sealed *out, heddle_error *err) {
  heddle_status s = heddle__check_bytes(out->name, bytes, m->max_bytes, err);
  out->is_signed = heddle__signature_of(file, bytes, m->path, &out->signature);
  uint64_t content = out->is_signed && !out->signature.is_detached ? out->signature.bytes : bytes;
  if (s == HEDDLE_OK && m->trust != NULL && !out->is_signed) {
    s = heddle__trust_check(m->trust, NULL, err);
    s = heddle__prefix(err, s, "%s: ", out->name);
  }
  if (s == HEDDLE_OK) s = heddle__memory_copy(file, content, out->name, runs, &out->file, err);
  if (s == HEDDLE_OK && m->trust != NULL) s = heddle__verify_sealed(out, content, m->trust, err);
  if (s == HEDDLE_OK && decrypts) s = heddle__decrypt_sealed(out, content, m->key, err);
  if (s == HEDDLE_OK) return name_it(out);
  heddle__sealed_close(out);
  return s;
}
#else
static heddle_status take_sealed(int file, uint64_t bytes, bool runs, bool decrypts, const manner *m,
                                 heddle__sealed *out, heddle_error *err) {
  (void)file, (void)bytes, (void)runs, (void)decrypts;
  heddle_status s =
      heddle__left_out(err, m->trust != NULL ? "verification of signatures" : "decryption of files", "HEDDLE_SODIUM");
  return heddle__prefix(err, s, "%s: ", out->name);
}
#endif

static heddle_status take(int file, const manner *m, heddle__sealed *out, heddle_error *err) {
  struct stat info;
  unsigned char head[HEAD] = {0};
  if (fstat(file, &info) != 0) return heddle__fail(err, HEDDLE_EIO, "%s: %s", out->name, strerror(errno));
  if (!S_ISREG(info.st_mode)) {
    if (m->trust == NULL) return name_it(out);
    return heddle__fail(err, HEDDLE_EIO, "%s: not a regular file", out->name);
  }
  uint64_t bytes = (uint64_t)info.st_size;
  size_t n = bytes < HEAD ? (size_t)bytes : HEAD;
  if (!read_at(file, 0, head, n)) return heddle__fail(err, HEDDLE_EIO, "%s: could not be read", out->name);
  bool encrypted = heddle__is_encrypted(head, n), elf = heddle__is_elf(head, n);
  if (m->trust != NULL || (encrypted && !m->is_kept))
    return take_sealed(file, bytes, elf, encrypted && !m->is_kept, m, out, err);
  return take_plain(file, bytes, elf || (n == HEAD && memcmp(head, HEDDLE_PACK_MAGIC, HEAD) == 0), m, out, err);
}

static heddle_status take_path(const manner *m, heddle__sealed *out, heddle_error *err) {
  *out = (heddle__sealed){.name = m->path, .use = m->path, .file = -1};
  int file = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    if (m->trust == NULL) return HEDDLE_OK;
    return heddle__fail(err, HEDDLE_EIO, "%s: %s", m->path, strerror(errno));
  }
  heddle_status s = take(file, m, out, err);
  close(file);
  return s;
}

heddle_status heddle__sealed_open(const char *path, const heddle__file_access *access, uint64_t max_bytes,
                                  heddle__sealed *out, heddle_error *err) {
  const char *trust = heddle__trust_file(access != NULL ? access->trust : NULL);
  const manner m = {path, trust, access != NULL ? access->key : NULL, max_bytes, false};
  return take_path(&m, out, err);
}

heddle_status heddle__sealed_verify(const char *path, const char *trust, heddle__sealed *out, heddle_error *err) {
  const manner m = {path, trust, NULL, UINT64_MAX, true};
  return take_path(&m, out, err);
}

heddle_status heddle__sealed_bytes(const void *data, size_t bytes, const char *name, const heddle__file_access *access,
                                   bool *is_needed, heddle__sealed *out, heddle_error *err) {
  const char *given = access != NULL ? access->trust : NULL, *trust = heddle__trust_file(given);
  const manner m = {NULL, trust, access != NULL ? access->key : NULL, UINT64_MAX, false};
  int file = -1;
  *out = (heddle__sealed){.name = name, .use = name, .file = -1};
  *is_needed = trust != NULL || (given != HEDDLE__VERIFIED && bytes > 0 && heddle__is_encrypted(data, bytes));
  if (!*is_needed) return HEDDLE_OK;
  heddle_status s = heddle__memory_file(name, false, &file, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__memory_put(file, data, bytes, err);
  if (s == HEDDLE_OK) s = heddle__memory_seal(file, err);
  if (s == HEDDLE_OK) s = take(file, &m, out, err);
  close(file);
  return s;
}

void heddle__sealed_close(heddle__sealed *s) {
  if (s->file >= 0) close(s->file);
  s->file = -1;
}

heddle_status heddle__sealed_map(const heddle__sealed *s, const void **data, size_t *bytes, heddle_error *err) {
  struct stat info;
  *data = "";
  *bytes = 0;
  if (fstat(s->file, &info) != 0) return heddle__fail(err, HEDDLE_EIO, "%s: its copy is lost", s->name);
  if (info.st_size == 0) return HEDDLE_OK;
  void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, s->file, 0);
  if (map == MAP_FAILED) return heddle__no_memory(err, "a verified file");
  *data = map;
  *bytes = (size_t)info.st_size;
  return HEDDLE_OK;
}

void heddle__sealed_unmap(const void *data, size_t bytes) {
  if (bytes > 0) munmap((void *)(uintptr_t)data, bytes);
}

heddle_status heddle__sealed_failed(const heddle__sealed *s, heddle_status status, heddle_error *err) {
  return status != HEDDLE_OK && s->file >= 0 ? heddle__prefix(err, status, "%s: ", s->name) : status;
}

/* ---- what a file says */

void heddle__encrypted_says(const unsigned char head[40], heddle_signature *out) {
  if (!heddle__is_encrypted(head, 40)) return;
  const int holds = head[HEDDLE__STREAM_KIND];
  out->flags |= HEDDLE_SIGNATURE_ENCRYPTED;
  if (holds == HEDDLE__HOLDS_LIBRARY) out->flags |= HEDDLE_SIGNATURE_LIBRARY;
  if (holds == HEDDLE__HOLDS_PACKED) out->flags |= HEDDLE_SIGNATURE_PACKED;
  heddle__key_id(head + HEDDLE__STREAM_ID, out->encryption_key_id);
}

heddle_status heddle_signature_read(const char *path, heddle_signature *out, heddle_error *err) {
  heddle_signature say = {.struct_size = sizeof say};
  heddle__signature s;
  unsigned char head[40] = {0};
  struct stat info;
  if (path == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a signature is read of a path, to a place");
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return heddle__fail(err, HEDDLE_EIO, "%s: %s", path, strerror(errno));
  bool regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  if (regular) {
    say.bytes = (uint64_t)info.st_size;
    if (heddle__signature_of(file, say.bytes, path, &s)) {
      say.flags |= HEDDLE_SIGNATURE_SIGNED | (s.is_detached ? HEDDLE_SIGNATURE_DETACHED : 0);
      say.sequence = s.sequence;
      heddle__key_id(s.key, say.key_id);
      if (!s.is_detached) say.bytes = s.bytes;
    }
    if (say.bytes >= sizeof head && read_at(file, 0, head, sizeof head)) heddle__encrypted_says(head, &say);
  }
  close(file);
  if (!regular) return heddle__fail(err, HEDDLE_EIO, "%s: not a regular file", path);
  return heddle__info_give(out, &say, sizeof say, err);
}
