/* core/sign/write.c: writes signed and encrypted files, and decrypts them. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/sign/sign.h"
#include "core/whole_file.h"
#include "heddle/pack.h"

/* A file that is signed or encrypted. */
typedef struct work {
  const char *path, *to;
  int file;
  uint64_t bytes; /* without a signature that it ends with */
  mode_t mode;    /* its rights, which a file that takes its place keeps */
  bool is_elf, is_packed, is_encrypted, ends_signed;
} work;

static heddle_status open_source(const char *path, work *w, heddle_error *err) {
  struct stat info;
  unsigned char head[8] = {0};
  *w = (work){.path = path, .to = path, .file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (w->file < 0) return heddle__fail(err, HEDDLE_EIO, "%s: %s", path, strerror(errno));
  if (fstat(w->file, &info) != 0 || !S_ISREG(info.st_mode))
    return heddle__fail(err, HEDDLE_EIO, "%s: not a regular file", path);
  w->bytes = heddle__unsigned_bytes(w->file, (uint64_t)info.st_size);
  w->mode = info.st_mode & 0777;
  w->ends_signed = w->bytes != (uint64_t)info.st_size;
  ssize_t n = pread(w->file, head, sizeof head, 0);
  size_t got = n > 0 ? (size_t)n : 0;
  w->is_elf = heddle__is_elf(head, got);
  w->is_encrypted = heddle__is_encrypted(head, got);
  w->is_packed = got == sizeof head && memcmp(head, HEDDLE_PACK_MAGIC, sizeof head) == 0;
  return HEDDLE_OK;
}

static heddle_status put_piece(void *user, const void *data, size_t n, heddle_error *err) {
  return heddle__aside_put(user, data, n, err);
}

static heddle_status sign_piece(void *user, const void *data, size_t n, heddle_error *err) {
  (void)err;
  crypto_sign_update(user, data, n);
  return HEDDLE_OK;
}

static heddle_status make_signature(int file, uint64_t bytes, const char *name, const heddle_sign_options *o,
                                    unsigned char raw[HEDDLE__SIGNATURE_BYTES], heddle_error *err) {
  crypto_sign_state state;
  unsigned char secret[HEDDLE__SECRET_BYTES];
  heddle_status s = heddle__key_secret(o->sign, secret, err);
  if (s != HEDDLE_OK) return s;
  memset(raw, 0, HEDDLE__SIGNATURE_BYTES);
  memcpy(raw, HEDDLE_SIGNATURE_MAGIC, 8);
  heddle__number_to(raw + 8, 4, HEDDLE__SIGNATURE_VERSION);
  heddle__number_to(raw + 12, 4, HEDDLE__SIGNATURE_ED25519PH);
  heddle__number_to(raw + 16, 8, bytes);
  heddle__number_to(raw + 24, 8, o->sequence);
  crypto_sign_ed25519_sk_to_pk(raw + 32, secret);
  crypto_sign_init(&state);
  crypto_sign_update(&state, raw, HEDDLE__SIGNATURE_HEAD);
  s = heddle__each_piece(file, bytes, name, sign_piece, &state, err);
  if (s == HEDDLE_OK && crypto_sign_final_create(&state, raw + HEDDLE__SIGNATURE_HEAD, NULL, secret) != 0)
    s = heddle__fail(err, HEDDLE_EFAILED, "%s: libsodium could not sign it", name);
  sodium_memzero(secret, sizeof secret);
  sodium_memzero(&state, sizeof state);
  return s;
}

static heddle_status write_detached(const char *to, const unsigned char *raw, heddle_error *err) {
  heddle__aside a;
  char *beside = heddle__format("%s.sig", to);
  if (beside == NULL) return heddle__no_memory(err, "the path of a signature");
  heddle_status s = heddle__aside_begin(&a, beside, false, err);
  if (s == HEDDLE_OK) {
    s = heddle__aside_put(&a, raw, HEDDLE__SIGNATURE_BYTES, err);
    if (s == HEDDLE_OK) s = heddle__aside_keep(&a, err);
    else heddle__aside_drop(&a);
  }
  heddle__free(beside);
  return s;
}

/* What the new file holds, before a signature. */
static heddle_status write_content(const work *w, const heddle_sign_options *o, heddle__aside *a, uint64_t *bytes,
                                   heddle_error *err) {
  unsigned char key[HEDDLE__CIPHER_BYTES];
  const int holds = w->is_elf ? HEDDLE__HOLDS_LIBRARY : w->is_packed ? HEDDLE__HOLDS_PACKED : HEDDLE__HOLDS_OTHER;
  *bytes = w->bytes;
  if (o->encrypt == NULL) return heddle__each_piece(w->file, w->bytes, w->path, put_piece, a, err);
  heddle_status s = heddle__key_cipher(o->encrypt, key, err);
  if (s == HEDDLE_OK) s = heddle__encrypt(w->file, w->bytes, holds, a->file, key, err);
  sodium_memzero(key, sizeof key);
  off_t end = s == HEDDLE_OK ? lseek(a->file, 0, SEEK_END) : 0;
  if (end < 0) return heddle__fail(err, HEDDLE_EIO, "%s: %s", w->to, strerror(errno));
  *bytes = (uint64_t)end;
  return s;
}

static heddle_status write_file(const work *w, const heddle_sign_options *o, bool detached, heddle_error *err) {
  heddle__aside a;
  unsigned char raw[HEDDLE__SIGNATURE_BYTES];
  uint64_t bytes = 0;
  heddle_status s = heddle__aside_begin(&a, w->to, w->is_elf && o->encrypt == NULL, err);
  if (s != HEDDLE_OK) return s;
  if (a.in_place) s = heddle__fail(err, HEDDLE_EIO, "%s: not a regular file", w->to);
  else if (w->to == w->path && fchmod(a.file, w->mode) != 0)
    s = heddle__fail(err, HEDDLE_EIO, "%s: its rights could not be kept: %s", w->to, strerror(errno));
  if (s == HEDDLE_OK) s = write_content(w, o, &a, &bytes, err);
  if (s == HEDDLE_OK && o->sign != NULL) s = make_signature(a.file, bytes, w->path, o, raw, err);
  if (s == HEDDLE_OK && o->sign != NULL && !detached) s = heddle__aside_put(&a, raw, sizeof raw, err);
  if (s == HEDDLE_OK && detached) s = write_detached(w->to, raw, err);
  if (s == HEDDLE_OK) return heddle__aside_keep(&a, err);
  heddle__aside_drop(&a);
  return s;
}

static heddle_status check(const char *path, const heddle_sign_options *given, heddle_sign_options *o,
                           heddle_error *err) {
  const uint32_t all = HEDDLE_SIGN_DETACHED | HEDDLE_SIGN_APPENDED;
  *o = (heddle_sign_options){.struct_size = sizeof *o};
  if (path == NULL || path[0] == '\0') return heddle__fail(err, HEDDLE_EINVAL, "there is no file to be signed");
  if (given == NULL || given->struct_size < sizeof given->struct_size)
    return heddle__fail(err, HEDDLE_EINVAL, "the options of signing are NULL or lack their struct_size");
  memcpy(o, given, given->struct_size < sizeof *o ? given->struct_size : sizeof *o);
  if (o->sign == NULL && o->encrypt == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: neither a key to sign with nor one to encrypt with is given", path);
  if ((o->flags & ~all) != 0 || (o->flags & all) == all)
    return heddle__fail(err, HEDDLE_EINVAL, "flags of signing that are unknown or exclude each other: %x",
                        (unsigned)o->flags);
  if (o->sign == NULL && (o->flags != 0 || o->sequence != 0))
    return heddle__fail(err, HEDDLE_EINVAL,
                        "%s: a sequence number and the place of a signature need a key to sign with", path);
  return heddle__sodium_start(err);
}

heddle_status heddle_sign(const char *path, const char *out_path, const heddle_sign_options *options,
                          heddle_error *err) {
  heddle_sign_options o;
  work w;
  unsigned char raw[HEDDLE__SIGNATURE_BYTES];
  heddle_status s = check(path, options, &o, err);
  if (s != HEDDLE_OK) return s;
  s = open_source(path, &w, err);
  if (s == HEDDLE_OK && o.encrypt != NULL && w.is_encrypted)
    s = heddle__fail(err, HEDDLE_EINVAL, "%s: it is encrypted already", path);
  if (out_path != NULL) w.to = out_path;
  bool holds = w.is_elf || w.is_packed || w.is_encrypted || o.encrypt != NULL; /* a signature behind its end */
  bool detached =
      o.sign != NULL && ((o.flags & HEDDLE_SIGN_DETACHED) != 0 || (!holds && (o.flags & HEDDLE_SIGN_APPENDED) == 0));
  if (s == HEDDLE_OK && detached && out_path == NULL && o.encrypt == NULL && !w.ends_signed) { /* it stays as it is */
    s = make_signature(w.file, w.bytes, path, &o, raw, err);
    if (s == HEDDLE_OK) s = write_detached(path, raw, err);
  } else if (s == HEDDLE_OK) {
    s = write_file(&w, &o, detached, err);
  }
  if (w.file >= 0) close(w.file);
  return s;
}

heddle_status heddle_decrypt(const char *path, const char *out_path, const char *key, heddle_error *err) {
  heddle__sealed file;
  heddle__aside a;
  struct stat info;
  const heddle__file_access access = {HEDDLE__VERIFIED, key};
  heddle_signature say = {.struct_size = sizeof say};
  if (path == NULL || out_path == NULL) return heddle__fail(err, HEDDLE_EINVAL, "decryption needs two paths");
  heddle_status s = heddle_signature_read(path, &say, err);
  if (s == HEDDLE_OK && (say.flags & HEDDLE_SIGNATURE_ENCRYPTED) == 0)
    s = heddle__fail(err, HEDDLE_EINVAL, "%s: it is not encrypted", path);
  if (s == HEDDLE_OK) s = heddle__sealed_open(path, &access, UINT64_MAX, &file, err);
  if (s != HEDDLE_OK) return s;
  if (file.file < 0 || fstat(file.file, &info) != 0)
    s = heddle__fail(err, HEDDLE_EIO, "%s: it changed meanwhile", path);
  unsigned char head[4] = {0};
  bool runs = s == HEDDLE_OK && pread(file.file, head, sizeof head, 0) == 4 && heddle__is_elf(head, sizeof head);
  if (s == HEDDLE_OK) s = heddle__aside_begin(&a, out_path, runs, err);
  if (s == HEDDLE_OK) {
    s = heddle__each_piece(file.file, (uint64_t)info.st_size, path, put_piece, &a, err);
    if (s == HEDDLE_OK) s = heddle__aside_keep(&a, err);
    else heddle__aside_drop(&a);
  }
  heddle__sealed_close(&file);
  return s;
}
