/* conformance/report_tap.c: the report in the Test Anything Protocol, version 14 (testanything.org): the plan comes last,
 * and what there is to say of a case is a YAML block. */
#include <string.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

static void begin(FILE *out, const check_options *o, const check_list *list) {
  (void)o;
  (void)list;
  fprintf(out, "TAP version 14\n");
}

/* Within a line, # begins a directive and \ escapes. */
static void words(FILE *out, const char *text) {
  const char *end = text + strlen(text);
  for (const char *p = text; p < end;) {
    uint64_t n = kit_text_printable(p, end);
    if (*p == '#' || *p == '\\') fputc('\\', out);
    if (n == 0) fputc((unsigned char)*p < 0x20 ? ' ' : '?', out);
    else fwrite(p, 1, (size_t)n, out);
    p += n > 0 ? n : 1;
  }
}

/* A YAML string in double quotes, on one line. */
static void quoted(FILE *out, const char *name, const char *text) {
  const char *end = text + strlen(text);
  fprintf(out, "  %s: \"", name);
  for (const char *p = text; p < end;) {
    uint64_t n = kit_text_printable(p, end);
    unsigned char c = (unsigned char)*p;
    if (c == '"' || c == '\\') fprintf(out, "\\%c", c);
    else if (c == '\n') fprintf(out, "\\n");
    else if (c < 0x20 || c == 0x7f) fprintf(out, "\\x%02x", c);
    else if (n == 0) fputc('?', out);
    else fwrite(p, 1, (size_t)n, out);
    p += n > 0 ? n : 1;
  }
  fprintf(out, "\"\n");
}

static void each(FILE *out, const check_list *list, const check *c, size_t number) {
  bool ok = c->outcome == CHECK_PASS || c->outcome == CHECK_SKIP;
  fprintf(out, "%s %zu - ", ok ? "ok" : "not ok", number);
  words(out, c->name);
  if (c->outcome == CHECK_SKIP) {
    fprintf(out, " # SKIP ");
    words(out, c->reason != NULL ? c->reason : "");
  }
  if (c->outcome == CHECK_FAIL_EXPECTED) {
    fprintf(out, " # TODO ");
    words(out, c->excuse != NULL ? c->excuse : "");
  }
  fprintf(out, "\n");
  if (ok && c->notes == NULL) return;
  fprintf(out, "  ---\n");
  if (c->reason != NULL && !ok) quoted(out, "message", c->reason);
  if (!ok) quoted(out, "promised", c->what->promise);
  if (c->cause != 0) quoted(out, "consequence_of", list->data[c->cause - 1].name);
  if (c->notes != NULL) quoted(out, "notes", c->notes);
  if (c->output != NULL && !ok) quoted(out, "output", c->output);
  fprintf(out, "  ...\n");
}

static void end(FILE *out, const check_options *o, const check_list *list, const check_counts *n) {
  (void)o;
  (void)list;
  fprintf(out, "1..%zu\n", n->passed + n->failed + n->consequences + n->skipped + n->expected + n->unexpected);
}

const check_report check_report_tap = {"tap", true, begin, each, end};
