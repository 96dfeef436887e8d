/* conformance/report_text.c: the report for people: a line a case, what it was about where it failed, and the counts. */
#include <string.h>
#include <time.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

static const char *word_of(check_outcome outcome) {
  switch (outcome) {
  case CHECK_PASS: return "pass";
  case CHECK_FAIL: return "FAIL";
  case CHECK_SKIP: return "skip";
  case CHECK_FAIL_EXPECTED: return "fail, as expected";
  case CHECK_PASS_UNEXPECTED: return "PASS, not expected";
  default: return "not run";
  }
}

/* What a terminal would obey or cannot show is replaced. */
static void words(FILE *out, const char *text, size_t bytes) {
  const char *end = text + bytes;
  for (const char *p = text; p < end;) {
    uint64_t n = kit_text_printable(p, end);
    if (n == 0) fputc(*p == '\t' ? ' ' : '?', out);
    else fwrite(p, 1, (size_t)n, out);
    p += n > 0 ? n : 1;
  }
}

static void sentence(FILE *out, const char *text) {
  kit_print(out, ": ");
  words(out, text, strlen(text));
}

/* Lines of a text, each behind four blanks. */
static void lines(FILE *out, const char *text) {
  for (const char *p = text; *p != '\0';) {
    size_t n = strcspn(p, "\n");
    kit_print(out, "    ");
    words(out, p, n);
    kit_print(out, "\n");
    p += n + (p[n] == '\n');
  }
}

static void begin(FILE *out, const check_options *o, const check_list *list) {
  kit_print(out, "%s\n", o->library);
  for (uint32_t i = 0; i < list->n_devices; i++) {
    kit_print(out, "device %u", (unsigned)i);
    sentence(out, list->drivers[i][0] != '\0' ? list->drivers[i] : "(no driver's name)");
    kit_print(out, "\n");
  }
}

enum { MOST_NAMED = 20 };

/* What follows from a failure, by name. */
static void consequences(FILE *out, const check_list *list, const check *c) {
  const size_t n = check_consequences(list, c);
  size_t named = 0;
  if (n == 0) return;
  kit_print(out, "    and %zu further case%s failed as a consequence:", n, n == 1 ? "" : "s");
  for (size_t i = 0; i < list->count && named < MOST_NAMED; i++) {
    if (list->data[i].cause != (size_t)(c - list->data) + 1) continue;
    kit_print(out, "%s %s", named++ > 0 ? "," : "", list->data[i].name);
  }
  if (n > named) kit_print(out, " and %zu more", n - named);
  kit_print(out, "\n");
}

static void each(FILE *out, const check_list *list, const check *c, size_t number) {
  (void)number;
  if (c->cause != 0) return;
  kit_print(out, "%-4s  %s", word_of(c->outcome), c->name);
  if (c->outcome == CHECK_FAIL_EXPECTED && c->excuse != NULL) sentence(out, c->excuse);
  else if (c->outcome != CHECK_PASS && c->reason != NULL) sentence(out, c->reason);
  kit_print(out, "\n");
  if (c->outcome == CHECK_FAIL) kit_print(out, "    promised: %s\n", c->what->promise);
  if (c->outcome == CHECK_SKIP && c->needs != NULL) kit_print(out, "    to run it: %s\n", c->needs);
  if (c->notes != NULL) lines(out, c->notes);
  if (c->outcome == CHECK_FAIL && c->output != NULL) {
    kit_print(out, "    the process printed:\n");
    lines(out, c->output);
  }
  consequences(out, list, c);
}

static void end(FILE *out, const check_options *o, const check_list *list, const check_counts *n) {
  (void)o;
  kit_print(out, "%zu passed, %zu failed, %zu skipped", n->passed, n->failed, n->skipped);
  if (n->consequences > 0) kit_print(out, ", %zu failed as a consequence", n->consequences);
  if (n->expected > 0) kit_print(out, ", %zu failed as expected", n->expected);
  if (n->unexpected > 0) kit_print(out, ", %zu passed that were expected to fail", n->unexpected);
  kit_print(out, "\n");
  for (size_t i = 0; i < list->n_abilities; i++)
    kit_print(out, "device %u: %s %s\n", (unsigned)list->abilities[i].index, list->abilities[i].name,
              list->abilities[i].works ? "works" : "does not work");
}

const check_report check_report_text = {"text", false, begin, each, end};

const char *check_date(const check_list *list, char *out, size_t bytes) {
  const time_t when = (time_t)list->began;
  struct tm tm;
  if (gmtime_r(&when, &tm) == NULL || strftime(out, bytes, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) out[0] = '\0';
  return out;
}

const char *check_cap_name(unsigned bit) {
  static const struct {
    uint64_t cap;
    const char *name;
  } caps[] = {{HEDDLE_CAP_INLINE, "inline"},
              {HEDDLE_CAP_HOST_CORES, "host-cores"},
              {HEDDLE_CAP_UNIFIED, "unified"},
              {HEDDLE_CAP_NONCOHERENT, "noncoherent"},
              {HEDDLE_CAP_WAIT_BEFORE_SIGNAL, "wait-before-signal"},
              {HEDDLE_CAP_VIEWS, "views"},
              {HEDDLE_CAP_IMPORT_UNIFIED, "import-unified"},
              {HEDDLE_CAP_POLLED, "polled"},
              {HEDDLE_CAP_LIBRARIES, "libraries"}};
  for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++)
    if (caps[i].cap == UINT64_C(1) << bit) return caps[i].name;
  return NULL;
}

const check_report *check_find_report(const char *name) {
  static const check_report *const all[] = {&check_report_text, &check_report_tap, &check_report_junit,
                                            &check_report_json};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (strcmp(all[i]->name, name) == 0) return all[i];
  return NULL;
}
