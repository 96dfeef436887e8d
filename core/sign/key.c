/* core/sign/key.c: key files. A key is one line, a word that names its kind and the bytes in base64. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/sign/sign.h"
#include "heddle/graph.h"

enum { MOST_KEY_FILE = 4096, BASE64 = sodium_base64_VARIANT_ORIGINAL };

heddle_status heddle__sodium_start(heddle_error *err) {
  return sodium_init() >= 0 ? HEDDLE_OK : heddle__fail(err, HEDDLE_EFAILED, "libsodium could not be started");
}

static bool decode(const char *text, size_t n, unsigned char *key, size_t bytes) {
  size_t made = 0;
  const char *end = NULL;
  if (n > 200) return false;
  return sodium_base642bin(key, bytes, text, n, NULL, &made, &end, BASE64) == 0 && made == bytes && end == text + n;
}

bool heddle__public_of_text(const char *text, size_t n, unsigned char key[HEDDLE__PUBLIC_BYTES]) {
  return decode(text, n, key, HEDDLE__PUBLIC_BYTES);
}

bool heddle__key_in_text(const char *text, size_t n, const char *word, unsigned char *key, size_t bytes) {
  const char *end = text + n;
  size_t k = strlen(word);
  for (const char *line = text; line < end;) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    if (stop == NULL) stop = end;
    const char *last = stop;
    while (last > line && (last[-1] == '\r' || last[-1] == ' ' || last[-1] == '\t')) last--;
    if ((size_t)(last - line) > k && memcmp(line, word, k) == 0 && line[k] == ' ')
      return decode(line + k + 1, (size_t)(last - line) - k - 1, key, bytes);
    line = stop + 1;
  }
  return false;
}

/* A small file whole, and its mode. text is erased by the caller. */
static heddle_status read_file(const char *path, char text[MOST_KEY_FILE], size_t *n, mode_t *mode, heddle_error *err) {
  struct stat info;
  heddle_status s = HEDDLE_OK;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  *n = 0;
  if (file < 0) return heddle__fail(err, HEDDLE_EIO, "the key %s: %s", path, strerror(errno));
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
    s = heddle__fail(err, HEDDLE_EIO, "the key %s: not a regular file", path);
  else if (info.st_size > MOST_KEY_FILE) s = heddle__fail(err, HEDDLE_EFORMAT, "the key %s: no key is that long", path);
  while (s == HEDDLE_OK && *n < MOST_KEY_FILE) {
    ssize_t got = read(file, text + *n, MOST_KEY_FILE - *n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) s = heddle__fail(err, HEDDLE_EIO, "the key %s: %s", path, strerror(errno));
    if (got <= 0) break;
    *n += (size_t)got;
  }
  close(file);
  *mode = info.st_mode & 0777;
  return s;
}

/* What a file holds in place of the wanted key. */
static const char *held_instead(const char *text, size_t n) {
  static const struct {
    const char *word, *what;
    size_t bytes;
  } kinds[] = {{HEDDLE__TEXT_SECRET, "a secret signing key", HEDDLE__SECRET_BYTES},
               {HEDDLE__TEXT_PUBLIC, "a public key, which only verifies", HEDDLE__PUBLIC_BYTES},
               {HEDDLE__TEXT_CIPHER, "an encryption key", HEDDLE__CIPHER_BYTES}};
  unsigned char key[HEDDLE__SECRET_BYTES];
  const char *found = NULL;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && found == NULL; i++)
    if (heddle__key_in_text(text, n, kinds[i].word, key, kinds[i].bytes)) found = kinds[i].what;
  sodium_memzero(key, sizeof key);
  return found;
}

/* Nobody but its owner may read a secret key. */
static heddle_status read_key(const char *path, const char *word, unsigned char *key, size_t bytes, const char *what,
                              heddle_error *err) {
  char text[MOST_KEY_FILE];
  size_t n = 0;
  mode_t mode = 0;
  heddle_status s = heddle__sodium_start(err);
  if (s == HEDDLE_OK) s = read_file(path, text, &n, &mode, err);
  if (s == HEDDLE_OK && !heddle__key_in_text(text, n, word, key, bytes)) {
    const char *other = held_instead(text, n);
    s = heddle__fail(err, HEDDLE_EFORMAT, "the key %s: it holds %s%sno %s (a line '%s ...')", path,
                     other != NULL ? other : "", other != NULL ? ", " : "", what, word);
  } else if (s == HEDDLE_OK && (mode & 077) != 0) {
    s = heddle__fail(err, HEDDLE_EDENIED,
                     "the key %s may be read or written by others than its owner (mode %03o): chmod 600 it, and "
                     "replace it if others could have read it",
                     path, (unsigned)mode);
  }
  sodium_memzero(text, sizeof text);
  if (s != HEDDLE_OK) sodium_memzero(key, bytes);
  return s;
}

heddle_status heddle__key_secret(const char *path, unsigned char key[HEDDLE__SECRET_BYTES], heddle_error *err) {
  return read_key(path, HEDDLE__TEXT_SECRET, key, HEDDLE__SECRET_BYTES, "secret signing key", err);
}

heddle_status heddle__key_cipher(const char *path, unsigned char key[HEDDLE__CIPHER_BYTES], heddle_error *err) {
  return read_key(path, HEDDLE__TEXT_CIPHER, key, HEDDLE__CIPHER_BYTES, "encryption key", err);
}

void heddle__cipher_id(const unsigned char key[HEDDLE__CIPHER_BYTES], unsigned char id[8]) {
  static const unsigned char name[] = "heddle encryption key";
  unsigned char hash[crypto_generichash_BYTES_MIN];
  crypto_generichash(hash, sizeof hash, name, sizeof name - 1, key, HEDDLE__CIPHER_BYTES);
  memcpy(id, hash, 8);
}

/* ---- new ones */

/* In a new file; what could be written of it goes again where that fails. */
static heddle_status write_new(const char *path, mode_t mode, const char *text, heddle_error *err) {
  size_t left = strlen(text);
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode), problem = 0;
  if (file < 0)
    return heddle__fail(err, HEDDLE_EIO, "the key %s could not be created: %s%s", path, strerror(errno),
                        errno == EEXIST ? " (a key is never written over)" : "");
  while (left > 0 && problem == 0) {
    ssize_t n = write(file, text, left);
    if (n < 0 && errno != EINTR) problem = errno;
    if (n > 0) text += n, left -= (size_t)n;
  }
  if (problem == 0 && fsync(file) != 0) problem = errno;
  if (close(file) != 0 && problem == 0) problem = errno;
  if (problem == 0) return HEDDLE_OK;
  (void)unlink(path);
  return heddle__fail(err, HEDDLE_EIO, "the key %s could not be written: %s", path, strerror(problem));
}

/* A secret key in base64, with a line that says whose it is; no copy of it stays. */
static heddle_status write_secret(const char *path, const char *what, const char *id, const char *about,
                                  const char *word, const unsigned char *key, size_t bytes, heddle_error *err) {
  char base[120], text[300];
  sodium_bin2base64(base, sizeof base, key, bytes, BASE64);
  snprintf(text, sizeof text, "# the %s %s of Heddle: %s\n%s %s\n", what, id, about, word, base);
  heddle_status s = write_new(path, 0600, text, err);
  sodium_memzero(base, sizeof base);
  sodium_memzero(text, sizeof text);
  return s;
}

static heddle_status create_signing(const char *path, heddle_error *err) {
  unsigned char public[HEDDLE__PUBLIC_BYTES], secret[HEDDLE__SECRET_BYTES];
  char id[20], base[120], text[300];
  char *beside = heddle__format("%s.pub", path);
  if (beside == NULL) return heddle__no_memory(err, "the path of a key");
  crypto_sign_keypair(public, secret);
  heddle__key_id(public, id);
  heddle_status s = write_secret(path, "secret key", id, "who has it signs in your name", HEDDLE__TEXT_SECRET, secret,
                                 sizeof secret, err);
  sodium_memzero(secret, sizeof secret);
  if (s == HEDDLE_OK) {
    sodium_bin2base64(base, sizeof base, public, sizeof public, BASE64);
    snprintf(text, sizeof text, "# the public key %s of Heddle\n%s %s\n", id, HEDDLE__TEXT_PUBLIC, base);
    s = write_new(beside, 0644, text, err);
    if (s != HEDDLE_OK) (void)unlink(path);
  }
  heddle__free(beside);
  return s;
}

static heddle_status create_cipher(const char *path, heddle_error *err) {
  unsigned char key[HEDDLE__CIPHER_BYTES], hash[8];
  char id[20];
  randombytes_buf(key, sizeof key);
  heddle__cipher_id(key, hash);
  heddle__key_id(hash, id);
  heddle_status s = write_secret(path, "encryption key", id, "who has it reads your models", HEDDLE__TEXT_CIPHER, key,
                                 sizeof key, err);
  sodium_memzero(key, sizeof key);
  return s;
}

heddle_status heddle_key_create(const char *path, uint32_t kind, heddle_error *err) {
  if (path == NULL || path[0] == '\0') return heddle__fail(err, HEDDLE_EINVAL, "a key needs the path of a file");
  if (kind != HEDDLE_KEY_SIGNING && kind != HEDDLE_KEY_ENCRYPTION)
    return heddle__fail(err, HEDDLE_EINVAL, "there is no kind %u of keys", (unsigned)kind);
  heddle_status s = heddle__sodium_start(err);
  if (s != HEDDLE_OK) return s;
  return kind == HEDDLE_KEY_SIGNING ? create_signing(path, err) : create_cipher(path, err);
}

heddle_status heddle_key_public(const char *path, char **out, heddle_error *err) {
  char text[MOST_KEY_FILE], base[60];
  unsigned char public[HEDDLE__PUBLIC_BYTES], secret[HEDDLE__SECRET_BYTES];
  size_t n = 0;
  mode_t mode;
  if (path == NULL || out == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "a public key is read of a path, to a place");
  *out = NULL;
  heddle_status s = heddle__sodium_start(err);
  if (s == HEDDLE_OK) s = read_file(path, text, &n, &mode, err);
  if (s != HEDDLE_OK) return s;
  bool good = heddle__key_in_text(text, n, HEDDLE__TEXT_PUBLIC, public, sizeof public);
  sodium_memzero(text, sizeof text);
  if (!good) {
    s = heddle__key_secret(path, secret, err);
    if (s == HEDDLE_OK) crypto_sign_ed25519_sk_to_pk(public, secret);
    sodium_memzero(secret, sizeof secret);
  }
  if (s != HEDDLE_OK) return s;
  sodium_bin2base64(base, sizeof base, public, sizeof public, BASE64);
  *out = heddle__format("%s %s", HEDDLE__TEXT_PUBLIC, base);
  return *out != NULL ? HEDDLE_OK : heddle__no_memory(err, "a public key");
}
