/* executor/control/host_text.c: operators that make texts or read them. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/control/host.h"
#include "graph/infer.h"
#include "graph/words.h"
#include "plugins/common/float16.h"

/* Memory for a text that is being made; grows. */
typedef struct buffer {
  char *bytes;
  size_t n, max;
} buffer;

static void add(ctl_host *h, buffer *b, const char *bytes, size_t n) {
  if (h->s != HEDDLE_OK || n == 0) return;
  if (n > b->max - b->n) {
    char *more = n < SIZE_MAX / 4 ? heddle__grow(b->bytes, b->n, (b->n + n) * 2, 1) : NULL;
    if (more == NULL) {
      h->s = heddle__no_memory(h->err, "a text");
      return;
    }
    b->bytes = more;
    b->max = (b->n + n) * 2;
  }
  memcpy(b->bytes + b->n, bytes, n);
  b->n += n;
}

static const char *text_of(ctl_host *h, int64_t code, size_t *n) {
  const char *text = "";
  *n = 0;
  if (h->s == HEDDLE_OK) h->s = ctl_text(h->objects, code, &text, n, h->err);
  return text;
}

static int64_t code_of(ctl_host *h, const char *text, size_t n) {
  int64_t code = 0;
  if (h->s == HEDDLE_OK) h->s = ctl_text_code(h->objects, n > 0 ? text : "", n, &code, h->err);
  return code;
}

/* ---- StringConcat */

void ctl_host_concat(ctl_host *h) {
  const int64_t *a = ctl_host_codes(h, 0), *b = ctl_host_codes(h, 1);
  int64_t shape[HEDDLE__MAX_NDIM];
  uint32_t ndim = 0;
  if (h->s != HEDDLE_OK) return;
  const heddle_tensor *in[2] = {h->in[0], h->in[1]};
  if (!heddle__broadcast(in[0]->shape, in[0]->ndim, in[1]->shape, in[1]->ndim, shape, &ndim)) {
    ctl_host_fail(h, HEDDLE_EINVAL, "the shapes of its inputs do not go together");
    return;
  }
  heddle_tensor *out = ctl_host_new(h, 0, HEDDLE__INT64, ndim, shape);
  buffer text = {NULL, 0, 0};
  for (uint64_t i = 0; out != NULL && i < out->count && h->s == HEDDLE_OK; i++) {
    uint64_t left = i, at[2] = {0, 0}, step[2] = {1, 1};
    for (uint32_t d = ndim; d-- > 0;) {
      const uint64_t k = left % (uint64_t)shape[d];
      left /= (uint64_t)shape[d];
      for (unsigned o = 0; o < 2; o++) {
        if (d + in[o]->ndim < ndim) continue;
        const int64_t size = in[o]->shape[d + in[o]->ndim - ndim];
        if (size != 1) at[o] += k * step[o];
        step[o] *= (uint64_t)size;
      }
    }
    size_t n;
    text.n = 0;
    const char *part = text_of(h, a[at[0]], &n);
    add(h, &text, part, n);
    part = text_of(h, b[at[1]], &n);
    add(h, &text, part, n);
    ((int64_t *)out->data)[i] = code_of(h, text.bytes, text.n);
  }
  heddle__free(text.bytes);
}

/* ---- StringSplit */

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next piece of what is left at *at, of which at most `more` further ones may follow (-1: any number); false: none is
 * left. Without a delimiter, spaces in a row are one, and those at both ends none. */
static bool next_piece(const char **at, const char *end, const char *delimiter, size_t width, int64_t more,
                       const char **piece, size_t *n) {
  const char *p = *at;
  if (p == NULL) return false;
  if (width == 0) {
    while (p < end && is_space(*p)) p++;
    if (p == end) return false;
    const char *q = p;
    while (more != 0 && q < end && !is_space(*q)) q++;
    if (more == 0) q = end; /* with the spaces at its end, as Python's split has them */
    *piece = p;
    *n = (size_t)(q - p);
    *at = more == 0 ? end : q;
    return true;
  }
  const char *q = p;
  while (more != 0 && (size_t)(end - q) >= width && memcmp(q, delimiter, width) != 0) q++;
  const bool found = more != 0 && (size_t)(end - q) >= width;
  *piece = p;
  *n = (size_t)((found ? q : end) - p);
  *at = found ? q + width : NULL;
  return true;
}

void ctl_host_split(ctl_host *h) {
  const int64_t *codes = ctl_host_codes(h, 0);
  const char *delimiter = heddle__attr_string(h->node, "delimiter", "");
  const int64_t limit = heddle__attr_int(h->node, "maxsplit", -1), most_splits = limit < 0 ? -1 : limit;
  const size_t width = strlen(delimiter);
  if (codes == NULL) return;
  const heddle_tensor *x = h->in[0];
  int64_t shape[HEDDLE__MAX_NDIM + 1], most = 0;
  if (x->ndim >= HEDDLE__MAX_NDIM) {
    ctl_host_fail(h, HEDDLE_ELIMIT, "its result has %u dimensions", (unsigned)x->ndim + 1);
    return;
  }
  heddle_tensor *counts = ctl_host_new(h, 1, HEDDLE__INT64, x->ndim, x->shape), *out = NULL;
  /* twice: what there is room for is known when all are counted */
  for (unsigned pass = 0; pass < 2 && counts != NULL && h->s == HEDDLE_OK; pass++) {
    if (pass == 1) {
      for (uint32_t d = 0; d < x->ndim; d++) shape[d] = x->shape[d];
      shape[x->ndim] = most;
      out = ctl_host_new(h, 0, HEDDLE__INT64, x->ndim + 1, shape);
    }
    for (uint64_t i = 0; i < x->count && h->s == HEDDLE_OK; i++) {
      size_t bytes, n;
      const char *at = text_of(h, codes[i], &bytes), *end = at + bytes, *piece;
      int64_t k = 0;
      while (h->s == HEDDLE_OK &&
             next_piece(&at, end, delimiter, width, most_splits < 0 ? -1 : most_splits - k, &piece, &n)) {
        if (pass == 1) ((int64_t *)out->data)[i * (uint64_t)most + (uint64_t)k] = code_of(h, piece, n);
        k++;
      }
      if (pass == 0) ((int64_t *)counts->data)[i] = k;
      if (k > most) most = k;
      for (; pass == 1 && k < most && h->s == HEDDLE_OK; k++)
        ((int64_t *)out->data)[i * (uint64_t)most + (uint64_t)k] = code_of(h, "", 0);
    }
  }
}

/* ---- StringNormalizer */

typedef enum fold { FOLD_NONE, FOLD_LOWER, FOLD_UPPER } fold;

static void change_case(ctl_host *h, buffer *b, const char *text, size_t n, fold to) {
  const char *end = text + n;
  b->n = 0;
  if (to == FOLD_NONE) {
    add(h, b, text, n);
    return;
  }
  while (text < end && h->s == HEDDLE_OK) {
    char bytes[64];
    size_t plain = 0; /* of ASCII in a row */
    for (; plain < sizeof bytes && text < end && (unsigned char)*text < 128; text++)
      bytes[plain++] = (char)(to == FOLD_LOWER ? ctl_lower((unsigned char)*text) : ctl_upper((unsigned char)*text));
    add(h, b, bytes, plain);
    if (plain > 0) continue;
    const uint32_t c = ctl_utf_next(&text, end);
    add(h, b, bytes, ctl_utf_put(to == FOLD_LOWER ? ctl_lower(c) : ctl_upper(c), bytes));
  }
}

/* Whether a text is one of the stop words; folded: both in lower case. */
static bool is_stop(ctl_host *h, const char *text, size_t n, bool folded, buffer *a, buffer *b) {
  const heddle_pattr *stop = heddle__attr(h->node, "stopwords");
  const uint64_t count = stop != NULL ? stop->count : 0;
  if (count == 0) return false;
  change_case(h, a, text, n, folded ? FOLD_LOWER : FOLD_NONE);
  for (uint64_t i = 0; i < count && h->s == HEDDLE_OK; i++) {
    const char *word = ((const char *const *)stop->data)[i];
    change_case(h, b, word, strlen(word), folded ? FOLD_LOWER : FOLD_NONE);
    if (a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0)) return true;
  }
  return false;
}

void ctl_host_normalize(ctl_host *h) {
  const int64_t *codes = ctl_host_codes(h, 0);
  const char *action = heddle__attr_string(h->node, "case_change_action", "NONE");
  const bool folded = heddle__attr_int(h->node, "is_case_sensitive", 0) == 0;
  const fold to = strcmp(action, "LOWER") == 0 ? FOLD_LOWER : strcmp(action, "UPPER") == 0 ? FOLD_UPPER : FOLD_NONE;
  if (codes == NULL) return;
  const heddle_tensor *x = h->in[0];
  if (to == FOLD_NONE && strcmp(action, "NONE") != 0) {
    ctl_host_fail(h, HEDDLE_EINVAL, "case_change_action is '%.40s'; expected LOWER, UPPER or NONE", action);
  } else if (x->ndim != 1 && !(x->ndim == 2 && x->shape[0] == 1)) {
    ctl_host_fail(h, HEDDLE_EINVAL, "its input has %u dimensions; expected [C] or [1, C]", (unsigned)x->ndim);
  }
  buffer a = {NULL, 0, 0}, b = {NULL, 0, 0};
  int64_t *kept = h->s == HEDDLE_OK ? heddle__alloc((size_t)x->count + 1, sizeof *kept) : NULL;
  size_t n = 0;
  if (h->s == HEDDLE_OK && kept == NULL) h->s = heddle__no_memory(h->err, "texts");
  for (uint64_t i = 0; kept != NULL && i < x->count && h->s == HEDDLE_OK; i++) {
    size_t bytes;
    const char *text = text_of(h, codes[i], &bytes);
    if (is_stop(h, text, bytes, folded, &a, &b)) continue;
    change_case(h, &a, text, bytes, to);
    kept[n++] = code_of(h, a.bytes, a.n);
  }
  if (n == 0) { /* one text without characters stands for none */
    if (kept != NULL) kept[0] = code_of(h, "", 0);
    n = 1;
  }
  const int64_t shape[2] = {x->ndim == 2 ? 1 : (int64_t)n, (int64_t)n};
  heddle_tensor *out = ctl_host_new(h, 0, HEDDLE__INT64, x->ndim, shape);
  if (out != NULL && kept != NULL) memcpy(out->data, kept, n * sizeof *kept);
  heddle__free(kept);
  heddle__free(a.bytes);
  heddle__free(b.bytes);
}

/* ---- RegexFullMatch */

void ctl_host_regex(ctl_host *h) {
  const int64_t *codes = ctl_host_codes(h, 0);
  ctl_matcher *m = codes != NULL ? ctl_matcher_make(h->pattern) : NULL;
  if (codes != NULL && m == NULL) h->s = heddle__no_memory(h->err, "a pattern");
  heddle_tensor *out = m != NULL ? ctl_host_new(h, 0, HEDDLE__BOOL, h->in[0]->ndim, h->in[0]->shape) : NULL;
  for (uint64_t i = 0; out != NULL && i < out->count && h->s == HEDDLE_OK; i++) {
    size_t n;
    const char *text = text_of(h, codes[i], &n);
    ((unsigned char *)out->data)[i] = h->s == HEDDLE_OK && ctl_regex_full(m, text, n);
  }
  ctl_matcher_free(m);
}

/* ---- Cast */

/* Element i of a tensor of numbers, as its text: floats as ONNX Runtime writes them. */
static size_t write_number(const heddle_tensor *t, uint64_t i, char out[40]) {
  const void *x = (const char *)t->data + i * heddle__dtype_bytes(t->dtype);
  double value = 0;
  if (t->dtype.code == HEDDLE_DTYPE_BOOL || t->dtype.code == HEDDLE_DTYPE_UINT) {
    const unsigned long long n = t->dtype.bits <= 8    ? *(const uint8_t *)x
                                 : t->dtype.bits == 16 ? *(const uint16_t *)x
                                 : t->dtype.bits == 32 ? *(const uint32_t *)x
                                                       : *(const uint64_t *)x;
    return (size_t)snprintf(out, 40, "%llu", n);
  }
  if (t->dtype.code == HEDDLE_DTYPE_INT) {
    const long long n = t->dtype.bits <= 8    ? *(const int8_t *)x
                        : t->dtype.bits == 16 ? *(const int16_t *)x
                        : t->dtype.bits == 32 ? *(const int32_t *)x
                                              : *(const int64_t *)x;
    return (size_t)snprintf(out, 40, "%lld", n);
  }
  if (t->dtype.code == HEDDLE_DTYPE_BFLOAT) value = (double)bfloat16_to_float(*(const uint16_t *)x);
  else if (t->dtype.bits == 16) value = (double)float16_to_float(*(const uint16_t *)x);
  else value = t->dtype.bits == 32 ? (double)*(const float *)x : *(const double *)x;
  if (isnan(value)) return (size_t)snprintf(out, 40, "NaN");
  if (isinf(value)) return (size_t)snprintf(out, 40, value > 0 ? "INF" : "-INF");
  return (size_t)snprintf(out, 40, "%.8g", value);
}

static bool is_number(heddle_dtype d) {
  const bool real = d.code == HEDDLE_DTYPE_FLOAT && d.bits >= 16, brain = d.code == HEDDLE_DTYPE_BFLOAT;
  const bool whole = d.code == HEDDLE_DTYPE_INT || d.code == HEDDLE_DTYPE_UINT || d.code == HEDDLE_DTYPE_BOOL;
  return d.lanes == 1 && (real || brain || whole);
}

/* The C locale, whatever that of the process is: a decimal point is a point. */
static locale_t plain_locale(ctl_host *h) {
  locale_t plain = h->s == HEDDLE_OK ? newlocale(LC_NUMERIC_MASK, "C", (locale_t)0) : (locale_t)0;
  if (h->s == HEDDLE_OK && plain == (locale_t)0) h->s = heddle__no_memory(h->err, "a locale");
  return plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
}

static void restore_locale(locale_t before) {
  if (before != (locale_t)0) freelocale(uselocale(before));
}

void ctl_host_number_to_text(ctl_host *h) {
  const heddle_tensor *x = h->in[0];
  if (!is_number(x->dtype)) ctl_host_fail(h, HEDDLE_EUNSUPPORTED, "its input is of no type that has a text");
  const locale_t before = plain_locale(h);
  heddle_tensor *out = ctl_host_new(h, 0, HEDDLE__INT64, x->ndim, x->shape);
  for (uint64_t i = 0; out != NULL && i < out->count && h->s == HEDDLE_OK; i++) {
    char text[40];
    const size_t n = write_number(x, i, text);
    ((int64_t *)out->data)[i] = code_of(h, text, n);
  }
  restore_locale(before);
}

/* A text as a number that an element of type d can have, to *x: whole numbers in full, others cut towards 0. */
static bool read_number(const char *text, size_t n, heddle_dtype d, void *x) {
  char *after = NULL;
  while (n > 0 && is_space(text[n - 1])) n--;
  const double value = strtod(text, &after);
  if (n == 0 || after != text + n) return false;
  if (d.code == HEDDLE_DTYPE_FLOAT || d.code == HEDDLE_DTYPE_BFLOAT) {
    const float narrow = d.bits == 32 ? strtof(text, NULL) : 0;
    if (d.code == HEDDLE_DTYPE_BFLOAT) *(uint16_t *)x = bfloat16_from_float((float)value);
    else if (d.bits == 16) *(uint16_t *)x = float16_from_double(value);
    else if (d.bits == 32) *(float *)x = narrow;
    else *(double *)x = value;
    return true;
  }
  if (d.code == HEDDLE_DTYPE_BOOL) {
    *(unsigned char *)x = value != 0;
    return true;
  }
  const char *sign = text;
  while (is_space(*sign)) sign++;
  const bool is_negative = *sign == '-';
  errno = 0;
  uint64_t whole = is_negative ? (uint64_t)strtoll(text, &after, 10) : strtoull(text, &after, 10);
  if (after != text + n) { /* "1e3", "2.5" */
    if (!(value > -9.2e18 && value < 1.8e19)) return false;
    whole = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
  } else if (errno != 0) {
    return false;
  }
  const uint32_t unused = 64 - d.bits;
  const uint64_t back =
      d.code == HEDDLE_DTYPE_UINT ? whole << unused >> unused : (uint64_t)((int64_t)(whole << unused) >> unused);
  const bool below = value <= -1, beyond = !below && d.code == HEDDLE_DTYPE_INT && (int64_t)whole < 0;
  if (back != whole || (below && d.code == HEDDLE_DTYPE_UINT) || beyond) return false;
  if (d.bits <= 8) *(uint8_t *)x = (uint8_t)whole;
  else if (d.bits == 16) *(uint16_t *)x = (uint16_t)whole;
  else if (d.bits == 32) *(uint32_t *)x = (uint32_t)whole;
  else *(uint64_t *)x = whole;
  return true;
}

void ctl_host_text_to_number(ctl_host *h) {
  const int64_t *codes = ctl_host_codes(h, 0);
  heddle_dtype to = {0, 0, 0};
  if (!heddle__onnx_dtype(heddle__attr_int(h->node, "to", 0), &to) || !is_number(to) || (to.bits < 8))
    ctl_host_fail(h, HEDDLE_EUNSUPPORTED, "texts do not become numbers of type %lld",
                  (long long)heddle__attr_int(h->node, "to", 0));
  const locale_t before = plain_locale(h);
  heddle_tensor *out = codes != NULL ? ctl_host_new(h, 0, to, h->in[0]->ndim, h->in[0]->shape) : NULL;
  for (uint64_t i = 0; out != NULL && i < out->count && h->s == HEDDLE_OK; i++) {
    size_t n;
    const char *text = text_of(h, codes[i], &n);
    if (h->s == HEDDLE_OK && !read_number(text, n, to, (char *)out->data + i * heddle__dtype_bytes(to))) {
      char shown[64];
      ctl_host_fail(h, HEDDLE_EINVAL, "the text '%s' is no number of its type", heddle__show(text, shown));
    }
  }
  restore_locale(before);
}
