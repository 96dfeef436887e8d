/* Any bytes as a trust file and as a signed file: no crash, no leak, a refusal has words, and only what a listed key signed
 * is read. Input: a byte of flags (1: the file gets a right signature; 2: the trust file lists its key), two bytes with the
 * length of the trust file's text, that text, and the file. */
#define _GNU_SOURCE /* memfd_create */
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/sign/sign.h"
#include "graph/graph.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned char public[32], secret[64];

/* The text of a trust file in a memory file of its own. */
static void write_trust(const uint8_t *text, size_t n, bool lists, char path[40]) {
  static int file = -1;
  char base[60];
  if (file < 0) {
    const unsigned char seed[32] = "heddle";
    file = memfd_create("trust", 0);
    if (sodium_init() < 0 || file < 0 || fchmod(file, 0600) != 0) abort();
    crypto_sign_seed_keypair(public, secret, seed);
  }
  if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) abort();
  sodium_bin2base64(base, sizeof base, public, sizeof public, sodium_base64_VARIANT_ORIGINAL);
  if (lists) dprintf(file, "%s %s minimum=3\n", HEDDLE__TEXT_PUBLIC, base);
  if (write(file, text, n) != (ssize_t)n) abort();
  memory_path(file, path);
}

static size_t sign(unsigned char *file, size_t n, uint64_t sequence) {
  unsigned char *raw = file + n;
  crypto_sign_state state;
  memset(raw, 0, HEDDLE__SIGNATURE_BYTES);
  memcpy(raw, HEDDLE_SIGNATURE_MAGIC, 8);
  heddle__number_to(raw + 8, 4, HEDDLE__SIGNATURE_VERSION);
  heddle__number_to(raw + 12, 4, HEDDLE__SIGNATURE_ED25519PH);
  heddle__number_to(raw + 16, 8, n);
  heddle__number_to(raw + 24, 8, sequence);
  memcpy(raw + 32, public, sizeof public);
  crypto_sign_init(&state);
  crypto_sign_update(&state, raw, HEDDLE__SIGNATURE_HEAD);
  crypto_sign_update(&state, file, n);
  crypto_sign_final_create(&state, raw + HEDDLE__SIGNATURE_HEAD, NULL, secret);
  return n + HEDDLE__SIGNATURE_BYTES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t live = heddle__alloc_live();
  heddle_error err = {0};
  char trust[40];
  if (size < 3) return 0;
  const bool is_signed = (data[0] & 1) != 0, lists = (data[0] & 2) != 0;
  size_t n = data[1] | (size_t)data[2] << 8;
  if (n > size - 3) n = size - 3;
  write_trust(data + 3, n, lists, trust);
  size_t bytes = size - 3 - n;
  unsigned char *file = malloc(bytes + HEDDLE__SIGNATURE_BYTES);
  if (file == NULL) abort();
  memcpy(file, data + 3 + n, bytes);
  if (is_signed) bytes = sign(file, bytes, data[0] >> 2);
  const heddle_read_limits limits = {.struct_size = sizeof limits, .trust = trust, .key = NULL};
  heddle_params *params = NULL;
  heddle_status s = heddle_params_parse(file, bytes, "the file", &limits, &params, &err);
  if (s != HEDDLE_OK && (err.status != s || err.text[0] == '\0' || params != NULL)) abort();
  if (s == HEDDLE_OK && !(is_signed && data[0] >> 2 >= (lists ? 3 : 0))) abort();
  heddle_params_release(params);
  free(file);
  if (heddle__alloc_live() != live) abort();
  return 0;
}
