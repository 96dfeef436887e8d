/* executor/control/regex.c: a regular expression as instructions, all of whose paths are followed at once: each character
 * of a text is looked at once. Jumps are relative, so that a part may be moved and repeated. */
#include "executor/control/regex.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

enum { MOST_CODE = 50000, MOST_REPEATS = 1000, MOST_DEPTH = 200 };

typedef enum op { OP_CHAR, OP_ANY, OP_LINE, OP_CLASS, OP_SPLIT, OP_JUMP, OP_ASSERT, OP_MATCH } op;

typedef enum what { AT_BEGIN, AT_END, AT_LINE_BEGIN, AT_LINE_END, AT_WORD, AT_NO_WORD } what;

typedef struct code {
  op op;
  bool folds;    /* OP_CHAR, OP_CLASS: case does not matter */
  bool negative; /* OP_CLASS */
  uint32_t a, n; /* the character; the class's first range and how many; what is asserted */
  int32_t x, y;  /* OP_SPLIT: both ways; OP_JUMP: x */
} code;

typedef struct range {
  uint32_t first, last;
} range;

struct ctl_regex {
  ctl_regex *behind;
  bool is_run, is_one; /* all of it is one character, any number of times in a row or once: "[a-z]+", "." */
  bool ascii[128];     /* then: which of these it takes */
  code *list;
  range *ranges;
  uint32_t n, max, n_ranges, max_ranges;
};

/* An instruction that a text has come to, and where in the text the match would begin. */
typedef struct place {
  uint32_t at;
  size_t begin;
} place;

struct ctl_matcher {
  const ctl_regex *r;
  place *now, *next;
  uint32_t *stack, *seen; /* seen: the step in which it was added */
  uint32_t n_now, n_next, step;
};

typedef struct parser {
  ctl_regex *r;
  const char *begin, *at, *end;
  bool folds, dot_all, multi;
  unsigned depth;
  heddle_status s;
  heddle_error *err;
} parser;

static void bad(parser *p, const char *why) {
  if (p->s != HEDDLE_OK) return;
  p->s = heddle__fail(p->err, HEDDLE_EUNSUPPORTED, "its pattern, at byte %zu: %s", (size_t)(p->at - p->begin), why);
}

/* ---- instructions */

static bool room(parser *p, uint32_t more) {
  ctl_regex *r = p->r;
  if (p->s != HEDDLE_OK) return false;
  if (r->n + more > MOST_CODE) {
    bad(p, "it is too long with all of its repetitions");
    return false;
  }
  if (r->n + more <= r->max) return true;
  const uint32_t max = (r->n + more) * 2;
  code *list = heddle__grow(r->list, r->n, max, sizeof *list);
  if (list == NULL) {
    p->s = heddle__no_memory(p->err, "a pattern");
    return false;
  }
  r->list = list;
  r->max = max;
  return true;
}

static void emit(parser *p, code c) {
  if (room(p, 1)) p->r->list[p->r->n++] = c;
}

/* Puts one instruction before those from first on. */
static void put_before(parser *p, uint32_t first, code c) {
  ctl_regex *r = p->r;
  if (!room(p, 1)) return;
  memmove(&r->list[first + 1], &r->list[first], (r->n - first) * sizeof c);
  r->list[first] = c;
  r->n++;
}

static void add_range(parser *p, uint32_t first, uint32_t last) {
  ctl_regex *r = p->r;
  if (p->s != HEDDLE_OK) return;
  if (r->n_ranges == r->max_ranges) {
    range *more = heddle__grow(r->ranges, r->n_ranges, r->max_ranges * 2 + 16, sizeof *more);
    if (more == NULL) {
      p->s = heddle__no_memory(p->err, "a pattern");
      return;
    }
    r->ranges = more;
    r->max_ranges = r->max_ranges * 2 + 16;
  }
  r->ranges[r->n_ranges++] = (range){first, last};
}

/* ---- classes */

static const struct named {
  const char *name;
  range ranges[5];
  unsigned n;
} named[] = {
    {"d", {{'0', '9'}}, 1},
    {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, 3},
    {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
    {"ascii", {{0, 127}}, 1},
    {"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
    {"cntrl", {{0, 31}, {127, 127}}, 2},
    {"digit", {{'0', '9'}}, 1},
    {"graph", {{'!', '~'}}, 1},
    {"lower", {{'a', 'z'}}, 1},
    {"print", {{' ', '~'}}, 1},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
    {"space", {{'\t', '\r'}, {' ', ' '}}, 2},
    {"upper", {{'A', 'Z'}}, 1},
    {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
};

static bool add_named(parser *p, const char *name, size_t n, bool negative) {
  for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
    if (strlen(named[i].name) != n || strncmp(named[i].name, name, n) != 0) continue;
    uint32_t from = 0;
    for (unsigned k = 0; k < named[i].n; k++) {
      const range one = named[i].ranges[k];
      if (!negative) add_range(p, one.first, one.last);
      else if (one.first > from) add_range(p, from, one.first - 1);
      from = one.last + 1;
    }
    if (negative) add_range(p, from, 0x10ffff);
    return true;
  }
  return false;
}

/* A character after '\' that stands for one. */
static uint32_t escaped(parser *p) {
  static const char from[] = "afnrtv", to[] = "\a\f\n\r\t\v";
  const char c = *p->at;
  const char *found = c != '\0' ? strchr(from, c) : NULL;
  if (found != NULL) {
    p->at++;
    return (uint32_t)to[found - from];
  }
  if (c == 'x') {
    char digits[9] = "";
    size_t n = 0;
    p->at++;
    const bool braced = p->at < p->end && *p->at == '{';
    if (braced) p->at++;
    while (p->at < p->end && n < (braced ? 8U : 2U) && strchr("0123456789abcdefABCDEF", *p->at) != NULL)
      digits[n++] = *p->at++;
    if (n == 0 || (braced && (p->at >= p->end || *p->at != '}'))) bad(p, "\\x needs digits");
    else if (braced) p->at++;
    const unsigned long value = strtoul(digits, NULL, 16);
    if (value > 0x10ffff) bad(p, "a character beyond U+10FFFF");
    return (uint32_t)value;
  }
  if (c == '0') {
    uint32_t value = 0;
    for (unsigned i = 0; i < 3 && p->at < p->end && *p->at >= '0' && *p->at <= '7'; i++)
      value = value * 8 + (uint32_t)(*p->at++ - '0');
    return value;
  }
  if ((c >= '1' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
    bad(p, c >= '1' && c <= '9' ? "a back-reference" : "this '\\' and letter are not supported");
    return 0;
  }
  return ctl_utf_next(&p->at, p->end);
}

static void class_item(parser *p) {
  uint32_t first = 0, last;
  if (p->at[0] == '[' && p->end - p->at > 2 && p->at[1] == ':') {
    const char *name = p->at + 2 + (p->at[2] == '^');
    const char *close = strstr(name, ":]");
    if (close == NULL || !add_named(p, name, (size_t)(close - name), p->at[2] == '^')) bad(p, "no class has this name");
    else p->at = close + 2;
    return;
  }
  for (unsigned i = 0; i < 2; i++) {
    last = 0;
    if (p->at >= p->end) {
      bad(p, "']' is missing");
      return;
    }
    if (*p->at != '\\') {
      last = ctl_utf_next(&p->at, p->end);
    } else {
      p->at++;
      const char c = p->at < p->end ? *p->at : '\0', low = (char)(c | 32);
      if (i == 0 && (low == 'd' || low == 's' || low == 'w')) {
        p->at++;
        (void)add_named(p, &low, 1, c != low);
        return;
      }
      if (c == '\0') bad(p, "'\\' at the end");
      else last = escaped(p);
    }
    if (i == 0) first = last;
    if (i == 0 && !(p->end - p->at > 1 && p->at[0] == '-' && p->at[1] != ']')) break;
    if (i == 0) p->at++;
  }
  if (last < first) bad(p, "a range that ends before it begins");
  add_range(p, first, last);
}

static void class(parser *p) {
  code c = {.op = OP_CLASS, .folds = p->folds, .a = p->r->n_ranges};
  if (p->at < p->end && *p->at == '^') {
    c.negative = true;
    p->at++;
  }
  for (bool any = false; p->s == HEDDLE_OK && (p->at >= p->end || *p->at != ']' || !any); any = true) {
    if (p->at >= p->end) bad(p, "']' is missing");
    else class_item(p);
  }
  if (p->at < p->end) p->at++;
  c.n = p->r->n_ranges - c.a;
  emit(p, c);
}

/* ---- the grammar */

static void alternatives(parser *p);

static void group(parser *p) {
  const bool folds = p->folds, dot_all = p->dot_all, multi = p->multi;
  if (p->end - p->at > 1 && p->at[0] == '?') {
    p->at++;
    if (*p->at == 'P' || *p->at == '<') { /* a name, which nothing asks for */
      const char *close = memchr(p->at, '>', (size_t)(p->end - p->at));
      const bool is_name = close != NULL && (p->at[0] == '<' ? p->at[1] != '=' && p->at[1] != '!' : p->at[1] == '<');
      if (is_name) p->at = close + 1;
      else bad(p, "this kind of group is not supported");
    } else {
      bool on = true;
      for (; p->at < p->end && *p->at != ':' && *p->at != ')' && p->s == HEDDLE_OK; p->at++) {
        if (*p->at == '-') on = false;
        else if (*p->at == 'i') p->folds = on;
        else if (*p->at == 's') p->dot_all = on;
        else if (*p->at == 'm') p->multi = on;
        else if (*p->at != 'U') bad(p, "this kind of group is not supported");
      }
      if (p->at < p->end && *p->at == ')') { /* flags for the rest of the group around */
        p->at++;
        return;
      }
      if (p->at < p->end) p->at++;
    }
  }
  if (++p->depth > MOST_DEPTH) bad(p, "too many groups within groups");
  else alternatives(p);
  p->depth--;
  if (p->at >= p->end || *p->at != ')') bad(p, "')' is missing");
  else p->at++;
  p->folds = folds;
  p->dot_all = dot_all;
  p->multi = multi;
}

static void escape(parser *p) {
  if (p->at >= p->end) {
    bad(p, "'\\' at the end");
    return;
  }
  static const char asserts[] = "AzbB";
  static const what kinds[] = {AT_BEGIN, AT_END, AT_WORD, AT_NO_WORD};
  const char c = *p->at, low = (char)(c | 32);
  const char *found = strchr(asserts, c);
  if (found != NULL) {
    p->at++;
    emit(p, (code){.op = OP_ASSERT, .a = kinds[found - asserts]});
  } else if (low == 'd' || low == 's' || low == 'w') {
    code one = {.op = OP_CLASS, .a = p->r->n_ranges};
    p->at++;
    (void)add_named(p, &low, 1, c != low);
    one.n = p->r->n_ranges - one.a;
    emit(p, one);
  } else if (c == 'Q') {
    const char *close = strstr(++p->at, "\\E");
    const char *stop = close != NULL ? close : p->end;
    while (p->at < stop) emit(p, (code){.op = OP_CHAR, .folds = p->folds, .a = ctl_utf_next(&p->at, stop)});
    if (close != NULL) p->at += 2;
  } else {
    emit(p, (code){.op = OP_CHAR, .folds = p->folds, .a = escaped(p)});
  }
}

static void atom(parser *p) {
  const char c = *p->at;
  if (c == '(' || c == '[' || c == '.' || c == '^' || c == '$' || c == '\\') p->at++;
  if (c == '(') group(p);
  else if (c == '[') class(p);
  else if (c == '.') emit(p, (code){.op = p->dot_all ? OP_ANY : OP_LINE});
  else if (c == '^') emit(p, (code){.op = OP_ASSERT, .a = p->multi ? AT_LINE_BEGIN : AT_BEGIN});
  else if (c == '$') emit(p, (code){.op = OP_ASSERT, .a = p->multi ? AT_LINE_END : AT_END});
  else if (c == '\\') escape(p);
  else if (c == '*' || c == '+' || c == '?') bad(p, "nothing before it is repeated");
  else emit(p, (code){.op = OP_CHAR, .folds = p->folds, .a = ctl_utf_next(&p->at, p->end)});
}

/* "{2}", "{2,}", "{2,5}"; false: what is there is no such, and '{' is a character. most -1: any number. */
static bool counts(parser *p, long *least, long *most) {
  char *after;
  if (p->end - p->at < 3 || p->at[1] < '0' || p->at[1] > '9') return false;
  *least = *most = strtol(p->at + 1, &after, 10);
  if (*after == ',') {
    *most = -1;
    after++;
    if (*after >= '0' && *after <= '9') *most = strtol(after, &after, 10);
  }
  if (*after != '}') return false;
  p->at = after + 1;
  if (*least > MOST_REPEATS || *most > MOST_REPEATS || (*most >= 0 && *most < *least))
    bad(p, "repetitions to 1000 only");
  return true;
}

/* The code from first on, so many times. */
static void repeat(parser *p, uint32_t first, long least, long most) {
  ctl_regex *r = p->r;
  const uint32_t n = r->n - first;
  const int32_t jump = (int32_t)n;
  code *part = p->s == HEDDLE_OK ? heddle__alloc(n + 1, sizeof *part) : NULL;
  if (p->s != HEDDLE_OK) return;
  if (part == NULL) {
    p->s = heddle__no_memory(p->err, "a pattern");
    return;
  }
  if (n > 0) memcpy(part, &r->list[first], n * sizeof *part);
  r->n = first;
  for (long i = 0; (i < least || i < most) && p->s == HEDDLE_OK; i++) {
    if (i >= least) emit(p, (code){.op = OP_SPLIT, .x = 1, .y = jump + 1});
    if (n > 0 && room(p, n)) {
      memcpy(&r->list[r->n], part, n * sizeof *part);
      r->n += n;
    }
  }
  if (most < 0) {
    emit(p, (code){.op = OP_SPLIT, .x = 1, .y = jump + 2});
    if (n > 0 && room(p, n)) {
      memcpy(&r->list[r->n], part, n * sizeof *part);
      r->n += n;
    }
    emit(p, (code){.op = OP_JUMP, .x = -(jump + 1)});
  }
  heddle__free(part);
}

static void sequence(parser *p) {
  while (p->s == HEDDLE_OK && p->at < p->end && *p->at != '|' && *p->at != ')') {
    const uint32_t first = p->r->n;
    long least = 0, most = -1;
    atom(p);
    for (bool again = true; again && p->s == HEDDLE_OK && p->at < p->end;) {
      const char c = *p->at;
      least = c == '+' ? 1 : 0;
      most = c == '?' ? 1 : -1;
      again = c == '*' || c == '+' || c == '?' || (c == '{' && counts(p, &least, &most));
      if (!again) break;
      if (c != '{') p->at++;
      if (p->at < p->end && *p->at == '?') p->at++; /* which way first does not matter to a full match */
      repeat(p, first, least, most);
    }
  }
}

static void alternatives(parser *p) {
  const uint32_t first = p->r->n;
  sequence(p);
  while (p->s == HEDDLE_OK && p->at < p->end && *p->at == '|') {
    p->at++;
    const int32_t before = (int32_t)(p->r->n - first);
    put_before(p, first, (code){.op = OP_SPLIT, .x = 1, .y = before + 2});
    const uint32_t jump = p->r->n;
    emit(p, (code){.op = OP_JUMP});
    sequence(p);
    if (p->s == HEDDLE_OK) p->r->list[jump].x = (int32_t)(p->r->n - jump);
  }
}

static void find_run(ctl_regex *r);

heddle_status ctl_regex_make(const char *pattern, ctl_regex **out, heddle_error *err) {
  ctl_regex *r = heddle__alloc(1, sizeof *r);
  *out = NULL;
  if (r == NULL) return heddle__no_memory(err, "a pattern");
  parser p = {.r = r, .begin = pattern, .at = pattern, .end = pattern + strlen(pattern), .s = HEDDLE_OK, .err = err};
  alternatives(&p);
  if (p.at < p.end) bad(&p, "a ')' without '('");
  emit(&p, (code){.op = OP_MATCH});
  if (p.s == HEDDLE_OK) find_run(r);
  if (p.s == HEDDLE_OK) *out = r;
  else ctl_regex_free(r);
  return p.s;
}

void ctl_regex_free(ctl_regex *r) {
  while (r != NULL) {
    ctl_regex *behind = r->behind;
    heddle__free(r->list);
    heddle__free(r->ranges);
    heddle__free(r);
    r = behind;
  }
}

void ctl_regex_put_behind(ctl_regex *r, ctl_regex *behind) {
  r->behind = behind;
}

const ctl_regex *ctl_regex_behind(const ctl_regex *r) {
  return r->behind;
}

/* ---- matching */

ctl_matcher *ctl_matcher_make(const ctl_regex *r) {
  ctl_matcher *m = heddle__alloc(1, sizeof *m);
  if (m == NULL) return NULL;
  m->r = r;
  m->now = heddle__alloc(r->n, sizeof *m->now);
  m->next = heddle__alloc(r->n, sizeof *m->next);
  m->stack = heddle__alloc((size_t)r->n * 2 + 2, sizeof *m->stack);
  m->seen = heddle__alloc(r->n, sizeof *m->seen);
  if (m->now != NULL && m->next != NULL && m->stack != NULL && m->seen != NULL) return m;
  ctl_matcher_free(m);
  return NULL;
}

void ctl_matcher_free(ctl_matcher *m) {
  if (m == NULL) return;
  heddle__free(m->now);
  heddle__free(m->next);
  heddle__free(m->stack);
  heddle__free(m->seen);
  heddle__free(m);
}

static bool is_word(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

#define NONE UINT32_MAX /* the character before the first, and behind the last */

static bool holds(what kind, uint32_t before, uint32_t after) {
  const bool words = (before != NONE && is_word(before)) != (after != NONE && is_word(after));
  switch (kind) {
  case AT_BEGIN: return before == NONE;
  case AT_END: return after == NONE;
  case AT_LINE_BEGIN: return before == NONE || before == '\n';
  case AT_LINE_END: return after == NONE || after == '\n';
  default: return words == (kind == AT_WORD);
  }
}

/* Adds an instruction to next, and what is reached from it without a character. */
static void follow(ctl_matcher *m, uint32_t from, uint32_t before, uint32_t after, size_t begin) {
  uint32_t n = 0;
  m->stack[n++] = from;
  while (n > 0) {
    const uint32_t i = m->stack[--n];
    const code *c = &m->r->list[i];
    if (m->seen[i] == m->step) continue;
    m->seen[i] = m->step;
    if (c->op == OP_SPLIT) {
      m->stack[n++] = (uint32_t)((int64_t)i + c->y);
      m->stack[n++] = (uint32_t)((int64_t)i + c->x);
    } else if (c->op == OP_JUMP) {
      m->stack[n++] = (uint32_t)((int64_t)i + c->x);
    } else if (c->op == OP_ASSERT) {
      if (holds((what)c->a, before, after)) m->stack[n++] = i + 1;
    } else {
      m->next[m->n_next++] = (place){i, begin};
    }
  }
}

static bool within(const ctl_regex *r, const code *c, uint32_t character) {
  for (uint32_t i = 0; i < c->n; i++)
    if (character >= r->ranges[c->a + i].first && character <= r->ranges[c->a + i].last) return true;
  return false;
}

static bool takes(const ctl_regex *r, const code *c, uint32_t x) {
  switch (c->op) {
  case OP_CHAR: return c->a == x || (c->folds && ctl_lower(c->a) == ctl_lower(x));
  case OP_ANY: return true;
  case OP_LINE: return x != '\n';
  case OP_CLASS:
    return c->negative != (within(r, c, x) || (c->folds && (within(r, c, ctl_lower(x)) || within(r, c, ctl_upper(x)))));
  default: return false;
  }
}

static void find_run(ctl_regex *r) {
  const code *c = r->list;
  r->is_one = r->n == 2;
  r->is_run = r->n == 5 && c[1].op == OP_SPLIT && c[1].x == 1 && c[1].y == 3 && c[3].op == OP_JUMP && c[3].x == -2;
  if (c[0].op > OP_CLASS) r->is_one = r->is_run = false;
  for (uint32_t x = 0; x < 128 && (r->is_one || r->is_run); x++) r->ascii[x] = takes(r, c, x);
}

static bool takes_first(const ctl_regex *r, uint32_t x) {
  return x < 128 ? r->ascii[x] : takes(r, r->list, x);
}

/* ctl_regex_find of a run. */
static bool find_in_row(const ctl_regex *r, const char *text, size_t bytes, size_t from, size_t *begin, size_t *n) {
  const char *at = text + from, *end = text + bytes, *first = NULL, *next = at;
  while (at < end) {
    next = at;
    if (takes_first(r, ctl_utf_next(&next, end))) break;
    at = next;
  }
  if (at == end) return false;
  first = at;
  for (at = next; at < end && r->is_run; at = next)
    if (!takes_first(r, ctl_utf_next(&next, end))) break;
  *begin = (size_t)(first - text);
  *n = (size_t)(at - first);
  return true;
}

static void change(ctl_matcher *m) {
  place *list = m->now;
  m->now = m->next;
  m->n_now = m->n_next;
  m->next = list;
  m->n_next = 0;
  if (++m->step != 0) return;
  memset(m->seen, 0, m->r->n * sizeof *m->seen);
  m->step = 1;
}

/* From the characters at and behind m's places to the next: those that take the character. */
static void advance(ctl_matcher *m, uint32_t here, uint32_t after) {
  for (uint32_t i = 0; i < m->n_now; i++)
    if (takes(m->r, &m->r->list[m->now[i].at], here)) follow(m, m->now[i].at + 1, here, after, m->now[i].begin);
}

bool ctl_regex_full(ctl_matcher *m, const char *text, size_t bytes) {
  const char *at = text, *end = text + bytes;
  uint32_t here = at < end ? ctl_utf_next(&at, end) : NONE;
  m->n_next = 0;
  change(m);
  follow(m, 0, NONE, here, 0);
  change(m);
  while (here != NONE && m->n_now > 0) {
    const uint32_t after = at < end ? ctl_utf_next(&at, end) : NONE;
    advance(m, here, after);
    here = after;
    change(m);
  }
  if (here != NONE) return false;
  for (uint32_t i = 0; i < m->n_now; i++)
    if (m->r->list[m->now[i].at].op == OP_MATCH) return true;
  return false;
}

/* The character before a place of a text. */
static uint32_t character_before(const char *text, const char *at) {
  const char *p = at;
  while (p > text && at - p < 4 && (p == at || ((unsigned char)*p & 0xc0) == 0x80)) p--;
  return p < at ? ctl_utf_next(&p, at) : NONE;
}

bool ctl_regex_find(ctl_matcher *m, const char *text, size_t bytes, size_t from, size_t *begin, size_t *n) {
  const char *at = text + from, *end = text + bytes;
  const uint32_t before = character_before(text, at);
  size_t place_of_here = from;
  if (m->r->is_run || m->r->is_one) return find_in_row(m->r, text, bytes, from, begin, n);
  uint32_t here = at < end ? ctl_utf_next(&at, end) : NONE;
  bool found = false;
  m->n_next = 0;
  change(m);
  follow(m, 0, before, here, from);
  change(m);
  for (;;) {
    /* places are in the order of their beginnings, so that of those at one instruction the first is kept */
    for (uint32_t i = 0; i < m->n_now; i++) {
      if (found && m->now[i].begin > *begin) m->n_now = i;
      else if (m->r->list[m->now[i].at].op == OP_MATCH) {
        found = true;
        *begin = m->now[i].begin;
        *n = place_of_here - *begin;
      }
    }
    if (here == NONE || (found && m->n_now == 0)) return found;
    const size_t next = (size_t)(at - text);
    const uint32_t after = at < end ? ctl_utf_next(&at, end) : NONE;
    advance(m, here, after);
    if (!found) follow(m, 0, here, after, next);
    here = after;
    place_of_here = next;
    change(m);
  }
}
