/* core/sign/seal.c: verifies and decrypts sealed copies, before anything parses them. */
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/context.h"
#include "core/error.h"
#include "core/sign/sign.h"

/* Of a sealed file, which cannot shrink under it. */
static heddle_status map(const heddle__sealed *s, uint64_t bytes, const unsigned char **out, heddle_error *err) {
  static const unsigned char nothing[1];
  *out = nothing;
  if (bytes == 0) return HEDDLE_OK;
  void *data = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, s->file, 0);
  if (data == MAP_FAILED) return heddle__fail(err, HEDDLE_ENOMEM, "%s: cannot be mapped: %s", s->name, strerror(errno));
  *out = data;
  return HEDDLE_OK;
}

static void unmap(const unsigned char *data, uint64_t bytes) {
  if (bytes > 0) munmap((void *)(uintptr_t)data, (size_t)bytes);
}

/* Whether the bytes are those that were signed by the key of the signature. */
static bool is_true(const heddle__signature *signature, const unsigned char *data, uint64_t bytes) {
  crypto_sign_state state;
  if (signature->bytes != bytes || heddle__number_at(signature->raw + 8, 4) != HEDDLE__SIGNATURE_VERSION ||
      heddle__number_at(signature->raw + 12, 4) != HEDDLE__SIGNATURE_ED25519PH)
    return false;
  crypto_sign_init(&state);
  crypto_sign_update(&state, signature->raw, HEDDLE__SIGNATURE_HEAD);
  crypto_sign_update(&state, data, bytes);
  unsigned char raw[crypto_sign_BYTES];
  memcpy(raw, signature->raw + HEDDLE__SIGNATURE_HEAD, sizeof raw);
  return crypto_sign_final_verify(&state, raw, signature->key) == 0;
}

heddle_status heddle__verify_sealed(heddle__sealed *s, uint64_t content, const char *trust, heddle_error *err) {
  const unsigned char *data;
  heddle_status status = heddle__trust_check(trust, &s->signature, err);
  if (status != HEDDLE_OK) return heddle__prefix(err, status, "%s: ", s->name);
  status = map(s, content, &data, err);
  if (status != HEDDLE_OK) return status;
  s->is_verified = is_true(&s->signature, data, content);
  unmap(data, content);
  if (s->is_verified) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EDENIED, "%s: its signature is wrong: the file%s was changed after it was signed",
                      s->name, s->signature.is_detached ? " or its .sig" : "");
}

heddle_status heddle__decrypt_sealed(heddle__sealed *s, uint64_t content, const char *key_file, heddle_error *err) {
  const unsigned char *data;
  int plain = -1;
  heddle_status status = map(s, content, &data, err);
  if (status != HEDDLE_OK) return status;
  status = heddle__decrypt(data, content, s->name, key_file, &plain, err);
  unmap(data, content);
  if (status != HEDDLE_OK) return heddle__prefix_name(err, status, s->name);
  close(s->file);
  s->file = plain;
  return HEDDLE_OK;
}

heddle_status heddle__trust_accepts(const char *trust, const heddle__signature *signature, heddle_error *err) {
  return heddle__trust_check(trust, signature, err);
}

/* ---- the public check */

heddle_status heddle_verify(const char *path, const char *trust, heddle_signature *out, heddle_error *err) {
  heddle__sealed file;
  heddle_signature say = {.struct_size = sizeof say, .flags = HEDDLE_SIGNATURE_SIGNED};
  unsigned char head[40];
  trust = heddle__trust_file(trust);
  if (path == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no file to be verified: path is NULL");
  if (trust == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: no trust file is named, by the call or by HEDDLE_TRUST", path);
  heddle_status s = heddle__sealed_verify(path, trust, &file, err);
  if (s != HEDDLE_OK) return s;
  say.bytes = file.signature.bytes;
  say.sequence = file.signature.sequence;
  if (file.signature.is_detached) say.flags |= HEDDLE_SIGNATURE_DETACHED;
  heddle__key_id(file.signature.key, say.key_id);
  if (pread(file.file, head, sizeof head, 0) == (ssize_t)sizeof head) heddle__encrypted_says(head, &say);
  heddle__sealed_close(&file);
  return out != NULL ? heddle__info_give(out, &say, sizeof say, err) : HEDDLE_OK;
}
