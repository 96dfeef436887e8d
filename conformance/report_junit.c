/* conformance/report_junit.c: the report in the XML that JUnit's readers take: a suite a plugin, a class a group. The
 * counts stand at the front, so everything is written at the end. */
#include <string.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

/* Text for XML 1.0: the four characters that mean something, and those that it cannot have replaced. */
static void escaped(FILE *out, const char *text) {
  const char *end = text + strlen(text);
  for (const char *p = text; p < end;) {
    uint64_t n = kit_text_printable(p, end);
    if (*p == '<') fprintf(out, "&lt;");
    else if (*p == '>') fprintf(out, "&gt;");
    else if (*p == '&') fprintf(out, "&amp;");
    else if (*p == '"') fprintf(out, "&quot;");
    else if (*p == '\n') fprintf(out, "&#10;");
    else if (n == 0) fputc('?', out);
    else fwrite(p, 1, (size_t)n, out);
    p += n > 0 ? n : 1;
  }
}

static void attribute(FILE *out, const char *name, const char *value) {
  fprintf(out, " %s=\"", name);
  escaped(out, value);
  fputc('"', out);
}

static void begin(FILE *out, const check_options *o, const check_list *list) {
  (void)out;
  (void)o;
  (void)list;
}

static void each(FILE *out, const check_list *list, const check *c, size_t number) {
  (void)out;
  (void)list;
  (void)c;
  (void)number;
}

static void write_case(FILE *out, const check_list *list, const check *c) {
  const char *reason = c->reason != NULL ? c->reason : "";
  fprintf(out, "    <testcase");
  attribute(out, "classname", c->group->name);
  attribute(out, "name", c->name);
  fprintf(out, " time=\"%.3f\">\n", c->seconds);
  if (c->outcome == CHECK_FAIL || c->outcome == CHECK_PASS_UNEXPECTED) {
    fprintf(out, "      <failure");
    attribute(out, "message", reason);
    if (c->cause != 0) attribute(out, "type", "consequence");
    fprintf(out, ">promised: ");
    escaped(out, c->what->promise);
    if (c->cause != 0) {
      fprintf(out, "&#10;a consequence of ");
      escaped(out, list->data[c->cause - 1].name);
    }
    fprintf(out, "</failure>\n");
  }
  if (c->outcome == CHECK_SKIP || c->outcome == CHECK_FAIL_EXPECTED) {
    fprintf(out, "      <skipped");
    attribute(out, "message", c->outcome == CHECK_SKIP || c->excuse == NULL ? reason : c->excuse);
    fprintf(out, "/>\n");
  }
  if (c->notes != NULL) {
    fprintf(out, "      <system-out>");
    escaped(out, c->notes);
    fprintf(out, "</system-out>\n");
  }
  if (c->output != NULL) {
    fprintf(out, "      <system-err>");
    escaped(out, c->output);
    fprintf(out, "</system-err>\n");
  }
  fprintf(out, "    </testcase>\n");
}

static void end(FILE *out, const check_options *o, const check_list *list, const check_counts *n) {
  size_t failed = n->failed + n->consequences + n->unexpected, skipped = n->skipped + n->expected;
  fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite");
  attribute(out, "name", o->library);
  fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n", n->passed + failed + skipped, failed,
          skipped);
  for (size_t i = 0; i < list->count; i++) {
    const check *c = &list->data[i];
    if (c->outcome == CHECK_WAITING || !check_is_reported(c)) continue;
    write_case(out, list, c);
  }
  fprintf(out, "  </testsuite>\n</testsuites>\n");
}

const check_report check_report_junit = {"junit", true, begin, each, end};
