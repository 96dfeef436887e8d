/* core/sign/trust.c: trust files: which keys are accepted, which are revoked, and from which sequence number on. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/sign/sign.h"

enum { MOST_TRUST = 1 << 20, MOST_WORDS = 4 };

typedef struct word {
  const char *at;
  size_t n;
} word;

/* What a trust file says of one key. */
typedef struct verdict {
  bool is_listed, is_revoked;
  uint64_t minimum;
} verdict;

static bool is(const word *w, const char *text) {
  return strlen(text) == w->n && memcmp(w->at, text, w->n) == 0;
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/* The words of a line before '#'; one more than MOST_WORDS where there are too many. */
static size_t split(const char *at, const char *end, word out[MOST_WORDS]) {
  size_t n = 0;
  while (at < end && *at != '#') {
    if (is_space(*at)) {
      at++;
      continue;
    }
    const char *start = at;
    while (at < end && !is_space(*at) && *at != '#') at++;
    if (n == MOST_WORDS) return n + 1;
    out[n++] = (word){start, (size_t)(at - start)};
  }
  return n;
}

static bool read_minimum(const word *w, uint64_t *out) {
  static const char name[] = "minimum=";
  size_t k = sizeof name - 1;
  if (w->n <= k || memcmp(w->at, name, k) != 0) return false;
  uint64_t value = 0;
  for (size_t i = k; i < w->n; i++) {
    if (w->at[i] < '0' || w->at[i] > '9') return false;
    uint64_t digit = (uint64_t)(w->at[i] - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

/* Takes one line into the verdict of a key; false where it is malformed. */
static bool take_line(const word *w, size_t n, const unsigned char *key, verdict *v) {
  unsigned char listed[HEDDLE__PUBLIC_BYTES];
  bool revoked = n > 0 && is(&w[0], "revoked");
  if (revoked) w++, n--;
  if (revoked && n == 1 && w[0].n == 16) { /* an id */
    size_t made = 0;
    const char *end = NULL;
    if (sodium_hex2bin(listed, sizeof listed, w[0].at, 16, NULL, &made, &end) != 0 || made != 8) return false;
    v->is_revoked |= memcmp(listed, key, 8) == 0;
    return true;
  }
  if (n < 2 || n > 3 || !is(&w[0], HEDDLE__TEXT_PUBLIC) || !heddle__public_of_text(w[1].at, w[1].n, listed))
    return false;
  uint64_t minimum = 0;
  if (n == 3 && (revoked || !read_minimum(&w[2], &minimum))) return false;
  if (memcmp(listed, key, sizeof listed) != 0) return true;
  if (revoked) v->is_revoked = true;
  else v->is_listed = true;
  if (minimum > v->minimum) v->minimum = minimum;
  return true;
}

static heddle_status take_text(const char *path, const char *text, size_t bytes, const unsigned char *key, verdict *v,
                               heddle_error *err) {
  const char *end = text + bytes;
  unsigned number = 1;
  for (const char *line = text; line < end; number++) {
    word words[MOST_WORDS] = {{NULL, 0}};
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    if (stop == NULL) stop = end;
    size_t n = split(line, stop, words);
    if (n > 0 && (n > MOST_WORDS || !take_line(words, n, key, v)))
      return heddle__fail(err, HEDDLE_EFORMAT,
                          "the trust file %s, line %u: expected '" HEDDLE__TEXT_PUBLIC
                          " BASE64', with minimum=N or not, or 'revoked' and a key or its id",
                          path, number);
    line = stop + 1;
  }
  return HEDDLE_OK;
}

/* All of the file; *out from heddle__alloc. Others may read it, and must not write it. */
static heddle_status read_trust(const char *path, char **out, size_t *bytes, heddle_error *err) {
  struct stat info;
  heddle_status s = HEDDLE_OK;
  *out = NULL;
  *bytes = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return heddle__fail(err, HEDDLE_EIO, "the trust file %s: %s", path, strerror(errno));
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
    s = heddle__fail(err, HEDDLE_EIO, "the trust file %s: not a regular file", path);
  else if ((info.st_mode & S_IWOTH) != 0)
    s = heddle__fail(err, HEDDLE_EDENIED, "the trust file %s may be written by everyone (mode %03o)", path,
                     (unsigned)(info.st_mode & 0777));
  else if (info.st_size > MOST_TRUST)
    s = heddle__fail(err, HEDDLE_ELIMIT, "the trust file %s is over %d bytes", path, (int)MOST_TRUST);
  if (s == HEDDLE_OK) *out = heddle__alloc((size_t)info.st_size + 1, 1);
  if (s == HEDDLE_OK && *out == NULL) s = heddle__no_memory(err, "a trust file");
  while (s == HEDDLE_OK && *bytes < (size_t)info.st_size) {
    ssize_t n = read(file, *out + *bytes, (size_t)info.st_size - *bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) s = heddle__fail(err, HEDDLE_EIO, "the trust file %s could not be read to its end", path);
    else *bytes += (size_t)n;
  }
  close(file);
  if (s == HEDDLE_OK) return s;
  heddle__free(*out);
  *out = NULL;
  return s;
}

heddle_status heddle__trust_check(const char *trust, const heddle__signature *signature, heddle_error *err) {
  static const unsigned char nobody[HEDDLE__PUBLIC_BYTES];
  char *text, id[20];
  size_t bytes;
  verdict v = {0};
  heddle_status s = heddle__sodium_start(err);
  if (s == HEDDLE_OK) s = read_trust(trust, &text, &bytes, err);
  if (s != HEDDLE_OK) return s;
  s = take_text(trust, text, bytes, signature != NULL ? signature->key : nobody, &v, err);
  heddle__free(text);
  if (s != HEDDLE_OK) return s;
  if (signature == NULL)
    return heddle__fail(err, HEDDLE_EDENIED, "it is not signed, and the trust file %s demands that", trust);
  heddle__key_id(signature->key, id);
  if (v.is_revoked) return heddle__fail(err, HEDDLE_EDENIED, "its key %s is revoked by the trust file %s", id, trust);
  if (!v.is_listed)
    return heddle__fail(err, HEDDLE_EDENIED, "it is signed by the key %s, which the trust file %s does not list", id,
                        trust);
  if (signature->sequence < v.minimum)
    return heddle__fail(err, HEDDLE_EDENIED,
                        "its sequence number is %llu, and the trust file %s demands %llu or more of the key %s: it is "
                        "an older release",
                        (unsigned long long)signature->sequence, trust, (unsigned long long)v.minimum, id);
  return HEDDLE_OK;
}
