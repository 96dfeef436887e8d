/* executor/control/host_tokens.c: Tokenizer, which cuts each text into its tokens: those that an expression matches, or what
 * is between separators. As ONNX Runtime's operator of that name in com.microsoft does. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/control/host.h"
#include "graph/infer.h"
#include "graph/words.h"

/* Whether each character is a token: of one separator that is empty, and of the expression ".", line ends too. */
static bool is_by_character(const heddle__node *node) {
  const heddle_pattr *list = heddle__attr(node, "separators");
  if (list != NULL && list->count > 0) return list->count == 1 && ((const char *const *)list->data)[0][0] == '\0';
  return strcmp(heddle__attr_string(node, "tokenexp", ""), ".") == 0;
}

static const char begin_mark[] = "\x02", end_mark[] = "\x03";

heddle_status ctl_tokens_check(const heddle__node *node, ctl_regex **patterns, heddle_error *err) {
  const char *expression = heddle__attr_string(node, "tokenexp", "");
  const heddle_pattr *list = heddle__attr(node, "separators");
  const uint64_t n = list != NULL ? list->count : 0;
  if ((expression[0] != '\0') == (n > 0))
    return heddle__fail(err, HEDDLE_EINVAL, "it needs either tokenexp or separators");
  const int64_t least = heddle__attr_int(node, "mincharnum", 1);
  if (least < 1 || (least > 1 && is_by_character(node)))
    return heddle__fail(err, HEDDLE_EINVAL, "mincharnum is %lld", (long long)least);
  if (is_by_character(node)) return ctl_regex_make("(?s).", patterns, err);
  if (expression[0] != '\0') return ctl_regex_make(expression, patterns, err);
  heddle_status s = HEDDLE_OK;
  for (uint64_t i = n; i-- > 0 && s == HEDDLE_OK;) {
    const char *separator = ((const char *const *)list->data)[i];
    ctl_regex *one = NULL;
    if (separator[0] == '\0') s = heddle__fail(err, HEDDLE_EINVAL, "a separator of several is empty");
    else s = ctl_regex_make(separator, &one, err);
    if (one != NULL) {
      ctl_regex_put_behind(one, *patterns);
      *patterns = one;
    }
  }
  if (s == HEDDLE_OK) return s;
  ctl_regex_free(*patterns);
  *patterns = NULL;
  return s;
}

/* Parts of a text. */
typedef struct span {
  size_t begin, n;
} span;

typedef struct spans {
  span *list;
  size_t n, max;
} spans;

static void put(ctl_host *h, spans *to, const char *text, span one, int64_t least) {
  const char *at = text + one.begin, *end = at + one.n;
  int64_t characters = 0;
  while (at < end && characters < least) {
    (void)ctl_utf_next(&at, end);
    characters++;
  }
  if (h->s != HEDDLE_OK || characters < least) return;
  if (to->n == to->max) {
    const size_t max = to->max * 2 + 16;
    span *more = heddle__grow(to->list, to->n, max, sizeof *more);
    if (more == NULL) {
      h->s = heddle__no_memory(h->err, "tokens");
      return;
    }
    to->list = more;
    to->max = max;
  }
  to->list[to->n++] = one;
}

/* What an expression matches in a part, or with is_between what is left around that. */
static void cut(ctl_host *h, ctl_matcher *m, const char *text, span part, bool is_between, int64_t least, spans *to) {
  const char *base = text + part.begin, *end = base + part.n;
  size_t from = 0, begin, n;
  while (h->s == HEDDLE_OK && from <= part.n && ctl_regex_find(m, base, part.n, from, &begin, &n)) {
    if (is_between) put(h, to, text, (span){part.begin + from, begin - from}, least);
    else put(h, to, text, (span){part.begin + begin, n}, least);
    const char *next = base + begin + n;
    if (n == 0 && next < end) (void)ctl_utf_next(&next, end);
    else if (n == 0) return;
    from = (size_t)(next - base);
  }
  if (is_between && from < part.n) put(h, to, text, (span){part.begin + from, part.n - from}, least);
}

/* The tokens of one text, to a; b is scratch. */
static void tokens_of(ctl_host *h, ctl_matcher **m, uint32_t n_m, bool is_between, int64_t least, const char *text,
                      size_t bytes, spans *a, spans *b) {
  a->n = 0;
  put(h, a, text, (span){0, bytes}, 0);
  for (uint32_t k = 0; k < n_m && h->s == HEDDLE_OK; k++) {
    b->n = 0;
    for (size_t i = 0; i < a->n; i++) cut(h, m[k], text, a->list[i], is_between, least, b);
    const spans other = *a;
    *a = *b;
    *b = other;
  }
}

/* The codes of all texts' tokens, one text after the other, and where each text's end. */
typedef struct result {
  int64_t *codes;
  size_t *ends;
  size_t n, max, most;
} result;

static void gather(ctl_host *h, result *out, uint64_t i, const char *text, const spans *found) {
  if (h->s != HEDDLE_OK) return;
  if (found->n > out->max - out->n) {
    const size_t max = (out->n + found->n) * 2;
    int64_t *more = heddle__grow(out->codes, out->n, max, sizeof *more);
    if (more == NULL) {
      h->s = heddle__no_memory(h->err, "tokens");
      return;
    }
    out->codes = more;
    out->max = max;
  }
  for (size_t k = 0; k < found->n && h->s == HEDDLE_OK; k++)
    h->s = ctl_text_code(h->objects, text + found->list[k].begin, found->list[k].n, &out->codes[out->n++], h->err);
  out->ends[i] = out->n;
  if (found->n > out->most) out->most = found->n;
}

static void give(ctl_host *h, const result *tokens, bool is_marked) {
  const heddle_tensor *x = h->in[0];
  int64_t shape[3] = {0}, pad = 0, begin = 0, end = 0;
  const char *padding = heddle__attr_string(h->node, "pad_value", "");
  const size_t width = tokens->most + (is_marked && tokens->most > 0 ? 2 : 0);
  for (uint32_t d = 0; d < x->ndim; d++) shape[d] = x->shape[d];
  shape[x->ndim] = (int64_t)(x->count > 0 ? width : 0);
  if (h->s == HEDDLE_OK) h->s = ctl_text_code(h->objects, padding, strlen(padding), &pad, h->err);
  if (is_marked && h->s == HEDDLE_OK) h->s = ctl_text_code(h->objects, begin_mark, 1, &begin, h->err);
  if (is_marked && h->s == HEDDLE_OK) h->s = ctl_text_code(h->objects, end_mark, 1, &end, h->err);
  heddle_tensor *out = ctl_host_new(h, 0, HEDDLE__INT64, x->ndim + 1, shape);
  size_t from = 0;
  for (uint64_t i = 0; out != NULL && i < x->count; i++) {
    int64_t *row = (int64_t *)out->data + i * width, *at = row;
    if (width == 0) break;
    if (is_marked) *at++ = begin;
    while (from < tokens->ends[i]) *at++ = tokens->codes[from++];
    if (is_marked) *at++ = end;
    while (at < row + width) *at++ = pad;
  }
}

void ctl_host_tokens(ctl_host *h) {
  const int64_t *codes = ctl_host_codes(h, 0);
  const heddle_pattr *separators = heddle__attr(h->node, "separators");
  const bool is_between = separators != NULL && separators->count > 0 && !is_by_character(h->node);
  const int64_t least = heddle__attr_int(h->node, "mincharnum", 1);
  if (codes == NULL) return;
  const heddle_tensor *x = h->in[0];
  if (x->ndim != 1 && x->ndim != 2) {
    ctl_host_fail(h, HEDDLE_EINVAL, "its input has %u dimensions; expected [C] or [N, C]", (unsigned)x->ndim);
    return;
  }
  uint32_t n = 0, made = 0;
  for (const ctl_regex *r = h->pattern; r != NULL; r = ctl_regex_behind(r)) n++;
  ctl_matcher **m = heddle__alloc((size_t)n + 1, sizeof *m);
  result out = {.ends = heddle__alloc((size_t)x->count + 1, sizeof *out.ends)};
  spans a = {NULL, 0, 0}, b = {NULL, 0, 0};
  for (const ctl_regex *r = h->pattern; m != NULL && r != NULL; r = ctl_regex_behind(r)) {
    m[made] = ctl_matcher_make(r);
    if (m[made] == NULL) break;
    made++;
  }
  if (made < n || m == NULL || out.ends == NULL) h->s = heddle__no_memory(h->err, "tokens");
  for (uint64_t i = 0; i < x->count && h->s == HEDDLE_OK; i++) {
    const char *text = "";
    size_t bytes = 0;
    h->s = ctl_text(h->objects, codes[i], &text, &bytes, h->err);
    if (h->s == HEDDLE_OK) tokens_of(h, m, n, is_between, least, text, bytes, &a, &b);
    gather(h, &out, i, text, &a);
  }
  if (h->s == HEDDLE_OK) give(h, &out, heddle__attr_int(h->node, "mark", 0) != 0);
  while (made > 0) ctl_matcher_free(m[--made]);
  heddle__free(m);
  heddle__free(out.codes);
  heddle__free(out.ends);
  heddle__free(a.list);
  heddle__free(b.list);
}
