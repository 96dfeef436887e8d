/* core/sign/stream.c: encrypted files: a head, and XChaCha20-Poly1305 in chunks (crypto_secretstream), whose order, number
 * and length cannot be changed. */
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/sign/sign.h"

enum {
  EXTRA = crypto_secretstream_xchacha20poly1305_ABYTES,
  AUTHENTIC = 40, /* bytes of the head that the first chunk authenticates */
  MOST_CHUNK = 1 << 24
};

static uint64_t chunks_of(uint64_t bytes, uint64_t chunk) {
  return bytes == 0 ? 1 : bytes / chunk + (bytes % chunk != 0);
}

static heddle_status fill(int from, uint64_t at, unsigned char *to, size_t bytes, heddle_error *err) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = pread(from, to + done, bytes - done, (off_t)(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return heddle__fail(err, HEDDLE_EIO, "the file could not be read: %s",
                          n < 0 ? strerror(errno) : "it became shorter");
    done += (size_t)n;
  }
  return HEDDLE_OK;
}

heddle_status heddle__encrypt(int from, uint64_t bytes, int holds, int to,
                              const unsigned char key[HEDDLE__CIPHER_BYTES], heddle_error *err) {
  crypto_secretstream_xchacha20poly1305_state state;
  unsigned char head[HEDDLE__STREAM_HEAD] = HEDDLE_ENCRYPTED_MAGIC;
  const size_t chunk = HEDDLE__STREAM_CHUNK;
  unsigned char *plain = heddle__alloc(chunk, 1), *cipher = heddle__alloc(chunk + EXTRA, 1);
  heddle__number_to(head + 8, 4, 1);
  heddle__number_to(head + 12, 4, chunk);
  heddle__number_to(head + 16, 8, bytes);
  heddle__cipher_id(key, head + HEDDLE__STREAM_ID);
  head[HEDDLE__STREAM_KIND] = (unsigned char)holds;
  crypto_secretstream_xchacha20poly1305_init_push(&state, head + AUTHENTIC, key);
  heddle_status s = plain && cipher ? HEDDLE_OK : heddle__no_memory(err, "a chunk of a file");
  if (s == HEDDLE_OK) s = heddle__memory_put(to, head, sizeof head, err);
  for (uint64_t i = 0, n = chunks_of(bytes, chunk); i < n && s == HEDDLE_OK; i++) {
    size_t part = bytes - i * chunk < chunk ? (size_t)(bytes - i * chunk) : chunk;
    unsigned char tag = i + 1 == n ? crypto_secretstream_xchacha20poly1305_TAG_FINAL : 0;
    s = fill(from, i * chunk, plain, part, err);
    if (s == HEDDLE_OK)
      crypto_secretstream_xchacha20poly1305_push(&state, cipher, NULL, plain, part, i == 0 ? head : NULL,
                                                 i == 0 ? AUTHENTIC : 0, tag);
    if (s == HEDDLE_OK) s = heddle__memory_put(to, cipher, part + EXTRA, err);
  }
  sodium_memzero(&state, sizeof state);
  if (plain != NULL) sodium_memzero(plain, chunk);
  heddle__free(plain);
  heddle__free(cipher);
  return s;
}

/* What a head says; the sizes are held against those of the file. */
static heddle_status read_head(const unsigned char *data, uint64_t bytes, uint64_t *plain, uint64_t *chunk,
                               heddle_error *err) {
  if (bytes < HEDDLE__STREAM_HEAD + EXTRA) return heddle__fail(err, HEDDLE_EDENIED, "the encrypted file is cut off");
  if (heddle__number_at(data + 8, 4) != 1)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "it is encrypted in version %llu, and 1 is read here",
                        (unsigned long long)heddle__number_at(data + 8, 4));
  *chunk = heddle__number_at(data + 12, 4);
  *plain = heddle__number_at(data + 16, 8);
  if (*chunk == 0 || *chunk > MOST_CHUNK)
    return heddle__fail(err, HEDDLE_EFORMAT, "the encrypted file has chunks of %llu bytes", (unsigned long long)*chunk);
  uint64_t body = bytes - HEDDLE__STREAM_HEAD;
  if (*plain > body || chunks_of(*plain, *chunk) > body / EXTRA || body != *plain + chunks_of(*plain, *chunk) * EXTRA)
    return heddle__fail(err, HEDDLE_EDENIED, "the encrypted file was changed: it is cut off or too long");
  return HEDDLE_OK;
}

static heddle_status pull_all(crypto_secretstream_xchacha20poly1305_state *state, const unsigned char *data,
                              uint64_t plain, uint64_t chunk, unsigned char *piece, const char *name, int *out,
                              heddle_error *err) {
  const unsigned char *at = data + HEDDLE__STREAM_HEAD;
  heddle_status s = HEDDLE_OK;
  for (uint64_t i = 0, n = chunks_of(plain, chunk); i < n && s == HEDDLE_OK; i++) {
    size_t part = plain - i * chunk < chunk ? (size_t)(plain - i * chunk) : (size_t)chunk;
    unsigned char tag = 0, want = i + 1 == n ? crypto_secretstream_xchacha20poly1305_TAG_FINAL : 0;
    if (crypto_secretstream_xchacha20poly1305_pull(state, piece, NULL, &tag, at, part + EXTRA, i == 0 ? data : NULL,
                                                   i == 0 ? AUTHENTIC : 0) != 0 ||
        tag != want)
      return heddle__fail(err, HEDDLE_EDENIED, "the encrypted file was changed (chunk %llu)", (unsigned long long)i);
    if (i == 0) s = heddle__memory_file(name, heddle__is_elf(piece, part), out, err);
    if (s == HEDDLE_OK) s = heddle__memory_put(*out, piece, part, err);
    at += part + EXTRA;
  }
  return s == HEDDLE_OK ? heddle__memory_seal(*out, err) : s;
}

heddle_status heddle__decrypt(const unsigned char *data, uint64_t bytes, const char *name, const char *key_file,
                              int *out, heddle_error *err) {
  crypto_secretstream_xchacha20poly1305_state state;
  unsigned char key[HEDDLE__CIPHER_BYTES], *piece = NULL;
  uint64_t plain = 0, chunk = 0;
  *out = -1;
  heddle_status s = read_head(data, bytes, &plain, &chunk, err);
  if (s == HEDDLE_OK) s = heddle__key_ask(key_file, data + HEDDLE__STREAM_ID, key, err);
  if (s != HEDDLE_OK) return s;
  size_t room = plain < chunk ? (size_t)plain + 1 : (size_t)chunk;
  if (crypto_secretstream_xchacha20poly1305_init_pull(&state, data + AUTHENTIC, key) != 0)
    s = heddle__fail(err, HEDDLE_EDENIED, "the encrypted file was changed (its head)");
  sodium_memzero(key, sizeof key);
  if (s == HEDDLE_OK) {
    piece = heddle__alloc(room, 1);
    s = piece != NULL ? pull_all(&state, data, plain, chunk, piece, name, out, err)
                      : heddle__no_memory(err, "a chunk of a file");
  }
  sodium_memzero(&state, sizeof state);
  if (piece != NULL) sodium_memzero(piece, room);
  heddle__free(piece);
  if (s == HEDDLE_OK) return s;
  if (*out >= 0) close(*out);
  *out = -1;
  return s;
}
