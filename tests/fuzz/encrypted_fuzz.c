/* Any bytes as an encrypted file: no crash, no leak, a refusal has words; and what was encrypted comes back, unless one of
 * its bytes was changed. Input: a byte of flags (1: the rest is content that is encrypted first; 2: of that, the byte at the next
 * four bytes' number is changed; 4: of a file that is not, the head's magic, key and size are made right), four bytes, the rest. */
#define _GNU_SOURCE /* memfd_create */
#include <sodium.h>
#include <string.h>

#include "core/alloc.h"
#include "core/sign/sign.h"
#include "graph/graph.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char key[32] = "heddle";

static heddle_status give_key(void *user, const char *id, unsigned char out[32], heddle_error *err) {
  (void)user, (void)id, (void)err;
  memcpy(out, key, sizeof key);
  return HEDDLE_OK;
}

/* The encrypted form of bytes; *n its length, from malloc. */
static unsigned char *encrypt(const uint8_t *data, size_t size, size_t *n) {
  heddle_error err;
  static int to = -1;
  if (to < 0) to = memfd_create("encrypted", 0);
  if (to < 0 || ftruncate(to, 0) != 0 || lseek(to, 0, SEEK_SET) != 0) abort();
  if (heddle__encrypt(memory_file(data, size), size, HEDDLE__HOLDS_OTHER, to, key, &err) != HEDDLE_OK) abort();
  *n = (size_t)lseek(to, 0, SEEK_CUR);
  unsigned char *out = malloc(*n);
  if (out == NULL || pread(to, out, *n, 0) != (ssize_t)*n) abort();
  return out;
}

static heddle_status parse(const void *data, size_t n) {
  heddle_error err = {0};
  heddle_params *params = NULL;
  heddle_status s = heddle_params_parse(data, n, "the file", NULL, &params, &err);
  if (s != HEDDLE_OK && (err.status != s || err.text[0] == '\0' || params != NULL)) abort();
  heddle_params_release(params);
  return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t live = heddle__alloc_live();
  heddle_error err;
  if (size < 5 || heddle_key_callback(give_key, NULL, &err) != HEDDLE_OK) return 0;
  const unsigned flags = data[0];
  const uint64_t number = heddle__number_at(data + 1, 4);
  data += 5, size -= 5;
  if ((flags & 1) != 0) {
    size_t n;
    if (heddle__is_encrypted(data, size)) return 0; /* as content it stays encrypted */
    unsigned char *file = encrypt(data, size, &n);
    const heddle_status want = parse(data, size);
    if ((flags & 2) != 0) file[number % n] ^= (unsigned char)(1 + (number >> 24) % 255);
    const heddle_status got = parse(file, n);
    if ((flags & 2) == 0 ? got != want : got == HEDDLE_OK) abort();
    free(file);
  } else {
    unsigned char *file = malloc(size + 1);
    if (file == NULL) abort();
    memcpy(file, data, size);
    if ((flags & 4) != 0 && size >= HEDDLE__STREAM_HEAD) {
      memcpy(file, HEDDLE_ENCRYPTED_MAGIC "\1\0\0\0", 12);
      heddle__cipher_id(key, file + HEDDLE__STREAM_ID);
      const uint64_t chunk = heddle__number_at(file + 12, 4), body = size - HEDDLE__STREAM_HEAD;
      if (chunk > 0) heddle__number_to(file + 16, 8, body - 17 * ((body + chunk + 16) / (chunk + 17)));
    }
    (void)parse(file, size);
    free(file);
  }
  if (heddle__alloc_live() != live) abort();
  return 0;
}
